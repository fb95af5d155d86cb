"""DGL graphs with one node type and one edge type, on the PyTorch backend.

Not supported: heterogeneous graphs (`dgl.to_homogeneous` first), blocks, edge features (dropped, with a warning).
"""

from typing import Any

from graphsage.errors import DataError
from graphsage.graph.convert.common import (
    FEATURES,
    LABELS,
    answers_from,
    first_of,
    from_entries,
    note_dropped,
    splits_from,
)
from graphsage.graph.graph import Graph
from graphsage.graph.split import PARTS, Split


def from_dgl(
    graph: Any, *, features: str | None = None, label: str | None = None, directed: bool | None = None
) -> Graph:
    """The graph of `graph_and_splits`, which also returns the masks."""
    return graph_and_splits(graph, features=features, label=label, directed=directed)[0]


def graph_and_splits(
    graph: Any, *, features: str | None = None, label: str | None = None, directed: bool | None = None
) -> tuple[Graph, dict[str, Split]]:
    """Columns of ndata by name (by default feat, x or feature; label or y), and the split of its masks.
    `directed=None`: undirected if each edge has its reverse."""
    for name in ("num_nodes", "edges", "ndata", "edata", "is_homogeneous"):
        if not hasattr(graph, name):
            raise DataError(f"from_dgl takes a DGLGraph; got {type(graph).__name__}")
    if not graph.is_homogeneous:
        raise DataError(
            "GraphSAGE has one kind of node and of edge; this DGLGraph is heterogeneous; "
            "make it homogeneous: dgl.to_homogeneous(g, ndata=['feat', 'label'])"
        )
    if getattr(graph, "is_block", False):
        raise DataError("from_dgl takes a whole graph; this is a block of a sampled minibatch")
    nodes = {str(key): graph.ndata[key] for key in graph.ndata.keys()}  # noqa: SIM118
    features, label = features or first_of(FEATURES, nodes), label or first_of(LABELS, nodes)
    for wanted in (features, label):
        if wanted is not None and wanted not in nodes:
            raise DataError(f"ndata has no {wanted!r}; there are {', '.join(nodes) or 'none'}")
    masks = {f"{part}_mask" for part in PARTS}
    note_dropped("ndata", {key for key in nodes if not key.startswith("_")} - masks - {features, label})
    note_dropped("edata", {str(key) for key in graph.edata.keys() if not str(key).startswith("_")})  # noqa: SIM118
    sources, targets = graph.edges()
    answers = {} if label is None else answers_from(nodes[label])
    made = from_entries(
        sources,
        targets,
        int(graph.num_nodes()),
        directed=directed,
        features=None if features is None else nodes[features].detach().cpu(),
        **answers,
    )
    return made, splits_from(nodes)
