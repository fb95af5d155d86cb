import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_fscore_support

from graphsage.evaluation.class_report import class_report


def test_scores_of_each_class_by_hand() -> None:
    """Class a: 3 nodes, 2 predicted, 1 of them right; class b gets the rest; class c is never predicted."""
    truth, decided = np.array([0, 0, 0, 1, 2, -1]), np.array([0, 1, 1, 0, 1, 2])
    a, b, c = class_report(truth, decided, ("a", "b", "c"))
    assert (a.name, a.precision, a.recall, a.f1, a.support, a.predicted) == ("a", 0.5, 1 / 3, 0.4, 3, 2)
    assert (b.precision, b.recall, b.f1, b.support, b.predicted) == (0.0, 0.0, 0.0, 1, 3)
    assert (c.precision, c.recall, c.f1, c.support, c.predicted) == (0.0, 0.0, 0.0, 1, 0)


@given(st.integers(0, 1000), st.booleans())
def test_scores_are_those_of_scikit_learn(seed: int, multilabel: bool) -> None:
    draw = np.random.default_rng(seed)
    shape, high = ((30, 4), 2) if multilabel else ((30,), 4)
    truth, decided = draw.integers(high, size=shape), draw.integers(high, size=shape)
    found = class_report(truth, decided, "abcd")
    labels = None if multilabel else range(4)
    expected = precision_recall_fscore_support(truth, decided, labels=labels, average=None, zero_division=0)
    for name, numbers in zip(("precision", "recall", "f1", "support"), expected, strict=True):
        assert [getattr(each, name) for each in found] == pytest.approx(numbers.tolist())
