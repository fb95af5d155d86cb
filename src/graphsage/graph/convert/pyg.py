"""PyTorch Geometric: `Data`, and `HeteroData` with one node type. edge_index is source -> target, as edges are here.

Not supported: several node types (GraphSAGE has one kind of node), edge features (dropped, with a warning), and whole
data sets: pass `dataset[0]`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from graphsage.errors import DataError
from graphsage.graph.build import edges_of
from graphsage.graph.convert.common import (
    answers_from,
    from_entries,
    missing,
    note_dropped,
    plain,
    splits_from,
)
from graphsage.graph.graph import Graph, known_labels
from graphsage.graph.split import NONE, PARTS, Split

if TYPE_CHECKING:
    import torch_geometric.data

_NODE_KEYS = {"x", "y", "time", "batch", "ptr", "ids", "class_names", "num_nodes", *(f"{part}_mask" for part in PARTS)}
_EDGE_KEYS = {"edge_index", "adj_t", "edge_time", "edge_type_names"}
_CHOOSE = "; choose with edge_type= and edge_weight="


def from_pyg(data: Any, **options: Any) -> Graph:
    """The graph of `graph_and_splits`, which also returns the masks."""
    return graph_and_splits(data, **options)[0]


def graph_and_splits(
    data: Any,
    *,
    edge_type: str | None = None,
    edge_weight: str | None = None,
    direction: str | None = None,
    directed: bool | None = None,
) -> tuple[Graph, dict[str, Split]]:
    """x, y, edge_index (or adj_t), time, edge_time, batch; masks become split `given`, several columns `given-0`, ...

    `edge_type` and `edge_weight` name attributes with one value per edge, such as edge_type, edge_weight, edge_attr.
    The types of HeteroData are those of its edges, whatever the name. `edge_weight='adj_t'` reads the values of adj_t.
    `directed=None`: undirected if each edge has its reverse. `direction` is that of `Graph.from_edges`."""
    nodes, relations, n = _parts(data, edge_type, edge_weight)
    sources, targets = torch.cat([torch.zeros(2, 0, dtype=torch.int64), *map(_edge_index, relations)], dim=1)
    of_edges = {"edge_time": _column(relations, "edge_time", len(sources))}
    if edge_weight is not None:
        of_edges["edge_weight"] = _weights(relations, edge_weight, len(sources))
    if edge_type is not None:
        of_edges |= _types(data, nodes, relations, edge_type, len(sources))
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
        direction=direction,
        features=x,
        **answers | ({"class_names": nodes["class_names"]} if "class_names" in nodes else {}),
        ids=None if (ids := nodes.get("ids")) is None else ids.tolist() if isinstance(ids, Tensor) else ids,
        time=nodes.get("time"),
        graph_number=numbers,
        **of_edges,
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
    """A `Data` with copies of all arrays, and masks of the split. Undirected edges are in edge_index both ways.
    `edge_type` numbers the types in `edge_type_names`."""
    try:
        from torch_geometric.data import Data
    except ImportError:
        raise missing("torch_geometric", "to_pyg") from None
    edges = edges_of(graph, both_ways=True)
    data = Data(edge_index=edges.pairs.T.contiguous(), num_nodes=graph.num_nodes)
    columns = {
        "x": graph.features,
        "y": _marks(graph.labels) if graph.multilabel else graph.labels,
        "time": graph.time,
        "batch": graph.graph_number,
        "edge_time": edges.time,
        "edge_type": edges.kinds,
        "edge_weight": edges.weight,
    }
    for name, tensor in columns.items():
        if tensor is not None:
            data[name] = tensor.clone()
    if graph.ids is not None:
        data.ids = torch.tensor([*graph.ids]) if graph.ids.are_integers else [*graph.ids]
    if graph.class_names is not None:
        data.class_names = [*graph.class_names]
    if edges.types:
        data.edge_type_names = [*edges.types]
    if split is not None:
        if len(split.codes) != graph.num_nodes:
            raise DataError(f"the split has {len(split.codes)} nodes, the graph {graph.num_nodes}")
        for part, code in PARTS.items():
            if code != NONE:
                data[f"{part}_mask"] = split.codes == code
    return data


def _parts(
    data: Any, edge_type: str | None, edge_weight: str | None
) -> tuple[dict[str, Any], list[Mapping[str, Any]], int]:
    """What is known of nodes, of each kind of edge, and the number of nodes."""
    if not hasattr(data, "to_dict") or not (hasattr(data, "node_types") or hasattr(data, "edge_index")):
        raise DataError(f"from_pyg takes Data or HeteroData; got {type(data).__name__}; of a data set pass dataset[0]")
    used = _EDGE_KEYS | {name for name in (edge_type, edge_weight) if name is not None}
    if not hasattr(data, "node_types"):
        values = data.to_dict()
        note_dropped("attributes", {*values} - _NODE_KEYS - used, _CHOOSE)
        return values, [values], _count(data, values)
    kinds = list(data.node_types)
    if len(kinds) != 1:
        raise DataError(
            f"GraphSAGE has one kind of node; this HeteroData has {len(kinds)} ({', '.join(map(str, kinds))}); "
            "take the part with one node type, or make it homogeneous with data.to_homogeneous()"
        )
    relations = [data[kind].to_dict() for kind in data.edge_types]
    if len(relations) > 1 and edge_type is None:
        note_dropped(
            "kinds of edges",
            ["-".join(kind) for kind in data.edge_types],
            "; they are merged into one; to keep them, pass edge_type='edge_type'",
        )
    note_dropped("edge attributes", {name for relation in relations for name in relation} - used, _CHOOSE)
    nodes = data[kinds[0]].to_dict()
    note_dropped("attributes", {*nodes} - _NODE_KEYS, "; GraphSAGE reads node features and which edges there are")
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


def _column(relations: list[Mapping[str, Any]], name: str, num_edges: int) -> Tensor | None:
    """An attribute of all edges; None if no relation has it. A column (E, 1) counts as (E,)."""
    found = [relation.get(name) for relation in relations]
    there = [torch.as_tensor(value).detach().cpu() for value in found if value is not None]
    if not there:
        return None
    if any(value.dim() not in (1, 2) or (value.dim() == 2 and value.shape[1] != 1) for value in there):
        shape = next(tuple(value.shape) for value in there if value.dim() != 1)
        raise DataError(f"{name} must have one number for each edge; got shape {shape}; choose a column of it")
    column = torch.cat([value.reshape(-1) for value in there])
    if len(column) != num_edges:
        raise DataError(f"{name} must have one number for each of the {num_edges} edges; got {len(column)}")
    return column


def _named(relations: list[Mapping[str, Any]], name: str, num_edges: int, option: str) -> Tensor:
    column = _column(relations, name, num_edges)
    if column is None:
        raise DataError(f"{option} names {name!r}, but no edges have that attribute; name one of the edges' attributes")
    return column


def _weights(relations: list[Mapping[str, Any]], name: str, num_edges: int) -> Tensor:
    if name != "adj_t":
        return _named(relations, name, num_edges, "edge_weight")
    return _named(
        [{name: _sparse(each["adj_t"]).values()} for each in relations if "adj_t" in each],
        name,
        num_edges,
        "edge_weight",
    )


def _types(
    data: Any, nodes: Mapping[str, Any], relations: list[Mapping[str, Any]], name: str, num_edges: int
) -> dict[str, Any]:
    if not hasattr(data, "node_types"):
        return {
            "edge_type": _named(relations, name, num_edges, "edge_type"),
            "edge_types": nodes.get("edge_type_names"),
        }
    counts = torch.tensor([_edge_index(relation).shape[1] for relation in relations])
    names = [middle for _, middle, _ in data.edge_types]
    return {"edge_type": torch.arange(len(names)).repeat_interleave(counts), "edge_types": names}


def _sparse(transposed: Any) -> Tensor:
    if not isinstance(transposed, Tensor) or transposed.layout == torch.strided:
        raise DataError(f"adj_t must be a torch sparse tensor; got {type(transposed).__name__}; pass edge_index")
    coo: Tensor = transposed.to_sparse_coo()  # type: ignore[no-untyped-call]
    return coo.coalesce()


def _edge_index(relation: Mapping[str, Any]) -> Tensor:
    index, transposed = relation.get("edge_index"), relation.get("adj_t")
    if index is None and transposed is not None:
        return _sparse(transposed).indices().flip(0).cpu()  # adj_t has rows of targets
    if index is None:
        return torch.zeros(2, 0, dtype=torch.int64)
    index = torch.from_numpy(plain(index).copy()) if not isinstance(index, Tensor) else index.detach().cpu()
    if index.dim() != 2 or index.shape[0] != 2 or index.is_floating_point():
        raise DataError(f"edge_index must be integers of shape (2, E); got {index.dtype} {tuple(index.shape)}")
    return index.long()
