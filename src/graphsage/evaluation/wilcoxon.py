"""The Wilcoxon signed-rank test of section 4.4: is one method better than another over several settings?"""

import math
from collections.abc import Sequence

import numpy as np

from graphsage.errors import DataError


def signed_rank(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """(T, p) for paired scores of two methods, in the paper's convention.

    T is the smaller of the two rank sums. p is half the two-sided normal approximation, without a continuity
    correction and with the usual one for ties; this, and nothing else we tried, gives all six published pairs. It does
    not say which method is the better one: compare their means. Pairs that are equal are left out.
    """
    if len(a) != len(b):
        raise DataError(f"the two methods must be scored on the same settings; got {len(a)} and {len(b)} scores")
    if not len(a):
        raise DataError("there are no scores to compare; give those of at least one setting")
    try:
        # Published with three digits: 0.907 - 0.897 and 0.788 - 0.778 are a tie, whatever their last bits say.
        differences = np.round(np.asarray(a, dtype=float) - np.asarray(b, dtype=float), 9)
    except (TypeError, ValueError) as error:
        raise DataError(f"scores must be numbers ({error})") from error
    if not np.isfinite(differences).all():
        raise DataError("scores must be finite numbers; got NaN or infinity")
    differences = differences[differences != 0]
    n = len(differences)
    if n == 0:
        raise DataError("the two methods have the same score in every setting; there is nothing to test")
    _, inverse, counts = np.unique(np.abs(differences), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]  # equal differences share the average of their ranks
    above = float(ranks[differences > 0].sum())
    smaller = min(above, n * (n + 1) / 2 - above)
    mean = n * (n + 1) / 4
    variance = n * (n + 1) * (2 * n + 1) / 24 - float((counts**3 - counts).sum()) / 48
    return smaller, 0.5 * math.erfc((mean - smaller) / math.sqrt(2 * variance))
