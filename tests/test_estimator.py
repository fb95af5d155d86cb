import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from graphsage.errors import ConfigError, DataError
from graphsage.estimator import GraphSageClassifier, GraphSageEmbedder, GraphSageRegressor
from planted import planted_graph

SMALL = {"sample_sizes": (4, 3), "dim": 8, "batch_size": 16, "epochs": 20}
NODES = np.arange(120)


def test_cross_validation_over_node_numbers_learns_the_planted_classes() -> None:
    graph = planted_graph()
    scores = cross_val_score(GraphSageClassifier(graph, **SMALL), NODES, graph.labels.numpy(), cv=3)
    assert scores.mean() > 0.85


def test_relations_and_weights_are_read() -> None:
    graph = planted_graph(direction="both", weighted=True)
    y = graph.labels.numpy()
    model = GraphSageClassifier(graph, **SMALL).fit(NODES[:80], y[:80])
    assert model.model_.encoder.config.relations == ("in", "out")
    assert model.model_.encoder.config.weighted
    assert model.score(NODES[80:], y[80:]) > 0.85


def test_grid_search_chooses_an_aggregator_and_a_learning_rate() -> None:
    graph = planted_graph()
    grid = {"aggregator": ["mean", "gcn"], "lr": [0.01, 1e-6]}
    search = GridSearchCV(GraphSageClassifier(graph, **{**SMALL, "epochs": 5}), grid, cv=2)
    search.fit(NODES[:, None], graph.labels.numpy())
    assert search.best_params_["lr"] == 0.01
    assert search.best_estimator_.graph is graph


def test_only_the_fitted_nodes_are_seen() -> None:
    graph = planted_graph()
    y = graph.labels.numpy()
    other = graph.replace(features=graph.features.clone())
    other.features[60:] += 100.0
    one, two = (GraphSageClassifier(g, **SMALL).fit(NODES[:60], y[:60]) for g in (graph, other))
    assert (one.model_.encoder.layers[0].weight.weight == two.model_.encoder.layers[0].weight.weight).all()


def test_many_labels_are_predicted_as_zeros_and_ones() -> None:
    graph = planted_graph(classes=3, multilabel=True)
    y = graph.labels.numpy()
    model = GraphSageClassifier(graph, **SMALL).fit(NODES[:80], y[:80])
    assert model.predict(NODES[80:]).shape == (40, 3)
    assert set(np.unique(model.predict(NODES))) <= {0, 1}


def test_without_features_nodes_read_the_labels_that_fit_was_given() -> None:
    graph = planted_graph(classes=3)
    bare, y = graph.replace(features=None, labels=None), graph.labels.numpy()
    model = GraphSageClassifier(bare, **{**SMALL, "dim": 32, "dropout": 0.0}).fit(NODES[:80], y[:80])
    assert model.model_.label_inputs
    assert model.score(NODES[80:], y[80:]) > 0.6


def test_cross_validation_over_node_numbers_predicts_numbers() -> None:
    graph = planted_graph()
    y = 1000 + 50 * graph.features[:, 0].double().numpy()
    settings = {**SMALL, "batch_size": 32, "lr": 0.03}
    assert cross_val_score(GraphSageRegressor(graph, **settings), NODES, y, cv=3).mean() > 0.6
    both = np.stack([y, -y], axis=1)
    model = GraphSageRegressor(graph, **settings, settings={"loss": "huber"}).fit(NODES[:80], both[:80])
    assert model.predict(NODES[80:]).shape == (40, 2)
    assert model.score(NODES[80:], both[80:]) > 0.6
    with pytest.raises(DataError, match="y must hold numbers"):
        model.fit(NODES[:2], ["a", "b"])


def test_the_embedder_feeds_a_pipeline() -> None:
    graph = planted_graph()
    embedder = GraphSageEmbedder(graph, **{**SMALL, "epochs": None, "steps": 60, "lr": 0.01})
    pipeline = make_pipeline(embedder, StandardScaler(), LogisticRegression())
    pipeline.fit(NODES[:80], graph.labels.numpy()[:80])
    assert pipeline.score(NODES[80:], graph.labels.numpy()[80:]) > 0.8
    assert embedder.transform(NODES).shape == (120, 8)


def test_parameters_are_stored_set_and_cloned() -> None:
    graph = planted_graph()
    model = GraphSageClassifier(graph, lr=0.5)
    copy = clone(model).set_params(lr=0.1, aggregator="pool")
    assert (copy.lr, copy.aggregator, copy.graph is graph, model.lr) == (0.1, "pool", True, 0.5)


def test_wrong_input_is_named() -> None:
    graph = planted_graph()
    y = graph.labels.numpy()
    with pytest.raises(ConfigError, match="aggregator must be one of"):
        GraphSageClassifier(graph, aggregator="median").fit(NODES, y)
    with pytest.raises(DataError, match="nodes 0 to 119"):
        GraphSageClassifier(graph, **SMALL).fit(NODES + 1, y)
    with pytest.raises(DataError, match="node numbers"):
        GraphSageClassifier(graph, **SMALL).fit(np.zeros((120, 6)), y)
    with pytest.raises(DataError, match="must go together"):
        GraphSageClassifier(graph, **SMALL).fit(NODES, y[:5])
    with pytest.raises(DataError, match="learns from edges"):
        GraphSageEmbedder().fit(np.zeros((5, 2)))


@parametrize_with_checks(
    [GraphSageClassifier(dim=16, sample_sizes=(1,), epochs=20, batch_size=64, lr=0.03, settings={"normalize": "never"})]
)
def test_the_classifier_passes_scikit_learns_checks_on_features_alone(estimator, check) -> None:
    check(estimator)


@parametrize_with_checks(
    [GraphSageRegressor(dim=16, sample_sizes=(1,), epochs=20, batch_size=64, lr=0.03)],
)
def test_the_regressor_passes_scikit_learns_checks_on_features_alone(estimator, check) -> None:
    check(estimator)
