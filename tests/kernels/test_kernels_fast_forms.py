"""One contract for the fast forms of a kernel, in Triton and in C: the draws of the torch form bit for bit, its sums up
to rounding.

Triton's run on a GPU (`make test-gpu`), and on any machine by its interpreter (TRITON_INTERPRET=1, part of `make
test`); those in C where there is a compiler.
"""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from forms import SIZES, both, few, gradients, same
from graphs import SEEDS, graphs, normal
from graphsage.graph.graph import Graph
from graphsage.kernels import backend
from graphsage.kernels.buffers import FRESH
from graphsage.kernels.compiled.library import library
from graphsage.kernels.dropout import dropout
from graphsage.kernels.gather import gather_max, gather_mean, gather_sum, gathered_maximum
from graphsage.kernels.lstm import lstm_over_rows
from graphsage.kernels.neighborhood import Hoods
from graphsage.kernels.pool import winners_sum
from graphsage.kernels.random import Stream
from graphsage.kernels.relu_l2norm import relu_l2norm
from graphsage.kernels.rows import scaled_rows
from graphsage.kernels.sample import sample_and_extend, sample_last_hop
from graphsage.kernels.self_and_mean import gather_self_and_mean
from graphsage.sampling.minibatch import sample_minibatch
from neighborhoods import dense, ragged

NEITHER = backend.interpreted() and not backend.has_triton()
DEVICES = [
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]),
    pytest.param(
        "cpu",
        marks=pytest.mark.skipif(
            NEITHER or not (backend.interpreted() or library()), reason="neither a compiler nor Triton's interpreter"
        ),
    ),
]
every_device = pytest.mark.parametrize("device", DEVICES)
in_c = pytest.mark.skipif(backend.interpreted() or library() is None, reason="there is no compiler, or Triton runs")


@every_device
@few
@given(graph=graphs(directed=None), size=SIZES, seed=SEEDS)
def test_a_hop_draws_the_same_neighbors(device: str, graph: Graph, size: int, seed: int) -> None:
    graph = graph.to(device)
    nodes = torch.arange(graph.num_nodes, device=device)
    keys = Stream(seed, "test").keys(nodes)
    for draw in (sample_last_hop, sample_and_extend):
        fast, plain = both(lambda draw=draw: draw(graph.indptr, graph.indices, nodes, keys, 2, size))
        assert all(torch.equal(a, b) for a, b in zip(fast, plain, strict=True))  # type: ignore[call-overload]


def neighborhoods(graph: Graph, nodes: Tensor, seed: int, size: int) -> list[Hoods]:
    keys = Stream(seed, "test").keys(nodes)
    index, present, draw = sample_last_hop(graph.indptr, graph.indices, nodes, keys, 1, size)
    whole = ragged(graph.indices.long(), graph.indptr, keys, nodes)
    reused = sample_minibatch(graph, nodes, (size, 2), keys, redraw=False).neighborhoods[0]
    return [(dense(index, present, draw, nodes),), (whole,), reused]


