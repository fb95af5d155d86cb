"""A generation: an immutable snapshot of the graph on disk, as a graph folder, keys and attributes.

The manifest has a checksum of each block of its files. Degrees are verified on opening, keys as a whole when some nodes
have been looked up, and everything else block by block, before the first use of a block.
"""

import json
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from graphsage.atomic import atomic_folder
from graphsage.checksummed_blocks import BLOCK, CheckedFile, FileSums, sums_of
from graphsage.errors import DamageError, StoreError
from graphsage.graph.graph import Graph, known_labels
from graphsage.graph.ids import IntArray, NodeIds, node_key
from graphsage.graph.storage import load_array, open_graph, save_graph
from graphsage.live.faults import fault
from graphsage.live.manifest import RESTORE, sync_folder

_ARRAYS = ("keys", "order", "attributes_text", "attributes_offsets")
_AT_ONCE = ("graph/graph.json", "graph/indptr.npy")  # verified on opening
_LOOKUP = ("keys.npy", "order.npy")
_FEW = 64  # nodes that are looked up in the files, before all keys are verified and sorted in memory


@dataclass(frozen=True, eq=False)
class Generation:
    """`keys` (N,) are the random keys of the nodes; `order` sorts them, to find an id without a table in memory."""

    graph: Graph
    keys: IntArray
    order: IntArray
    attributes_text: npt.NDArray[np.uint8]
    attributes_offsets: IntArray
    files: Mapping[str, CheckedFile] = field(default_factory=dict)
    """By relative path; empty for a generation in memory."""
    _finds: Iterator[int] = field(default_factory=count, repr=False)

    def check(self) -> None:
        """DamageError if a file was cut, or if what every read uses was found damaged."""
        for name, file in self.files.items():
            file.check_size()
            if file.damaged and (name in _AT_ONCE or name in _LOOKUP):
                file.check()

    def check_keys(self) -> None:
        """Verify the keys of all nodes."""
        for name in _LOOKUP if self.files else ():
            self.files[name].check()

    def check_all(self) -> None:
        """Verify what has not been verified yet."""
        for file in self.files.values():
            file.check()

    def verify(self) -> None:
        """Read and verify every block, also those that were verified before."""
        for file in self.files.values():
            file.check_size()
            for block in range(len(file.known.sums)):
                file.verify(block)

    def check_edges(self, start: int = 0, stop: int | None = None) -> None:
        """Verify the entries start..stop of the neighbor lists."""
        if self._edges is not None and not self._edges.whole:
            indices = self.graph.indices
            stop = len(indices) if stop is None else stop
            head, size = self._edges.known.size - indices.nbytes, indices.element_size()
            self._edges.check(head + start * size, head + stop * size)

    @cached_property
    def _edges(self) -> CheckedFile | None:
        return self.files.get("graph/indices.npy")

    def _check(self, name: str, array: npt.NDArray[Any] | Tensor, start: int, stop: int) -> None:
        """Verify the rows start..stop of an array."""
        file = self.files.get(name)
        if file is not None and not file.whole:
            head = file.known.size - array.nbytes  # of the .npy file
            width = array.nbytes // max(len(array), 1)
            file.check(head + start * width, head + stop * width)

    @property
    def num_nodes(self) -> int:
        return self.graph.num_nodes

    @cached_property
    def sorted_keys(self) -> IntArray:
        self.check_keys()
        return self.keys[self.order]

    @cached_property
    def reverse(self) -> tuple[IntArray, IntArray]:
        """Out-neighbors as a CSR: the rows that list each row. Equals the graph if it is undirected."""
        self.check_edges()
        rows = np.repeat(np.arange(self.num_nodes), np.diff(self.graph.indptr.numpy()))
        columns = self.graph.indices.numpy()
        order = np.argsort(columns, kind="stable")
        counts = np.bincount(columns, minlength=self.num_nodes)
        return np.concatenate([[0], np.cumsum(counts)]), rows[order]

    def find(self, id: str) -> int | None:
        """The row of a node; None if no node has that id."""
        if "sorted_keys" not in self.__dict__ and self.files and next(self._finds) < _FEW:
            return self._find_in_files(id)
        key = node_key(id)
        place = int(self.sorted_keys.searchsorted(key))
        while place < len(self.sorted_keys) and self.sorted_keys[place] == key:  # more than one: two ids share a key
            row = int(self.order[place])
            if self.id_of(row) == id:
                return row
            place += 1
        return None

    def _find_in_files(self, id: str) -> int | None:
        """As `find`, reading and verifying few blocks."""
        key = node_key(id)
        place = bisect_left(range(self.num_nodes), key, key=self._key_at)
        while place < self.num_nodes and self._key_at(place) == key:
            row = int(self.order[place])
            if self.id_of(row) == id:
                return row
            place += 1
        return None

    def _key_at(self, place: int) -> int:
        self._check("order.npy", self.order, place, place + 1)
        row = int(self.order[place])
        self._check("keys.npy", self.keys, row, row + 1)
        return int(self.keys[row])

    def id_of(self, row: int) -> str:
        ids = self.graph.ids
        assert ids is not None
        for file in self._id_files:
            if not file.whole:
                text, offsets = ids.arrays().values()
                self._check("graph/ids_offsets.npy", offsets, row, row + 2)
                self._check("graph/ids_text.npy", text, *offsets[row : row + 2].tolist())
                break
        return str(ids[row])

    @cached_property
    def _id_files(self) -> tuple[CheckedFile, ...]:
        return tuple(file for name, file in self.files.items() if name.startswith("graph/ids"))

    def label_of(self, row: int) -> int | tuple[int, ...] | None:
        """The class of a node, all its labels for multi-label data, or None if unknown or a number to predict."""
        labels = self.graph.labels
        if labels is None or self.graph.regression:
            return None
        self._check("graph/labels.npy", labels, row, row + 1)
        if not bool(known_labels(labels[row : row + 1])):
            return None
        return tuple(torch.nonzero(labels[row]).flatten().tolist()) if labels.dim() == 2 else int(labels[row])

    def targets_of(self, row: int) -> tuple[float, ...] | None:
        """The numbers of a node that a regression predicts, NaN for unknown ones; None if the graph has none."""
        labels = self.graph.labels
        if labels is None or not self.graph.regression:
            return None
        self._check("graph/labels.npy", labels, row, row + 1)
        return tuple(labels[row].tolist())

    def feature_rows(self, rows: IntArray) -> Tensor:
        """x_v of `rows`, (R, D) float32. Rows beyond the generation are filled with anything."""
        table = self.graph.features
        if table is None:
            return torch.zeros(len(rows), 0)
        file = self.files.get("graph/features.npy")
        if file is not None and not file.whole:
            width = table.shape[1] * table.element_size()
            file.check_rows(rows[rows < self.num_nodes], file.known.size - self.num_nodes * width, width)
        return table.index_select(0, torch.from_numpy(np.minimum(rows, self.num_nodes - 1))).float()

    def attributes(self, row: int) -> dict[str, Any]:
        (text,) = self.attribute_texts(row, row + 1)
        found: dict[str, Any] = json.loads(text) if text else {}
        return found

    def attribute_texts(self, start: int, stop: int) -> list[bytes]:
        """The attributes of the rows start..stop as JSON, empty for a node without."""
        self._check("attributes_offsets.npy", self.attributes_offsets, start, stop + 1)
        offsets = self.attributes_offsets[start : stop + 1].tolist()
        self._check("attributes_text.npy", self.attributes_text, offsets[0], offsets[-1])
        text = self.attributes_text[offsets[0] : offsets[-1]].tobytes()
        return [text[first - offsets[0] : last - offsets[0]] for first, last in pairwise(offsets)]


