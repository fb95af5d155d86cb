"""Two logistic probes, fitted on training nodes' vectors only: the paper's, and one whose penalty is tuned."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from graphsage.evaluation.f1 import f1_scores
from graphsage.features.scaler import fit_scaler

Array = npt.NDArray[Any]
PENALTIES = (1.0, 10.0, 100.0, 1000.0)
"""The grid of the tuned probe: the weight of half the squared coefficients against the sum of the training losses."""


class Probe:
    """Appendix C: scikit-learn's logistic SGDClassifier, one for each label where nodes have many.

    `passes` over the training nodes; None continues until the loss settles. Both are scikit-learn's defaults: five
    passes in 2017, when the paper was written, and until it settles today.
    """

    def __init__(self, seed: int = 0, passes: int | None = None) -> None:
        self.seed, self.passes = seed, passes
        self._models: list[Any] = []
        self._many = False

    def fit(self, z: Array, labels: Array) -> "Probe":
        from joblib import Parallel, delayed

        self._many = labels.ndim == 2
        columns = list(labels.T) if self._many else [labels]
        # scikit-learn's SGD releases the interpreter lock, so threads share z without copying it.
        jobs = Parallel(n_jobs=-1, prefer="threads")
        self._models = list(jobs(delayed(_fit_one)(z, column, self.seed, self.passes) for column in columns))
        return self

    def predict(self, z: Array) -> Array:
        answers = [m.predict(z) if hasattr(m, "predict") else np.full(len(z), m) for m in self._models]
        return np.stack(answers, axis=1) if self._many else answers[0]


def _fit_one(z: Array, column: Array, seed: int, passes: int | None) -> Any:
    from sklearn.linear_model import SGDClassifier

    seen = np.unique(column)
    if len(seen) == 1:
        return seen[0]  # a label that every training node has, or none has: nothing to learn
    length = {} if passes is None else {"max_iter": passes, "tol": None}
    # Each one-vs-rest classifier has its own seed, so the number of threads does not change the result.
    return SGDClassifier(loss="log_loss", random_state=seed, n_jobs=-1, **length).fit(z, column)


def standardized(z: Array, train: Array) -> Array:
    """Columns with zero mean and unit variance over the rows `train`."""
    table = torch.from_numpy(z)
    made: Array = fit_scaler([table], torch.from_numpy(train)).apply(table).numpy()
    return made


def tuned_probe(
    z: Array, labels: Array, parts: Mapping[str, Array], *, gpu: bool = False
) -> tuple[float, dict[str, Array]]:
    """The penalty of PENALTIES with the highest micro F1 on the rows `val`, and its predictions for both parts."""
    found: list[tuple[float, float, Array]] = []
    asked = np.concatenate([parts["val"], parts["test"]])
    count = len(parts["val"])
    for penalty in PENALTIES:
        predicted = logistic_regression(z, labels, parts["train"], asked, penalty, gpu=gpu)
        found.append((f1_scores(labels[parts["val"]], predicted[:count]).micro, penalty, predicted))
    _, penalty, predicted = max(found, key=lambda each: each[0])
    return penalty, {"val": predicted[:count], "test": predicted[count:]}


def logistic_regression(
    z: Array, labels: Array, train: Array, asked: Array, penalty: float = 10.0, *, gpu: bool = False
) -> Array:
    """Classes (len(asked),) or 0 and 1 for each label (len(asked), C), learned from the rows `train` of z.

    Columns are standardized by the training rows. The fit runs to scikit-learn's own tolerance: stopped early
    (tol=0.01) it is a much weaker baseline (docs/log.md has the numbers). Of 1, 3, 10, 30, 100 and 1000, no penalty
    scores above 10 on setmm's validation nodes, with or without neighbor means.
    """
    z = standardized(z, train)
    fit = _fit_by_torch if gpu else _fit_by_sklearn
    known, many = labels[train], labels.ndim == 2
    columns = known if many else known[:, None]
    varies = (columns != columns[0]).any(axis=0)
    answers = np.repeat(columns[:1], len(asked), axis=0)  # of a label that never varies
    if varies.any():
        answers[:, varies] = fit(z[train], columns[:, varies], z[asked], penalty)
    return answers if many else answers[:, 0]


def _fit_by_sklearn(z: Array, columns: Array, asked: Array, penalty: float) -> Array:
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    def answers(column: Array) -> Array:
        with threadpool_limits(1):  # many small products: threads that wait for each other cost more than they gain
            return np.asarray(LogisticRegression(C=1.0 / penalty, max_iter=5000).fit(z, column).predict(asked))

    return np.stack([answers(column) for column in columns.T], axis=1)


def _fit_by_torch(z: Array, columns: Array, asked: Array, penalty: float, device: str = "cuda") -> Array:
    """The same optimum, all labels at once, by L-BFGS in double precision."""
    classes = [np.unique(column) for column in columns.T]
    one_of_many = len(classes) == 1 and len(classes[0]) > 2  # else a binary choice for each column
    codes = np.stack([np.searchsorted(*each) for each in zip(classes, columns.T, strict=True)], axis=1)
    x, new = (torch.as_tensor(each, dtype=torch.float64, device=device) for each in (z, asked))
    y = torch.as_tensor(codes, device=device)
    width = len(classes[0]) if one_of_many else len(classes)
    weight, bias = x.new_zeros(x.shape[1], width).requires_grad_(), x.new_zeros(width).requires_grad_()
    optimizer = torch.optim.LBFGS(
        [weight, bias], max_iter=5000, tolerance_grad=1e-4, tolerance_change=1e-14, line_search_fn="strong_wolfe"
    )

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        logits = torch.addmm(bias, x, weight)
        if one_of_many:
            error = functional.cross_entropy(logits, y[:, 0], reduction="sum")
        else:
            error = functional.binary_cross_entropy_with_logits(logits, y.double(), reduction="sum")
        total: torch.Tensor = (error + penalty / 2 * weight.square().sum()) / len(x)
        torch.autograd.backward(total)
        return total

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        logits = torch.addmm(bias, new, weight)
    found = logits.argmax(dim=1, keepdim=True) if one_of_many else (logits > 0).long()
    return np.stack([own[column] for own, column in zip(classes, found.cpu().numpy().T, strict=True)], axis=1)
