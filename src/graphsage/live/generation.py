"""A generation: an immutable snapshot of the graph on disk, as a graph folder, keys and attributes."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.atomic import atomic_folder
from graphsage.errors import StoreError
from graphsage.graph.graph import Graph
from graphsage.graph.ids import IntArray, NodeIds, node_key
from graphsage.graph.storage import load_array, open_graph, save_graph
from graphsage.inference.fingerprint import checksum
from graphsage.live.faults import fault
from graphsage.live.manifest import sync_folder

_ARRAYS = ("keys", "order", "attributes_text", "attributes_offsets")


@dataclass(frozen=True, eq=False)
class Generation:
    """`keys` (N,) are the random keys of the nodes; `order` sorts them, to find an id without a table in memory."""

    graph: Graph
    keys: IntArray
    order: IntArray
    attributes_text: npt.NDArray[np.uint8]
    attributes_offsets: IntArray

    @property
    def num_nodes(self) -> int:
        return self.graph.num_nodes

    @cached_property
    def sorted_keys(self) -> IntArray:
        return self.keys[self.order]

    @cached_property
    def reverse(self) -> tuple[IntArray, IntArray]:
        """Out-neighbors as a CSR: the rows that list each row. Equals the graph if it is undirected."""
        rows = np.repeat(np.arange(self.num_nodes), np.diff(self.graph.indptr.numpy()))
        columns = self.graph.indices.numpy()
        order = np.argsort(columns, kind="stable")
        counts = np.bincount(columns, minlength=self.num_nodes)
        return np.concatenate([[0], np.cumsum(counts)]), rows[order]

    def find(self, id: str) -> int | None:
        """The row of a node; None if no node has that id."""
        key = node_key(id)
        place = int(self.sorted_keys.searchsorted(key))
        while place < len(self.sorted_keys) and self.sorted_keys[place] == key:  # more than one: two ids share a key
            row = int(self.order[place])
            if self.id_of(row) == id:
                return row
            place += 1
        return None

    def id_of(self, row: int) -> str:
        return str(self.graph.id_of(row))

    def attributes(self, row: int) -> dict[str, Any]:
        text = self.attributes_text[self.attributes_offsets[row] : self.attributes_offsets[row + 1]].tobytes()
        found: dict[str, Any] = json.loads(text) if text else {}
        return found


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


def write_generation(folder: Path, graph: Graph, attributes: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Write a generation atomically; return the checksums of its files."""
    made = generation_of(graph, attributes)
    with atomic_folder(folder) as temporary:
        save_graph(graph, temporary / "graph")
        fault("compact.half")
        for name in _ARRAYS:
            np.save(temporary / f"{name}.npy", getattr(made, name))
        sync_folder(temporary / "graph")
        sync_folder(temporary)
        sums = checksums(temporary)
    sync_folder(folder.parent)
    return sums


def open_generation(folder: Path) -> Generation:
    graph = open_graph(folder / "graph")
    # Plain arrays over the same maps: reading an element of a memmap object takes ten times as long.
    arrays = {name: load_array(folder / f"{name}.npy").view(np.ndarray) for name in _ARRAYS}
    if graph.ids is not None:
        ids = {name: array.view(np.ndarray) for name, array in graph.ids.arrays().items()}
        graph = graph.replace(ids=NodeIds.from_arrays(ids))
    n, text = graph.num_nodes, arrays["attributes_text"]
    sizes = {"keys": n, "order": n, "attributes_offsets": n + 1}
    for name, size in sizes.items():
        if arrays[name].shape != (size,) or arrays[name].dtype != np.int64:
            raise StoreError(f"{folder / name}.npy is not that of a graph of {n} nodes; restore a backup")
    if text.dtype != np.uint8 or int(arrays["attributes_offsets"][-1]) != len(text) or graph.ids is None:
        raise StoreError(f"{folder} is damaged: attributes or ids are incomplete; restore a backup")
    return Generation(graph, **arrays)


def with_text_ids(graph: Graph) -> Graph:
    """`graph` in the form of live graphs: ids as text (row numbers if it has none), without times."""
    ids: Sequence[Any] = range(graph.num_nodes) if graph.ids is None else list(graph.ids)
    return graph.replace(ids=NodeIds.of([str(id) for id in ids]), time=None, graph_number=None, edge_time=None)


def checksums(folder: Path) -> dict[str, str]:
    """sha256 of every file below `folder`, by its relative path."""
    return {path.relative_to(folder).as_posix(): checksum(path) for path in sorted(folder.rglob("*")) if path.is_file()}


def _json(attributes: Mapping[str, Any]) -> bytes:
    return json.dumps(attributes, separators=(",", ":")).encode() if attributes else b""
