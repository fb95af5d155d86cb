import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphsage.errors import ConfigError
from graphsage.inference import nearest as module
from graphsage.inference.nearest import nearest


@given(st.integers(1, 60), st.integers(1, 5), st.integers(1, 8), st.integers(0, 999))
def test_the_exact_search_is_a_sort_by_cosine(n: int, q: int, k: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    table, asked = torch.randn(n, 3, generator=generator), torch.randn(q, 3, generator=generator)
    block, module._BLOCK = module._BLOCK, 7
    try:
        found = nearest(table, asked, k)
    finally:
        module._BLOCK = block
    cosines = torch.nn.functional.cosine_similarity(asked[:, None], table[None], dim=2)
    best = cosines.sort(dim=1, descending=True).values[:, : min(k, n)]
    torch.testing.assert_close(found.cosines, best, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(cosines.gather(1, found.rows), best, atol=1e-5, rtol=1e-5)
    assert found.recall == 1.0


def test_a_large_table_is_searched_by_an_index_whose_recall_is_measured() -> None:
    table = torch.randn(3000, 8, generator=torch.Generator().manual_seed(0))
    exact, indexed = nearest(table, table[:50], 5), nearest(table, table[:50], 5, exact_up_to=100)
    assert 0.9 < indexed.recall <= 1.0
    agree = np.mean([len(set(a) & set(b)) / 5 for a, b in zip(exact.rows.tolist(), indexed.rows.tolist(), strict=True)])
    assert agree > 0.9


def test_a_count_below_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="k must be at least 1"):
        nearest(torch.randn(3, 2), torch.randn(1, 2), 0)
