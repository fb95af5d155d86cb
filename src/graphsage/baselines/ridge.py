"""Yardsticks of a regression: the mean of the training targets, and ridge regressions without and with the graph."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.baselines.features import inductive_features
from graphsage.errors import DataError
from graphsage.evaluation.probe import standardized
from graphsage.evaluation.regression import RegressionScores, regression_scores
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split

Array = npt.NDArray[Any]
PENALTIES = (0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5)
WITHOUT_VALIDATION = 10.0


@dataclass(frozen=True)
class Yardstick:
    """`penalties` were chosen on validation nodes, one for each target."""

    scores: RegressionScores
    penalties: tuple[float, ...] = ()


def regression_yardsticks(graph: Graph, split: Split, part: str) -> dict[str, Yardstick]:
    """Scores on `part` of what is learned from the training nodes. Without features, the mean alone."""
    if graph.labels is None or not graph.regression:
        raise DataError("these yardsticks need numbers to predict; give a graph with targets")
    y = graph.labels.cpu().numpy()
    train, val, asked = (split.nodes(name).cpu().numpy() for name in ("train", "val", part))
    if not (~np.isnan(y[train])).any(axis=0).all():
        return {}
    means = np.broadcast_to(np.nanmean(y[train], axis=0), (len(asked), y.shape[1]))
    found = {"mean of the training targets": Yardstick(regression_scores(y[asked], means))}
    if graph.features is None:
        return found
    x = graph.features.float().cpu().numpy()
    here = graph.to("cpu")
    for name, hops in (("ridge on features", 0), ("ridge on features + 2 hops of neighbor means", 2)):
        table = inductive_features(here, split, x, hops) if hops else x
        fitted = [ridge(table, column, train, val, asked) for column in y.T]
        predicted = np.stack([each for _, each in fitted], axis=1)
        found[name] = Yardstick(regression_scores(y[asked], predicted), tuple(penalty for penalty, _ in fitted))
    return found


def ridge(x: Array, y: Array, train: Array, val: Array, asked: Array) -> tuple[float, Array]:
    """The penalty of PENALTIES with the lowest squared error on the rows `val`, and predictions for the rows `asked`.

    Minimizes |y - Zw|² + penalty |w|² over the rows `train` with a known y. Columns are standardized by them.
    """
    train, val = (rows[~np.isnan(y[rows])] for rows in (train, val))
    z, mean = standardized(x, train), y[train].mean()
    known = z[train].astype(np.float64)
    wide = len(known) < known.shape[1]
    # One decomposition of the smaller Gram matrix serves all penalties.
    values, basis = np.linalg.eigh(known @ known.T if wide else known.T @ known)
    seen = basis.T @ ((y[train] - mean) if wide else known.T @ (y[train] - mean))

    def predicted(rows: Array, penalty: float) -> Array:
        weights = basis @ (seen / (values.clip(min=0) + penalty))
        return np.asarray(z[rows].astype(np.float64) @ (known.T @ weights if wide else weights) + mean)

    errors = {p: float(np.square(predicted(val, p) - y[val]).sum()) for p in PENALTIES} if len(val) else {}
    penalty = min(errors, key=lambda p: errors[p]) if errors else WITHOUT_VALIDATION
    return penalty, predicted(asked, penalty)
