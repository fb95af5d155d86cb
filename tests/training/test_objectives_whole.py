"""Training on whole neighborhoods: what a step's batch is, its loss and gradient, and resuming."""

import dataclasses
import os
import signal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import graphsage as gs
from graphs import SEEDS, graphs
from graphsage.errors import ConfigError
from graphsage.execution.ranks import SingleProcess
from graphsage.graph.graph import Graph
from graphsage.losses import supervised_loss
from graphsage.sampling.minibatch import whole_graph
from graphsage.training.config import Config
from graphsage.training.loop import Interrupted
from graphsage.training.objectives.whole import WholeGraphs, dealt
from graphsage.training.train import set_up
from planted import SMALL, planted_graph, planted_split


def three_graphs(seed: int = 0) -> Graph:
    """Three planted graphs in one, without edges between them."""
    parts = [planted_graph(40, seed + number) for number in range(3)]
    edges = [torch.stack([part.edge_rows, part.indices.long()], dim=1) + 40 * k for k, part in enumerate(parts)]
    features = torch.cat([part.features for part in parts if part.features is not None])
    labels = torch.cat([part.labels for part in parts if part.labels is not None])
    return Graph.from_edges(torch.cat(edges), 120, features=features, labels=labels)


@given(graph=graphs(max_nodes=30, directed=None), count=st.integers(1, 5), seed=SEEDS)
def test_batches_are_whole_parts_and_hold_every_labeled_node_once(graph: Graph, count: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    labeled = torch.from_numpy(np.flatnonzero(draw.random(graph.num_nodes) < 0.5))
    if not len(labeled):
        return
    batches = dealt(graph, labeled, count)
    together = torch.cat(list(batches)).tolist()
    assert 1 <= len(batches) <= count
    assert len(together) == len(set(together))
    assert set(labeled.tolist()) <= set(together)
    for batch in batches:
        inside = set(batch.tolist())
        assert inside & set(labeled.tolist())
        assert all(set(graph.neighbors(v).tolist()) <= inside for v in inside)


@pytest.mark.parametrize("aggregator", ["mean", "gcn", "pool", "lstm"])
def test_a_step_is_the_loss_over_the_whole_batch(aggregator: str) -> None:
    graph = three_graphs()
    split = planted_split(graph)
    own = {"aggregator": aggregator, "hidden_dim": 4} if aggregator in ("pool", "lstm") else {"aggregator": aggregator}
    config = Config.from_dict({**SMALL, **own, "whole_batches": 2, "layer_norm": True, "residual": True}).resolved()
    run = set_up(graph, split, config, torch.device("cpu"), {})
    assert isinstance(run.objective, WholeGraphs)
    seen = run.data.capped
    for step in range(run.objective.epochs.steps):
        gathered = run.objective.gather(tuple(tensor[0] for tensor in run.objective.choose_examples(step)))
        loss = run.objective.loss(gathered)
        nodes = run.objective.parts[int(run.objective.choose_examples(step)[0])]
        targets = run.objective.nodes[torch.isin(run.objective.nodes, nodes)]
        assert run.model.head is not None
        assert graph.labels is not None
        keys = torch.zeros(graph.num_nodes, dtype=torch.int64)
        epoch_keys = run.objective.gather(tuple(tensor[0] for tensor in run.objective.choose_examples(step))).inputs
        keys[nodes] = epoch_keys.above[0][0].keys  # an LSTM reads the neighbors in the order that they draw
        first = keys.clone()
        first[nodes] = epoch_keys.keys
        hoods = tuple(
            (dataclasses.replace(hood, keys=own_keys),)
            for (hood,), own_keys in zip(whole_graph(seen, 2), (first, keys), strict=True)
        )
        z = run.model.encoder(run.data.tables[0], hoods)
        expected = supervised_loss(run.model.head(z[targets]), graph.labels[targets])
        torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-4)
        parameters = [p for p in run.module.parameters() if p.requires_grad]
        found = torch.autograd.grad(loss, parameters, allow_unused=True)
        wanted = torch.autograd.grad(expected, parameters, allow_unused=True)
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-3)


def test_an_interrupted_run_over_whole_batches_resumes_bit_for_bit(tmp_path) -> None:
    graph = three_graphs()
    split = planted_split(graph)
    options = {**SMALL, "steps": 9, "dropout": 0.2, "whole_batches": 2, "schedule": "cosine"}
    whole = gs.train(graph, split, **options)

    def press_ctrl_c(event: object) -> None:
        if event.kind == "step" and event.step == 5:  # type: ignore[attr-defined]
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted):
        gs.train(graph, split, out=tmp_path, on_event=press_ctrl_c, **options)
    resumed = gs.train(graph, split, out=tmp_path, resume=True, **options)
    for name, value in whole.encoder.state_dict().items():
        assert torch.equal(value, resumed.encoder.state_dict()[name]), name


def test_whole_batches_learn_the_planted_classes() -> None:
    graph = three_graphs()
    split = planted_split(graph)
    model = gs.train(graph, split, **{**SMALL, "epochs": 60, "whole_batches": 1, "lr": 0.03})
    assert model.evaluate(graph, split, "test").micro > 0.85


def test_several_ranks_are_refused() -> None:
    ranks = SingleProcess()
    ranks.count = 2
    graph = three_graphs()
    with pytest.raises(ConfigError, match="one process"):
        set_up(graph, planted_split(graph), Config(whole_batches=1).resolved(), torch.device("cpu"), {}, ranks)
