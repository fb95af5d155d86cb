import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from graphsage.errors import DataError
from graphsage.evaluation.metrics import METRICS
from graphsage.evaluation.regression import regression_scores

NUMBERS = arrays(np.float64, 12, elements=st.integers(-50, 50).map(float))


def test_scores_by_hand() -> None:
    """Errors 1, 0, -2 of y = 1, 2, 6 (mean 3): 3/3, sqrt(5/3), 1 - 5/14."""
    found = regression_scores(np.array([1.0, 2.0, 6.0]), np.array([2.0, 2.0, 4.0]))
    assert (found.mae, found.nodes) == (1.0, 3)
    assert found.rmse == pytest.approx(math.sqrt(5 / 3))
    assert found.r2 == pytest.approx(1 - 5 / 14)


def test_unknown_cells_do_not_count_and_targets_are_averaged() -> None:
    truth = np.array([[1.0, 10.0], [3.0, math.nan], [math.nan, math.nan], [math.nan, 30.0]])
    made = np.array([[1.0, 12.0], [4.0, 0.0], [9.0, 9.0], [0.0, 30.0]])
    found = regression_scores(truth, made)
    assert [each.mae for each in found.targets] == [0.5, 1.0]
    assert [each.nodes for each in found.targets] == [2, 2]
    assert (found.mae, found.nodes) == (0.75, 3)
    assert found.r2 == pytest.approx((1 - 1 / 2 + 1 - 4 / 200) / 2)
    assert math.isfinite(regression_scores(np.array([[1.0, math.nan]]), np.array([[2.0, 0.0]])).mae)
    with pytest.raises(DataError, match="no node with a known target"):
        regression_scores(np.array([math.nan]), np.array([1.0]))
    with pytest.raises(DataError, match="one shape"):
        regression_scores(np.zeros(3), np.zeros((3, 1)))


@given(NUMBERS, NUMBERS)
def test_scores_are_those_of_scikit_learn(truth: np.ndarray, made: np.ndarray) -> None:
    found = regression_scores(truth, made)
    assert found.mae == pytest.approx(mean_absolute_error(truth, made))
    assert found.rmse == pytest.approx(root_mean_squared_error(truth, made))
    assert found.r2 == pytest.approx(r2_score(truth, made))


def test_equal_targets_have_an_r2_of_one_or_zero() -> None:
    assert regression_scores(np.full(3, 0.1), np.full(3, 0.1)).r2 == 1
    assert regression_scores(np.full(3, 0.1), np.full(3, 0.2)).r2 == 0


@given(NUMBERS, NUMBERS)
def test_metrics_prefer_smaller_errors(truth: np.ndarray, made: np.ndarray) -> None:
    half = truth + (made - truth) / 2
    for name in ("mae", "rmse", "r2"):
        metric = METRICS[name]
        near, far = (metric.score(truth, each, each) for each in (half, made))
        assert metric.better(near, far) == bool((truth != made).any() and near != far)
        assert metric.ascending(near) >= metric.ascending(far)
