"""The logistic probe of Appendix C: scikit-learn's logistic SGDClassifier, fitted on training nodes' vectors only."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Probe:
    """`fit` on embeddings and labels, `predict` for others. One classifier for each label where there are many.

    `passes` over the training nodes; None goes on until the loss settles. Both are scikit-learn's defaults: five passes
    were in 2017, when the paper was written, and it stops by itself today.
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
    # Classes are told from the others each by its own seed, so threads change nothing in the result.
    return SGDClassifier(loss="log_loss", random_state=seed, n_jobs=-1, **length).fit(z, column)
