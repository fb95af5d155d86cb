"""Algorithm 2, lines 1-7: which nodes a batch needs, whatever the batch."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from algorithms import hashed, sample
from graphs import SEEDS, chi_square_p, graphs, neighbor_lists, star
from graphsage.errors import ConfigError
from graphsage.graph.graph import Graph
from graphsage.kernels.neighborhood import Hoods, Minibatch
from graphsage.kernels.random import Stream
from graphsage.sampling.minibatch import (
    LARGEST_SAMPLE,
    SamplingConfig,
    Unweighted,
    sample_minibatch,
    whole_graph,
    whole_minibatch,
)
from graphsage.training.config import Config

SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


def drawn(graph: Graph, targets: Tensor, sizes: list[int], seed: int = 0, redraw: bool = True) -> Minibatch:
    return sample_minibatch(graph, targets, sizes, Stream(seed, "test").keys(targets), redraw)


def rows_of(hoods: Hoods) -> list[list[int]]:
    return [row for hood in hoods for row in hood.index.tolist()]


def trees(batch: Minibatch) -> list[object]:
    """Each target's whole tree: (node, subtree of itself, subtrees of its neighbors) down to plain nodes."""

    def tree(k: int, row: int) -> object:
        if k == 0:
            return row  # below the first layer rows are the graph's nodes
        hoods = batch.neighborhoods[k - 1]
        neighbors = rows_of(hoods)[row] if torch.cat([hood.present for hood in hoods])[row] else []
        itself = int(batch.rows[row]) if k == 1 else tree(k - 1, row)
        return int(batch.rows[row]), itself, [tree(k - 1, u) for u in neighbors]

    return [tree(len(batch.neighborhoods), row) for row in range(batch.neighborhoods[-1][0].num_rows)]


