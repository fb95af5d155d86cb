"""Lists of neighbors from edges: sorted, without repetition, the same in C and in torch."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from forms import both
from graphsage.kernels import backend
from graphsage.kernels.compiled.library import library
from graphsage.kernels.csr import neighbor_lists

NODES = 9
PAIRS = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=60)
in_c = pytest.mark.skipif(backend.interpreted() or library() is None, reason="there is no compiler")


@given(PAIRS, st.booleans(), st.sampled_from([NODES, NODES + 5]))
def test_each_row_lists_its_columns_ascending_and_once(pairs: list[tuple[int, int]], apart: bool, n: int) -> None:
    edges = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2)
    rows, columns = edges[:, 0], edges[:, 1] if apart else edges[:, 1].contiguous()
    expected = [sorted({v for u, v in pairs if u == row}) for row in range(n)]
    for indptr, indices in both(lambda: neighbor_lists(rows, columns, n)):  # type: ignore[misc]
        assert (indptr.dtype, indices.dtype) == (torch.int64, torch.int32)
        assert [indices[a:b].tolist() for a, b in pairwise(indptr.tolist())] == expected
        assert len(indices) == sum(map(len, expected))


@in_c
@pytest.mark.parametrize("threads", [1, 2, 3, 20])
def test_any_number_of_threads_makes_the_same_lists(threads: int) -> None:
    edges = torch.randint(50, (5000, 2), generator=torch.Generator().manual_seed(0))
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        fast, plain = both(lambda: neighbor_lists(edges[:, 0], edges[:, 1], 50))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(fast, plain, strict=True))  # type: ignore[call-overload]


@in_c
@pytest.mark.parametrize("place", [-1, 3, 1 << 40])
@pytest.mark.parametrize("side", [0, 1])
def test_an_end_that_does_not_exist_is_refused(place: int, side: int) -> None:
    ends = [torch.tensor([0, 1, 2]), torch.tensor([2, 1, 0])]
    ends[side][1] = place
    with pytest.raises(IndexError, match="out of range"):
        neighbor_lists(ends[0], ends[1], 3)
