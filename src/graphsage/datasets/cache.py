"""Text features take seconds to fit, so they are kept on disk. A file that is missing or damaged is made again."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.atomic import atomic_file
from graphsage.errors import BundleError, OutputError
from graphsage.features.text import FittedText, TfidfSvd

_FORMAT = 2  # raise it when the same settings begin to mean other features
Made = tuple[FittedText, npt.NDArray[np.float32]]


def text_features(texts: Mapping[str, Sequence[str]], rows: npt.NDArray[np.int64], settings: TfidfSvd) -> Made:
    """The recipe fitted on `rows` and the features (N, dim) of all rows, from the cache where it has them."""
    path = cache_folder() / "text" / f"{_key(texts, rows, settings)}.safetensors"
    num_nodes = len(next(iter(texts.values())))
    kept = _read(path, settings, num_nodes)
    if kept is not None:
        return kept
    fitted = settings.fit(texts, rows)
    features = fitted.transform(texts)
    _write(path, fitted, features)
    return fitted, features


def cache_folder() -> Path:
    """Where computed features are kept: GRAPHSAGE_CACHE, or the user's cache folder."""
    chosen = os.environ.get("GRAPHSAGE_CACHE")
    if chosen:
        return Path(chosen)
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("graphsage"))


def _key(texts: Mapping[str, Sequence[str]], rows: npt.NDArray[np.int64], settings: TfidfSvd) -> str:
    digest = hashlib.sha256()
    versions = [_version(name) for name in ("graphsage", "scikit-learn", "scipy", "numpy")]
    digest.update(json.dumps([_FORMAT, versions, repr(settings), list(texts)]).encode())
    for column in texts.values():
        for text in column:
            encoded = text.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "little") + encoded)
    digest.update(rows.astype(np.int64).tobytes())
    return digest.hexdigest()[:32]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "unknown"


def _write(path: Path, fitted: FittedText, features: npt.NDArray[np.float32]) -> None:
    """Best effort: a full disk or a read-only home must not stop the work."""
    from safetensors.numpy import save_file

    config, arrays = fitted.state()
    described = json.dumps(config)
    arrays = {**arrays, "features": features}
    checksum = _checksum(described, arrays.items())
    try:
        with atomic_file(path) as temporary:
            save_file(arrays, temporary, metadata={"config": described, "sha256": checksum})
    except OutputError:
        pass


def _read(path: Path, settings: TfidfSvd, num_nodes: int) -> Made | None:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy") as file:
            about = file.metadata()
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if about["sha256"] != _checksum(about["config"], arrays.items()):
            return None
        features = arrays.pop("features")
        fitted = FittedText.from_state(json.loads(about["config"]), arrays)
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, BundleError):
        return None
    if features.shape != (num_nodes, settings.dim) or fitted.settings != settings:
        return None
    return fitted, features


def _checksum(config: str, arrays: Iterable[tuple[str, npt.NDArray[Any]]]) -> str:
    digest = hashlib.sha256(config.encode("utf-8", "surrogatepass"))
    for name, array in sorted(arrays):
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
