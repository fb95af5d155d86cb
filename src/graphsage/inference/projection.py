"""Embeddings laid out in two dimensions, for maps: t-SNE, or principal components."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.errors import ConfigError, one_of
from graphsage.inference.nearest import Vectors, best, normalized

METHODS = ("auto", "pca", "tsne")
NAMES = {"pca": "principal components", "tsne": "t-SNE"}
NEAREST = 5
TSNE_NODES = 50_000  # t-SNE lays out a sample of larger graphs; each other node is placed among its nearest
_THREADED = 2_000  # nodes up to which threads of t-SNE mostly wait for each other
_COMPONENTS = 50  # of which t-SNE reads the neighbors


def method_for(method: str, option: str) -> str:
    """The method that "auto" stands for: t-SNE if openTSNE is installed, else principal components."""
    one_of(option, method, METHODS)
    installed = find_spec("openTSNE") is not None
    if method == "auto":
        return "tsne" if installed else "pca"
    if method == "tsne" and not installed:
        raise ConfigError("t-SNE needs openTSNE: pip install 'graphsage[viz]'")
    return method


def project(
    z: npt.NDArray[Any], method: str, *, n_jobs: int = 1, stop: Callable[[], bool] = lambda: False
) -> npt.NDArray[Any]:
    """(N, D) -> (N, 2) by principal components ("pca") or t-SNE ("tsne") that starts from them. t-SNE ends early,
    between iterations, if `stop` returns True."""
    if len(z) < 3:
        return np.stack([np.arange(len(z)), np.zeros(len(z))], axis=1).astype(np.float32)
    components = _components(z)
    if method == "pca":
        return components[:, :2]
    if len(z) <= TSNE_NODES:
        return _tsne(components, n_jobs, stop)
    chosen = np.sort(np.random.default_rng(0).choice(len(z), TSNE_NODES, replace=False))
    xy = np.empty((len(z), 2), np.float32)
    xy[chosen] = _tsne(components[chosen], n_jobs, stop)
    others = np.setdiff1d(np.arange(len(z)), chosen)
    xy[others] = among(z[others], z[chosen], xy[chosen])
    return xy


def _components(z: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The first principal components, two at least, in descending order of variance."""
    centered = z - z.mean(axis=0)
    _, vectors = np.linalg.eigh(centered.T.astype(np.float64) @ centered)
    axes = vectors[:, ::-1][:, :_COMPONENTS]
    axes = axes * np.where(
        axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1, 1
    )  # a sign has no meaning
    components: npt.NDArray[Any] = np.pad(centered @ axes, ((0, 0), (0, max(0, 2 - z.shape[1]))))
    return components


def _tsne(components: npt.NDArray[Any], n_jobs: int, stop: Callable[[], bool]) -> npt.NDArray[Any]:
    from openTSNE import TSNE

    start = components[:, :2].astype(np.float64)
    fitted = TSNE(
        perplexity=min(30.0, max(1.0, (len(start) - 1) / 4)),
        n_jobs=n_jobs if len(start) > _THREADED else 1,
        random_state=0,
        initialization=start / (start[:, 0].std() + 1e-12) * 1e-4,
        negative_gradient_method="fft" if len(start) > 10_000 else "bh",
        callbacks=lambda *_: stop(),
        callbacks_every_iters=10,
    ).fit(components.astype(np.float32))
    return np.asarray(fitted)


def among(new: Vectors, old: Vectors, xy: Vectors) -> Vectors:
    """Mean position (Q, 2) of the `NEAREST` old nodes by cosine, computed in batches of new nodes."""
    found = np.empty((len(new), 2), np.float32)
    unit = normalized(old)
    for start in range(0, len(new), 256):
        places, _ = best(normalized(new[start : start + 256]) @ unit.T, NEAREST)
        found[start : start + 256] = xy[places].mean(axis=1)
    return found
