"""The law against leaks: nothing about a held-out node reaches the weights, the scaler, the vocabulary or the cap."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsage.datasets.dataset import Dataset, text_plan
from graphsage.evaluation.f1 import f1_scores
from graphsage.graph.cap import cap_degrees
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split, training_graph
from graphsage.training.config import Config
from graphsage.training.progress import Event
from graphsage.training.train import set_up, train
from planted import SMALL, planted_graph, planted_split


def with_other_held_out_nodes(graph: Graph, split: Split, seed: int) -> Graph:
    """The same graph seen from the training nodes, and another graph seen from all other nodes."""
    generator = torch.Generator().manual_seed(seed)
    seen = split.codes == 0
    n = graph.num_nodes
    rows = torch.repeat_interleave(torch.arange(n), graph.degrees)
    inside = seen[rows] & seen[graph.indices]
    kept = torch.stack([rows, graph.indices.long()], dim=1)[inside]
    fresh = torch.randint(n, (n * 6, 2), generator=generator)
    fresh = fresh[~(seen[fresh[:, 0]] & seen[fresh[:, 1]])]
    features = torch.where(seen[:, None], graph.features, torch.randn(graph.features.shape, generator=generator) * 9)
    labels = torch.where(seen, graph.labels, torch.randint(2, (n,), generator=generator))
    return Graph.from_edges(
        torch.cat([kept, fresh]), n, features=features, labels=labels, class_names=graph.class_names
    )


@settings(max_examples=5)
@given(seed=st.integers(1, 1000))
@pytest.mark.parametrize("task", ["supervised", "unsupervised", "contrastive", "joint"])
def test_held_out_features_labels_and_edges_do_not_change_the_weights(task: str, seed: int) -> None:
    graph = planted_graph()
    split = planted_split(graph)
    other = with_other_held_out_nodes(graph, split, seed)
    assert not torch.equal(graph.features, other.features)
    options = {**SMALL, "task": task, "max_degree": 5, "degree_features": True, "epochs": 1}
    options |= (
        {"class_weights": "balanced", "label_inputs": seed % 2 == 0} if task == "supervised" else {"num_walks": 2}
    )
    options |= {"task": "unsupervised", "objective": task, "num_walks": 50} if task == "contrastive" else {}
    one, two = train(graph, split, **options), train(other, split, **options)
    for (name, a), b in zip(one.encoder.state_dict().items(), two.encoder.state_dict().values(), strict=True):
        assert torch.equal(a, b), name
    if one.head is not None:
        assert torch.equal(one.head.linear.weight, two.head.linear.weight)


@given(seed=st.integers(1, 1000))
def test_held_out_edges_do_not_change_the_capped_training_graph(seed: int) -> None:
    graph = planted_graph()
    split = planted_split(graph)
    other = with_other_held_out_nodes(graph, split, seed)
    one, two = (cap_degrees(training_graph(g, split), 4) for g in (graph, other))
    assert torch.equal(one.indptr, two.indptr)
    assert torch.equal(one.indices, two.indices)


def test_held_out_texts_do_not_change_the_vocabulary_or_the_features_of_training_nodes() -> None:
    graph = planted_graph().replace(features=None)
    split = planted_split(graph)
    words = [f"word{v % 7} common thing{v % 3}" for v in range(graph.num_nodes)]
    seen = (split.codes == 0).tolist()
    changed = [w if s else "entirely different language" for w, s in zip(words, seen, strict=True)]
    made = []
    for texts in (words, changed):
        data = Dataset("planted", graph, {"own": split}, "own", columns={"text": texts}, plan=text_plan("text"))
        made.append(train(data, "own", **{**SMALL, "epochs": 1}))
    one, two = (model.features.state() for model in made)
    assert one[0] == two[0]
    assert all((one[1][name] == two[1][name]).all() for name in one[1])
    assert torch.equal(made[0].encoder.layers[0].weight.weight, made[1].encoder.layers[0].weight.weight)
    assert torch.equal(made[0].encoder.shift, made[1].encoder.shift)


def test_an_edge_dated_after_the_cut_is_not_in_the_training_graph() -> None:
    graph = Graph.from_edges([[0, 1], [1, 2], [2, 3]], time=[1, 1, 1, 5], edge_time=[1, 4, 5])
    split = Split.at_times(graph.time, train_end=2, val_end=3)
    seen = training_graph(graph, split)
    assert [seen.neighbors(v).tolist() for v in range(4)] == [[1], [0], [], []]


@pytest.mark.parametrize("multilabel", [False, True])
def test_a_class_that_only_test_nodes_have_changes_no_weight_and_counts_as_wrong(multilabel: bool) -> None:
    graph = planted_graph(multilabel=multilabel)
    split = planted_split(graph)
    test = split.nodes("test")
    assert graph.labels is not None
    if multilabel:
        labels = torch.cat([torch.zeros(120, 1, dtype=torch.uint8), graph.labels], dim=1)
        labels[test[:5], 0] = 1
    else:
        labels = graph.labels + 1
        labels[test[:5]] = 0
    other = graph.replace(labels=labels, class_names=("new", "kind 0", "kind 1"))
    one, two = (train(each, split, **{**SMALL, "epochs": 10}) for each in (graph, other))
    for a, b in zip(one.encoder.parameters(), two.encoder.parameters(), strict=True):
        assert torch.equal(a, b)
    assert one.head is not None
    assert two.head is not None
    assert torch.equal(one.head.linear.weight, two.head.linear.weight)
    assert two.class_names == ("kind 0", "kind 1")
    before, after = one.evaluate(graph, split).micro, two.evaluate(other, split).micro
    predicted = one.predict(graph, test)
    if multilabel:
        truth = labels[test][:, [1, 2, 0]].numpy()
        expected = f1_scores(truth, np.pad(predicted.numpy(), ((0, 0), (0, 1)))).micro
    else:
        expected = float(((predicted + 1) == labels[test]).float().mean())
    assert after == pytest.approx(expected)
    assert after < before


def test_validation_during_training_reads_no_test_node() -> None:
    """Features, labels and edges of test nodes change nothing that is reported, nor the weights that are kept."""
    graph = planted_graph()
    split = planted_split(graph)
    test = split.codes == 2
    pairs = torch.stack([graph.edge_rows, graph.indices.long()], dim=1)
    kept = pairs[~test[pairs].any(dim=1)]
    features = torch.where(test[:, None], torch.full_like(graph.features, 50.0), graph.features)
    fresh = torch.stack([torch.nonzero(test).flatten()[:20], torch.arange(20)], dim=1)
    other = Graph.from_edges(
        torch.cat([kept, fresh]), 120, features=features, labels=graph.labels, class_names=graph.class_names
    )
    curves: list[list[float]] = []
    for each in (graph, other):
        curve: list[float] = []

        def keep(event: Event, curve: list[float] = curve) -> None:
            if event.val_score is not None and event.kind == "epoch":
                curve.append(event.val_score)

        train(each, split, on_event=keep, **SMALL)
        curves.append(curve)
    assert len(curves[0]) == SMALL["epochs"]
    assert curves[0] == curves[1]


@settings(max_examples=5)
@given(seed=st.integers(1, 1000))
@pytest.mark.parametrize("multilabel", [False, True])
@pytest.mark.parametrize("aggregator", ["mean", "pool", "lstm"])
def test_no_target_of_a_batch_reads_a_label_of_its_batch(aggregator: str, multilabel: bool, seed: int) -> None:
    """The inputs of a step are the same bits whatever the labels of its targets are, and others' labels are read."""
    graph = planted_graph(classes=3, multilabel=multilabel)
    config = Config.from_dict({**SMALL, "aggregator": aggregator, "hidden_dim": 4, "label_inputs": True, "seed": seed})
    run = set_up(graph, planted_split(graph), config.resolved(), torch.device("cpu"), {})
    examples = tuple(tensor[0] for tensor in run.objective.choose_examples(0))
    before = run.objective.gather(examples).inputs.x.clone()
    known, targets = run.data.known, examples[0]
    assert known is not None
    kept = known.clone()
    known[targets] = 7.0
    assert torch.equal(run.objective.gather(examples).inputs.x, before)
    assert bool((known[targets] == 7.0).all())  # for the next step
    known.copy_(kept)
    others = run.data.nodes[~torch.isin(run.data.nodes, targets)]
    known[others] = 7.0
    assert not torch.equal(run.objective.gather(examples).inputs.x, before)


@settings(max_examples=5)
@given(seed=st.integers(1, 1000))
def test_with_label_inputs_no_held_out_label_changes_an_embedding(seed: int) -> None:
    graph = planted_graph(classes=3)
    split = planted_split(graph)
    model = train(graph, split, **{**SMALL, "label_inputs": True, "seed": seed})
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(3, (120,), generator=generator)
    other = graph.replace(labels=torch.where(split.codes == 0, graph.labels, drawn))
    assert torch.equal(model.embed(graph, inference="exact"), model.embed(other, inference="exact"))
    score = model.evaluate(other, split, "test").micro
    assert (
        score
        == f1_scores(other.labels[split.nodes("test")].numpy(), model.predict(graph, split.nodes("test")).numpy()).micro
    )
    changed = graph.replace(labels=torch.where(split.codes == 0, drawn, graph.labels))
    assert not torch.equal(model.embed(graph), model.embed(changed))
