"""F1 by hand and as scikit-learn computes it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import f1_score

from graphsage.errors import DataError
from graphsage.evaluation.f1 import F1, f1_scores

SAME_LENGTH = st.integers(1, 25).flatmap(
    lambda n: st.tuples(
        arrays(np.int64, n, elements=st.integers(0, 4)), arrays(np.int64, n, elements=st.integers(0, 4))
    )
)
LABELS = st.tuples(st.integers(1, 12), st.integers(2, 5)).flatmap(
    lambda shape: st.tuples(*[arrays(np.uint8, shape, elements=st.integers(0, 1))] * 2)
)


@given(SAME_LENGTH)
def test_one_class_a_node_equals_scikit_learn(pair: tuple[np.ndarray, np.ndarray]) -> None:
    truth, predicted = pair
    scores = f1_scores(truth, predicted)
    assert scores.micro == pytest.approx(f1_score(truth, predicted, average="micro"))
    assert scores.macro == pytest.approx(f1_score(truth, predicted, average="macro"))
    assert scores.nodes == len(truth)


@given(LABELS)
def test_many_labels_equal_scikit_learn(pair: tuple[np.ndarray, np.ndarray]) -> None:
    truth, predicted = pair
    scores = f1_scores(truth, predicted)
    assert scores.micro == pytest.approx(f1_score(truth, predicted, average="micro", zero_division=0))
    occur = np.flatnonzero((truth | predicted).any(axis=0))
    macro = f1_score(truth, predicted, labels=occur, average="macro") if len(occur) else 0
    assert scores.macro == pytest.approx(macro)


def test_one_class_a_node_worked_out_by_hand() -> None:
    # class 0: 2 hits, 1 missed; class 1: 1 hit, 1 wrong; class 2: 1 wrong, 1 missed
    scores = f1_scores(np.array([0, 0, 0, 1, 2]), np.array([0, 0, 2, 1, 1]))
    assert scores.micro == pytest.approx(3 / 5)
    assert scores.macro == pytest.approx((4 / 5 + 2 / 3 + 0) / 3)


def test_many_labels_worked_out_by_hand() -> None:
    truth = np.array([[1, 0, 1], [1, 1, 0]])
    predicted = np.array([[1, 1, 0], [0, 1, 0]])
    scores = f1_scores(truth, predicted)  # 2 hits, 1 wrong, 2 missed
    assert scores == F1(pytest.approx(4 / 7), pytest.approx((2 / 3 + 2 / 3 + 0) / 3), 2)


@given(SAME_LENGTH)
def test_nodes_of_unknown_class_do_not_count(pair: tuple[np.ndarray, np.ndarray]) -> None:
    truth, predicted = pair
    more = np.concatenate([[-1, -1], truth]), np.concatenate([[0, 4], predicted])
    assert f1_scores(*more) == f1_scores(truth, predicted)


def test_a_label_that_nobody_has_or_predicts_is_left_out_of_macro() -> None:
    truth = np.array([[1, 0], [0, 0]])
    assert f1_scores(truth, truth) == F1(1.0, 1.0, 2)
    assert f1_scores(truth * 0, truth * 0) == F1(0.0, 0.0, 2)


def test_shapes_that_differ_and_empty_truth_are_refused() -> None:
    with pytest.raises(DataError, match=r"\(3,\) and \(2,\)"):
        f1_scores(np.zeros(3, int), np.zeros(2, int))
    with pytest.raises(DataError, match="no labeled node"):
        f1_scores(np.full(3, -1), np.zeros(3, int))


def test_nodes_of_unknown_class_or_labels_are_not_scored() -> None:
    assert f1_scores(np.array([0, -1, 1]), np.array([0, 1, 0])) == f1_scores(np.array([0, 1]), np.array([0, 0]))
    truth, predicted = np.array([[1, 0], [255, 255], [0, 0]]), np.array([[1, 0], [1, 1], [0, 1]])
    assert f1_scores(truth, predicted) == f1_scores(truth[[0, 2]], predicted[[0, 2]])
    with pytest.raises(DataError, match="no labeled node"):
        f1_scores(truth[1:2], predicted[1:2])
