"""Text features take seconds to fit, so they are kept on disk. A file that is missing or damaged is made again."""

import hashlib
import json
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.atomic import atomic_file, caching
from graphsage.cache_folder import cache_folder
from graphsage.errors import BundleError
from graphsage.features.pipeline import fit_one as fit_now
from graphsage.features.pipeline import restore
from graphsage.features.recipe import Columns, Fitted, Floats, Recipe, Rows
from graphsage.features.sentences import Sentences
from graphsage.features.text import TfidfSvd
from graphsage.features.word_vectors import Word2Vec

_FORMAT = 4  # raise it when the same settings begin to mean other features
_SLOW = (TfidfSvd, Word2Vec, Sentences)
Made = tuple[Fitted, Floats]


def fit_one(recipe: Recipe, columns: Columns, rows: Rows) -> Made:
    """The recipe fitted on `rows` and the features (N, D) of all rows; slow ones are kept."""
    if not isinstance(recipe, _SLOW):
        return fit_now(recipe, columns, rows)
    path = cache_folder() / "text" / f"{_key(columns, rows, recipe)}.safetensors"
    num_nodes = len(next(iter(columns.values())))
    kept = _read(path, num_nodes)
    if kept is not None:
        return kept
    fitted, features = fit_now(recipe, columns, rows)
    _write(path, fitted, features)
    return fitted, features


def _key(columns: Columns, rows: Rows, recipe: Recipe) -> str:
    digest = hashlib.sha256()
    versions = [_version(name) for name in ("graphsage", "scikit-learn", "scipy", "numpy", "gensim")]
    digest.update(json.dumps([_FORMAT, versions, repr(recipe), list(columns)]).encode())
    for column in columns.values():
        for value in column:
            encoded = (value if isinstance(value, str) else repr(value)).encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "little") + encoded)
    digest.update(rows.astype(np.int64).tobytes())
    return digest.hexdigest()[:32]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "unknown"


def _write(path: Path, fitted: Fitted, features: Floats) -> None:
    """Best effort: a full disk or a read-only home must not stop the work."""
    from safetensors.numpy import save

    config, arrays = fitted.state()
    described = json.dumps(config)
    arrays = {**arrays, "features": features}
    checksum = _checksum(described, arrays.items())
    with caching(path), atomic_file(path) as temporary:
        temporary.write_bytes(save(arrays, metadata={"config": described, "sha256": checksum}))


def _read(path: Path, num_nodes: int) -> Made | None:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy") as file:
            about = file.metadata()
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if about["sha256"] != _checksum(about["config"], arrays.items()):
            return None
        features = arrays.pop("features")
        fitted = restore(json.loads(about["config"]), arrays)
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, BundleError):
        return None
    if features.shape != (num_nodes, fitted.width):
        return None
    return fitted, features


def _checksum(config: str, arrays: Iterable[tuple[str, npt.NDArray[Any]]]) -> str:
    digest = hashlib.sha256(config.encode("utf-8", "surrogatepass"))
    for name, array in sorted(arrays):
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
