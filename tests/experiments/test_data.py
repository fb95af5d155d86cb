"""The data of the experiments: how it is opened, split, told apart, and mixed with noise."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from graphsage.datasets.dataset import Dataset, text_plan
from graphsage.datasets.open import open_data
from graphsage.errors import ConfigError
from graphsage.experiments import trial_runners
from graphsage.experiments.data import Named, Source, fingerprint, normal, opened, rare_classes, with_noise
from graphsage.experiments.figures import measured
from graphsage.experiments.trial_runners import probed, procrustes, unseen
from graphsage.graph.graph import Graph
from graphsage.graph.split import TEST, TRAIN, VAL, Split, training_graph
from graphsage.graph.storage import save_graph
from graphsage.kernels.random import Stream
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
    apart = graph.from_edges(
        torch.stack([rows, columns], dim=1)[inside], graph.num_nodes, features=graph.features, labels=graph.labels
    )
    alone = graph.from_edges(
        torch.stack([rows, columns], dim=1)[~held[rows] & ~held[columns]],
        graph.num_nodes,
        features=graph.features,
        labels=graph.labels,
    )
    several = graph.replace(graph_number=held.long())
    for name, each, reason in (
        ("a", alone, "no unseen node has an edge"),
        ("b", several, "several graphs"),
        ("c", apart, "several graphs"),
        ("d", graph, None),
    ):
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


def of(graph: Graph, split: Split) -> str:
    return fingerprint(Dataset("one", graph, {"given": split}, "given"), graph, split)


def another_feature(graph: Graph) -> Graph:
    assert graph.features is not None
    features = graph.features.clone()
    features[3, 1] += 0.01
    return graph.replace(features=features)


def another_label(graph: Graph) -> Graph:
    assert graph.labels is not None
    labels = graph.labels.clone()
    labels[5] = (labels[5] + 1) % 2
    return graph.replace(labels=labels)


def another_edge(graph: Graph) -> Graph:
    indices = graph.indices.clone()
    indices[0] = (indices[0] + 1) % graph.num_nodes
    return graph.replace(indices=indices)


@pytest.mark.parametrize("changed", [another_feature, another_label, another_edge])
def test_one_value_more_or_less_is_other_data(changed: Callable[[Graph], Graph]) -> None:
    graph = planted_graph()
    split = planted_split(graph)
    assert of(graph, split) == of(planted_graph(), planted_split(graph))
    assert of(changed(graph), split) != of(graph, split)


def test_so_is_another_split_and_another_time_of_an_edge_that_trains() -> None:
    graph = planted_graph()
    split = planted_split(graph)
    assert of(graph, Split.random(graph.num_nodes, seed=9)) != of(graph, split)
    early = torch.zeros(graph.num_stored_edges, dtype=torch.int64)
    late = early.clone()
    late[:] = 2
    until = Split(split.codes, cutoff=1)
    assert of(graph.replace(edge_time=late), until) != of(graph.replace(edge_time=early), until)


def test_the_type_of_the_numbers_and_the_format_on_disk_do_not_count(tmp_path: Path) -> None:
    graph = planted_graph()
    split = planted_split(graph)
    assert graph.features is not None
    wide = graph.replace(features=graph.features.double(), indices=graph.indices.long())
    assert of(wide, split) == of(graph, split)
    save_graph(graph, tmp_path / "folder", {"given": split})
    assert opened(Source("one", str(tmp_path / "folder"))).digest == of(graph, split)


def test_features_made_of_text_count_by_the_text_and_the_recipe() -> None:
    """The numbers themselves come out of a decomposition, whose last digits differ between machines."""
    graph = planted_graph().replace(features=None)
    split = planted_split(graph)
    words = [f"word {row % 7}" for row in range(graph.num_nodes)]
    data = Dataset("one", graph, {"given": split}, "given", {"text": words}, text_plan("text"))
    made, _ = data.with_features(split)
    assert made.features is not None
    elsewhere = made.replace(features=made.features * (1 + 1e-6))
    assert fingerprint(data, elsewhere, split) == fingerprint(data, made, split)
    assert fingerprint(replace(data, columns={"text": np.array(words, object)}), made, split) == fingerprint(
        data, made, split
    )
    for other in (
        replace(data, columns={"text": ["another", *words[1:]]}),
        replace(data, columns={"text": ["word 0word", " 1", *words[2:]]}),
    ):
        assert fingerprint(other, made, split) != fingerprint(data, made, split)


def test_a_trial_is_another_one_on_other_data_and_by_another_version_of_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = planted_graph()
    split = planted_split(graph)
    for name, saved in (("a", graph), ("b", another_feature(graph))):
        save_graph(saved, tmp_path / name, {"given": split})
    first, second = (
        trial_runners.make_trial("table1", "random", "random", Source("one", str(tmp_path / name)), seed=0)
        for name in ("a", "b")
    )
    assert first.key != second.key
    later = replace(trial_runners.TYPES["random"], version=2)
    monkeypatch.setitem(trial_runners.TYPES, "random", later)
    later = trial_runners.make_trial("table1", "random", "random", Source("one", str(tmp_path / "a")), seed=0)
    assert later.key != first.key
    assert trial_runners.make_trial("theory", "theory", "theory", None).version == 1
    assert trial_runners.protocol(["random", "theory"]) == 2


GRAPH = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (3, 0)], 5, features=np.eye(5, 4), labels=[0, 1, 0, 1, 0])
DATA = Named("d", GRAPH, Split.masks([1, 1, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]), "", "")


def test_noise_replaces_a_growing_set_of_whole_columns() -> None:
    assert GRAPH.features is not None
    assert with_noise(DATA, 0.0, 0) is GRAPH
    half, all_gone = (with_noise(DATA, share, 0).features for share in (0.5, 1.0))
    assert half is not None
    assert all_gone is not None
    changed = (half != GRAPH.features).any(dim=0)
    assert int(changed.sum()) == 2
    assert torch.equal(half[:, changed], all_gone[:, changed])
    assert bool((all_gone != GRAPH.features).all())
    assert not torch.equal(all_gone, with_noise(DATA, 1.0, 1).features)


def test_normal_numbers_have_the_moments_of_normal_numbers() -> None:
    drawn = normal(Stream(0, "test").keys(torch.arange(200_000)))
    assert float(drawn.mean()) == pytest.approx(0, abs=0.01)
    assert float(drawn.var()) == pytest.approx(1, abs=0.02)
    assert float((drawn.abs() > 1.96).double().mean()) == pytest.approx(0.05, abs=0.003)


def test_edges_back_and_empty_nodes_are_counted() -> None:
    # Edges at unseen nodes 3 and 4: 2-3, 0-3 lead back, 3-4 does not. Node 4 has features 0.
    assert measured(DATA) == {"edges_back": round(2 / 3, 4), "nodes_without_features": 0.2}


def test_unseen_nodes_are_those_outside_training() -> None:
    assert unseen(DATA, None).tolist() == [3, 4]
    assert len(unseen(DATA, 1)) == 1


def test_alignment_finds_a_rotation() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(50, 6))
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    assert np.allclose(z @ turn @ procrustes(z @ turn, z), z)


def test_debian_is_opened_from_its_two_tables(tmp_path: Path) -> None:
    rows = [
        ("a", "bullseye", "libs"),
        ("b", "trixie", "games"),
        ("c", "sid", "libs"),
        ("d", "forky", "games"),
        ("e", "sid", "libs"),
        ("f", "bookworm", "libs"),
        ("g", "sid", "libs"),
    ]
    text = "id,release,section,description\n" + "".join(f"{i},{r},{s},a package of {s} {i}\n" for i, r, s in rows)
    (tmp_path / "nodes.csv").write_text(text)
    (tmp_path / "edges.csv").write_text("source,target,kind,release\na,b,depends,trixie\nc,a,depends,sid\n")
    data = opened(Source("debian", str(tmp_path)))
    assert data.split.sizes() == {"train": 3, "val": 1, "test": 3}
    assert data.one_graph
    assert data.column is None
    assert data.graph.features is not None


def test_a_graph_that_was_made_of_debian_is_not_taken_for_its_releases(tmp_path: Path) -> None:
    save_graph(GRAPH, tmp_path / "graph", {"given": DATA.split})
    assert opened(Source("debian", str(tmp_path / "graph"))).note == ""


def test_ppi_says_whose_labels_it_has(tmp_path: Path) -> None:

    labels = np.zeros((1000, 2), np.uint8)
    labels.flat[:610] = 1
    number = np.arange(1000) // 500
    graph = Graph.from_edges(
        [(0, 1), (600, 601)], 1000, features=np.ones((1000, 1)), labels=labels, graph_number=number
    )
    save_graph(graph, tmp_path / "g", {"given": Split.by_graph(torch.from_numpy(number), [], [1])})
    data = opened(Source("ppi", str(tmp_path / "g")))
    assert data.note.startswith("the released labels (density 0.305")
    assert not data.one_graph


def test_the_probe_learns_from_training_rows_alone() -> None:
    """The held-out rows say the opposite of the training rows: whoever looked at them would be right about them."""
    labels = np.arange(60) % 2
    z = np.eye(2)[labels] * 4
    z[40:] = z[40:, ::-1]
    masks = [(np.arange(60) >= a) & (np.arange(60) < b) for a, b in ((0, 40), (40, 50), (50, 60))]
    graph = Graph.from_edges([(v, v + 1) for v in range(59)], 60, features=z, labels=labels)
    found = probed(z, Named("d", graph, Split.masks(*masks), "", ""), seed=0)
    assert found["val"] == found["test"] == 0


def test_the_share_of_test_nodes_in_rare_classes_is_counted() -> None:
    """Class 1 has 1 of 101 known training nodes, class 2 has none; a node of unknown class does not count."""
    labels = torch.tensor([0] * 100 + [1, -1] + [0, 1, 2, 2, -1])
    split = Split.masks(torch.arange(107) < 102, None, torch.arange(107) >= 102)
    graph = Graph.from_edges([(0, 1)], 107, labels=labels)
    assert rare_classes(Named("d", graph, split, "", "")) == {"rare_test_share": 0.75}
    both = Graph.from_edges([(0, 1)], 107, labels=torch.ones(107, 2, dtype=torch.uint8))
    assert rare_classes(Named("d", both, split, "", "")) == {}
