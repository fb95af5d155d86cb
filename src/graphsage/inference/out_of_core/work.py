"""The folder of a whole-graph inference: what it is for, its plan, and the blocks that are done.

A block is done when its note (`00003.json`: rows, bytes, checksum) is there, which is written after the block itself.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphsage.atomic import atomic_file, writing
from graphsage.checksummed_blocks import CheckedFile, FileSums, sums_of
from graphsage.checksummed_json import read_checksummed, write_checksummed
from graphsage.errors import DataError, OutputError
from graphsage.features.structure import Structure
from graphsage.file_lock import FileLock, lock_folder
from graphsage.graph.external.csr import CsrFiles
from graphsage.graph.external.row_file import RowFile, RowWriter
from graphsage.graph.graph import Graph
from graphsage.graph.ids import IntArray, node_key
from graphsage.graph.storage import load_array
from graphsage.inference.bundle import read_config
from graphsage.inference.fingerprint import sampled_fingerprint
from graphsage.inference.out_of_core.plan import Stage
from graphsage.regular_files import is_regular, read_json

FORMAT = 3  # 3: features by edges are in structure.npy
_PATHS, _PLAIN = ("graph", "adjacency"), ("purpose", "seed", "worker_bytes")  # in work.json
_KEYS = 1 << 20  # keys computed at once
_EDGES = 1 << 20  # neighbors read at once
STRUCTURE = "structure.npy"
INPUTS = ("keys.npy", STRUCTURE, "capped/indptr.npy", "capped/indices.npy")  # made before the first block


@dataclass(frozen=True)
class WorkFolder:
    folder: Path
    purpose: dict[str, Any]
    """What the result depends on: a restart with another purpose is refused."""
    graph: Path
    """The graph folder."""
    adjacency: Path
    """Where the edges are: the graph folder, or its capped form below this one."""
    seed: int
    worker_bytes: int
    stages: tuple[Stage, ...]

    @classmethod
    def open(cls, folder: Path) -> "WorkFolder":
        path = folder / "work.json"
        try:
            if read_json(path)["format"] != FORMAT:
                raise DataError(f"{folder} has the work of another version of graphsage; delete it to begin anew")
            about = read_checksummed(path, DataError, f"delete {folder} to begin anew")
            facts: dict[str, Any] = {name: about[name] for name in _PLAIN}
            facts |= {name: Path(about[name]) for name in _PATHS}
            stages = tuple(Stage.from_dict(stage) for stage in about["stages"])
            return cls(folder, **facts, stages=stages)
        except FileNotFoundError:
            raise DataError(f"{folder} is not a work folder: work.json is missing") from None
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{path} is damaged ({error!r}); delete {folder} to begin anew") from error

    def save(self) -> None:
        about = {
            "format": FORMAT,
            **{name: str(getattr(self, name)) for name in _PATHS},
            **{name: getattr(self, name) for name in _PLAIN},
            "stages": [stage.as_dict() for stage in self.stages],
            "inputs": {name: sums_of(self.folder / name).as_json() for name in INPUTS if (self.folder / name).exists()},
        }
        write_checksummed(self.folder / "work.json", about)

    def verify_inputs(self) -> None:
        """Refuse work whose keys, structure or capped lists are not those that it was begun with."""
        advice = f"delete {self.folder} to begin anew"
        known = read_checksummed(self.folder / "work.json", DataError, advice)["inputs"]
        for name in INPUTS:
            if name in known:
                CheckedFile(self.folder / name, FileSums.from_json(known[name]), DataError, advice).check()
            elif (self.folder / name).exists():
                raise DataError(f"{self.folder / name} is no file of this work; {advice}")

    def block(self, stage: int, block: int) -> Path:
        return self.folder / self.stages[stage].name / f"{block:05d}.npy"

    def blocks(self, stage: int) -> list[Path]:
        return [self.block(stage, block) for block in range(self.stages[stage].blocks)]

    def note(self, stage: int, block: int) -> Path:
        return self.block(stage, block).with_suffix(".json")

    def missing(self, stage: int) -> list[int]:
        """Blocks without a note, or whose file has not the length that the note says."""
        return [block for block in range(self.stages[stage].blocks) if self._noted(stage, block) is None]

    def _noted(self, stage: int, block: int) -> dict[str, Any] | None:
        try:
            note = read_checksummed(self.note(stage, block))
            path = self.block(stage, block)
            whole = is_regular(path) and path.stat().st_size == note["bytes"]
        except (FileNotFoundError, ValueError, KeyError, TypeError):  # a DataError is a ValueError
            return None
        return note if whole else None

    def forget_damaged(self) -> int:
        """Remove the notes of blocks whose bytes are not those that were written, so that they are computed again."""
        bad = 0
        for stage in range(len(self.stages)):
            for block in range(self.stages[stage].blocks):
                note = self._noted(stage, block)
                if note is not None and not self._is_as_written(stage, block, note):
                    self.note(stage, block).unlink()
                    bad += 1
        return bad

    def _is_as_written(self, stage: int, block: int, note: dict[str, Any]) -> bool:
        about = self.stages[stage]
        try:
            file = RowFile(self.block(stage, block))
            shaped = file.dtype == np.dtype(about.type) and file.shape == (note["rows"], about.width)
            return shaped and file.checksum() == note["crc32"]
        except DataError:
            return False

    @contextmanager
    def writing_block(self, stage: int, block: int) -> Iterator[RowWriter]:
        """Rows of a block; when the `with` ends, the file and then its note appear, whole or not at all."""
        about = self.stages[stage]
        path = self.block(stage, block)
        with atomic_file(path) as temporary:
            with RowWriter(temporary, about.type, (about.width,)) as writer:
                yield writer
            note = {"rows": writer.count, "bytes": temporary.stat().st_size, "crc32": writer.checksum}
        write_checksummed(self.note(stage, block), note)


def locked(folder: Path) -> FileLock:
    """The lock of a work folder: only one command at a time hands out its blocks."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        return lock_folder(folder, OutputError, "wait for it to end")


