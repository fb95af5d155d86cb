"""Memory for tables begins where a cache line does, and large memory where a huge page does."""

import pytest

from graphsage.kernels import memory
from graphsage.kernels.memory import HUGE, LINE, lines, table


@pytest.mark.parametrize(("size", "place"), [(1, LINE), (5000, LINE), (2 * HUGE + 1, HUGE), (5 * HUGE, HUGE)])
def test_it_is_as_long_as_asked_for_and_begins_at_its_place(size: int, place: int) -> None:
    place = place if hasattr(memory.mmap, "MADV_HUGEPAGE") else LINE
    found = lines(size)
    found[:] = 7
    assert (len(found), found.ctypes.data % place) == (size, 0)
    assert int(found[-1]) == 7


def test_a_table_is_kept_alive_by_its_memory() -> None:
    large = table(3 * HUGE // 64, 16)
    large[-1] = 2.0
    assert float(large[-1].sum()) == 32.0


def test_more_than_the_system_has_is_a_memory_error() -> None:
    with pytest.raises(MemoryError):
        lines(1 << 60)
