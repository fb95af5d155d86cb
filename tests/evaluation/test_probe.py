"""The logistic probe learns what can be separated and survives what cannot."""

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier

from graphsage.evaluation.probe import Probe


def blobs(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three classes around three corners."""
    draw = np.random.default_rng(seed)
    classes = draw.integers(0, 3, n)
    corners = np.array([[4.0, 0], [0, 4], [-4, -4]])
    return corners[classes] + draw.normal(size=(n, 2)), classes


def test_it_learns_classes_that_can_be_separated() -> None:
    probe = Probe().fit(*blobs(300, 0))
    z, classes = blobs(200, 1)
    predicted = probe.predict(z)
    assert predicted.shape == (200,)
    assert (predicted == classes).mean() > 0.95


def test_it_learns_each_of_many_labels() -> None:
    (z, a), (other, b) = blobs(300, 0), blobs(200, 1)
    labels = [np.stack([c == 0, c != 1], axis=1).astype(np.uint8) for c in (a, b)]
    predicted = Probe().fit(z, labels[0]).predict(other)
    assert predicted.shape == labels[1].shape
    assert ((predicted == labels[1]).mean(axis=0) > 0.95).all()


@pytest.mark.parametrize("value", [0, 1])
def test_a_label_that_never_varies_is_predicted_as_it_is(value: int) -> None:
    z, classes = blobs(100, 0)
    labels = np.stack([np.full(100, value), classes == 0], axis=1).astype(np.uint8)
    predicted = Probe().fit(z, labels).predict(z)
    assert (predicted[:, 0] == value).all()
    assert (predicted[:, 1] == labels[:, 1]).mean() > 0.9


def test_a_single_class_is_predicted_for_everyone() -> None:
    z, _ = blobs(10, 0)
    assert (Probe().fit(z, np.full(10, 7)).predict(z[:4]) == [7] * 4).all()


def test_the_seed_decides_the_result() -> None:
    z, classes = blobs(60, 0)
    z = z + np.random.default_rng(2).normal(size=z.shape) * 4
    first, again = (Probe(3).fit(z, classes).predict(z) for _ in range(2))
    assert (first == again).all()
    assert any((Probe(seed).fit(z, classes).predict(z) != first).any() for seed in range(4, 8))


def test_fitting_again_forgets_the_first_fit() -> None:
    z, classes = blobs(100, 0)
    probe = Probe().fit(z, classes).fit(z, np.stack([classes == 0, classes == 1], axis=1))
    assert probe.predict(z).shape == (100, 2)


@pytest.mark.parametrize("passes", [1, 5])
def test_it_makes_as_many_passes_as_it_is_told(passes: int) -> None:
    """Five is what scikit-learn did by default in 2017."""
    z, classes = blobs(60, 0)
    model = SGDClassifier(loss="log_loss", random_state=3, max_iter=passes, tol=None).fit(z, classes)
    far = np.random.default_rng(1).normal(size=(200, z.shape[1])) * 5
    assert (Probe(3, passes).fit(z, classes).predict(far) == model.predict(far)).all()
