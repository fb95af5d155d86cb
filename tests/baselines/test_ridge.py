import math

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

from graphsage.baselines.features import inductive_features
from graphsage.baselines.ridge import PENALTIES, WITHOUT_VALIDATION, regression_yardsticks, ridge
from graphsage.errors import DataError
from graphsage.evaluation.probe import standardized
from graphsage.evaluation.regression import regression_scores
from planted import planted_graph, planted_split

DRAW = np.random.default_rng(0)


@pytest.mark.parametrize("width", [4, 60])
def test_the_fit_is_that_of_scikit_learn_at_the_penalty_chosen_on_validation(width: int) -> None:
    x = DRAW.normal(size=(100, width)).astype(np.float32)
    y = x @ DRAW.normal(size=width) + 3 * DRAW.normal(size=100)
    y[::9] = math.nan
    train, val, test = np.arange(40), np.arange(40, 60), np.arange(60, 100)
    penalty, predicted = ridge(x, y, train, val, test)
    kept, held = (rows[~np.isnan(y[rows])] for rows in (train, val))
    z = standardized(x, kept).astype(np.float64)
    models = {p: Ridge(alpha=p).fit(z[kept], y[kept]) for p in PENALTIES}
    np.testing.assert_allclose(predicted, models[penalty].predict(z[test]), rtol=1e-4, atol=1e-4)
    errors = {p: float(np.square(model.predict(z[held]) - y[held]).sum()) for p, model in models.items()}
    assert penalty == min(errors, key=lambda p: errors[p])
    assert ridge(x, y, train, val[:0], test)[0] == WITHOUT_VALIDATION


def test_yardsticks_learn_from_training_nodes_and_choose_on_validation_nodes() -> None:
    graph = planted_graph()
    split = planted_split(graph)
    graph = graph.replace(labels=graph.features[:, :2].double() + 3, class_names=None)
    found = regression_yardsticks(graph, split, "test")
    labels, test = graph.labels.numpy(), split.nodes("test").numpy()
    mean = labels[split.nodes("train").numpy()].mean(axis=0)
    assert found["mean of the training targets"].scores == regression_scores(
        labels[test], np.tile(mean, (len(test), 1))
    )
    assert found["ridge on features"].scores.r2 > 0.999
    twice = inductive_features(graph, split, graph.features.numpy(), 2)
    parts = [split.nodes(part).numpy() for part in ("train", "val", "test")]
    penalties = tuple(ridge(twice, column, *parts)[0] for column in labels.T)
    assert found["ridge on features + 2 hops of neighbor means"].penalties == penalties
    changed = labels.copy()
    changed[test] += 1000  # not read by any fit
    again = regression_yardsticks(graph.replace(labels=torch.from_numpy(changed)), split, "val")
    assert again == regression_yardsticks(graph, split, "val")


def test_without_features_the_mean_is_the_only_yardstick() -> None:
    graph = planted_graph()
    bare = graph.replace(labels=graph.features[:, :1].double(), features=None, class_names=None)
    assert list(regression_yardsticks(bare, planted_split(graph), "test")) == ["mean of the training targets"]
    with pytest.raises(DataError, match="need numbers to predict"):
        regression_yardsticks(graph, planted_split(graph), "test")
