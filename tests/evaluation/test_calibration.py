"""Temperature, thresholds and the calibration error, by hand and by laws."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from graphsage.evaluation.calibration import (
    ENOUGH,
    Bin,
    Calibration,
    best_threshold,
    calibration_error,
    choose_thresholds,
    fit_temperature,
    fitted,
    reliability,
)
from graphsage.evaluation.f1 import f1_scores

SEEDS = st.integers(0, 10_000)


def drawn(seed: int, nodes: int = 60, classes: int = 4, spread: float = 3.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores, and classes that follow their softmax."""
    generator = torch.Generator().manual_seed(seed)
    scores = spread * torch.randn(nodes, classes, generator=generator)
    return scores, torch.multinomial(torch.softmax(scores, 1), 1, generator=generator)[:, 0]


def test_the_calibration_error_by_hand() -> None:
    """Two intervals of four: 0.6, 0.7 (one right) and 0.9, 0.9, 0.95 (all right)."""
    p = np.array([[0.6, 0.4], [0.7, 0.3], [0.9, 0.1], [0.1, 0.9], [0.05, 0.95]])
    found = reliability(np.array([0, 1, 0, 1, 1]), p, bins=4)
    assert [each.count for each in found] == [2, 3]
    assert [each.right for each in found] == [0.5, 1.0]
    assert calibration_error(found) == pytest.approx((2 * 0.15 + 0.25) / 5)


def test_the_calibration_error_of_labels_by_hand() -> None:
    """Every cell is a decision: 0.1 and 0.2 (both absent), 0.8 (present) and 1.0 (absent). The model lacks a label."""
    p = np.array([[0.1, 0.8], [0.2, 1.0]], np.float32)
    found = reliability(np.array([[0, 1, 1], [0, 0, 0]], np.uint8), p, bins=2)
    assert found == [Bin(2, pytest.approx(0.15), 0.0), Bin(2, pytest.approx(0.9), 0.5)]
    assert calibration_error(found) == pytest.approx((2 * 0.15 + 2 * 0.4) / 4)


@given(SEEDS, st.integers(1, 30))
def test_intervals_hold_every_decision_and_the_error_is_at_most_one(seed: int, bins: int) -> None:
    scores, truth = drawn(seed)
    found = reliability(truth.numpy(), torch.softmax(scores, 1).numpy(), bins)
    assert sum(each.count for each in found) == len(truth)
    assert 0 <= calibration_error(found) <= 1
    right = float((scores.argmax(1) == truth).float().mean())
    assert sum(each.count * each.right for each in found) / len(truth) == pytest.approx(right)


@given(SEEDS, st.sampled_from([0.2, 1.0, 5.0]))
def test_a_temperature_never_raises_the_loss_and_changes_no_class(seed: int, factor: float) -> None:
    scores, truth = drawn(seed)
    scores = factor * scores
    temperature = fit_temperature(scores, truth)
    assert float(F.cross_entropy(scores / temperature, truth)) <= float(F.cross_entropy(scores, truth)) + 1e-6
    made = Calibration(temperature)
    assert torch.equal(made.probabilities(scores, False).argmax(1), scores.argmax(1))


def test_a_temperature_takes_back_a_factor_of_the_scores() -> None:
    scores, truth = drawn(0, nodes=5000)
    for factor in (0.5, 1.0, 4.0):
        assert fit_temperature(factor * scores, truth) == pytest.approx(factor, rel=0.05)
    marks = torch.bernoulli(torch.sigmoid(scores), generator=torch.Generator().manual_seed(1))
    assert fit_temperature(4 * scores, marks.to(torch.uint8)) == pytest.approx(4.0, rel=0.05)


def test_few_nodes_that_are_all_right_do_not_make_probabilities_of_one() -> None:
    scores = torch.tensor([[2.0, 0.0], [0.0, 2.0]])
    temperature = fit_temperature(scores, torch.tensor([0, 1]))
    assert 0.5 < temperature < 1
    assert fit_temperature(scores[:0], torch.zeros(0, dtype=torch.int64)) == 1.0


@given(st.lists(st.tuples(st.integers(1, 9).map(lambda k: k / 10), st.booleans()), min_size=1, max_size=12))
def test_a_threshold_has_the_highest_f1_of_all(cells: list[tuple[float, bool]]) -> None:
    p, present = np.array([p for p, _ in cells], np.float32), np.array([has for _, has in cells])

    def f1(t: float) -> float:
        decided = p > np.float32(t)
        total = decided.sum() + present.sum()
        return float(2 * (decided & present).sum() / total) if total else 0.0

    tried = [f1(k / 100 + 0.005) for k in range(100)]
    chosen = best_threshold(p, present)
    assert f1(chosen) == pytest.approx(max(tried))
    assert 0 <= chosen <= 1
    assert (f1(0.5) < max(tried)) or chosen == 0.5


def test_one_threshold_serves_micro_f1_and_one_for_each_label_macro_f1() -> None:
    generator = torch.Generator().manual_seed(0)
    p = torch.rand(200, 3, generator=generator)
    truth = (p > torch.tensor([0.3, 0.8, 0.6])).to(torch.uint8)
    truth[:, 2] = 0
    truth[: ENOUGH - 1, 2] = 1  # too few for a threshold of its own
    one, own = (choose_thresholds(p, truth, each=each) for each in (False, True))
    assert len(set(one.tolist())) == 1
    assert own[:2].tolist() == pytest.approx([0.3, 0.8], abs=0.02)
    assert own[2] == one[2]
    decided = {name: (p > t).long().numpy() for name, t in (("one", one), ("own", own), ("half", torch.tensor(0.5)))}
    scores = {name: f1_scores(truth.numpy(), made) for name, made in decided.items()}
    assert scores["one"].micro >= scores["half"].micro
    assert scores["own"].macro > scores["one"].macro


def test_classes_that_the_model_lacks_are_left_out() -> None:
    scores, truth = drawn(0)
    more = torch.cat([truth, torch.full((5,), 4)])
    assert fitted(torch.cat([scores, scores[:5]]), more, "micro-f1").temperature == fit_temperature(scores, truth)
    marks = torch.nn.functional.one_hot(truth, 5).to(torch.uint8)
    assert fitted(scores, marks, "micro-f1").thresholds.shape == (4,)


def test_without_a_calibration_scores_are_as_they_are() -> None:
    scores = torch.randn(3, 4)
    assert torch.equal(Calibration().probabilities(scores, True), torch.sigmoid(scores))
    assert Calibration().decide(torch.tensor([[0.5, 0.6]]), True).tolist() == [[0, 1]]
    made = Calibration(2.0, torch.tensor([0.2, 0.9]))
    assert made.decide(torch.tensor([[0.3, 0.8], [0.2, 0.95]]), True).tolist() == [[1, 0], [0, 1]]
    expected = math.exp(1) / (math.exp(1) + 1)
    assert float(made.probabilities(torch.tensor([[2.0, 0.0]]), False)[0, 0]) == pytest.approx(expected)
