"""Asked at time t, a node sees only edges dated strictly before t."""

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from encoders import encoder_of
from graphs import SEEDS, edge_lists, facts, normal
from graphsage.datasets.tables import open_tables
from graphsage.errors import ConfigError, DataError
from graphsage.features.structure import Structure
from graphsage.graph.build import from_edges
from graphsage.graph.graph import Graph
from graphsage.inference.model import Model
from graphsage.model.encoder import EncoderConfig
from graphsage.sampling.minibatch import SamplingConfig
from graphsage.tables.spec import DIRECTIONS, TableSpec

TYPES = ("a", "b")


@settings(max_examples=150)
@given(edge_lists(), edge_lists(), SEEDS, st.sampled_from(DIRECTIONS), st.data())
def test_nothing_that_is_dated_later_changes_a_bit(
    before: tuple[int, list[tuple[int, int]]],
    after: tuple[int, list[tuple[int, int]]],
    seed: int,
    direction: str,
    data: st.DataObject,
) -> None:
    n, t = before[0], 5
    old = before[1] or [(0, 0)]
    new = [(u % n, v % n) for u, v in after[1]]
    typed, weighted, sampled, capped, structure = (data.draw(st.booleans()) for _ in range(5))

    def columns(edges: list[tuple[int, int]], times: st.SearchStrategy[int]) -> dict[str, list[Any]]:
        some = {"min_size": len(edges), "max_size": len(edges)}
        made: dict[str, list[Any]] = {"edge_time": data.draw(st.lists(times, **some))}
        if typed:
            made["edge_type"] = data.draw(st.lists(st.sampled_from(TYPES), **some))
        if weighted:
            made["edge_weight"] = data.draw(st.lists(st.integers(1, 3), **some))
        return made

    x, known, later = normal(seed, n, 3), columns(old, st.integers(0, t - 1)), columns(new, st.integers(t, t + 9))

    def graph(edges: list[tuple[int, int]], *parts: dict[str, list[Any]]) -> Graph:
        all_columns: dict[str, Any] = {name: [v for part in parts for v in part[name]] for name in known}
        types = {"edge_types": TYPES} if typed else {}
        return from_edges(edges, n, features=x, direction=direction, **all_columns, **types)

    one, two = graph(old, known), graph([*old, *new], known, later)
    config = EncoderConfig(dim=4, relations=tuple(one.relations), weighted=weighted)
    features = Structure(degree=True, projections=4) if structure else Structure()
    sampling = SamplingConfig(sample_sizes=(2, 2), max_degree=2 if capped else None)
    inference = "sampled" if sampled else "exact"
    model = Model(encoder_of(config, 3 + features.width, seed=seed), None, sampling, inference, features)
    z = [model.embed(each, as_of=t) for each in (one, two)]
    assert torch.equal(*z)
    assert torch.equal(model.embed(one), z[0])


def test_edges_at_the_moment_itself_are_not_seen() -> None:
    graph = from_edges([(0, 1), (0, 2)], 3, edge_time=[3, 4], direction="both")
    assert facts(graph.as_of(4).relations["out"])["indices"][1] == [1]
    assert graph.as_of(5).num_edges == 2
    assert graph.as_of(4).edge_time is not None


def test_times_that_say_nothing_are_one_sentence() -> None:
    graph = from_edges([(0, 1)], 2, features=normal(0, 2, 3), edge_time=[7])
    model = Model(encoder_of(EncoderConfig(dim=4), 3), None, SamplingConfig())
    with pytest.raises(DataError, match="no edge is dated before 7: the first has time 7; give a later as_of"):
        model.embed(graph, as_of=7)
    with pytest.raises(DataError, match="as_of needs edges with times, and this graph has none; give edge_time"):
        model.embed(graph.replace(edge_time=None), as_of=7)
    assert torch.equal(model.embed(graph, as_of="8"), model.embed(graph))
    with pytest.raises(ConfigError, match="as_of is 'soon', not an ISO date"):
        model.embed(graph, as_of="soon")
    model.about = {"tables": TableSpec(edges="e.csv", time_order=("old", "new")).as_dict()}
    with pytest.raises(ConfigError, match="as_of is 'soon', which time_order does not have"):
        model.embed(graph, as_of="soon")


@pytest.mark.parametrize(
    ("written", "good", "shown", "other", "kind"),
    [
        (["2003-03-04", "2009-01-01"], "2005-01-01", "2003-03-04", 2012, "an ISO date"),
        ([2003, 2009], "2005", "2003", "2012-01-01", "an integer"),
    ],
)
def test_a_time_is_read_as_the_tables_write_times(
    written: list[Any], good: str, shown: str, other: Any, kind: str
) -> None:
    """Read on another scale, all edges would lie before it, or none."""
    nodes = {"id": ["a", "b", "c"], "size": [1.0, 2.0, 3.0]}
    edges = {"source": ["a", "b"], "target": ["b", "c"], "t": written}
    data = open_tables(TableSpec(nodes=nodes, edges=edges, numeric="size", edge_time="t"))
    graph = data.graph.replace(features=normal(0, 3, 3))
    model = Model(encoder_of(EncoderConfig(dim=4), 3), None, SamplingConfig())
    model.about = data.about
    assert model.as_of(graph, good).num_edges == 1
    with pytest.raises(ConfigError, match=f"as_of is .*, not {kind}.* as the other times are"):
        model.embed(graph, as_of=str(other))
    with pytest.raises(DataError, match=f"the first has time {shown};"):
        model.as_of(graph, shown)
    new = {"id": ["d"], "features": [[1.0, 2.0, 3.0]]}
    for time, refused in ((other, True), (written[0], False)):
        late = {"source": ["d"], "target": ["a"], "t": [time]}
        with pytest.raises(DataError, match=f"not {kind}") if refused else nullcontext():
            model.embed(graph, new_nodes=new, new_edges=late, as_of=good)


def test_new_edges_bring_their_times() -> None:
    x = normal(0, 3, 2)
    graph = from_edges([(0, 1)], 2, features=x[:2], edge_time=[7])
    grown = graph.with_nodes(features=x[2:], edges=[(2, 0)], edge_time=[9])
    assert grown.as_of(9).neighbors(2).tolist() == []
    assert grown.as_of(10).neighbors(2).tolist() == [0]
    assert graph.with_nodes(features=x[2:], edges=[(2, 0)]).edge_time is None
