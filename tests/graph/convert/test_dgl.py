"""DGL graphs, by a stand-in that has exactly what the converter uses: DGL has no build for every torch."""

from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from graphs import neighbor_lists
from graphsage.errors import DataError
from graphsage.graph.convert.dgl import graph_and_splits
from graphsage.graph.graph import Graph


@dataclass
class StandIn:
    """The part of dgl.DGLGraph that is used."""

    sources: Tensor
    targets: Tensor
    nodes: int
    ndata: dict[str, Tensor] = field(default_factory=dict)
    edata: dict[str, Tensor] = field(default_factory=dict)
    is_homogeneous: bool = True
    is_block: bool = False

    def num_nodes(self) -> int:
        return self.nodes

    def edges(self) -> tuple[Tensor, Tensor]:
        return self.sources, self.targets


def stand_in(**more: object) -> StandIn:
    return StandIn(torch.tensor([0, 2], dtype=torch.int32), torch.tensor([1, 1], dtype=torch.int32), 4, **more)  # type: ignore[arg-type]


def test_neighbors_are_the_sources_of_the_edges_that_point_at_a_node() -> None:
    graph = Graph.from_dgl(stand_in())
    assert neighbor_lists(graph) == {0: [], 1: [0, 2], 2: [], 3: []}
    assert graph.directed


def test_features_labels_and_masks_are_read_from_ndata() -> None:
    masks = {
        f"{part}_mask": torch.tensor(rows)
        for part, rows in (("train", [1, 1, 0, 0]), ("val", [0, 0, 1, 0]), ("test", [0, 0, 0, 1]))
    }
    nodes = {"feat": torch.eye(4), "label": torch.tensor([0, 1, 2, 0]), "_ID": torch.arange(4), **masks}
    graph, splits = graph_and_splits(stand_in(ndata=nodes))
    assert graph.num_features == 4
    assert graph.labels is not None
    assert graph.labels.tolist() == [0, 1, 2, 0]
    assert splits["given"].sizes() == {"train": 2, "val": 1, "test": 1}


def test_other_names_can_be_given() -> None:
    graph = Graph.from_dgl(stand_in(ndata={"h": torch.eye(4), "kind": torch.eye(4)}), features="h", label="kind")
    assert graph.multilabel
    assert graph.num_features == 4


def test_both_directions_make_an_undirected_graph() -> None:
    both = StandIn(torch.tensor([0, 1]), torch.tensor([1, 0]), 2)
    assert not Graph.from_dgl(both).directed
    assert Graph.from_dgl(both, directed=True).directed


def test_what_is_left_behind_is_named() -> None:
    with pytest.warns(UserWarning, match="not carried over") as caught:
        Graph.from_dgl(stand_in(ndata={"norm": torch.ones(4)}, edata={"weight": torch.ones(2), "_ID": torch.ones(2)}))
    assert [str(warning.message) for warning in caught] == [
        "ndata not carried over: norm",
        "edata not carried over: weight",
    ]


def test_heterogeneous_graphs_blocks_and_strangers_are_errors() -> None:
    with pytest.raises(DataError, match=r"heterogeneous.*dgl.to_homogeneous"):
        Graph.from_dgl(stand_in(is_homogeneous=False))
    with pytest.raises(DataError, match="block"):
        Graph.from_dgl(stand_in(is_block=True))
    with pytest.raises(DataError, match="takes a DGLGraph; got int"):
        Graph.from_dgl(3)
    with pytest.raises(DataError, match="ndata has no 'h'; there are feat"):
        Graph.from_dgl(stand_in(ndata={"feat": torch.eye(4)}), features="h")
