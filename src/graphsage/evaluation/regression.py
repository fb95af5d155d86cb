"""Errors of predicted numbers: MAE, RMSE and R2."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.errors import DataError


@dataclass(frozen=True)
class RegressionScores:
    """MAE and RMSE in the target's units, and R2. Of several targets the means, and those of each in `targets`."""

    mae: float
    rmse: float
    r2: float
    nodes: int
    """Nodes with a known target."""
    targets: tuple["RegressionScores", ...] = ()


def regression_scores(truth: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> RegressionScores:
    """Numbers (N,) or (N, T); unknown ones (NaN) do not count, nor do targets without a known one.

    R2 is 1 - Σ (y - ŷ)² / Σ (y - ȳ)². If all y are equal it is 1 for exact predictions and 0 for others, as in
    scikit-learn.
    """
    truth, predicted = np.asarray(truth, np.float64), np.asarray(predicted, np.float64)
    if truth.shape != predicted.shape:
        raise DataError(f"truth and predictions must have one shape; got {truth.shape} and {predicted.shape}")
    columns = zip(*(each.reshape(len(each), -1).T for each in (truth, predicted)), strict=True)
    each = tuple(_scores(y[~np.isnan(y)], made[~np.isnan(y)]) for y, made in columns)
    used = [scores for scores in each if scores.nodes]
    if not used:
        raise DataError("there is no node with a known target to evaluate on; choose another split or give targets")
    mae, rmse, r2 = (float(np.mean([getattr(one, name) for one in used])) for name in ("mae", "rmse", "r2"))
    known = ~np.isnan(truth).reshape(len(truth), -1).all(axis=1)
    return RegressionScores(mae, rmse, r2, int(known.sum()), each if len(each) > 1 else ())


def _scores(y: npt.NDArray[Any], made: npt.NDArray[Any]) -> RegressionScores:
    if not len(y):
        return RegressionScores(float("nan"), float("nan"), float("nan"), 0)
    error, spread = np.square(y - made).sum(), 0.0 if (y == y[0]).all() else np.square(y - y.mean()).sum()
    r2 = 1 - error / spread if spread else float(not error)
    return RegressionScores(float(np.abs(y - made).mean()), float(np.sqrt(error / len(y))), float(r2), len(y))
