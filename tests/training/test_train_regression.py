"""The task regression: laws of its predictions, and targets that cannot be learned."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsage.errors import ConfigError, DataError, GraphError
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split, without_test_nodes
from graphsage.inference.bundle import load_bundle
from graphsage.inference.model import Model
from graphsage.training.config import Config
from graphsage.training.train import train
from planted import SMALL, planted_graph, planted_split

TASK = {**SMALL, "task": "regression", "device": "cpu"}


def priced(num_nodes: int = 120, seed: int = 0) -> Graph:
    """The target is linear in a node's features and those of its neighbors."""
    graph = planted_graph(num_nodes, seed)
    x = graph.features.double()
    sums = torch.zeros_like(x).index_add(0, graph.edge_rows, x[graph.indices.long()])
    means = sums / graph.degrees.clamp(min=1)[:, None]
    return graph.replace(labels=(x[:, 0] - 2 * means[:, 1])[:, None], class_names=("price",))


def fitted(graph: Graph, **options: object) -> Model:
    return train(graph, planted_split(graph), **{**TASK, **options})


def test_it_learns_numbers_of_nodes_and_neighbors() -> None:
    graph = priced(400)
    model = train(graph, planted_split(graph), **{**TASK, "epochs": 40, "dim": 16, "batch_size": 64})
    scores = model.evaluate()
    assert scores.r2 > 0.7
    assert scores.rmse < 0.6 * float(graph.labels.std())
    assert scores.nodes == 80
    assert model.predict().shape == (400, 1)
    assert model.predict().dtype == torch.float64


@settings(max_examples=6, deadline=None)
@given(st.sampled_from([0.25, 3.0, 1e9]), st.sampled_from([0.0, 1024.0, -3.5]), st.sampled_from(["mse", "huber"]))
def test_scaling_and_shifting_the_target_does_the_same_to_predictions(factor: float, shift: float, loss: str) -> None:
    graph = priced()
    moved = graph.replace(labels=factor * graph.labels + shift)
    one, two = (fitted(each, loss=loss).predict() for each in (graph, moved))
    torch.testing.assert_close(two, factor * one + shift, rtol=1e-4, atol=1e-4 * factor)


def test_predictions_of_all_targets_do_not_depend_on_the_order_of_the_nodes() -> None:
    """Ids key all draws, so the same rows in another order give the same model and predictions."""
    graph = priced()
    order = torch.randperm(120, generator=torch.Generator().manual_seed(1))
    place = torch.argsort(order)
    edges = torch.stack([graph.edge_rows, graph.indices.long()], dim=1)
    ids = [f"n{row}" for row in range(120)]
    targets = torch.cat([graph.labels, graph.features[:, 3:4].double()], dim=1)
    one = Graph.from_edges(edges, features=graph.features, targets=targets, ids=ids)
    two = Graph.from_edges(
        place[edges], features=graph.features[order], targets=targets[order], ids=[ids[row] for row in order.tolist()]
    )
    split = planted_split(graph)
    first = train(one, split, **TASK)
    again = load_copy(first)
    torch.testing.assert_close(again.predict(two)[place], first.predict(one), rtol=1e-5, atol=1e-5)
    trained = train(two, Split(split.codes[order]), **{**TASK, "epochs": 1})
    assert trained.head.shift.tolist() == pytest.approx(first.head.shift.tolist(), rel=1e-12)
    assert trained.head.unit.tolist() == pytest.approx(first.head.unit.tolist(), rel=1e-12)


def load_copy(model: Model) -> Model:
    return Model(model.encoder, model.head, model.sampling, seed=model.seed, class_names=model.class_names)


def test_a_model_is_loaded_with_its_units(tmp_path) -> None:
    graph = priced()
    model = fitted(graph.replace(labels=1e6 * graph.labels), epochs=1)
    model.save(tmp_path / "model")
    loaded = load_bundle(tmp_path / "model")
    assert loaded.regression
    assert torch.equal(loaded.predict(graph), model.predict(graph))


def test_a_missing_target_is_unknown_to_training_and_scores() -> None:
    """Training and scores are those of a graph in which nothing else of these nodes changes."""
    graph = priced()
    split = planted_split(graph)
    two = torch.cat([graph.labels, graph.labels.flip(0)], dim=1)
    test = split.nodes("test")
    two[split.nodes("train")[:5]] = math.nan
    two[test[0]] = math.nan
    two[test[1], 1] = math.nan
    graph = graph.replace(labels=two, class_names=("a", "b"))
    model = fitted(graph)
    scores = model.evaluate()
    assert scores.nodes == len(test) - 1
    assert [each.nodes for each in scores.targets] == [len(test) - 1, len(test) - 2]
    assert len(model.predict()) == 120
    known = two[split.nodes("train")]
    assert model.head.shift.tolist() == pytest.approx(known.nanmean(dim=0).tolist())


def test_a_constant_target_is_predicted_exactly() -> None:
    graph = priced()
    labels = torch.cat([torch.full_like(graph.labels, 0.1), graph.labels], dim=1)
    labels[planted_split(graph).nodes("test")[0], 0] = 5.0
    model = fitted(graph.replace(labels=labels, class_names=("same", "price")))
    assert set(model.predict()[:, 0].tolist()) == {0.1}
    assert torch.isfinite(model.predict()).all()


