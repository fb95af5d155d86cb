"""A change: the atomic effect of one accepted request on the graph, and its form in the journal."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.errors import StoreError

LONGEST_ID = 512  # characters
LARGEST_ATTRIBUTES = 1 << 18  # bytes of all attributes of a node as JSON
Floats = npt.NDArray[np.float32]


def attributes_size(attributes: Mapping[str, Any]) -> int:
    """Bytes of attributes as JSON."""
    return len(json.dumps(attributes, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, eq=False)
class NodeChange:
    """A new node, or new features, attributes or label of an existing one; None keeps the old value."""

    id: str
    features: Floats | None = None
    attributes: dict[str, Any] | None = None
    label: int | tuple[int, ...] | None = None
    """A class number, or the numbers of all labels of the node."""


@dataclass(frozen=True, eq=False)
class Change:
    """Its fields are applied in order. An edge is (source, target), in any order if the graph is undirected."""

    nodes: tuple[NodeChange, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    removed_edges: tuple[tuple[str, str], ...] = ()
    removed_nodes: tuple[str, ...] = ()

    def encode(self) -> tuple[bytes, bytes]:
        """JSON, and the features concatenated as little-endian float32."""
        nodes = []
        for node in self.nodes:
            fields: dict[str, Any] = {"id": node.id}
            if node.features is not None:
                fields["width"] = len(node.features)
            if node.attributes is not None:
                fields["attributes"] = node.attributes
            if node.label is not None:
                fields["label"] = node.label
            nodes.append(fields)
        body = {"nodes": nodes, "edges": self.edges, "cut": self.removed_edges, "gone": self.removed_nodes}
        floats = [node.features.astype("<f4").tobytes() for node in self.nodes if node.features is not None]
        shown = {name: value for name, value in body.items() if value}
        return json.dumps(shown, separators=(",", ":"), allow_nan=False).encode("ascii"), b"".join(floats)

    @staticmethod
    def decode(body: bytes, floats: bytes) -> "Change":
        try:
            fields = json.loads(body)
            table = np.frombuffer(floats, "<f4").astype(np.float32)
            nodes, start = [], 0
            for node in fields.get("nodes", []):
                stop = start + node.get("width", 0)
                label = node.get("label")
                label = tuple(label) if isinstance(label, list) else label
                features = table[start:stop] if "width" in node else None
                nodes.append(NodeChange(node["id"], features, node.get("attributes"), label))
                start = stop
            if start != len(table):
                raise ValueError("features of another length")
            pairs = {name: tuple((u, v) for u, v in fields.get(name, [])) for name in ("edges", "cut")}
            return Change(tuple(nodes), pairs["edges"], pairs["cut"], tuple(fields.get("gone", [])))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(f"a row of the journal is no change ({error!r}); restore a backup") from error
