"""Micro and macro F1, for one class a node and for many labels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.errors import DataError
from graphsage.graph.graph import known_labels


@dataclass(frozen=True)
class F1:
    micro: float
    macro: float
    nodes: int


def f1_scores(truth: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> F1:
    """Classes (N,) or labels (N, C); unknown ones do not count. Macro F1 averages over labels that occur."""
    truth, predicted = np.asarray(truth), np.asarray(predicted)
    if truth.shape != predicted.shape:
        raise DataError(f"truth and predictions must have one shape; got {truth.shape} and {predicted.shape}")
    known = known_labels(truth)
    truth, predicted = truth[known], predicted[known]
    if truth.ndim == 1:
        classes = np.union1d(truth, predicted)
        truth, predicted = truth[:, None] == classes, predicted[:, None] == classes
    if not len(truth):
        raise DataError("there is no labeled node to evaluate on; choose another split or give labels")
    hits = ((truth == 1) & (predicted == 1)).sum(axis=0)
    misses = (truth != predicted).sum(axis=0)
    occurs = (hits + misses) > 0
    each = 2 * hits[occurs] / (2 * hits[occurs] + misses[occurs])
    total = 2 * hits.sum() + misses.sum()
    return F1(float(2 * hits.sum() / total) if total else 0.0, float(each.mean()) if len(each) else 0.0, len(truth))
