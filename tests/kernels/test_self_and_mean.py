"""Reading rows beside their neighbors' mean, node by node; and the same bits for a row whoever is in its batch."""

import pytest
import torch
from hypothesis import given

from graphs import SEEDS
from graphsage.kernels.self_and_mean import gather_self_and_mean
from neighborhoods import case, dense

SHIFT, SCALE = torch.tensor([1.0, -2.0, 0.5]), torch.tensor([2.0, 0.1, 3.0])
both_ways = pytest.mark.parametrize("includes_self", [False, True])


@both_ways
@pytest.mark.parametrize("form", ["dense", "ragged"])
@given(seed=SEEDS)
def test_it_is_each_rows_own_vector_and_its_neighbors_mean(form: str, includes_self: bool, seed: int) -> None:
    made = case(form, seed)
    x = (made.table - SHIFT) * SCALE
    expected = []
    for row, neighbors in zip(made.rows.tolist(), made.lists, strict=True):
        if includes_self:
            expected.append(x[[row, *neighbors]].mean(dim=0))
        else:
            expected.append(torch.cat([x[row], x[neighbors].mean(dim=0) if neighbors else torch.zeros(3)]))
    found = gather_self_and_mean([made.table], (made.neighborhood,), includes_self, SHIFT, SCALE)
    torch.testing.assert_close(found, torch.stack(expected), atol=1e-5, rtol=1e-5)


@both_ways
def test_a_row_has_the_same_bits_whether_or_not_somebody_else_has_no_neighbors(includes_self: bool) -> None:
    made = case("dense", 3, num_rows=6)
    n = made.neighborhood
    here = torch.nonzero(n.present).flatten()
    some = dense(n.index[here], n.present[here], n.keys[here], made.rows[here])
    together = gather_self_and_mean([made.table], (n,), includes_self, SHIFT, SCALE)
    assert 0 < len(here) < 6
    assert torch.equal(gather_self_and_mean([made.table], (some,), includes_self, SHIFT, SCALE), together[here])