@every_device
@pytest.mark.parametrize("includes_self", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@few
@given(graph=graphs(directed=None), size=SIZES, seed=SEEDS)
def test_gathered_rows_and_means_agree(
    device: str, includes_self: bool, dtype: torch.dtype, graph: Graph, size: int, seed: int
) -> None:
    graph = graph.to(device)
    tables = [normal(seed, graph.num_nodes, 5).to(device, dtype), normal(seed + 1, graph.num_nodes, 2).to(device)]
    shift, scale = normal(seed + 2, 7).to(device), normal(seed + 3, 7).exp().to(device)
    nodes = torch.arange(graph.num_nodes, device=device)
    for hoods in neighborhoods(graph, nodes, seed, size):
        same(*both(lambda hoods=hoods: gather_self_and_mean(tables, hoods, includes_self, shift, scale)))


@every_device
@few
@given(graph=graphs(directed=None), seed=SEEDS)
def test_whole_neighborhoods_reduce_to_the_same(device: str, graph: Graph, seed: int) -> None:
    graph = graph.to(device)
    table = normal(seed, graph.num_nodes, 5).to(device)
    for index in (graph.indices, graph.indices.long()):
        everyone = ragged(index, graph.indptr.to(index.dtype), torch.arange(graph.num_nodes))
        for reduce in (gather_mean, gather_sum, gather_max):
            same(*both(lambda reduce=reduce, n=everyone: reduce(table, n)))


@every_device
@pytest.mark.parametrize(("relu", "normalize"), [(True, True), (True, False), (False, True)])
@few
@given(rows=st.integers(1, 7), dim=st.integers(1, 9), seed=SEEDS)
def test_relu_and_unit_length_agree(device: str, relu: bool, normalize: bool, rows: int, dim: int, seed: int) -> None:
    h = normal(seed, rows, dim).to(device)
    if relu:
        h[0] = -h[0].abs()  # a row that ReLU silences
    same(*both(lambda: gradients(lambda x: relu_l2norm(x, relu, normalize), h, seed)))


@every_device
@few
@given(rows=st.integers(1, 7), dim=st.integers(1, 9), seed=SEEDS)
def test_dropout_silences_the_same_entries(device: str, rows: int, dim: int, seed: int) -> None:
    h, keys = normal(seed, rows, dim).to(device), Stream(seed, "test").keys(torch.arange(rows, device=device))
    same(*both(lambda: gradients(lambda x: dropout(x, 0.4, keys, -2), h, seed)))


@every_device
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("pinned", [False, True])
def test_scaled_rows_of_a_table_agree(device: str, dtype: torch.dtype, pinned: bool) -> None:
    table, nodes = normal(1, 9, 5).to(dtype), torch.tensor([3, 3, 8, 0], device=device)
    shift, scale = normal(2, 5).to(device), normal(3, 5).to(device)
    if device == "cuda":
        table = table.pin_memory() if pinned else table.to(device)
    same(*both(lambda: scaled_rows([table], nodes, shift, scale)))


@every_device
@pytest.mark.parametrize("size", [1, 5, 8, 12])
def test_draws_among_many_neighbors_are_the_same_distinct_ones(device: str, size: int) -> None:
    """Every node of a complete graph of ten: most draws meet one that was taken before."""
    indptr, nodes = torch.arange(0, 91, 9, device=device), torch.arange(10, device=device)
    indices = torch.cat([torch.arange(10)[torch.arange(10) != node] for node in range(10)]).to(device)
    keys = Stream(size, "test").keys(nodes)
    fast, plain = both(lambda: sample_last_hop(indptr, indices, nodes, keys, 1, size)[0])
    assert torch.equal(fast, plain)  # type: ignore[arg-type]
    assert size > 9 or all(len(set(row)) == size for row in fast.tolist())  # type: ignore[attr-defined]


@in_c
@few
@given(rows=st.integers(1, 9), size=SIZES, columns=st.integers(1, 40), dim=st.integers(1, 300), seed=SEEDS)
def test_winners_and_their_sums_agree(rows: int, size: int, columns: int, dim: int, seed: int) -> None:
    table, x, grad = normal(seed, 7, columns), normal(seed + 1, 7, dim), normal(seed + 2, rows, columns)
    index = Stream(seed, "test").keys(torch.arange(rows * size)).remainder(7).view(rows, size)
    fast, plain = both(lambda: gathered_maximum(table, index, FRESH))
    assert all(torch.equal(a, b) for a, b in zip(fast, plain, strict=True))  # type: ignore[call-overload]
    winner = fast[1]  # type: ignore[index]
    same(*both(lambda: winners_sum(grad, x, index, winner)))


@in_c
@few
@given(rows=st.integers(1, 9), size=SIZES, dim=st.integers(1, 40), seed=SEEDS)
def test_an_lstm_over_rows_agrees(rows: int, size: int, dim: int, seed: int) -> None:
    weight, recurrent, bias = (
        normal(seed, 4 * dim, 3),
        normal(seed + 1, 4 * dim, dim) / dim,
        3 * normal(seed + 2, 4 * dim),
    )
    places = Stream(seed, "test").keys(torch.arange(rows * size)).remainder(7).view(rows, size)

    def compute() -> tuple[Tensor, ...]:
        learned = [each.clone().requires_grad_() for each in (normal(seed + 3, 7, 3), weight, recurrent, bias)]
        last = lstm_over_rows(*learned, places)
        torch.autograd.backward(last, normal(seed + 4, rows, dim))
        return last.detach(), *(each.grad for each in learned if each.grad is not None)

    fast, plain = both(compute)
    assert len(fast) == 5  # type: ignore[arg-type]
    same(fast, plain)


@in_c
def test_gates_that_are_far_out_saturate() -> None:
    """e^x is cut off where float32 ends, which must not show."""
    h, weight = torch.tensor([[-1e4], [-60.0], [0.0], [1e-4], [60.0], [1e4]]), torch.ones(4, 1)
    fast, plain = both(lambda: lstm_over_rows(h, weight, torch.zeros(4, 1), torch.zeros(4), torch.arange(6)[:, None]))
    torch.testing.assert_close(fast, plain, rtol=1e-5, atol=1e-7)


@in_c
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_wide_rows_agree_on_any_number_of_threads(dtype: torch.dtype) -> None:
    """Rows of more than one vector, neighbors of more than one block, and enough of both for two threads."""
    keys = Stream(0, "test").keys(torch.arange(400))
    index = Stream(1, "test").keys(torch.arange(400 * 11)).remainder(90).view(400, 11)
    table, shift, scale = normal(0, 90, 131).to(dtype), normal(1, 131), normal(2, 131).exp()
    rows = keys.remainder(90)
    hood = dense(index, keys % 5 != 0, keys, rows)

    def compute() -> tuple[Tensor, ...]:
        joined = [
            gather_self_and_mean([table], (hood,), includes_self, shift, scale) for includes_self in (False, True)
        ]
        best, winner = gathered_maximum(normal(3, 90, 131), index, FRESH)
        total = winners_sum(normal(4, 400, 131), normal(5, 90, 70), index, winner)
        return *joined, scaled_rows([table], rows, shift, scale), best, winner, total

    fast, plain = both(compute)
    same(fast, plain)
    torch.set_num_threads(2)  # back to one before the next test (conftest.py)
    assert all(torch.equal(a, b) for a, b in zip(compute(), fast, strict=True))  # type: ignore[call-overload]


@in_c
def test_half_precision_is_read_exactly() -> None:
    """Every float16 there is, denormal ones and infinities included."""
    table = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int16).view(torch.float16)[:, None]
    rows = scaled_rows([table], torch.arange(1 << 16), torch.zeros(1), torch.ones(1))
    assert torch.equal(
        rows.nan_to_num(nan=7.0, posinf=torch.inf, neginf=-torch.inf),
        table.float().nan_to_num(nan=7.0, posinf=torch.inf, neginf=-torch.inf),
    )


