"""PyTorch Geometric's objects."""

import sys
from typing import Any

import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData

from graphs import neighbor_lists
from graphsage.errors import ConfigError, DataError
from graphsage.graph.convert.pyg import graph_and_splits
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split

INDEX = torch.tensor([[0, 2, 1], [1, 1, 2]])
NEIGHBORS = {0: [], 1: [0, 2], 2: [1]}


def data(**more: Any) -> Data:
    return Data(x=torch.eye(3), edge_index=INDEX, y=torch.tensor([0, 1, 1]), **more)


def test_neighbors_are_the_sources_of_the_edges_that_point_at_a_node() -> None:
    graph = Graph.from_pyg(data())
    assert graph.directed
    assert neighbor_lists(graph) == NEIGHBORS


def test_edges_in_both_directions_are_an_undirected_graph() -> None:
    graph = Graph.from_pyg(Data(edge_index=torch.cat([INDEX, INDEX.flip(0)], 1), num_nodes=4))
    assert (graph.directed, graph.num_edges, graph.num_nodes) == (False, 2, 4)


def test_masks_are_the_split_given() -> None:
    train, test = torch.tensor([True, False, False]), torch.tensor([False, False, True])
    graph, splits = graph_and_splits(data(train_mask=train, val_mask=torch.zeros(3, dtype=torch.bool), test_mask=test))
    assert list(splits) == ["given"]
    assert splits["given"].sizes() == {"train": 1, "val": 0, "test": 1}
    back = graph.to_pyg(splits["given"])
    assert torch.equal(back.train_mask, train)
    assert torch.equal(back.test_mask, test)


def test_masks_with_columns_are_several_splits() -> None:
    train = torch.tensor([[True, False], [False, True], [False, False]])
    _, splits = graph_and_splits(data(train_mask=train, test_mask=torch.tensor([False, False, True])))
    assert {name: split.nodes("train").tolist() for name, split in splits.items()} == {"given-0": [0], "given-1": [1]}
    assert splits["given-1"].nodes("test").tolist() == [2]


def test_without_masks_there_is_no_split() -> None:
    assert graph_and_splits(data())[1] == {}


def test_a_column_of_classes_is_squeezed_and_nan_is_unknown() -> None:
    graph = Graph.from_pyg(Data(edge_index=INDEX, y=torch.tensor([[2.0], [float("nan")], [0.0]])))
    assert graph.labels is not None
    assert graph.labels.tolist() == [2, -1, 0]


def test_marks_as_numbers_are_many_labels() -> None:
    assert Graph.from_pyg(Data(edge_index=INDEX, y=torch.eye(3))).multilabel


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_coo])
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_a_transposed_sparse_adjacency_stands_for_the_edges(layout: torch.layout) -> None:
    transposed = torch.zeros(3, 3)
    transposed[INDEX[1], INDEX[0]] = 1
    sparse = transposed.to_sparse_csr() if layout == torch.sparse_csr else transposed.to_sparse_coo()
    assert neighbor_lists(Graph.from_pyg(Data(adj_t=sparse, num_nodes=3))) == NEIGHBORS


def test_sparse_features_become_dense() -> None:
    graph = Graph.from_pyg(Data(x=torch.eye(3).to_sparse_coo(), edge_index=INDEX))
    assert graph.features is not None
    assert graph.features.tolist() == torch.eye(3).tolist()


def test_graphs_of_a_batch_are_numbered() -> None:
    graph = Graph.from_pyg(Batch.from_data_list([data(), data()]))
    assert graph.graph_number is not None
    assert graph.graph_number.tolist() == [0, 0, 0, 1, 1, 1]


def test_edge_attributes_are_left_behind_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="attributes not carried over: edge_attr, pos"):
        Graph.from_pyg(data(edge_attr=torch.ones(3, 2), pos=torch.ones(3, 2)))


@pytest.mark.parametrize("weight", [torch.tensor([0.5, 2, 0]), torch.tensor([[0.5], [2], [0]])])
def test_an_attribute_of_edges_is_their_weight_if_named(weight: torch.Tensor) -> None:
    graph = Graph.from_pyg(data(edge_attr=weight), edge_weight="edge_attr")
    assert neighbor_lists(graph) == {0: [], 1: [0, 2], 2: []}  # weight 0 is no edge
    assert graph.edge_weight is not None
    assert graph.edge_weight.tolist() == [0.5, 2]


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_values_of_a_sparse_adjacency_are_weights_if_named() -> None:
    transposed = torch.zeros(3, 3)
    transposed[INDEX[1], INDEX[0]] = torch.tensor([5.0, 6, 7])
    graph = Graph.from_pyg(Data(adj_t=transposed.to_sparse_csr(), num_nodes=3), edge_weight="adj_t")
    assert neighbor_lists(graph) == NEIGHBORS
    assert graph.edge_weight is not None
    assert graph.edge_weight.tolist() == [5, 6, 7]


def test_types_of_edges_are_relations_if_named() -> None:
    graph = Graph.from_pyg(data(edge_type=torch.tensor([1, 0, 1])), edge_type="edge_type")
    assert {name: neighbor_lists(each) for name, each in graph.relations.items()} == {
        "0": {0: [], 1: [2], 2: []},
        "1": {0: [], 1: [0], 2: [1]},
    }


