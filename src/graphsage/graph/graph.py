"""The graph that everything else reads: a CSR and what is known about its nodes. Immutable."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from graphsage.graph.convert.methods import Conversions
from graphsage.graph.ids import NodeIds
from graphsage.kernels.neighborhood import shares
from graphsage.tables.spec import MERGED
from graphsage.tables.values import UNKNOWN as UNKNOWN

OF_EDGES = ("edge_time", "edge_weight")
"""Attributes of stored edges, beside `indptr` and `indices`."""


def known_labels(labels: Any) -> Any:
    """Which rows of labels (N,) or (N, C), a tensor or an array, are known: (N,) of booleans. A row of targets is known
    if one of them is."""
    if labels.ndim == 1:
        return labels >= 0
    return (labels == labels).any(1) if _fractional(labels.dtype) else (labels[:, :1] != UNKNOWN).all(1)


def _fractional(dtype: Any) -> bool:
    return dtype.is_floating_point if isinstance(dtype, torch.dtype) else dtype.kind == "f"


@dataclass(frozen=True, eq=False)
class Graph(Conversions):
    """N nodes and their neighbors. Row v's neighbors are `indices[indptr[v]:indptr[v + 1]]`, ascending.

    indptr      (N + 1,) int64
    indices     (E,) int32, or int64 beyond 2^31 nodes; an undirected edge is stored in both directions
    features    (N, D) floating point, or None
    labels      (N,) int64 classes with -1 for unknown, (N, C) uint8 marks with a row of UNKNOWN, (N, T) float64 targets
                of a regression with NaN for unknown, or None
    class_names one name for each class, label or target
    ids         outside ids; None means that row numbers are the ids
    time        (N,) int64, when the node appeared
    graph_number (N,) int64, which of several disjoint graphs the node belongs to
    edge_time   (E,) int64, when the edge appeared
    edge_weight (E,) float32 above 0
    direction   which of a node's neighbors its row lists: all (merged), or only those that point at it (in), or that it
                points at (out)
    relations   a graph for each relation, with the neighbors of all nodes in it; empty if there is one relation, the
                graph's own lists. Otherwise the own lists are those of all relations together: walks, degrees and
                summaries read them, and a model reads the relations

    The tensors may be read-only maps of files: never change one in place.
    """

    indptr: Tensor
    indices: Tensor
    features: Tensor | None = None
    labels: Tensor | None = None
    class_names: tuple[str, ...] | None = None
    ids: NodeIds | None = None
    time: Tensor | None = None
    graph_number: Tensor | None = None
    edge_time: Tensor | None = None
    edge_weight: Tensor | None = None
    direction: str = MERGED
    relations: "dict[str, Graph]" = field(default_factory=dict)

    @property
    def directed(self) -> bool:
        """Whether a node's row lists only those neighbors that point at it, or those that it points at."""
        return self.direction != MERGED

    @property
    def by_relation(self) -> "tuple[Graph, ...]":
        """The neighbor lists that a layer aggregates separately."""
        return tuple(self.relations.values()) or (self,)

    @property
    def weighted(self) -> bool:
        """Whether edges have weights."""
        return self.edge_weight is not None

    @property
    def edge_lists(self) -> "tuple[Graph, ...]":
        """Those of `by_relation` that have each edge once (an undirected one at both ends)."""
        lists = self.by_relation
        return tuple(each for each in lists if each.direction != "out") or lists  # in, if there are both

    def with_relations(self, change: "Callable[[Graph], Graph]") -> "Graph":
        """This graph with each relation changed."""
        return replace(self, relations={name: change(each) for name, each in self.relations.items()})

    @staticmethod
    def from_edges(edges: Any, num_nodes: int | None = None, **attributes: Any) -> "Graph":
        """Build from an (E, 2) array of rows; see `graphsage.graph.build.from_edges` for every option."""
        from graphsage.graph.build import from_edges

        return from_edges(edges, num_nodes, **attributes)

    @staticmethod
    def open(folder: str | Path) -> "Graph":
        """Open a saved graph by mapping its files: instant, whatever its size."""
        from graphsage.graph.storage import open_graph

        return open_graph(folder)

    def save(self, folder: str | Path) -> None:
        """Write a folder of `.npy` files + `graph.json`, whole or not at all."""
        from graphsage.graph.storage import save_graph

        save_graph(self, folder)

    def with_nodes(
        self,
        *,
        features: Any = None,
        edges: Any,
        ids: Iterable[str] | Iterable[int] | None = None,
        edge_type: Any = None,
        edge_weight: Any = None,
        edge_time: Any = None,
    ) -> "Graph":
        """This graph and nodes that arrived later, numbered after the old ones. `edges` may join old and new. They have
        types or weights if those of the graph have. The result has edge times if all edges have."""
        from graphsage.graph.build import with_nodes

        return with_nodes(
            self,
            features=features,
            edges=edges,
            ids=ids,
            edge_type=edge_type,
            edge_weight=edge_weight,
            edge_time=edge_time,
        )

    def as_of(self, time: int) -> "Graph":
        """This graph as it was known at `time`: only edges dated strictly before."""
        from graphsage.graph.split import as_of

        return as_of(self, time)

    @property
    def num_nodes(self) -> int:
        return self.indptr.shape[0] - 1

    @property
    def num_stored_edges(self) -> int:
        """Directed entries: an undirected edge counts twice, a self loop once."""
        return self.indices.shape[0]

    @property
    def num_edges(self) -> int:
        """Edges as a person counts them: an undirected edge once."""
        if self.relations:
            return sum(each.num_edges for each in self.edge_lists)
        if self.directed:
            return self.num_stored_edges
        return (self.num_stored_edges + self.num_self_loops) // 2

    @property
    def num_self_loops(self) -> int:
        return int((self.edge_rows == self.indices).sum())

    @property
    def edge_rows(self) -> Tensor:
        """The row that each stored edge belongs to, (E,)."""
        return torch.repeat_interleave(torch.arange(self.num_nodes, device=self.indptr.device), self.degrees)

    @property
    def degrees(self) -> Tensor:
        return self.indptr[1:] - self.indptr[:-1]

    @property
    def keys(self) -> Tensor:
        """The random key of each node (N,): `graphsage.graph.ids.node_key` of its id, or its row number."""
        if self.ids is None:
            return torch.arange(self.num_nodes, device=self.indptr.device)
        return torch.from_numpy(self.ids.keys.copy()).to(self.indptr.device)

    @property
    def num_features(self) -> int:
        return 0 if self.features is None else self.features.shape[1]

    @property
    def multilabel(self) -> bool:
        return self.labels is not None and self.labels.dim() == 2 and not self.regression

    @property
    def regression(self) -> bool:
        """Whether the labels are numbers to predict."""
        return self.labels is not None and self.labels.is_floating_point()

    @property
    def labels_are(self) -> str:
        """What the labels are, in a word."""
        return "targets" if self.regression else "labels" if self.multilabel else "classes"

    @property
    def num_classes(self) -> int:
        if self.class_names is not None:
            return len(self.class_names)
        if self.labels is None:
            return 0
        return self.labels.shape[1] if self.labels.dim() == 2 else int(self.labels.max()) + 1

    def labeled(self, nodes: Tensor) -> Tensor:
        """Those of `nodes` whose class, labels or some target are known."""
        assert self.labels is not None
        return nodes[known_labels(self.labels[nodes])]

    def class_counts(self, nodes: Tensor | None = None) -> list[int]:
        """The number of nodes per class or label, or with a known target, of all nodes or of some."""
        if self.labels is None:
            return []
        labels = self.labels if nodes is None else self.labels[nodes]
        if self.regression:
            return list((labels == labels).sum(dim=0).tolist())
        known = labels[known_labels(labels)]
        if self.multilabel:
            return list(known.sum(dim=0, dtype=torch.int64).tolist())
        return list(known.bincount(minlength=self.num_classes).tolist())

    def neighbors(self, row: int) -> Tensor:
        return self.indices[int(self.indptr[row]) : int(self.indptr[row + 1])]

    def csr_of(self, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(indptr, indices, at): the neighbors of nodes[i] are row at[i]."""
        return self.indptr, self.indices, nodes

    def neighbors_of(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """The neighbors of `nodes` (R,) one after the other, and where each node's begin: (E,), (R + 1,)."""
        places, offsets = self.places_of(nodes)
        return self.indices[places].long(), offsets

    def shares_of(self, nodes: Tensor) -> Tensor | None:
        """The weights of the neighbors of `nodes` as shares of the sum of their row (E,); None without weights."""
        if self.edge_weight is None:
            return None
        places, offsets = self.places_of(nodes)
        return shares(self.edge_weight[places], offsets)

    @cached_property
    def places(self) -> tuple[Tensor, Tensor] | None:
        """The numbers of the stored edges, and their weights; None without weights."""
        if self.edge_weight is None:
            return None
        dtype = torch.int32 if self.num_stored_edges < 2**31 else torch.int64
        return torch.arange(self.num_stored_edges, dtype=dtype, device=self.indices.device), self.edge_weight

    @cached_property
    def cumulative_shares(self) -> Tensor | None:
        """The running sum (E,) of each neighbor's share of its row's weight; None if no weights differ. Rows sum to 1,
        so large weights elsewhere do not round small ones away."""
        weight = self.edge_weight
        if weight is None or not len(weight) or bool((weight == weight[0]).all()):
            return None
        return shares(weight.double(), self.indptr).cumsum(0)

    def places_of(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """As `neighbors_of`, but where the neighbors stand in `indices`."""
        start = self.indptr[nodes]
        counts = self.indptr[nodes + 1] - start
        offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        first = torch.repeat_interleave(start - offsets[:-1], counts)
        return first + torch.arange(int(offsets[-1]), device=nodes.device), offsets

    def id_of(self, row: int) -> str | int:
        return row if self.ids is None else self.ids[row]

    def rows_of(self, ids: Sequence[str | int]) -> Tensor:
        """Rows of outside ids."""
        from graphsage.graph.build import rows_of

        return rows_of(self, ids)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Graph":
        return self  # immutable: scikit-learn's clone copies parameters, and a graph may be large

    def replace(self, **changes: Any) -> "Graph":
        """A copy with other attributes; the arrays are shared."""
        return replace(self, **changes)

    def to(self, device: str | torch.device) -> "Graph":
        """The same graph with its tensors on `device`; itself where they are there already."""
        if self.indptr.device == torch.empty(0, device=device).device:
            return self
        moved = {
            name: value.to(device)
            for name in ("indptr", "indices", "features", "labels", "time", "graph_number", *OF_EDGES)
            if (value := getattr(self, name)) is not None
        }
        return replace(self, **moved).with_relations(lambda relation: relation.to(device))

    def __repr__(self) -> str:
        parts = [f"{self.num_nodes:,} nodes", f"{self.num_stored_edges:,} stored edges"]
        if self.features is not None:
            parts.append(f"{self.num_features} features")
        if self.labels is not None:
            parts.append(f"{self.num_classes} {self.labels_are}")
        if self.relations:
            parts.append(f"relations {', '.join(self.relations)}")
        return f"Graph({', '.join(parts)})"