@in_c
def test_an_index_out_of_range_is_an_error_and_nothing_is_read() -> None:
    table, keys, one = normal(0, 4, 3), torch.arange(2), torch.ones(3)
    indptr, indices = torch.tensor([0, 1, 2]), torch.tensor([1, 0], dtype=torch.int32)
    wrong = dense(torch.tensor([[0], [9]]), torch.tensor([True, True]), keys)
    negative = ragged(torch.tensor([0, -1]), torch.tensor([0, 1, 2]), keys)
    beyond = ragged(torch.tensor([0, 1]), torch.tensor([0, 1, 99]), keys)
    for compute in (
        lambda: gather_self_and_mean([table], (wrong,), False, one, one),
        lambda: gather_self_and_mean([table], (dense(keys[:, None], keys > -1, keys, keys + 3),), True, one, one),
        lambda: gather_self_and_mean([table], (beyond,), False, one, one),
        lambda: gather_mean(table, negative),
        lambda: gather_sum(table, beyond),
        lambda: gathered_maximum(table, wrong.index, FRESH),
        lambda: winners_sum(normal(0, 2, 1), table, wrong.index, torch.zeros(2, 1, dtype=torch.int16)),
        lambda: scaled_rows([table], torch.tensor([4]), one, one),
        lambda: sample_last_hop(indptr, indices, torch.tensor([0, 2]), keys, 1, 2),
        lambda: sample_last_hop(torch.tensor([0, 1, 7]), indices, torch.tensor([0, 1]), keys, 1, 2),
    ):
        with pytest.raises(IndexError, match="out of range"):
            compute()
