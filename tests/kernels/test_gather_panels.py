"""A table read in panels gives what whole rows give: any width, any number of parts, any neighborhoods."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from forms import both, few, same
from graphs import SEEDS, graphs, normal
from graphsage.graph.graph import Graph
from graphsage.inference import embed
from graphsage.kernels import backend
from graphsage.kernels.compiled import bindings
from graphsage.kernels.compiled.library import library
from graphsage.kernels.gather import gather_max, gather_mean, gather_sum
from graphsage.kernels.neighborhood import Neighborhood
from neighborhoods import ragged

pytestmark = pytest.mark.skipif(backend.interpreted() or library() is None, reason="there is no compiler")
REDUCES: list[Callable[[Tensor, Neighborhood], Tensor]] = [gather_mean, gather_sum, gather_max]


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that are called, by name."""
    names: list[str] = []
    call = bindings.call
    monkeypatch.setattr(bindings, "call", lambda name, *arguments: (names.append(name), call(name, *arguments)))
    return names


def small(patch: pytest.MonkeyPatch, part_rows: int) -> None:
    """Small tables are read in panels too, `part_rows` at a time."""
    patch.setattr(bindings, "PART_ROWS", part_rows)
    patch.setattr(bindings, "_panels_pay", lambda *_: True)


@few
@given(graph=graphs(directed=None), width=st.integers(1, 40), part_rows=st.integers(1, 12), seed=SEEDS)
def test_panels_reduce_to_what_whole_rows_do(graph: Graph, width: int, part_rows: int, seed: int) -> None:
    table = normal(seed, graph.num_nodes, 16 * part_rows + width)
    with pytest.MonkeyPatch.context() as patch:
        small(patch, part_rows)
        for kind in (torch.int32, torch.int64):
            index, offsets = graph.indices.to(kind), graph.indptr.to(kind)
            for reduce in REDUCES:
                neighborhood = ragged(index, offsets, torch.arange(graph.num_nodes))
                same(*both(lambda reduce=reduce, n=neighborhood: reduce(table, n)))


@pytest.mark.parametrize("reduce", REDUCES)
def test_neighbors_in_no_order_and_twice_and_nobody(
    reduce: Callable[[Tensor, Neighborhood], Tensor], monkeypatch: pytest.MonkeyPatch, called: list[str]
) -> None:
    small(monkeypatch, 2)
    table = normal(0, 5, 33)
    some = ragged(torch.tensor([4, 0, 2, 2, 1, 3, 0]), torch.tensor([0, 0, 4, 7]), torch.arange(3))
    same(*both(lambda: reduce(table, some)))
    assert "reduce_panels" in called


def test_a_neighbor_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch, 2)
    for bad in (-1, 5, 1 << 40):
        with pytest.raises(IndexError, match="out of range"):
            gather_sum(normal(0, 5, 33), ragged(torch.tensor([0, bad]), torch.tensor([0, 2]), torch.zeros(1)))


def test_panels_are_read_where_that_pays(called: list[str]) -> None:
    rows, width = bindings.PART_ROWS + 1, 17
    table = torch.zeros(rows, width)
    for each, expected in ((4, "reduce_rows"), (13, "reduce_panels")):
        index = torch.arange(each * rows, dtype=torch.int32).remainder_(rows).view(rows, each).sort(dim=1).values
        offsets = torch.arange(0, each * rows + 1, each)
        gather_mean(table, ragged(index.flatten(), offsets, torch.empty(rows)))
        assert called.pop() == expected


def test_whole_graphs_are_reduced_in_blocks_that_bound_memory() -> None:
    """Many nodes with few neighbors each: as many rows at once as memory has room for, not as many as neighbors."""
    nodes = 3 * embed.TABLE_ROWS
    graph = Graph(torch.arange(nodes + 1), torch.zeros(nodes, dtype=torch.int32), direction="in")
    blocks = embed.blocks(graph.degrees, embed.TABLE_EDGES)
    assert [stop - start for start, stop in blocks] == [embed.TABLE_ROWS] * 3
