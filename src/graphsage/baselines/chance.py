"""Table 1's random classifier: a draw from the class frequencies of the training nodes."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.errors import DataError
from graphsage.graph.graph import known_labels

Array = npt.NDArray[Any]


def random_classifier(labels: Array, train: Array, test: Array, seed: int = 0) -> Array:
    """Classes (len(test),) or labels (len(test), C), drawn with their frequencies in known rows of `train`."""
    from sklearn.dummy import DummyClassifier

    known = labels[train][known_labels(labels[train])]
    if not len(known):
        raise DataError("no training node has a label, so there are no class frequencies to draw from")
    model = DummyClassifier(strategy="stratified", random_state=seed)
    nothing = np.zeros((max(len(known), len(test)), 1))
    drawn = np.asarray(model.fit(nothing[: len(known)], known).predict(nothing[: len(test)]))
    return drawn.reshape(len(test), *labels.shape[1:])  # scikit-learn drops the column of a single label