def test_early_stopping_keeps_the_weights_with_the_lowest_error() -> None:
    graph = priced()
    scores: list[float] = []
    model = train(
        graph,
        planted_split(graph),
        **{**TASK, "epochs": 20, "metric": "mae", "patience": 2},
        on_event=lambda event: scores.append(event.val_score) if event.val_score is not None else None,
    )
    assert model.about["training"] | {"metric": "mae", "best_val_score": min(scores)} == model.about["training"]
    split = planted_split(graph)
    assert model.evaluate(without_test_nodes(graph, split), split, "val").mae == pytest.approx(min(scores), rel=1e-6)


@pytest.mark.parametrize(
    ("task", "metric"), [("regression", "micro-f1"), ("supervised", "rmse"), ("joint", "r2"), ("regression", "loss")]
)
def test_a_metric_of_another_task_is_refused(task: str, metric: str) -> None:
    with pytest.raises(ConfigError, match=rf"metric='{metric}' does not fit task='{task}'; use one of"):
        Config(task=task, metric=metric)


def test_other_labels_are_refused_by_name() -> None:
    graph, numbers = planted_graph(), priced()
    with pytest.raises(DataError, match="the labels are classes, which task='regression' does not learn"):
        train(graph, planted_split(graph), **TASK)
    with pytest.raises(DataError, match=r"the labels are numbers to predict, .* use task='regression'"):
        train(numbers, planted_split(numbers), **SMALL)
    model = fitted(numbers, epochs=1)
    with pytest.raises(DataError, match="the model predicts numbers, and the labels of the graph are classes"):
        model.evaluate(graph, planted_split(graph))
    with pytest.raises(DataError, match="predicts numbers and no classes"):
        model.predict_proba(numbers)
    classes = train(graph, planted_split(graph), **{**SMALL, "epochs": 1})
    with pytest.raises(DataError, match="this model predicts classes"):
        classes.values(classes.embed(graph))
    with pytest.raises(DataError, match="the model predicts classes, and the labels of the graph are numbers"):
        classes.evaluate(numbers, planted_split(graph))


def test_no_setting_that_was_not_given_is_said_to_have_no_effect() -> None:
    assert Config(task="regression").resolved().without_effect() == []
    (sentence,) = Config(task="regression", class_weights="balanced").resolved().without_effect()
    assert "class_weights has no effect with task='regression'" in sentence


def test_a_target_without_a_training_value_is_refused() -> None:
    graph = priced()
    split = planted_split(graph)
    labels = graph.labels.clone()
    labels[split.nodes("train")] = math.nan
    with pytest.raises(DataError, match="no known value of the target 'price' among the training nodes"):
        train(graph.replace(labels=labels), split, **TASK)


@pytest.mark.parametrize(
    ("targets", "problem"),
    [
        ([1.0, math.inf], "target 0 of node 1 is inf; targets must be finite"),
        ([[1.0, 2.0], [3.0, 1e39]], "target 1 of node 1 is 1e\\+39; targets must be finite, at most 1e\\+38"),
        ([1.0], "targets must be"),
        (["a", "b"], "targets must be numbers"),
        ([[], []], "targets must be"),
    ],
)
def test_bad_targets_are_named(targets: list, problem: str) -> None:
    with pytest.raises(GraphError, match=problem):
        Graph.from_edges([[0, 1]], 2, targets=targets)


def test_targets_of_a_graph_are_saved_described_and_matched_by_name(tmp_path) -> None:
    graph = Graph.from_edges([[0, 1]], targets=[[1.0, 2.5], [math.nan, math.nan]], class_names=["a", "b"])
    assert (graph.num_nodes, graph.num_classes, graph.multilabel, graph.regression) == (2, 2, False, True)
    assert "2 targets" in repr(graph)
    assert graph.class_counts() == [1, 1]
    assert graph.labeled(torch.arange(2)).tolist() == [0]
    graph.save(tmp_path / "graph")
    opened = Graph.open(tmp_path / "graph")
    assert torch.equal(opened.labels.nan_to_num(7.0), graph.labels.nan_to_num(7.0))
    assert graph.with_nodes(edges=[[1, 2]]).labels[2].isnan().all()
    with pytest.raises(GraphError, match="give labels or targets"):
        Graph.from_edges([[0, 1]], labels=[0, 1], targets=[0.0, 1.0])
    with pytest.raises(GraphError, match="2 columns of targets but class_names has 1"):
        Graph.from_edges([[0, 1]], targets=[[1.0, 2.5], [0.0, 1.0]], class_names=["a"])
    with pytest.raises(GraphError, match="numbers to predict are targets"):
        Graph.from_edges([[0, 1]], labels=[0.5, 1.0])


def test_columns_of_another_graph_are_found_by_name() -> None:
    graph = priced()
    model = fitted(graph, epochs=1)
    twice = torch.cat([graph.labels + 100, graph.labels], dim=1)
    other = graph.replace(labels=twice, class_names=("rent", "price"))
    assert model.evaluate(other, planted_split(graph)) == model.evaluate(graph, planted_split(graph))
    with pytest.raises(DataError, match="a target 'rent' that the model does not predict; it predicts price"):
        model.evaluate(graph.replace(class_names=("rent",)), planted_split(graph))
