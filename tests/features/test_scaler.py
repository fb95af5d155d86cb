"""The scaler learns what scikit-learn's learns, in chunks."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from graphsage.errors import DataError
from graphsage.features import scaler
from graphsage.features.scaler import Scaler, fit_scaler


@given(chunk=st.integers(1, 200), seed=st.integers(0, 99))
def test_statistics_agree_with_scikit_learn_for_any_chunk(chunk: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    left = torch.randn(40, 3, generator=generator) * 5 + 1000
    right = torch.rand(40, 2, generator=generator)
    rows = torch.randperm(40, generator=generator)[:25]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scaler, "_CHUNK_NUMBERS", chunk)
        fitted = fit_scaler([left, right], rows)
    x = torch.cat([left, right], dim=1)
    reference = StandardScaler().fit(x[rows].double().numpy())
    assert fitted.mean.numpy() == pytest.approx(reference.mean_, rel=1e-6)
    assert fitted.scale.numpy() == pytest.approx(reference.scale_, rel=1e-5)
    assert fitted.apply(x).numpy() == pytest.approx(reference.transform(x.double().numpy()), abs=1e-3)


def test_other_rows_do_not_matter() -> None:
    x = torch.tensor([[1.0], [3.0], [1e6]])
    fitted = fit_scaler([x], torch.tensor([0, 1]))
    assert fitted.mean.tolist() == [2.0]
    assert fitted.scale.tolist() == [1.0]


@pytest.mark.parametrize("value", [0.0, 0.1, -1e7, 1e-30])
def test_a_constant_column_has_scale_one(value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaler, "_CHUNK_NUMBERS", 7)
    fitted = fit_scaler([torch.full((1000, 1), value)], torch.arange(1000))
    assert fitted.scale.tolist() == [1.0]
    assert fitted.apply(torch.full((2, 1), value)).abs().max() <= abs(value) * 1e-6


def test_rounding_does_not_make_a_constant_column_vary() -> None:
    fitted = fit_scaler([torch.full((1000, 1), 0.1, dtype=torch.float64)], torch.arange(1000))
    assert fitted.scale.tolist() == [1.0]


def test_a_column_far_from_zero_keeps_its_spread() -> None:
    x = torch.tensor([[10_000_000.0], [10_000_002.0]]).repeat(500, 1)
    assert fit_scaler([x], torch.arange(1000)).scale.tolist() == pytest.approx([1.0])


def test_a_mapped_table_can_be_scaled(tmp_path) -> None:  # type: ignore[no-untyped-def]
    np.save(tmp_path / "x.npy", np.arange(12, dtype=np.float32).reshape(6, 2))
    table = torch.utils.dlpack.from_dlpack(np.load(tmp_path / "x.npy", mmap_mode="r"))
    fitted = fit_scaler([table], torch.arange(6))
    assert fitted.mean.tolist() == [5.0, 6.0]


def test_half_precision_stays_half_precision() -> None:
    x = torch.ones(4, 2, dtype=torch.bfloat16)
    assert fit_scaler([x], torch.arange(4)).apply(x).dtype == torch.bfloat16


def test_nothing_to_learn_from_is_an_error() -> None:
    with pytest.raises(DataError, match="at least one table"):
        fit_scaler([], torch.arange(2))
    with pytest.raises(DataError, match="at least one training node"):
        fit_scaler([torch.ones(2, 2)], torch.arange(0))
    with pytest.raises(DataError, match="must have 2 columns"):
        Scaler(torch.zeros(2), torch.ones(2)).apply(torch.ones(1, 3))
