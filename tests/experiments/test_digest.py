"""A data set's digest: every value that decides a result changes it, and how the data came here does not."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from graphsage.datasets.dataset import Dataset, text_plan
from graphsage.experiments import trials
from graphsage.experiments.data import Source, opened
from graphsage.experiments.digest import digest
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split
from graphsage.graph.storage import save_graph
from planted import planted_graph, planted_split


def of(graph: Graph, split: Split) -> str:
    return digest(Dataset("one", graph, {"given": split}, "given"), graph, split)


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
    assert digest(data, elsewhere, split) == digest(data, made, split)
    assert digest(replace(data, columns={"text": np.array(words, object)}), made, split) == digest(data, made, split)
    for other in (replace(data, columns={"text": ["another", *words[1:]]}),
                  replace(data, columns={"text": ["word 0word", " 1", *words[2:]]})):  # fmt: skip
        assert digest(other, made, split) != digest(data, made, split)


def test_a_trial_is_another_one_on_other_data_and_by_another_version_of_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = planted_graph()
    split = planted_split(graph)
    for name, saved in (("a", graph), ("b", another_feature(graph))):
        save_graph(saved, tmp_path / name, {"given": split})
    first, second = (
        trials.make_trial("table1", "random", "random", Source("one", str(tmp_path / name)), seed=0)
        for name in ("a", "b")
    )
    assert first.key != second.key
    monkeypatch.setitem(trials.VERSIONS, "random", 2)
    later = trials.make_trial("table1", "random", "random", Source("one", str(tmp_path / "a")), seed=0)
    assert later.key != first.key
    assert trials.make_trial("theory", "theory", "theory", None).version == 1
    assert trials.protocol(["random", "theory"]) == 2