_READ = ("indptr", "indices", "features", "ids", "ids_text", "ids_offsets")


def graph_identity(folder: Path) -> dict[str, Any]:
    """Size, moment of writing, and a checksum of 64 pieces of each array that inference reads."""
    try:
        about = read_json(folder / "graph.json", most=1 << 30)
        arrays = {name: sampled_fingerprint(folder / f"{name}.npy") for name in _READ if name in about["arrays"]}
        return {
            "nodes": about["nodes"],
            "stored_edges": about["stored_edges"],
            "direction": about["direction"],
            "arrays": arrays,
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{folder} is not a whole graph folder ({error}); save the graph again") from error


def model_identity(bundle: Path) -> dict[str, str]:
    """Checksums of a model's weights and of all that says how they are used."""
    config = read_config(bundle)
    used = {name: config[name] for name in ("encoder", "in_dim", "sampling", "structure", "seed")}
    return {
        "weights": config["files"]["model.safetensors"],
        "settings": hashlib.sha256(json.dumps(used, sort_keys=True).encode()).hexdigest(),
    }


def write_keys(graph: Graph, graph_folder: Path, work: Path) -> None:
    """Keep the keys of the nodes (`graph.ids.node_key`) in the work folder. Integer ids are keys as they are."""
    if graph.ids is not None and not (graph_folder / "ids.npy").exists():
        with atomic_file(work / "keys.npy") as temporary, RowWriter(temporary, np.int64) as writer:
            for start in range(0, graph.num_nodes, _KEYS):
                stop = min(start + _KEYS, graph.num_nodes)
                keys = (node_key(str(graph.id_of(row))) for row in range(start, stop))
                writer.write(np.fromiter(keys, np.int64, stop - start))


def open_keys(graph_folder: Path, work: Path) -> IntArray | None:
    """The keys of the nodes, mapped; None if they are the row numbers."""
    path = next((path for path in (graph_folder / "ids.npy", work / "keys.npy") if path.exists()), None)
    return None if path is None else load_array(path).view(np.ndarray)


def write_structure(structure: Structure, graph_folder: Path, work: Path) -> None:
    """Keep the features by edges in the work folder, if the model reads any."""
    if not structure.width or (work / STRUCTURE).exists():
        return
    lists, known = CsrFiles.open(graph_folder), open_keys(graph_folder, work)
    with atomic_file(work / STRUCTURE) as temporary, RowWriter(temporary, np.float32, (structure.width,)) as writer:
        for _, pointers in lists.runs(_EDGES):
            neighbors = lists.neighbors(int(pointers[0]), int(pointers[-1]))
            keys = neighbors if known is None or not structure.projections else known[neighbors]
            offsets = torch.from_numpy(pointers - pointers[0])
            tables = structure.of_lists(torch.from_numpy(np.asarray(keys, np.int64)), offsets)
            writer.write(torch.cat(tables, dim=1).numpy())
