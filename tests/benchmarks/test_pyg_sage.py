"""The PyG control answers for a batch what PyG answers for the whole graph."""

import numpy as np
import pytest
import torch

from benchmarks.pyg_sage import Sage, adjacency, score_pyg
from planted import planted_graph, planted_split

pytestmark = pytest.mark.slow


@pytest.mark.filterwarnings("ignore:Sparse CSR:UserWarning")
def test_a_batch_reads_full_neighborhoods() -> None:
    graph = planted_graph()
    assert graph.features is not None
    torch.manual_seed(0)
    model = Sage(graph.num_features, 3, 0.0).eval()
    nodes = np.array([7, 3, 20])
    edges = torch.stack([graph.indices.long(), graph.edge_rows.long()])
    with torch.no_grad():
        h = torch.relu(model.second(torch.relu(model.first(graph.features, edges)), edges))
        expected = model.head(h)[nodes]
        found = model(graph.features, adjacency(graph), nodes)
    torch.testing.assert_close(found, expected)


@pytest.mark.filterwarnings("ignore:Sparse CSR:UserWarning")
def test_it_learns_what_is_planted() -> None:
    graph = planted_graph()
    settings = {"lr": 0.01, "dropout": 0.0, "epochs": 20, "seed": 0}
    made = score_pyg(graph, planted_split(graph), settings, (20,))
    assert made["f1"]["test"][0] > 0.8
    assert made["curve"][-1] == made["f1"]["val"][0]
    assert not any(made["curve"][:-1])