def generation_of(graph: Graph, attributes: Iterable[Mapping[str, Any]]) -> Generation:
    """A generation in memory."""
    assert graph.ids is not None
    texts = [_json(each) for each in attributes]
    if len(texts) != graph.num_nodes:
        raise StoreError(f"there must be attributes for each of the {graph.num_nodes} nodes; got {len(texts)}")
    keys = graph.ids.keys
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in texts], dtype=np.int64)])
    text = np.frombuffer(b"".join(texts), np.uint8)
    return Generation(graph, keys, np.argsort(keys, kind="stable"), text, offsets)


def write_generation(folder: Path, graph: Graph, attributes: Iterable[Mapping[str, Any]]) -> dict[str, FileSums]:
    """Write a generation atomically; return the checksums of its files."""
    made = generation_of(graph, attributes)
    with atomic_folder(folder) as temporary:
        save_graph(graph, temporary / "graph")
        fault("compact.half")
        for name in _ARRAYS:
            np.save(temporary / f"{name}.npy", getattr(made, name))
        sync_folder(temporary / "graph")
        sync_folder(temporary)
        sums = {name: sums_of(temporary / name, StoreError) for name in names_below(temporary)}
    sync_folder(folder.parent)
    return sums


def open_generation(folder: Path, sums: Mapping[str, FileSums]) -> Generation:
    """Only the files that `sums` name are opened, each if it is a regular file of the right size."""
    if not {"graph/graph.json", *(f"{name}.npy" for name in _ARRAYS)} <= sums.keys():
        raise StoreError(f"the manifest of {folder.parent} does not name the files of a generation; {RESTORE}")
    files = {name: CheckedFile(folder / name, known, DamageError, RESTORE) for name, known in sums.items()}
    for name, file in files.items():
        file.check(0, None if name in _AT_ONCE else min(BLOCK, file.known.size))  # all headers
    graph = open_graph(folder / "graph", check=False)
    # Plain arrays over the same maps: reading an element of a memmap object takes ten times as long.
    arrays = {name: load_array(folder / f"{name}.npy").view(np.ndarray) for name in _ARRAYS}
    if graph.ids is not None:
        ids = {name: array.view(np.ndarray) for name, array in graph.ids.arrays().items()}
        graph = graph.replace(ids=NodeIds.from_arrays(ids))
    n, text = graph.num_nodes, arrays["attributes_text"]
    sizes = {"keys": n, "order": n, "attributes_offsets": n + 1}
    for name, size in sizes.items():
        if arrays[name].shape != (size,) or arrays[name].dtype != np.int64:
            raise StoreError(f"{folder / name}.npy is not that of a graph of {n} nodes; {RESTORE}")
    if text.dtype != np.uint8 or int(arrays["attributes_offsets"][-1]) != len(text) or graph.ids is None:
        raise StoreError(f"{folder} is damaged: attributes or ids are incomplete; {RESTORE}")
    return Generation(graph, **arrays, files=files)


def with_text_ids(graph: Graph) -> Graph:
    """`graph` in the form of live graphs: ids as text (row numbers if it has none), without times."""
    ids: Sequence[Any] = range(graph.num_nodes) if graph.ids is None else list(graph.ids)
    return graph.replace(ids=NodeIds.of([str(id) for id in ids]), time=None, graph_number=None, edge_time=None)


def names_below(folder: Path) -> list[str]:
    """Relative paths of everything below `folder` that is no folder; links are not followed."""
    found = []
    for place, folders, names in os.walk(folder):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        found += [(Path(place) / name).relative_to(folder).as_posix() for name in (*names, *links)]
    return sorted(found)


def _json(attributes: Mapping[str, Any]) -> bytes:
    return json.dumps(attributes, separators=(",", ":")).encode() if attributes else b""
