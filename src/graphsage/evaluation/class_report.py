"""Precision, recall and F1 of each class or label."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.graph.graph import known_labels


@dataclass(frozen=True)
class ClassScores:
    """`support` nodes have the class, `predicted` nodes were given it. A score without nodes to count is 0."""

    name: str
    precision: float
    recall: float
    f1: float
    support: int
    predicted: int


def class_report(truth: npt.NDArray[Any], decided: npt.NDArray[Any], names: Sequence[str]) -> list[ClassScores]:
    """Of classes (N,) or labels (N, C), in the order of `names`; unknown ones do not count."""
    known = known_labels(truth)
    truth, decided = truth[known], decided[known]
    if truth.ndim == 1:
        truth, decided = truth[:, None] == np.arange(len(names)), decided[:, None] == np.arange(len(names))
    hits = ((truth == 1) & (decided == 1)).sum(axis=0).tolist()
    support, predicted = ((each == 1).sum(axis=0).tolist() for each in (truth, decided))
    return [
        ClassScores(name, hit / max(of, 1), hit / max(has, 1), 2 * hit / max(of + has, 1), has, of)
        for name, hit, has, of in zip(names, hits, support, predicted, strict=True)
    ]
