"""What tests of the live graph share: small models over small features, and a live graph written from plain dicts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from encoders import encoder_of
from graphsage.features.known_labels import label_width
from graphsage.features.structure import Structure
from graphsage.graph.build import from_edges
from graphsage.graph.graph import Graph
from graphsage.inference.model import Model
from graphsage.live.adjacency import BaseCap, Cap
from graphsage.live.embed import LiveEncoder
from graphsage.live.generation import generation_of, with_text_ids
from graphsage.live.overlay import Overlay
from graphsage.live.overlay_view import Target
from graphsage.live.store import LiveGraph, create_store
from graphsage.model.encoder import EncoderConfig
from graphsage.model.heads import ClassHead
from graphsage.sampling.minibatch import SamplingConfig

WIDTH = 3


def model_of(
    aggregator: str = "mean",
    *,
    layers: int = 2,
    max_degree: int | None = 3,
    inference: str = "exact",
    redraw: bool = True,
    degrees: bool = False,
    cap: str = "symmetric",
    classes: int | None = None,
    label_inputs: bool = False,
    seed: int = 0,
) -> Model:
    config = EncoderConfig(aggregator=aggregator, num_layers=layers, dim=5, hidden_dim=4)
    structure = Structure(degree=True, projections=6) if degrees else Structure()
    labels = label_width(classes or 0) if label_inputs else 0
    encoder = encoder_of(config, WIDTH + structure.width + labels, seed=seed)
    sampling = SamplingConfig(sample_sizes=(3, 2, 2)[:layers], max_degree=max_degree, redraw=redraw, cap=cap)
    head = None if classes is None else ClassHead(5, classes)
    names = None if classes is None else tuple(f"kind {c}" for c in range(classes))
    return Model(
        encoder,
        head,
        sampling,
        inference=inference,
        structure=structure,
        label_inputs=label_inputs,
        seed=seed,
        class_names=names,
    )


def features_of(id: str, version: int = 0) -> Any:
    """Features that a test can know again by name."""
    return np.random.default_rng([*id.encode(), version]).normal(size=WIDTH).astype(np.float32)


def graph_of(nodes: Mapping[str, Any], edges: set[tuple[str, str]], directed: bool = False, **more: Any) -> Graph:
    """The graph that dictionaries describe; rows in the order of `nodes`."""
    row = {id: place for place, id in enumerate(nodes)}
    pairs = np.array([(row[u], row[v]) for u, v in sorted(edges)], np.int64).reshape(-1, 2)
    table = np.stack([np.asarray(x) for x in nodes.values()])
    return from_edges(pairs, len(nodes), features=table, ids=list(nodes), directed=directed, **more)


def open_live(folder: Path, model: Model) -> LiveGraph:
    return LiveGraph(folder, Cap.of(model.sampling, model.seed))


def live_from(folder: Path, graph: Graph, model: Model, **options: Any) -> LiveGraph:
    create_store(folder, graph, **options)
    return open_live(folder, model)


def overlay_of(graph: Graph, model: Model) -> Overlay:
    """A graph as a live one reads it, in memory, without a change."""
    base = generation_of(with_text_ids(graph), [{}] * graph.num_nodes)
    return Overlay(base, BaseCap(base, Cap.of(model.sampling, model.seed)))


def vectors(overlay: Overlay, model: Model, ids: list[str], inference: str | None = None) -> torch.Tensor:
    rows = [overlay.find(id) for id in ids]
    assert None not in rows
    return LiveEncoder.of(model, inference).embed([Target(overlay, row) for row in rows if row is not None])
