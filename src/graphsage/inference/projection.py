"""Embeddings projected to two dimensions, for maps."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.errors import ConfigError

METHODS = ("pca", "tsne")


def project(z: npt.NDArray[Any], method: str = "pca", *, n_jobs: int = 1) -> npt.NDArray[Any]:
    """(N, D) -> (N, 2): the first two principal components, or t-SNE that starts from them."""
    centered = z - z.mean(axis=0)
    _, vectors = np.linalg.eigh(centered.T.astype(np.float64) @ centered)
    axes = vectors[:, ::-1][:, :2]
    axes *= np.where(axes[np.abs(axes).argmax(axis=0), [0, 1]] < 0, -1, 1)  # the sign of an axis has no meaning
    xy: npt.NDArray[Any] = centered @ axes
    if method == "pca":
        return xy
    try:
        from openTSNE import TSNE
    except ImportError:
        raise ConfigError("t-SNE needs openTSNE: pip install 'graphsage[viz]'") from None
    start = (xy / (xy[:, 0].std() + 1e-12) * 1e-4).astype(np.float64)
    perplexity = min(30.0, max(1.0, (len(z) - 1) / 4))
    gradient = "fft" if len(z) > 10_000 else "bh"
    fitted = TSNE(
        perplexity=perplexity, n_jobs=n_jobs, random_state=0, initialization=start, negative_gradient_method=gradient
    ).fit(z)
    return np.asarray(fitted)
