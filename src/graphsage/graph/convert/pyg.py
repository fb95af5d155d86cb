"""PyTorch Geometric: `Data`, and `HeteroData` with one node type. edge_index is source -> target, as edges are here.

Not supported: several node types (GraphSAGE has one kind of node), edge features and weights (dropped, with a warning),
labels that are numbers to predict, and whole data sets: pass `dataset[0]`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from graphsage.errors import DataError
from graphsage.graph.convert.common import (
    answers_from,
    entries,
    from_entries,
    missing,
    note_dropped,
    one_way,
    plain,
    splits_from,
)
from graphsage.graph.graph import Graph, known_labels
from graphsage.graph.split import NONE, PARTS, Split

if TYPE_CHECKING:
    import torch_geometric.data

_NODE_KEYS = {"x", "y", "time", "batch", "ptr", "ids", "class_names", "num_nodes", *(f"{part}_mask" for part in PARTS)}
_EDGE_KEYS = {"edge_index", "adj_t", "edge_time"}


def from_pyg(data: Any, *, directed: bool | None = None) -> Graph:
    """The graph of `graph_and_splits`, which also returns the masks."""
    return graph_and_splits(data, directed=directed)[0]


def graph_and_splits(data: Any, *, directed: bool | None = None) -> tuple[Graph, dict[str, Split]]:
    """x, y, edge_index (or adj_t), time, edge_time, batch; masks become split `given`, several columns `given-0`, ...
    `directed=None`: undirected if each edge has its reverse."""
    nodes, relations, n = _parts(data)
    sources, targets, when = _edges(relations)
    known = _NODE_KEYS | _EDGE_KEYS
    note_dropped("attributes", {*nodes} - known, "; GraphSAGE reads node features and which edges there are")
    answers = {} if nodes.get("y") is None else answers_from(nodes["y"])
    x, numbers = nodes.get("x"), nodes.get("batch")
    if isinstance(x, Tensor):
        x = x.detach().cpu()
        x = x if x.layout == torch.strided else x.to_dense()
    graph = from_entries(
        sources,
        targets,
        n,
        directed=directed,
        features=x,
        **answers | ({"class_names": nodes["class_names"]} if "class_names" in nodes else {}),
        ids=None if (ids := nodes.get("ids")) is None else ids.tolist() if isinstance(ids, Tensor) else ids,
        time=nodes.get("time"),
        graph_number=numbers,
        edge_time=when,
    )
    splits = splits_from(nodes)
    for name, split in splits.items():
        if len(split.codes) != n:
            raise DataError(f"the masks of split {name} have {len(split.codes)} rows, but the graph has {n} nodes")
    return graph, splits


def _marks(labels: Any) -> torch.Tensor:
    """Rows of 0 and 1, with NaN for unknown labels. A single label stays bytes, which `labels_from` reads as labels."""
    known = known_labels(labels)
    return (
        labels if labels.shape[1] == 1 or bool(known.all()) else torch.where(known[:, None], labels.float(), torch.nan)
    )


def to_pyg(graph: Graph, split: Split | None = None) -> "torch_geometric.data.Data":
    """A `Data` with copies of all arrays, and masks of the split. Undirected edges are in edge_index both ways."""
    try:
        from torch_geometric.data import Data
    except ImportError:
        raise missing("torch_geometric", "to_pyg") from None
    data = Data(edge_index=torch.stack(entries(graph)), num_nodes=graph.num_nodes)
    columns = {
        "x": graph.features,
        "y": _marks(graph.labels) if graph.multilabel else graph.labels,
        "time": graph.time,
        "batch": graph.graph_number,
        "edge_time": one_way(graph).edge_time,
    }
    for name, tensor in columns.items():
        if tensor is not None:
            data[name] = tensor.clone()
    if graph.ids is not None:
        data.ids = torch.tensor([*graph.ids]) if graph.ids.are_integers else [*graph.ids]
    if graph.class_names is not None:
        data.class_names = [*graph.class_names]
    if split is not None:
        if len(split.codes) != graph.num_nodes:
            raise DataError(f"the split has {len(split.codes)} nodes, the graph {graph.num_nodes}")
        for part, code in PARTS.items():
            if code != NONE:
                data[f"{part}_mask"] = split.codes == code
    return data


def _parts(data: Any) -> tuple[dict[str, Any], list[Mapping[str, Any]], int]:
    """What is known of nodes, of each kind of edge, and the number of nodes."""
    if not hasattr(data, "to_dict") or not (hasattr(data, "node_types") or hasattr(data, "edge_index")):
        raise DataError(f"from_pyg takes Data or HeteroData; got {type(data).__name__}; of a data set pass dataset[0]")
    if not hasattr(data, "node_types"):
        values = data.to_dict()
        return values, [values], _count(data, values)
    kinds = list(data.node_types)
    if len(kinds) != 1:
        raise DataError(
            f"GraphSAGE has one kind of node; this HeteroData has {len(kinds)} ({', '.join(map(str, kinds))}); "
            "take the part with one node type, or make it homogeneous with data.to_homogeneous()"
        )
    relations = [data[kind].to_dict() for kind in data.edge_types]
    if len(relations) > 1:
        note_dropped("kinds of edges", ["-".join(kind) for kind in data.edge_types], "; they are merged into one")
    for relation in relations:
        note_dropped("edge attributes", {*relation} - _EDGE_KEYS, "; GraphSAGE reads which edges there are")
    nodes = data[kinds[0]].to_dict()
    return nodes, relations, _count(data[kinds[0]], nodes)


def _count(store: Any, values: Mapping[str, Any]) -> int:
    if values.get("num_nodes") is not None:
        return int(values["num_nodes"])
    for name in ("x", "y", "train_mask"):
        if values.get(name) is not None:
            return int(values[name].shape[0])
    if values.get("edge_index") is None and values.get("adj_t") is None:
        raise DataError("the number of nodes is unknown: there are no x, y and edges; set data.num_nodes")
    return int(store.num_nodes)


def _edges(relations: list[Mapping[str, Any]]) -> tuple[Tensor, Tensor, Tensor | None]:
    found = [_edge_index(relation) for relation in relations]
    index = torch.cat([torch.zeros(2, 0, dtype=torch.int64), *found], dim=1)
    times = [relation.get("edge_time") for relation in relations]
    when = torch.cat([t.cpu() for t in times if t is not None]) if any(t is not None for t in times) else None
    if when is not None and len(when) != index.shape[1]:
        raise DataError(f"edge_time must have one number for each of the {index.shape[1]} edges; got {len(when)}")
    return index[0], index[1], when


def _edge_index(relation: Mapping[str, Any]) -> Tensor:
    index, transposed = relation.get("edge_index"), relation.get("adj_t")
    if index is None and transposed is not None:
        if isinstance(transposed, Tensor) and transposed.layout != torch.strided:
            coo: Tensor = transposed.to_sparse_coo()  # type: ignore[no-untyped-call]
            return coo.coalesce().indices().flip(0).cpu()  # adj_t has rows of targets
        raise DataError(f"adj_t must be a torch sparse tensor; got {type(transposed).__name__}; pass edge_index")
    if index is None:
        return torch.zeros(2, 0, dtype=torch.int64)
    index = torch.from_numpy(plain(index).copy()) if not isinstance(index, Tensor) else index.detach().cpu()
    if index.dim() != 2 or index.shape[0] != 2 or index.is_floating_point():
        raise DataError(f"edge_index must be integers of shape (2, E); got {index.dtype} {tuple(index.shape)}")
    return index.long()
