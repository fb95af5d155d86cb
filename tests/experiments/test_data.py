"""What the names of data sets mean in the experiments."""

from pathlib import Path

import pytest
import torch

from graphsage.datasets.open import open_data
from graphsage.errors import ConfigError
from graphsage.experiments.data import Source, opened
from graphsage.graph.split import TEST, TRAIN, VAL, training_graph
from graphsage.graph.storage import save_graph
from planted import planted_graph, planted_split


def test_setmm_is_split_by_date_as_the_paper_splits_its_citation_data() -> None:
    """All that is older than the test nodes trains; 30% of the newest validate, at random and so in all their years."""
    data = opened(Source("setmm"))
    time, codes = data.graph.time, data.split.codes
    assert time is not None
    by_date = open_data("setmm").split("date")
    assert torch.equal(codes == TRAIN, by_date.codes != TEST)
    new = codes != TRAIN
    assert time[new].min() > time[codes == TRAIN].max() == data.split.cutoff
    assert int((codes == VAL).sum()) == round(0.3 * int(new.sum()))
    middle = time[new].double().median()
    for part in (VAL, TEST):
        assert 0.45 < (time[codes == part] > middle).double().mean() < 0.55


def test_no_edge_of_setmm_leads_to_an_unseen_node_in_training() -> None:
    data = opened(Source("setmm"))
    graph = data.graph.replace(features=None)
    seen = training_graph(graph, data.split)
    unseen = data.split.codes != TRAIN
    assert int(unseen[seen.edge_rows].sum()) == int(unseen[seen.indices].sum()) == 0
    assert seen.num_edges > 0.5 * graph.num_edges


def test_why_deepwalk_cannot_be_applied_is_told_as_it_is(tmp_path: Path) -> None:
    graph, split = planted_graph(), planted_split(planted_graph())
    held = split.codes.bool()
    rows, columns = graph.edge_rows, graph.indices.long()
    inside = held[rows] == held[columns]
    apart = graph.from_edges(torch.stack([rows, columns], dim=1)[inside], graph.num_nodes, features=graph.features,
                             labels=graph.labels)  # fmt: skip
    alone = graph.from_edges(torch.stack([rows, columns], dim=1)[~held[rows] & ~held[columns]], graph.num_nodes,
                             features=graph.features, labels=graph.labels)  # fmt: skip
    several = graph.replace(graph_number=held.long())
    for name, each, reason in (("a", alone, "no unseen node has an edge"), ("b", several, "several graphs"),
                               ("c", apart, "several graphs"), ("d", graph, None)):  # fmt: skip
        save_graph(each, tmp_path / name, {"given": split})
        told = opened(Source(name, str(tmp_path / name))).apart
        assert told is None if reason is None else told is not None and told.startswith(reason)


def test_training_nodes_without_labels_are_told_before_anything_is_made(tmp_path: Path) -> None:
    graph = planted_graph()
    save_graph(
        graph.replace(labels=torch.full((graph.num_nodes,), -1)), tmp_path / "g", {"given": planted_split(graph)}
    )
    with pytest.raises(ConfigError, match="--data g: no training node has a label"):
        opened(Source("g", str(tmp_path / "g")))