class Renumbered(Unweighted):
    """A graph whose `csr_of` returns a CSR of the asked nodes alone, as graphs under an overlay do."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.num_nodes, self.by_relation = graph, graph.num_nodes, (self,)

    def csr_of(self, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        flat, offsets = self.graph.neighbors_of(nodes)
        return offsets, flat, torch.arange(len(nodes))

    def neighbors_of(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        return self.graph.neighbors_of(nodes)


@given(graphs(directed=None), SIZES, SEEDS, st.booleans())
def test_rows_of_a_csr_need_not_be_the_numbers_of_the_nodes(
    graph: Graph, sizes: list[int], seed: int, redraw: bool
) -> None:
    targets = torch.arange(graph.num_nodes).flip(0)
    keys = Stream(seed, "test").keys(targets)
    direct, renumbered = (sample_minibatch(view, targets, sizes, keys, redraw) for view in (graph, Renumbered(graph)))
    assert trees(direct) == trees(renumbered)
    for mine, others in zip(direct.neighborhoods[0], renumbered.neighborhoods[0], strict=True):
        assert torch.equal(mine.index, others.index)


def test_a_batch_with_too_many_nodes_below_stops_at_the_iteration_that_reads_all() -> None:
    """Node 0 of a star needs all 5 nodes below; a limit of 5 allows them, and one of 4 does not."""
    graph = star(4)

    def layers(most: float) -> int:
        return len(whole_minibatch(graph, torch.tensor([0]), 3, lambda rows, k: rows, most).neighborhoods)

    assert [layers(most) for most in (5, 4, 0)] == [3, 1, 1]


def test_whole_neighborhoods_are_those_of_seed_0_unless_one_is_given() -> None:
    keys = [whole_graph(star(3), 1, *seed)[0][0].keys.tolist() for seed in ((), (0,), (1,))]
    assert keys[0] == keys[1] != keys[2]


def test_the_largest_sample_is_allowed() -> None:
    assert SamplingConfig(sample_sizes=(LARGEST_SAMPLE,)).sample_sizes == (LARGEST_SAMPLE,)
    with pytest.raises(ConfigError, match="at most"):
        SamplingConfig(sample_sizes=(LARGEST_SAMPLE + 1,))


def slow_tree(neighbors: dict[int, list[int]], sizes: list[int], v: int, key: int, k: int) -> object:
    if k == 0:
        return v
    draw, size = hashed(key, k), sizes[k - 1]
    chosen = sample(neighbors[v], size, draw)
    children = [slow_tree(neighbors, sizes, u, hashed(draw, size + s), k - 1) for s, u in enumerate(chosen)]
    return v, slow_tree(neighbors, sizes, v, key, k - 1), children


def slow_released_tree(neighbors: dict[int, list[int]], sizes: list[int], v: int, key: int, hop: int, k: int) -> object:
    if k == 0:
        return v
    depth = len(sizes)
    draw, size = hashed(key, depth - hop), sizes[depth - 1 - hop]
    chosen = sample(neighbors[v], size, draw)
    children = [
        slow_released_tree(neighbors, sizes, u, hashed(draw, size + s), hop + 1, k - 1) for s, u in enumerate(chosen)
    ]
    return v, slow_released_tree(neighbors, sizes, v, key, hop, k - 1), children


@given(graphs(max_nodes=8, directed=None), SIZES, SEEDS)
def test_the_tree_of_every_target_equals_one_drawn_by_recursion(graph: Graph, sizes: list[int], seed: int) -> None:
    targets = torch.arange(graph.num_nodes)
    keys = Stream(seed, "test").keys(targets).tolist()
    slow = [slow_tree(neighbor_lists(graph), sizes, v, keys[v], len(sizes)) for v in range(graph.num_nodes)]
    assert trees(drawn(graph, targets, sizes, seed)) == slow


@given(graphs(max_nodes=8, directed=None), SIZES, SEEDS)
def test_without_redrawing_the_tree_is_that_of_the_released_code(graph: Graph, sizes: list[int], seed: int) -> None:
    targets = torch.arange(graph.num_nodes)
    keys = Stream(seed, "test").keys(targets).tolist()
    lists = neighbor_lists(graph)
    slow = [slow_released_tree(lists, sizes, v, keys[v], 0, len(sizes)) for v in range(graph.num_nodes)]
    assert trees(drawn(graph, targets, sizes, seed, redraw=False)) == slow


@pytest.mark.parametrize("redraw", [True, False])
@given(graph=graphs(), sizes=SIZES, seed=SEEDS, data=st.data())
def test_a_tree_does_not_depend_on_the_batch(
    redraw: bool, graph: Graph, sizes: list[int], seed: int, data: st.DataObject
) -> None:
    whole = trees(drawn(graph, torch.arange(graph.num_nodes), sizes, seed, redraw))
    some = data.draw(st.lists(st.integers(0, graph.num_nodes - 1), min_size=1, max_size=6))
    assert trees(drawn(graph, torch.tensor(some), sizes, seed, redraw)) == [whole[v] for v in some]


@given(graphs(), SIZES)
def test_shapes_are_fixed_by_the_sample_sizes_alone(graph: Graph, sizes: list[int]) -> None:
    batch = drawn(graph, torch.zeros(3, dtype=torch.int64), sizes)
    rows = 3
    for k in range(len(sizes), 0, -1):
        (neighborhood,) = batch.neighborhoods[k - 1]
        assert neighborhood.num_rows == rows
        assert neighborhood.index.shape == (rows, sizes[k - 1])
        assert neighborhood.keys.shape == (rows,)
        rows += rows * sizes[k - 1] if k > 1 else 0
    assert batch.rows.shape == (rows,)
    assert batch.neighborhoods[-1][0].num_rows == 3


@pytest.mark.parametrize("redraw", [True, False])
def test_a_target_has_the_last_sample_size_as_direct_neighbors(redraw: bool) -> None:
    batch = drawn(star(100), torch.tensor([0]), [25, 10], redraw=redraw)
    assert batch.neighborhoods[1][0].counts.tolist() == [10]
    assert len(batch.rows) == 1 + 10
    # h^1 of the target: 25 fresh neighbors in the paper, its 10 again in the released code.
    counts = torch.cat([hood.counts for hood in batch.neighborhoods[0]])
    assert counts.tolist() == [25 if redraw else 10] + [25] * 10


def test_every_iteration_draws_its_own_neighbors_of_a_target() -> None:
    targets = torch.zeros(4000, dtype=torch.int64)
    keys = Stream(0, "test").keys(torch.arange(4000))
    batch = sample_minibatch(star(6), targets, (1, 1), keys)
    at_2 = batch.rows[4000:] - 1
    at_1 = batch.neighborhoods[0][0].index[:4000, 0] - 1
    assert chi_square_p(torch.bincount(at_2 * 6 + at_1, minlength=36)) > 1e-4


def test_two_occurrences_of_a_node_draw_apart() -> None:
    graph = star(8)
    batch = drawn(graph, torch.tensor([1]), [2, 6])  # the leaf meets the hub six times
    below_hub = batch.neighborhoods[0][0].index[1:]
    assert len({tuple(row) for row in below_hub.tolist()}) > 1


def test_without_redrawing_the_same_neighbors_serve_every_layer() -> None:
    batch = drawn(star(50), torch.tensor([0]), [3, 4, 5], redraw=False)
    direct = batch.rows[1:6].tolist()
    first, second, third = batch.neighborhoods
    assert rows_of(first)[0] == direct
    assert batch.rows[rows_of(second)[0]].tolist() == direct
    assert batch.rows[rows_of(third)[0]].tolist() == direct


def test_isolated_targets_have_no_neighbors_at_any_depth() -> None:
    graph = Graph.from_edges([(0, 1)], 3)
    for redraw in (True, False):
        batch = drawn(graph, torch.tensor([2]), [2, 2], redraw=redraw)
        assert trees(batch) == [(2, (2, 2, []), [])]


@pytest.mark.parametrize(
    "bad",
    [
        {"sample_sizes": ()},
        {"sample_sizes": (3, 0)},
        {"sample_sizes": (3, 1 << 15)},
        {"max_degree": 0},
        {"cap": "none"},
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(bad: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(bad))):
        SamplingConfig(**bad)  # type: ignore[arg-type]


def test_the_papers_settings_are_the_defaults() -> None:
    """The paper's degree cap comes with `form="paper"`."""
    assert SamplingConfig() == SamplingConfig(sample_sizes=(25, 10), max_degree=None, cap="row", redraw=True)
    assert Config(form="paper").sampling() == SamplingConfig(sample_sizes=(25, 10), max_degree=128, cap="row")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.arange(3), (2, 2), torch.arange(1)), "keys must name the draws of each of the 3 targets; got 1"),
        ((torch.arange(3), (2, 0), 0), "sample_sizes must hold one positive number"),
        ((torch.arange(3), (), 0), "sample_sizes must hold one positive number"),
        ((torch.arange(3), (2, 1 << 15), 0), "sample_sizes must be at most"),
        (([0, 1], (2, 2), 0), "targets must be a tensor of node numbers"),
        ((torch.rand(3), (2, 2), 0), "targets must be a tensor of node numbers"),
    ],
)
def test_a_wrong_request_is_refused_before_a_kernel_reads_it(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        sample_minibatch(star(4), *arguments)  # type: ignore[arg-type]
