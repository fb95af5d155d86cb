"""The scores that can choose a model: what each is called, which direction is better, and how it is computed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphsage.errors import DataError, setting

if TYPE_CHECKING:  # `graphsage train --help` reads this module
    import numpy.typing as npt

    Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Metric:
    """`score` of true classes (N,), labels (N, C) or targets (N, T), probabilities (N, C), if there are any, and
    decisions of the truth's shape."""

    name: str
    title: str
    """As a progress line names it."""
    score: Callable[["Array", "Array", "Array"], float]
    lowest: bool = False
    """Whether the lowest score is the best one."""
    of: str = "classes"
    """What it compares: classes, numbers or links."""

    def shown(self, score: float) -> str:
        """The score as text; errors in the units of the data may have any size."""
        return f"{score:.5g}" if self.name in ("rmse", "mae") else f"{score:.4f}"

    def better(self, one: float, other: float | None) -> bool:
        """Whether `one` is better than `other`, or the first score."""
        return other is None or (one < other if self.lowest else one > other)

    def ascending(self, score: float) -> float:
        """The score on a scale where higher is better; its own inverse."""
        return -score if self.lowest else score


def _micro(truth: "Array", probabilities: "Array", decided: "Array") -> float:
    from graphsage.evaluation.f1 import f1_scores

    return f1_scores(truth, decided).micro


def _macro(truth: "Array", probabilities: "Array", decided: "Array") -> float:
    from graphsage.evaluation.f1 import f1_scores

    return f1_scores(truth, decided).macro


def _accuracy(truth: "Array", probabilities: "Array", decided: "Array") -> float:
    """The share of nodes whose class, or whole set of labels, is predicted."""
    equal = truth == decided
    return float((equal if equal.ndim == 1 else equal.all(axis=1)).mean())


def _log_loss(truth: "Array", probabilities: "Array", decided: "Array") -> float:
    """Mean cross-entropy of the classes and labels that the model knows; a probability counts as at least 1e-7."""
    import numpy as np

    marks, p = _marks(truth, probabilities)
    p = p.astype(np.float64).clip(1e-7, 1 - 1e-7)
    if truth.ndim == 1:
        return float(-np.log(p[marks]).mean())
    return float(-np.where(marks, np.log(p), np.log1p(-p)).mean())


def _auc(truth: "Array", probabilities: "Array", decided: "Array") -> float:
    from sklearn.metrics import roc_auc_score

    return _each_class(roc_auc_score, truth, probabilities)


def _average_precision(truth: "Array", probabilities: "Array", decided: "Array") -> float:
    from sklearn.metrics import average_precision_score

    return _each_class(average_precision_score, truth, probabilities)


def _each_class(of: Callable[["Array", "Array"], float], truth: "Array", probabilities: "Array") -> float:
    """The mean over classes or labels that some nodes have and others lack."""
    marks, p = _marks(truth, probabilities)
    used = [c for c in range(p.shape[1]) if 0 < marks[:, c].sum() < len(marks)]
    if not used:
        raise DataError(
            f"no class of the validation nodes has both members and others, which {setting('metric', 'auc')} and ap "
            f"need; use {setting('metric', 'micro-f1')}"
        )
    return float(sum(of(marks[:, c], p[:, c]) for c in used) / len(used))


def _marks(truth: "Array", probabilities: "Array") -> tuple["Array", "Array"]:
    """Booleans (N, C) of the classes that the model knows, and their probabilities. Nodes of other classes are left
    out: no weights could predict them."""
    import numpy as np

    count = probabilities.shape[1]
    if truth.ndim == 2:
        return truth[:, :count] == 1, probabilities
    known = truth < count
    return truth[known, None] == np.arange(count), probabilities[known]


def _ranked(truth: "Array", probabilities: "Array", decided: "Array") -> float:
    raise DataError("links are scored among candidates and not for each node; use graphsage evaluate")


def _error(name: str) -> Callable[["Array", "Array", "Array"], float]:
    def score(truth: "Array", probabilities: "Array", decided: "Array") -> float:
        from graphsage.evaluation.regression import regression_scores

        found: float = getattr(regression_scores(truth, decided), name)
        return found

    return score


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("micro-f1", "F1", _micro),
        Metric("macro-f1", "macro F1", _macro),
        Metric("accuracy", "accuracy", _accuracy),
        Metric("loss", "loss", _log_loss, lowest=True),
        Metric("auc", "AUC", _auc),
        Metric("ap", "AP", _average_precision),
        Metric("r2", "R2", _error("r2"), of="numbers"),
        Metric("rmse", "RMSE", _error("rmse"), lowest=True, of="numbers"),
        Metric("mae", "MAE", _error("mae"), lowest=True, of="numbers"),
        Metric("mrr", "MRR", _ranked, of="links"),
        Metric("hits@10", "hits@10", _ranked, of="links"),
        Metric("recall@50", "recall@50", _ranked, of="links"),
    )
}
