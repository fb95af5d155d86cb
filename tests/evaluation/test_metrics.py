import math

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score

from graphsage.errors import DataError
from graphsage.evaluation.metrics import METRICS

CLASSES = np.array([0, 0, 1, 2])
PROBABILITIES = np.array([[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8]])
MARKS = np.array([[1, 0], [1, 1], [0, 1], [0, 0]], np.uint8)
EACH = np.array([[0.9, 0.2], [0.6, 0.4], [0.3, 0.8], [0.1, 0.6]])


def score(name: str, truth: np.ndarray, p: np.ndarray) -> float:
    decided = p.argmax(axis=1) if truth.ndim == 1 else (p > 0.5).astype(int)
    return METRICS[name].score(truth, p, decided)


def test_scores_of_one_class_per_node_by_hand() -> None:
    """Node 1 of class 0 is predicted as class 1: F1 is 2/3, 2/3 and 1."""
    assert score("micro-f1", CLASSES, PROBABILITIES) == pytest.approx(0.75)
    assert score("accuracy", CLASSES, PROBABILITIES) == pytest.approx(0.75)
    assert score("macro-f1", CLASSES, PROBABILITIES) == pytest.approx((2 / 3 + 2 / 3 + 1) / 3)
    loss = -(math.log(0.7) + math.log(0.2) + math.log(0.6) + math.log(0.8)) / 4
    assert score("loss", CLASSES, PROBABILITIES) == pytest.approx(loss)
    assert score("loss", CLASSES, PROBABILITIES) == pytest.approx(log_loss(CLASSES, PROBABILITIES))
    assert score("auc", CLASSES, PROBABILITIES) == pytest.approx((3.5 / 4 + 2 / 3 + 1) / 3)


def test_scores_of_many_labels_by_hand() -> None:
    """Label 1 of node 1 is missed and that of node 3 is wrong: two of four rows are right."""
    assert score("accuracy", MARKS, EACH) == 0.5
    assert score("micro-f1", MARKS, EACH) == pytest.approx(6 / 8)
    right = np.where(MARKS, EACH, 1 - EACH)
    assert score("loss", MARKS, EACH) == pytest.approx(-np.log(right).mean())
    assert score("auc", MARKS, EACH) == pytest.approx(roc_auc_score(MARKS, EACH, average="macro"))
    assert score("ap", MARKS, EACH) == pytest.approx(average_precision_score(MARKS, EACH, average="macro"))


@pytest.mark.parametrize("name", ["loss", "auc", "ap"])
def test_a_class_that_the_model_does_not_know_is_left_out_of_scores_by_probability(name: str) -> None:
    p = np.vstack([PROBABILITIES, PROBABILITIES[:1]])
    assert score(name, np.append(CLASSES, 3), p) == score(name, CLASSES, PROBABILITIES)


def test_auc_without_two_kinds_of_nodes_is_an_error() -> None:
    with pytest.raises(DataError, match="no class of the validation nodes has both members and others"):
        score("auc", np.zeros(3, int), PROBABILITIES[:3])


def test_losses_and_errors_are_better_when_lower() -> None:
    for name, metric in METRICS.items():
        lower, higher = metric.better(0.1, 0.2), metric.better(0.2, 0.1)
        assert (lower, higher) == ((True, False) if name in ("loss", "rmse", "mae") else (False, True))
        assert metric.better(0.1, None)
        assert metric.ascending(metric.ascending(0.3)) == 0.3
        assert (metric.ascending(0.1) < metric.ascending(0.2)) == higher
