"""Edge weights: the laws of the weighted mean, exact and sampled."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from encoders import encoder_of
from graphs import SEEDS, edge_lists, normal
from graphsage.errors import ConfigError, DataError
from graphsage.graph.build import from_edges
from graphsage.graph.graph import Graph
from graphsage.inference.embed import embed_exact
from graphsage.inference.model import Model
from graphsage.kernels.neighborhood import Ragged, related
from graphsage.model.encoder import Encoder, EncoderConfig
from graphsage.sampling.minibatch import SamplingConfig, sample_minibatch
from graphsage.tables.spec import DIRECTIONS
from graphsage.training.train import train

Edges = tuple[int, list[tuple[int, int]]]
READING = ("mean", "meanpool")


def encoder(graph: Graph, name: str, seed: int, weighted: bool = True) -> Encoder:
    shape: dict[str, Any] = {"dim": 4, "hidden_dim": 3, "relations": tuple(graph.relations), "weighted": weighted}
    return encoder_of(EncoderConfig(aggregator=name, **shape), 3, seed=seed)


def distinct(edges: list[tuple[int, int]], direction: str) -> list[tuple[int, int]]:
    """Without repeats, whose weights would add up."""
    return [*{(min(e), max(e)) if direction in ("merged", "both") else e: e for e in edges}.values()]


@pytest.mark.parametrize("name", READING)
@given(edge_lists(), SEEDS, st.sampled_from(DIRECTIONS), st.sampled_from([0.1, 1.0, 3.0]), st.booleans())
def test_equal_weights_change_no_bit(
    name: str, given_: Edges, seed: int, direction: str, weight: float, sampled: bool
) -> None:
    n, edges = given_[0], distinct(given_[1], direction)
    x = normal(seed, n, 3)
    plain = from_edges(edges, n, features=x, direction=direction)
    graph = from_edges(edges, n, features=x, direction=direction, edge_weight=[weight] * len(edges))
    inference = "sampled" if sampled else "exact"
    z = [
        Model(encoder(each, name, seed, each.weighted), None, SamplingConfig(sample_sizes=(3, 2)), inference).embed(
            each
        )
        for each in (plain, graph)
    ]
    assert torch.equal(*z)


@pytest.mark.parametrize("name", READING)
@settings(max_examples=60)
@given(edge_lists(), SEEDS, st.sampled_from(DIRECTIONS), st.data())
def test_integer_weights_are_repeated_edges(
    name: str, given_: Edges, seed: int, direction: str, data: st.DataObject
) -> None:
    n, edges = given_
    weights = data.draw(st.lists(st.integers(0, 3), min_size=len(edges), max_size=len(edges)))
    graph = from_edges(edges, n, direction=direction, edge_weight=weights)
    model, x = encoder(graph, name, seed), normal(seed, n, 3)

    def repeated(lists: Graph) -> Ragged:
        """Each neighbor as often as its weight says."""
        assert lists.edge_weight is not None
        times = lists.edge_weight.long()
        index = torch.repeat_interleave(lists.indices.long(), times)
        counts = torch.zeros(n, dtype=torch.int64).index_add(0, lists.edge_rows, times)
        return Ragged(index, torch.nn.functional.pad(counts.cumsum(0), (1, 0)), torch.arange(n), slice(0, n))

    hood = related([repeated(each) for each in graph.by_relation])
    expected = model(x, [(hood,)] * 2).detach()
    torch.testing.assert_close(embed_exact(model, graph, [x]), expected, atol=2e-5, rtol=1e-4)


@given(edge_lists(), SEEDS, st.data())
def test_a_sample_carries_the_weights_of_its_edges(given_: Edges, seed: int, data: st.DataObject) -> None:
    n, edges = given_
    weights = data.draw(st.lists(st.integers(1, 9), min_size=len(edges), max_size=len(edges)))
    graph = from_edges(edges, n, edge_weight=weights)
    assert graph.edge_weight is not None
    of = dict(zip(zip(graph.edge_rows.tolist(), graph.indices.tolist(), strict=True), graph.edge_weight, strict=True))
    batch = sample_minibatch(graph, torch.arange(n), (3, 2), seed)
    plain = sample_minibatch(graph.replace(edge_weight=None), torch.arange(n), (3, 2), seed)
    for (hood,), (other,) in zip(batch.neighborhoods, plain.neighborhoods, strict=True):
        assert torch.equal(hood.index, other.index)  # type: ignore[union-attr]  # weights change no draw
        (each,) = hood.by_relation
        assert each.weight is not None
        torch.testing.assert_close(each.weight.sum(dim=1), each.present.float())
    (first,) = batch.neighborhoods[0][0].by_relation
    assert first.weight is not None
    for row, drawn, shares, has in zip(
        batch.rows.tolist(), first.index.tolist(), first.weight, first.present, strict=True
    ):
        if has:
            own = torch.stack([of[row, u] for u in drawn])
            torch.testing.assert_close(shares, own / own.sum())


def weighted_graph(direction: str = "merged", **columns: Any) -> Graph:
    edges = [(i, (i * 7 + 1) % 20) for i in range(20)] + [(i, (i + 2) % 20) for i in range(20)]
    return Graph.from_edges(
        edges,
        20,
        features=normal(0, 20, 3),
        labels=[i % 3 for i in range(20)],
        direction=direction,
        edge_weight=[1 + (3 * i * i + i // 3) % 7 for i in range(40)],
        **columns,
    )


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(
    "settings_",
    [
        {"aggregator": "meanpool"},
        {"max_degree": 1},
        {"task": "unsupervised"},
        {"task": "unsupervised", "objective": "contrastive", "epochs": 1},
        {"whole_batches": 2},
        {"inference": "sampled"},
    ],
    ids=str,
)
def test_training_reads_weights(settings_: dict[str, Any], direction: str, tmp_path: Any) -> None:
    import graphsage as gs

    graph = weighted_graph(direction)
    model = train(graph, out=tmp_path / "run", **{"dim": 16, "sample_sizes": (3, 2), "steps": 2, **settings_})
    assert torch.equal(gs.load(tmp_path / "run").embed(), model.embed(graph))
    shuffled = graph.with_relations(lambda each: each.replace(edge_weight=each.edge_weight.flip(0)))  # type: ignore[union-attr]
    shuffled = shuffled.replace(edge_weight=graph.edge_weight.flip(0))  # type: ignore[union-attr]
    changed = not torch.equal(model.embed(shuffled), model.embed(graph))
    assert changed or "max_degree" in settings_  # a single neighbor has the whole weight


def test_weights_are_read_by_means_alone_and_as_in_training() -> None:
    graph, shape = weighted_graph(), {"dim": 4, "sample_sizes": (3, 2), "steps": 1}
    for name in ("pool", "lstm", "gcn"):
        with pytest.raises(ConfigError, match=f"aggregator='{name}' does not read edge weights; use mean or meanpool"):
            train(graph, aggregator=name, **shape)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="task='links' does not read edge weights"):
        train(graph, task="links", **shape)  # type: ignore[arg-type]
    model, plain = train(graph, **shape), train(graph.replace(edge_weight=None), **shape)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="the model reads edge weights, and the graph has none"):
        model.embed(graph.replace(edge_weight=None))
    with pytest.raises(DataError, match="the model does not read edge weights, and the graph has them"):
        plain.embed(graph)
