"""Columns of numbers, parsed in one call or cell by cell with the same outcome, and columns of labels."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsage.errors import DataError
from graphsage.tables.columns import cells, number_cells, read_labels
from graphsage.tables.source import plain
from graphsage.tables.values import numbers

PLAIN = st.one_of(st.floats(allow_nan=False, allow_infinity=False).map(repr), st.integers(-(10**12), 10**12).map(str))
ODD = st.sampled_from(["", "NA", " 3", "+4", "1_000", "nan", "inf", "-Infinity", "0x10", "1e400", "١٢", "five", "1,5"])


@given(texts=st.lists(st.one_of(PLAIN, ODD, st.none()), min_size=1, max_size=6))
def test_at_once_or_one_by_one_numbers_are_the_same(texts: list[str | None]) -> None:
    array = pa.chunked_array([pa.array(texts, pa.string())])
    outcomes = []
    for read in (number_cells, cells):
        try:
            outcomes.append(numbers(read(array), "size").tolist())
        except DataError as error:
            outcomes.append(str(error))
    if isinstance(outcomes[1], str):
        assert outcomes[0] == outcomes[1]
    else:
        np.testing.assert_array_equal(outcomes[0], outcomes[1])


def test_plain_numbers_and_empty_cells_are_read_at_once() -> None:
    found = number_cells(pa.chunked_array([pa.array(["1.5", "", "-2e3", None])]))
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, [1.5, np.nan, -2000.0, np.nan])


@pytest.mark.parametrize("odd", ["NA", "five"])
def test_odd_cells_are_left_to_be_named(odd: str) -> None:
    assert number_cells(pa.chunked_array([pa.array(["1", odd])])) == ["1", odd]


@pytest.mark.parametrize(
    ("cells", "names", "numbers"),
    [
        (["10", "9", "-1", ""], ("-1", "9", "10"), [2, 1, 0, -1]),
        ([10, 9, None, 9], ("9", "10"), [1, 0, -1, 0]),
        (["10", "9", "x"], ("10", "9", "x"), [0, 1, 2]),
        ([1.5, 2.0, np.nan], ("1.5", "2"), [0, 1, -1]),
        ([True, None, False], ("false", "true"), [1, -1, 0]),
        ([" y", "y ", "nan"], ("nan", "y"), [1, 1, 0]),
        ([["q", "p"], [], ["p"]], ("p", "q"), [[1, 1], [0, 0], [1, 0]]),
        ([[0, 1], [1, 1]], ("0", "1"), [[0, 1], [1, 1]]),
        ([[0, 2], [1, 2]], ("0", "1", "2"), [[1, 0, 1], [0, 1, 1]]),
        (["p;q", None], ("p", "q"), [[1, 1], [0, 0]]),
    ],
)
def test_cells_of_a_label_column_are_names_of_classes(cells: list[object], names: object, numbers: object) -> None:
    found = read_labels(plain(pa.array(cells)), "kind")
    assert found.names == names
    assert found.numbers.tolist() == numbers
