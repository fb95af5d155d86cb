"""Numbers, categories, dates and vectors become features as worked out by hand."""

import math
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pytest

from graphsage.errors import ConfigError, DataError
from graphsage.features.columns import Categorical, Dates, Numeric, Ready


def rows(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def test_a_missing_number_is_the_training_median_and_marked() -> None:
    fitted = Numeric().fit({"size": ["4", "", "2", "10", "1000"]}, rows(0, 1, 2, 3))
    assert fitted.median == 4
    assert fitted.transform({"size": [None, " ", 7, float("nan"), "-1.5"]}).tolist() == [
        [4, 1],
        [4, 1],
        [7, 0],
        [4, 1],
        [-1.5, 0],
    ]


def test_without_missing_values_in_training_there_is_no_mark() -> None:
    fitted = Numeric().fit({"size": [1, 2, 3]}, rows(0, 1, 2))
    assert fitted.transform({"size": [None, 5]}).tolist() == [[2], [5]]


def test_a_heavy_tail_is_taken_as_a_logarithm_with_its_sign() -> None:
    fitted = Numeric(log=True).fit({"size": [0, 1]}, rows(0, 1))
    e = math.e
    assert fitted.transform({"size": [e - 1, 1 - e, 0, 1e300]})[:, 0].tolist() == pytest.approx(
        [1, -1, 0, math.log(1e300)]
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["1", "x"], "column 'size' row 2 is 'x', not a number"),
        (["1", "1_000"], "row 2 is '1_000', not a number"),
        (["1", "NA"], "row 2 is 'NA', not a number; if it means a missing value, give missing='NA'"),
        (["nan", "1"], "row 1 is 'nan', not a number; if it means a missing value, give missing='nan'"),
        ([1, [2]], r"row 2 is \[2\], not a number"),
        (["inf", "1"], "row 1 is infinite"),
        (np.array([1, np.inf]), "row 2 is infinite"),
        (["", None], "no number in any training row"),
    ],
)
def test_what_is_not_a_number_is_named_with_its_row(values: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Numeric().fit({"size": values}, rows(0, 1))


def test_a_number_beyond_float32_is_an_error() -> None:
    fitted = Numeric().fit({"size": [1]}, rows(0))
    with pytest.raises(DataError, match="row 2 is 1e\\+300, beyond float32"):
        fitted.transform({"size": [1, 1e300]})


def test_categories_seen_twice_have_a_column_and_all_others_share_one() -> None:
    fitted = Categorical().fit({"kind": ["b", "a", "b", "a", "once", "unseen"]}, rows(0, 1, 2, 3, 4))
    assert fitted.names == ("a", "b")
    assert fitted.transform({"kind": ["a", "b", "once", "never", None]}).tolist() == [
        [1, 0, 0],
        [0, 1, 0],
        [0, 0, 1],
        [0, 0, 1],
        [0, 0, 1],
    ]


def test_missing_and_numbers_and_truth_are_categories_too() -> None:
    fitted = Categorical(min_count=1).fit({"kind": [None, 2.0, True]}, rows(0, 1, 2))
    assert fitted.names == ("", "2", "true")
    assert fitted.transform({"kind": ["", "2", "true", 2]}).argmax(axis=1).tolist() == [0, 1, 2, 1]


def test_where_every_category_occurs_once_all_have_a_column() -> None:
    assert Categorical().fit({"kind": ["a", "b"]}, rows(0, 1)).names == ("a", "b")


def test_too_many_categories_are_hashed_to_a_fixed_width() -> None:
    words = [f"word{i}" for i in range(40)]
    fitted = Categorical(limit=10, hashed=7).fit({"kind": words}, np.arange(40))
    features = fitted.transform({"kind": [*words, "unseen"]})
    assert features.shape == (41, 7)
    assert (features.sum(axis=1) == 1).all()
    assert (features.sum(axis=0) > 0).all()
    assert fitted.transform({"kind": ["word3"]}).tolist() == [features[3].tolist()]
    assert fitted.kind == "category (hashed)"


@pytest.mark.parametrize("settings", [{"min_count": 0}, {"limit": 0}, {"hashed": 0}])
def test_settings_of_categories_are_checked(settings: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(settings))} must be at least 1"):
        Categorical(**settings)


def test_a_date_is_a_day_a_year_and_a_point_on_the_circle_of_months() -> None:
    fitted = Dates().fit({"when": ["1970-01-02", "1970-01-04"]}, rows(0, 1))
    same = ["1971-04-01", date(1971, 4, 1), datetime(1971, 4, 1, tzinfo=UTC), np.datetime64("1971-04-01"), 455]
    for day in same:
        assert fitted.transform({"when": [day]})[0].tolist() == pytest.approx([455, 1971, 1, 0], abs=1e-6)
    assert fitted.transform({"when": ["1970-01-01T12:00:00Z"]})[0, 0] == 0.5
    assert fitted.transform({"when": [""]})[0, 0] == 2  # the median


def test_missing_dates_are_marked_if_training_had_any() -> None:
    fitted = Dates().fit({"when": ["2020-01-01", None]}, rows(0, 1))
    assert fitted.transform({"when": [None, "2020-01-01"]})[:, 4].tolist() == [1, 0]


@pytest.mark.parametrize("value", ["yesterday", "2020-13-01", "01/02/2020", "20200101", True])
def test_what_is_not_a_date_is_named_with_its_row(value: Any) -> None:
    with pytest.raises(DataError, match=r"column 'when' row 2 is .*, not a date"):
        Dates().fit({"when": ["2020-01-01", value]}, rows(0, 1))


@pytest.mark.parametrize("values", [[[1, 2], [3, 4]], np.array([[1, 2], [3, 4]]), ["1;2", "[3, 4]"], ["1 2", "3 4"]])
def test_vectors_are_taken_as_they_are(values: Any) -> None:
    fitted = Ready().fit({"v": values}, rows(0, 1))
    assert fitted.transform({"v": values}).tolist() == [[1, 2], [3, 4]]
    assert fitted.transform({"v": values}).dtype == np.float32


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1, 2], [3]], "row 2 has 1 numbers; 2 were expected"),
        ([[1, 2], None], "row 2 is None, not a vector"),
        ([[1, 2], ["x", 1]], "row 2 is .*, not a vector"),
        ([[1, 2], [1, float("nan")]], "row 2 holds NaN or infinity"),
        ([[1, 2], [1, 1e300]], "row 2 holds NaN or infinity"),
    ],
)
def test_vectors_that_do_not_fit_are_named_with_their_row(values: Any, message: str) -> None:
    fitted = Ready().fit({"v": values}, rows(0))
    with pytest.raises(DataError, match=f"column 'v' {message}"):
        fitted.transform({"v": values})
