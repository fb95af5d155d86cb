"""The logistic probes learn classes that can be separated and survive labels that cannot."""

from functools import partial

import numpy as np
import pytest
import torch
from sklearn.linear_model import SGDClassifier

from graphs import normal
from graphsage.evaluation import probe
from graphsage.evaluation.probe import PENALTIES, Probe, logistic_regression, standardized, tuned_probe


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


def test_logistic_regression_learns_classes_from_training_rows_alone() -> None:
    x = normal(0, 300, 3).numpy() * [1.0, 100.0, 0.01] + [0.0, 5.0, -5.0]
    labels = (x[:, 2] > -5.0).astype(np.int64) + 2 * (x[:, 1] > 5.0)
    train, test = np.arange(200), np.arange(200, 300)
    predicted = logistic_regression(x, labels, train, test, penalty=1.0)
    assert (predicted == labels[test]).mean() > 0.9
    hidden = labels.copy()
    hidden[test] = 7
    assert np.array_equal(logistic_regression(x, hidden, train, test, penalty=1.0), predicted)


def test_many_labels_have_a_regression_each() -> None:
    x = normal(1, 200, 2).numpy()
    labels = np.stack([x[:, 0] > 0, x[:, 1] > 0, np.ones(200, bool)], axis=1).astype(np.uint8)
    train, test = np.arange(150), np.arange(150, 200)
    predicted = logistic_regression(x, labels, train, test)
    assert predicted.shape == (50, 3)
    assert ((predicted == labels[test]).mean(axis=0) > [0.9, 0.9, 0.999]).all()


def test_a_large_penalty_leaves_only_the_most_frequent_class() -> None:
    x = normal(2, 100, 2).numpy()
    labels = (x[:, 0] > 0.5).astype(np.int64)
    predicted = logistic_regression(x, labels, np.arange(80), np.arange(80, 100), penalty=1e4)
    assert torch.equal(torch.from_numpy(predicted), torch.zeros(20, dtype=torch.int64))


def test_standardized_columns_have_unit_variance_on_training_rows_only() -> None:
    z = np.random.default_rng(0).normal(size=(100, 3)).astype(np.float32) * [1.0, 16.0, 0.01] + 5.0
    made = standardized(z, np.arange(60))
    np.testing.assert_allclose(made[:60].mean(axis=0), 0.0, atol=1e-4)
    np.testing.assert_allclose(made[:60].std(axis=0), 1.0, rtol=1e-3)


def test_the_tuned_probe_chooses_its_penalty_on_validation_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = np.array([0, 1] * 4)
    parts = {"train": np.arange(2), "val": np.arange(2, 4), "test": np.arange(4, 8)}

    def fitted(
        z: np.ndarray, _: np.ndarray, train: np.ndarray, asked: np.ndarray, penalty: float, gpu: bool
    ) -> np.ndarray:
        right = labels[asked]
        return np.where((np.arange(len(asked)) < 2) == (penalty == 100.0), right, 1 - right)

    monkeypatch.setattr(probe, "logistic_regression", fitted)
    penalty, predicted = tuned_probe(np.zeros((8, 1)), labels, parts)
    assert penalty == 100.0 in PENALTIES
    assert predicted["val"].tolist() == labels[2:4].tolist()
    assert predicted["test"].tolist() == (1 - labels[4:]).tolist()  # the worst on test nodes, all the same


def test_the_tuned_probe_is_indifferent_to_the_scale_of_columns() -> None:
    """The paper's probe is not: raw features of norm 16 beside unit vectors decide alone."""
    z, classes = blobs(200, 0)
    scaled = z.astype(np.float32) * [1.0, 1e-3]
    parts = {"train": np.arange(100), "val": np.arange(100, 150), "test": np.arange(150, 200)}
    (_, one), (_, two) = (tuned_probe(each, classes, parts) for each in (z.astype(np.float32), scaled))
    assert (one["test"] == two["test"]).all()
    assert (one["test"] == classes[150:]).mean() > 0.95


@pytest.mark.parametrize("kind", ["two classes", "many classes", "labels"])
def test_a_gpu_finds_the_same_optimum(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Held on a CPU too: the form for GPUs is plain torch."""
    draw = np.random.default_rng(0)
    z = draw.normal(size=(400, 5)).astype(np.float32)
    scores = z @ draw.normal(size=(5, 4)) + draw.normal(size=(400, 4))
    labels = {
        "two classes": np.where(scores[:, 0] > 0, 7, 3),
        "many classes": scores.argmax(axis=1) * 2,
        "labels": np.concatenate([scores > 0, np.ones((400, 1))], axis=1).astype(np.uint8),
    }[kind]
    rows = np.arange(300), np.arange(300, 400)
    plain = logistic_regression(z, labels, *rows, penalty=3.0)
    monkeypatch.setattr(probe, "_fit_by_torch", partial(probe._fit_by_torch, device="cpu"))
    fast = logistic_regression(z, labels, *rows, penalty=3.0, gpu=True)
    assert fast.shape == plain.shape
    assert fast.dtype == plain.dtype
    assert (fast == plain).mean() > 0.99
    assert (fast != labels[rows[1]]).any()
