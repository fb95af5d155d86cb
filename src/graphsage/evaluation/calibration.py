"""Probabilities that mean what they say: a temperature and thresholds chosen on validation nodes, and how well
calibrated probabilities are."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

Array = npt.NDArray[Any]
THRESHOLD = 0.5
"""A label is predicted if its probability is above, unless validation nodes say otherwise."""
BINS = 15
ENOUGH = 10
"""Validation nodes that must have a label, and lack it, for a threshold of its own."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """Scores are divided by `temperature`. `thresholds` (C,) are those of labels; None is THRESHOLD for all."""

    temperature: float = 1.0
    thresholds: Tensor | None = None

    def probabilities(self, scores: Tensor, multilabel: bool) -> Tensor:
        """(B, C): softmax for one class a node, a sigmoid for each label where many."""
        scores = scores if self.temperature == 1 else scores / self.temperature
        return torch.sigmoid(scores) if multilabel else torch.softmax(scores, dim=1)

    def decide(self, probabilities: Tensor, multilabel: bool) -> Tensor:
        """The class of each node (B,), or 0 and 1 for each label (B, C)."""
        if not multilabel:
            return probabilities.argmax(dim=1)
        return (probabilities > (THRESHOLD if self.thresholds is None else self.thresholds)).long()


def fitted(scores: Tensor, truth: Tensor, metric: str) -> Calibration:
    """The calibration for scores (N, C) of validation nodes with classes (N,) or labels (N, C)."""
    multilabel = truth.dim() == 2
    if not multilabel:
        known = truth < scores.shape[1]
        return Calibration(fit_temperature(scores[known], truth[known]))
    truth = truth[:, : scores.shape[1]]
    plain = Calibration(fit_temperature(scores, truth))
    p = plain.probabilities(scores, multilabel)
    return Calibration(plain.temperature, choose_thresholds(p, truth, each=metric == "macro-f1"))


def fit_temperature(scores: Tensor, truth: Tensor) -> float:
    """The T > 0 that minimizes the cross-entropy of scores / T, summed over nodes, plus log(T)² / 2.

    The second term decides if there are few nodes: without it, T of nodes that are all predicted correctly is 0. The
    cross-entropy at T is never above that at 1.
    """
    from scipy.optimize import minimize_scalar

    if not len(scores):
        return 1.0
    scores = scores.double()

    def cost(log_t: float) -> float:
        divided = scores / math.exp(log_t)
        if truth.dim() == 1:
            error = F.cross_entropy(divided, truth, reduction="sum")
        else:
            error = F.binary_cross_entropy_with_logits(divided, truth.double(), reduction="sum") / truth.shape[1]
        return float(error) + log_t**2 / 2

    log_t = float(minimize_scalar(cost, bounds=(-5.0, 5.0), method="bounded", options={"xatol": 1e-6}).x)
    return math.exp(log_t) if cost(log_t) < cost(0.0) else 1.0


def choose_thresholds(p: Tensor, truth: Tensor, *, each: bool) -> Tensor:
    """Thresholds (C,) for probabilities and labels (N, C): one for all labels with the highest micro F1; with `each`,
    one of its own with the highest F1 for every label that at least ENOUGH nodes have and ENOUGH lack."""
    table, marks = p.numpy(), truth.numpy() == 1
    found = np.full(p.shape[1], best_threshold(table.ravel(), marks.ravel()), np.float32)
    if each:
        counts = marks.sum(axis=0)
        for label in np.flatnonzero((counts >= ENOUGH) & (len(marks) - counts >= ENOUGH)):
            found[label] = best_threshold(table[:, label], marks[:, label])
    return torch.from_numpy(found)


def best_threshold(p: Array, present: Array) -> float:
    """The t with the highest F1 of `p > t`, halfway between two values of p; of equal ones, that near THRESHOLD."""
    if not present.any():
        return THRESHOLD
    order = np.argsort(-p, kind="stable")
    ranked = p[order]
    hits = np.cumsum(present[order])
    last = np.append(ranked[1:] < ranked[:-1], True)  # the last place of each value of p
    f1 = np.where(last, 2 * hits / (np.arange(1, len(p) + 1) + present.sum()), -1.0)
    below = np.append(ranked[1:], np.asarray([0.0 if ranked[-1] > 0 else -1.0], ranked.dtype))
    middle = ((ranked.astype(np.float64) + below) / 2).astype(ranked.dtype)
    t = np.where(middle < ranked, middle, below)
    best = np.flatnonzero(f1 >= f1.max() - 1e-12)
    if ((below[best] <= THRESHOLD) & (ranked[best] > THRESHOLD)).any():
        return THRESHOLD
    return float(t[best[np.abs(t[best] - THRESHOLD).argmin()]])


@dataclass(frozen=True)
class Bin:
    """Decisions whose probability is in one interval: how many, their mean probability, and the share that is right."""

    count: int
    probability: float
    right: float


def reliability(truth: Array, probabilities: Array, bins: int = BINS) -> list[Bin]:
    """Intervals of equal width that are not empty, by the probability of the predicted class (N,), or of every label
    (N, C), where `right` is the share of nodes that have the label."""
    width = probabilities.shape[1]
    if truth.ndim == 1:
        p, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
    else:
        p, right = probabilities.ravel(), (truth[:, :width] == 1).ravel()
    p = p.astype(np.float64)
    place = np.minimum((p * bins).astype(int), bins - 1)
    return [
        Bin(int(own.sum()), float(p[own].mean()), float(right[own].mean()))
        for own in (place == b for b in range(bins))
        if own.any()
    ]


def calibration_error(found: list[Bin]) -> float:
    """ECE: the mean distance between probability and share that is right, over decisions."""
    total = sum(each.count for each in found)
    return sum(each.count * abs(each.probability - each.right) for each in found) / total
