"""Equation 2 is a union: a node with a self loop counts once, on every path of inference and in training."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import graphsage as gs
from graphsage.inference.out_of_core.embed import embed_in_blocks
from graphsage.inference.out_of_core.plan import Budget
from graphsage.live.adjacency import BaseCap, Cap
from graphsage.live.embed import LiveEncoder
from graphsage.live.generation import generation_of, with_text_ids
from graphsage.live.overlay import Overlay
from graphsage.live.overlay_view import Target
from planted import planted_graph

LOOPS = [[0, 0], [7, 7], [119, 119]]
OPTIONS = {"aggregator": "gcn", "dim": 8, "sample_sizes": (4,), "steps": 3, "batch_size": 16, "standardize": False}


def graphs() -> tuple[gs.Graph, gs.Graph]:
    """A graph whose last node has no neighbor but itself, and the same without self loops."""
    plain = planted_graph()
    rows = torch.repeat_interleave(torch.arange(120), plain.degrees)
    edges = torch.stack([rows, plain.indices.long()], dim=1)
    edges = edges[(edges[:, 0] != edges[:, 1]) & (edges != 119).all(dim=1)]
    about = {"features": plain.features, "labels": plain.labels}
    looped = gs.Graph.from_edges(torch.cat([edges, torch.tensor(LOOPS)]), 120, **about)
    return looped, gs.Graph.from_edges(edges, 120, **about)


def by_hand(model: gs.Model, graph: gs.Graph) -> Tensor:
    """One layer of Equation 2, node by node."""
    weight = model.encoder.layer(1).weight.weight
    means = []
    for v in range(graph.num_nodes):
        union = {v} | set(graph.neighbors(v).tolist())
        means.append(graph.features[sorted(union)].mean(dim=0))
    return torch.nn.functional.normalize(torch.relu(torch.stack(means) @ weight.t()), dim=1)


@pytest.mark.parametrize("max_degree", [None, 3])
def test_all_paths_count_a_node_with_a_self_loop_once(max_degree: int | None, tmp_path: Path) -> None:
    looped, plain = graphs()
    split = gs.Split.random(120, (0.7, 0.1, 0.2), 0)
    model = gs.train(looped, split, max_degree=max_degree, **OPTIONS)
    z = model.embed(looped, inference="exact")
    assert torch.equal(z, model.embed(plain, inference="exact"))
    if max_degree is None:
        torch.testing.assert_close(z, by_hand(model, looped), atol=1e-6, rtol=1e-5)
    looped.save(tmp_path / "graph")
    blocks = embed_in_blocks(model, tmp_path / "graph", tmp_path / "work", budget=Budget(3500))
    out_of_core = np.concatenate([rows.numpy() for _, rows in blocks.batches()])
    torch.testing.assert_close(torch.from_numpy(out_of_core), z, atol=1e-6, rtol=1e-5)
    base = generation_of(with_text_ids(looped), [{}] * 120)
    overlay = Overlay(base, BaseCap(base, Cap.of(model.sampling, model.seed)))
    live = LiveEncoder.of(model).embed([Target(overlay, row) for row in range(120)])
    same = torch.ones(120, dtype=torch.bool) if max_degree is None else plain.degrees <= 3  # text ids: other keys
    torch.testing.assert_close(live[same], z[same], atol=1e-6, rtol=1e-5)


def test_sampled_neighborhoods_never_hold_the_node_itself() -> None:
    looped, plain = graphs()
    model = gs.train(looped, gs.Split.random(120, (0.7, 0.1, 0.2), 0), **OPTIONS)
    found = [model.embed(graph, inference="sampled") for graph in (looped, plain)]
    assert torch.equal(*found)
    alone = torch.nn.functional.normalize(
        torch.relu(looped.features[119:] @ model.encoder.layer(1).weight.weight.t()), dim=1
    )
    torch.testing.assert_close(found[0][119:], alone, atol=1e-6, rtol=1e-5)


def test_training_is_the_same_with_and_without_self_loops() -> None:
    split = gs.Split.random(120, (0.7, 0.1, 0.2), 0)
    one, other = (gs.train(graph, split, **OPTIONS) for graph in graphs())
    for a, b in zip(one.encoder.parameters(), other.encoder.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("settings", [{"form": "reference"}, {"aggregator": "mean"}])
def test_the_reference_form_and_other_aggregators_keep_self_loops(settings: dict) -> None:
    assert not gs.Config(aggregator="gcn").sampling().self_loops
    assert not gs.Config(aggregator="gcn", form="paper").sampling().self_loops
    assert gs.Config(**{"aggregator": "gcn", **settings}).sampling().self_loops
