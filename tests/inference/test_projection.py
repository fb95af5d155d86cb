"""Two-dimensional layouts: principal components, t-SNE, and t-SNE of a sample for large graphs."""

import numpy as np
import pytest

from graphsage.errors import ConfigError
from graphsage.inference import projection
from graphsage.inference.projection import among, method_for, project

Z = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32) * np.array([9, 4, 1, 1, 1], np.float32)


def clusters(size: int) -> np.ndarray:
    """Six groups of vectors along six axes, of which principal components show two."""
    draw = np.random.default_rng(1)
    return (np.repeat(np.eye(6), size, axis=0) + 0.1 * draw.normal(size=(6 * size, 6))).astype(np.float32)


def agreement(xy: np.ndarray, size: int) -> float:
    """The share of points whose nearest other point is of the same group."""
    d = ((xy[:, None] - xy[None]) ** 2).sum(-1) + np.eye(len(xy)) * 1e9
    group = np.repeat(np.arange(6), size)
    return float((group[d.argmin(axis=1)] == group).mean())


def test_principal_components_are_the_axes() -> None:
    xy = project(Z, "pca")
    assert abs(np.corrcoef(xy[:, 0], Z[:, 0])[0, 1]) > 0.95
    assert abs(np.corrcoef(xy[:, 1], Z[:, 1])[0, 1]) > 0.9


def test_t_sne_separates_groups_that_principal_components_mix() -> None:
    z = clusters(40)
    assert agreement(project(z, "pca"), 40) < 0.9
    assert agreement(project(z, "tsne"), 40) > 0.99


def test_a_sample_of_a_large_graph_carries_the_other_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "TSNE_NODES", 120)
    xy = project(clusters(40), "tsne")
    assert xy.shape == (240, 2)
    assert agreement(xy, 40) > 0.95


def test_nodes_are_placed_at_the_mean_of_their_nearest() -> None:
    xy = np.arange(120, dtype=np.float32).reshape(60, 2)
    cosines = Z @ Z[7] / np.linalg.norm(Z, axis=1)
    assert among(Z[7:8], Z, xy)[0] == pytest.approx(xy[np.argsort(-cosines)[:5]].mean(axis=0))


@pytest.mark.parametrize(("count", "width"), [(0, 4), (1, 4), (2, 4), (5, 1)])
def test_degenerate_vectors_have_two_coordinates(count: int, width: int) -> None:
    xy = project(Z[:count, :1].repeat(width, axis=1), "pca")
    assert xy.shape == (count, 2)
    assert np.isfinite(xy).all()


def test_a_stop_ends_t_sne_early() -> None:
    asked = []
    project(clusters(10), "tsne", stop=lambda: bool(asked.append(1)) or len(asked) > 2)
    assert 3 <= len(asked) <= 6


def test_auto_is_t_sne_only_if_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert method_for("auto", "--map") == "tsne"
    assert method_for("pca", "--map") == "pca"
    with pytest.raises(ConfigError, match="--map must be one of auto, pca, tsne; got 'umap'"):
        method_for("umap", "--map")
    monkeypatch.setattr(projection, "find_spec", lambda _: None)
    assert method_for("auto", "--map") == "pca"
    with pytest.raises(ConfigError, match="needs openTSNE"):
        method_for("tsne", "--map")
