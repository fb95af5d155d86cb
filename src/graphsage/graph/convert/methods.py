"""The converters as methods of Graph. Each file is loaded when it is first used."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import networkx
    import pyarrow
    import scipy.sparse
    import torch_geometric.data

    from graphsage.graph.graph import Graph
    from graphsage.graph.split import Split


class Conversions:
    """`Graph.from_*` and `Graph.to_*`; splits that a source carries come with `graph_and_splits` of each file."""

    @staticmethod
    def from_networkx(
        graph: Any,
        *,
        features: str | Sequence[str] | None = None,
        label: str | None = None,
        time: str | None = None,
        **options: Any,
    ) -> "Graph":
        """From a networkx graph: ids and direction stay; see `graphsage.graph.convert.networkx`."""
        from graphsage.graph.convert.networkx import from_networkx

        return from_networkx(graph, features=features, label=label, time=time, **options)

    @staticmethod
    def from_scipy(adjacency: Any, *, features: Any = None, labels: Any = None, **attributes: Any) -> "Graph":
        """From a sparse adjacency matrix; see `graphsage.graph.convert.scipy`."""
        from graphsage.graph.convert.scipy import from_scipy

        return from_scipy(adjacency, features=features, labels=labels, **attributes)

    @staticmethod
    def from_pyg(data: Any, **options: Any) -> "Graph":
        """From PyTorch Geometric's Data, or HeteroData with one node type; see `graphsage.graph.convert.pyg`."""
        from graphsage.graph.convert.pyg import from_pyg

        return from_pyg(data, **options)

    @staticmethod
    def from_dgl(graph: Any, **options: Any) -> "Graph":
        """From a homogeneous DGLGraph; see `graphsage.graph.convert.dgl`."""
        from graphsage.graph.convert.dgl import from_dgl

        return from_dgl(graph, **options)

    @staticmethod
    def from_ogb(folder: str | Path, *, directed: bool = False) -> "Graph":
        """From a folder of an OGB node property data set; see `graphsage.graph.convert.ogb`."""
        from graphsage.graph.convert.ogb import from_ogb

        return from_ogb(folder, directed=directed)

    @staticmethod
    def from_arrow(edges: Any, nodes: Any = None, **options: Any) -> "Graph":
        """From Arrow, pandas or polars tables or dicts of columns; see `graph.convert.frames.graph_and_splits`."""
        from graphsage.graph.convert.frames import graph_and_splits

        return graph_and_splits(edges, nodes, **options)[0]

    from_pandas = from_polars = from_arrow

    def to_networkx(self: "Graph") -> "networkx.Graph[Any]":  # type: ignore[misc]
        """A networkx Graph or DiGraph, or a multigraph."""
        from graphsage.graph.convert.networkx import to_networkx

        return to_networkx(self)

    def to_scipy(self: "Graph") -> "scipy.sparse.csr_array[Any, Any]":  # type: ignore[misc]
        """The adjacency as a sparse (N, N) array; entry (u, v) is the edge from u to v."""
        from graphsage.graph.convert.scipy import to_scipy

        return to_scipy(self)

    def to_pyg(self: "Graph", split: "Split | None" = None) -> "torch_geometric.data.Data":  # type: ignore[misc]
        """PyTorch Geometric's Data, with masks where a split is given."""
        from graphsage.graph.convert.pyg import to_pyg

        return to_pyg(self, split)

    def to_arrow(self: "Graph") -> "tuple[pyarrow.Table, pyarrow.Table]":  # type: ignore[misc]
        """Arrow tables (edges, nodes); `.to_pandas()` of each gives pandas tables."""
        from graphsage.graph.convert.frames import to_arrow

        return to_arrow(self)