def hetero(*kinds: str) -> HeteroData:
    made = HeteroData()
    for kind in kinds:
        made[kind].x = torch.eye(3)
        made[kind].train_mask = torch.ones(3, dtype=torch.bool)
    return made


def test_one_node_type_of_hetero_data_is_a_graph() -> None:
    made = hetero("paper")
    made["paper", "cites", "paper"].edge_index = INDEX
    graph, splits = graph_and_splits(made)
    assert neighbor_lists(graph) == NEIGHBORS
    assert splits["given"].sizes()["train"] == 3


def test_kinds_of_edges_are_merged_with_a_warning() -> None:
    made = hetero("paper")
    made["paper", "cites", "paper"].edge_index = INDEX[:, :2]
    made["paper", "extends", "paper"].edge_index = INDEX[:, 2:]
    with pytest.warns(UserWarning, match="kinds of edges not carried over: .*they are merged"):
        assert neighbor_lists(Graph.from_pyg(made)) == NEIGHBORS


def test_kinds_of_edges_of_hetero_data_are_relations_if_asked_for() -> None:
    made = hetero("paper")
    made["paper", "cites", "paper"].edge_index = INDEX[:, :2]
    made["paper", "extends", "paper"].edge_index = INDEX[:, 2:]
    graph = Graph.from_pyg(made, edge_type="edge_type", direction="out")
    assert {name: neighbor_lists(each) for name, each in graph.relations.items()} == {
        "cites": {0: [1], 1: [], 2: [1]},
        "extends": {0: [], 1: [2], 2: []},
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edge_weight": "cost"}, "edge_weight names 'cost', but no edges have that attribute"),
        ({"edge_type": "cost"}, "edge_type names 'cost', but no edges have that attribute"),
        ({"edge_weight": "adj_t"}, "edge_weight names 'adj_t', but no edges have that attribute"),
        ({"edge_weight": "edge_attr"}, r"edge_attr must have one number for each edge; got shape \(3, 2\)"),
        ({"edge_weight": "short"}, "short must have one number for each of the 3 edges; got 2"),
        ({"edge_weight": "minus"}, "edge 1 has the weight -2; weights are finite"),
    ],
)
def test_edge_attributes_that_cannot_be_read_are_named(options: dict[str, str], message: str) -> None:
    about = {"edge_attr": torch.ones(3, 2), "short": torch.ones(2), "minus": torch.tensor([1.0, -2, 3])}
    with pytest.raises(DataError, match=message):
        Graph.from_pyg(data(**about), **options)


def test_several_node_types_are_an_error_that_names_them() -> None:
    with pytest.raises(DataError, match=r"has 2 \(paper, author\).*to_homogeneous"):
        Graph.from_pyg(hetero("paper", "author"))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ([data()], r"takes Data or HeteroData; got list; of a data set pass dataset\[0\]"),
        (Data(), "number of nodes is unknown"),
        (Data(edge_index=INDEX.T, num_nodes=3), r"edge_index must be integers of shape \(2, E\)"),
        (Data(edge_index=INDEX.float(), num_nodes=3), "edge_index must be integers"),
        (Data(edge_index=INDEX, num_nodes=2), "edge 1 points at node 2"),
        (Data(edge_index=INDEX, num_nodes=3, edge_time=torch.ones(2, dtype=torch.long)), "each of the 3 edges; got 2"),
        (Data(edge_index=INDEX, num_nodes=3, train_mask=torch.ones(2)), "have 2 rows, but the graph has 3 nodes"),
        (Data(adj_t=torch.eye(3), num_nodes=3), "adj_t must be a torch sparse tensor"),
    ],
)
def test_what_cannot_be_used_is_an_error(broken: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Graph.from_pyg(broken)


def test_what_pyg_gets_is_a_copy() -> None:
    graph = Graph.from_edges([[0, 1]], features=torch.ones(2, 1))
    graph.to_pyg().x.zero_()
    assert graph.features is not None
    assert graph.features.tolist() == [[1], [1]]


def test_a_split_of_another_graph_is_refused() -> None:
    with pytest.raises(DataError, match="the split has 10 nodes, the graph 2"):
        Graph.from_edges([[0, 1]]).to_pyg(Split.random(10))


def test_a_missing_library_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch_geometric.data", None)
    with pytest.raises(ConfigError, match="pip install torch_geometric"):
        Graph.from_edges([[0, 1]]).to_pyg()


def test_numbers_with_a_fraction_are_targets() -> None:
    one = Graph.from_pyg(Data(edge_index=INDEX, y=torch.tensor([1.5, float("nan"), 2.0])))
    assert one.regression
    assert one.labels[[0, 2], 0].tolist() == [1.5, 2.0]
    assert one.labels[1].isnan().all()
    two = Graph.from_pyg(Data(edge_index=INDEX, y=torch.tensor([[1.5, 7.0], [0.0, float("nan")], [2.0, 1.0]])))
    assert two.labels.shape == (3, 2)
    back = Graph.from_pyg(two.replace(class_names=("price", "rent")).to_pyg())
    assert back.class_names == ("price", "rent")
    assert torch.equal(back.labels.nan_to_num(), two.labels.nan_to_num())
    assert not Graph.from_pyg(Data(edge_index=INDEX, y=torch.tensor([[1.0], [0.0], [2.0]]))).regression
