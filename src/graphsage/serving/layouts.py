"""Positions of nodes on the map: principal components at once, t-SNE from a process in the background, both kept."""

import io
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from graphsage.atomic import atomic_file, caching
from graphsage.errors import DataError
from graphsage.graph.storage import load_array
from graphsage.inference.nearest import Vectors
from graphsage.inference.projection import among, project

_log = logging.getLogger("graphsage.serving")


def positions(z: Vectors, method: str) -> Vectors:
    """(N, 2), most of them between -1 and 1; outliers are clipped to 1.2."""
    xy = project(z, method, stop=_parent_is_gone)
    if not len(xy):
        return np.zeros((0, 2), np.float32)
    low, high = np.quantile(xy, [0.001, 0.999], axis=0)
    reach = float((high - low).max()) / 2
    placed: Vectors = np.clip((xy - (low + high) / 2) / (reach or 1.0), -1.2, 1.2).astype(np.float32)
    return placed


@dataclass(frozen=True)
class Layout:
    """Positions `xy` of `ids`. `coming` is the method that is being computed to replace them, or empty."""

    ids: tuple[str, ...]
    xy: Vectors
    method: str
    coming: str = ""


class Layouts:
    """Layouts of the nodes of one live graph, kept in its folder for one model and method."""

    def __init__(self, folder: Path, method: str) -> None:
        self._path, self._about, self._method = folder / "map.npy", folder / "map.json", method
        self._job: _Job | None = None

    def first(self, ids: tuple[str, ...], z: Vectors, model: str) -> Layout:
        """Kept positions; new nodes are placed near their nearest kept nodes. If none are kept for this model, or most
        nodes are new, principal components, while t-SNE begins in the background."""
        self.close()
        kept = self._kept(model)
        old = np.array([id in kept for id in ids], bool)
        if 2 * int(old.sum()) < max(len(ids), 1):
            if self._method == "tsne":
                self._job = _Job(ids, z, model)
                return Layout(ids, positions(z, "pca"), "pca", "tsne")
            xy = positions(z, self._method)
        else:
            xy = np.array([kept.get(id, (0.0, 0.0)) for id in ids], np.float32).reshape(-1, 2)
            if old.all() and len(kept) == len(ids):
                return Layout(ids, xy, self._method)
            xy[~old] = among(z[~old], z[old], xy[old])
        self._keep(ids, xy, model)
        return Layout(ids, xy, self._method)

    def finished(self) -> Layout | None:
        """The t-SNE layout once, when it is ready."""
        job = self._job
        if job is None or job.running():
            return None
        self._job = None
        xy = job.result()
        if xy is None:
            _log.warning("t-SNE of the map failed, the map stays as it is; %s", job.trouble)
            return Layout((), np.zeros((0, 2), np.float32), "pca")
        self._keep(job.ids, xy, job.model)
        return Layout(job.ids, xy, "tsne")

    def close(self) -> None:
        if self._job is not None:
            self._job.stop()
            self._job = None

    def _keep(self, ids: Sequence[str], xy: Vectors, model: str) -> None:
        with caching(self._path):
            with atomic_file(self._path) as temporary, temporary.open("wb") as file:
                np.save(file, xy)
            with atomic_file(self._about) as temporary:
                digest = _digest(json.dumps(ids).encode(), self._path)
                facts = {"model": model, "method": self._method, "ids": ids, "sum": digest}
                temporary.write_text(json.dumps(facts), encoding="utf-8")

    def _kept(self, model: str) -> dict[str, tuple[float, float]]:
        """Kept positions by id; empty if the files are missing, damaged, of another model or of another method."""
        try:
            facts = json.loads(self._about.read_text(encoding="utf-8"))
            if [facts["model"], facts["method"]] != [model, self._method]:
                return {}
            if facts["sum"] != _digest(json.dumps(facts["ids"]).encode(), self._path):
                return {}
            xy = load_array(self._path).tolist()
            return {id: (x, y) for id, (x, y) in zip(facts["ids"], xy, strict=True)}
        except (OSError, ValueError, DataError, KeyError, TypeError):
            return {}


def _digest(ids: bytes, path: Path) -> str:
    return sha256(ids + path.read_bytes()).hexdigest()


class _Job:
    """t-SNE in a process of lowest priority: it takes neither this process's interpreter lock nor its memory. Arrays
    go through pipes."""

    def __init__(self, ids: tuple[str, ...], z: Vectors, model: str) -> None:
        self.ids, self.model, self.trouble = ids, model, ""
        self._output = b""
        package = str(Path(__file__).parents[2])
        path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "graphsage.serving.layouts"],  # -P: reads no modules of the present folder
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path},
        )
        self._thread = threading.Thread(target=self._exchange, args=(z,), name="graphsage-layout", daemon=True)
        self._thread.start()

    def _exchange(self, z: Vectors) -> None:
        sent = io.BytesIO()
        np.save(sent, z)
        self._output, said = self._process.communicate(sent.getvalue())
        lines = said.decode(errors="replace").strip().splitlines()
        self.trouble = lines[-1] if lines else f"exit code {self._process.returncode}"

    def running(self) -> bool:
        return self._thread.is_alive()

    def result(self) -> Vectors | None:
        if self._process.returncode != 0:
            return None
        xy: Vectors = np.load(io.BytesIO(self._output), allow_pickle=False)
        return xy if xy.shape == (len(self.ids), 2) and bool(np.isfinite(xy).all()) else None

    def stop(self) -> None:
        self._process.kill()
        self._thread.join()


_PARENT = os.getppid()


def _parent_is_gone() -> bool:
    return __name__ == "__main__" and os.getppid() != _PARENT


def main() -> None:
    """Read vectors as .npy from the standard input and write their t-SNE positions to the standard output."""
    if hasattr(os, "nice"):
        os.nice(19)
    z = np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False)
    np.save(sys.stdout.buffer, positions(z, "tsne"))


if __name__ == "__main__":
    main()
