"""Values of features far beyond those of training are refused by column, node and limit."""

from pathlib import Path

import numpy as np
import pytest
import torch

import graphsage as gs
from graphsage.features.limits import FeatureLimits, largest_of
from graphsage.inference.export import graph_for
from graphsage.live.node_features import store_from_data
from hub_tables import Tables, hub_tables, train


def test_a_value_is_beyond_a_multiple_of_the_largest_in_training_and_one_counts_at_least() -> None:
    x = torch.tensor([[0.0, -5.0, 3e38], [0.5, 2.0, 1.0], [9.0, 9.0, 9.0]])
    limits = FeatureLimits(largest_of([x[:, :1], x[:, 1:]], torch.tensor([0, 1])), 10)
    assert limits.largest.tolist() == [0.5, 5, pytest.approx(3e38)]
    assert limits.bounds.tolist() == [10, 50, np.finfo(np.float32).max]
    good = np.array([[10, -50, -3e38], [-10, 50, 0]], np.float32)
    assert limits.beyond(good) is None
    for column, value in ((0, 10.01), (1, -51), (2, np.inf), (0, np.nan)):
        for form in (good.copy(), torch.from_numpy(good.copy()).double()):
            form[1, column] = value
            assert limits.beyond(form) == (1, column, pytest.approx(float(limits.bounds[column])))


def test_new_rows_and_live_graphs_with_wild_values_are_refused(tmp_path: Path) -> None:
    tables = hub_tables(3)
    data = tables.data()
    model = train(data, out=tmp_path / "run")
    assert model.limits is not None
    graph, limit = graph_for(model, data), f"{model.limits.bounds[1]:,.6g}"
    told = f"is beyond {limit}, 1,000 times the largest that the model was trained on; correct it"
    for read in (model, gs.load(tmp_path / "run")):
        for value in (3e38, -1e7):
            with pytest.raises(gs.DataError) as caught:
                read.predict(graph, new_nodes={"id": ["fine", "wild"], "x": [0.1, 0.2], "y": [0.0, value]})
            assert str(caught.value) == f"new_nodes column 'y' row 2 (node 'wild') {told}"
    id, x, _, label = tables.nodes[4]
    odd = Tables((*tables.nodes[:4], (id, x, 3e38, label), *tables.nodes[5:]), tables.edges).data()
    with pytest.raises(gs.DataError) as caught:
        store_from_data(tmp_path / "store", model, odd, graph_for(model, odd))
    assert str(caught.value).endswith(f"column 'y' of node {id!r} {told}")
    assert not (tmp_path / "store").exists()
