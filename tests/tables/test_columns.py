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


@pytest.mark.parametrize("odd", ["NA", "five", "nan"])
def test_odd_cells_are_left_to_be_named(odd: str) -> None:
    assert number_cells(pa.chunked_array([pa.array(["1", odd])])) == ["1", odd]


@pytest.mark.parametrize(
    ("cells", "names", "numbers"),
    [
        (["10", "9", "-1", ""], ("-1", "9", "10"), [2, 1, 0, -1]),
        ([10, 9, None, 9], ("9", "10"), [1, 0, -1, 0]),
        (["10", "9", "x"], ("10", "9", "x"), [0, 1, 2]),
        ([1.0, 2.0, np.nan], ("1", "2"), [0, 1, -1]),
        ([True, None, False], ("false", "true"), [1, -1, 0]),
        ([" y", "y ", "nan"], ("nan", "y"), [1, 1, 0]),
        ([["q", "p"], [], ["p"]], ("p", "q"), [[1, 1], [0, 0], [1, 0]]),
        ([[0, 1], [1, 1]], ("0", "1"), [[0, 1], [1, 1]]),
        ([[0, 2], [1, 2]], ("0", "1", "2"), [[1, 0, 1], [0, 1, 1]]),
        (["p;q", "p", "[]", None], ("p", "q"), [[1, 1], [1, 0], [0, 0], [255, 255]]),
        ([["p"], [], None, ["q"]], ("p", "q"), [[1, 0], [0, 0], [255, 255], [0, 1]]),
        ([[0, 1], None, [1, 1]], ("0", "1"), [[0, 1], [255, 255], [1, 1]]),
        ([[True, False], None], ("0", "1"), [[1, 0], [255, 255]]),
        ([[0.0, 1.0], [np.nan, np.nan]], ("0", "1"), [[0, 1], [255, 255]]),
        (["p;q", "r", "s"], ("p;q", "r", "s"), [0, 1, 2]),
    ],
)
def test_cells_of_a_label_column_are_names_of_classes(cells: list[object], names: object, numbers: object) -> None:
    found = read_labels(plain(pa.array(cells)), "kind")
    assert found.names == names
    assert found.numbers.tolist() == numbers


@pytest.mark.parametrize(
    ("first", "count", "remarked"), [(1999, 20, True), (0, 20, False), (1, 5, False), (-3, 7, True)]
)
def test_integers_that_are_not_numbered_like_classes_are_remarked(first: int, count: int, remarked: bool) -> None:
    years = plain(pa.array(list(range(first, first + count)) * 3))
    remarks = read_labels(years, "year").remarks
    assert [f"each of the {count} numbers from {first} to {first + count - 1}" in each for each in remarks] == (
        [True] if remarked else []
    )
    assert read_labels(years, "year", label_type="class").remarks == ()


def test_the_label_type_decides_how_cells_with_a_separator_are_read() -> None:
    cells = plain(pa.array(["p;q", "q", "r", ""]))
    mixed = read_labels(cells, "kind")
    assert mixed.names == ("p;q", "q", "r")
    assert mixed.remarks == (
        "column 'kind': 1 of 3 cells hold ';' or [], and each cell is read as the name of a class; "
        "if that is wrong, give label_type='labels'",
    )
    many = read_labels(cells, "kind", label_type="labels")
    assert many.numbers.tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 1], [255, 255, 255]]
    assert read_labels(cells, "kind", label_type="class").remarks == many.remarks == ()
    assert "read as a set of labels" in read_labels(plain(pa.array(["p;q", "q;r", "r"])), "kind").remarks[0]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([[0, 1, 1], [], [1, 1, 0]], "row 2 is an empty list, but others hold 3 marks"),
        ([[0, 1], None, [1, None]], "row 3 lacks some of its marks"),
    ],
)
def test_marks_that_are_not_whole_are_named(cells: list[object], message: str) -> None:
    with pytest.raises(DataError, match=f"column 'kind' {message}"):
        read_labels(pa.array(cells), "kind")


@pytest.mark.parametrize(
    ("cells", "what"),
    [
        ([0.5, 1.0, None], r"numbers with a fraction \(0.5\)"),
        (["1e-3", "2", ""], r"numbers with a fraction \(1e-3\)"),
        (list(range(60)) * 2, "60 different numbers"),
        ([f"-{i}" for i in range(51)], "51 different numbers"),
        ([7 * i for i in range(60)] * 20, "60 different numbers"),
    ],
)
def test_numbers_to_predict_are_refused_unless_they_are_meant_as_classes(cells: list[object], what: str) -> None:
    array = plain(pa.array(cells))
    with pytest.raises(DataError, match=f"column 'price' holds {what}, which are no classes; to predict numbers give"):
        read_labels(array, "price")
    assert len(read_labels(array, "price", label_type="class").names) == len({*cells} - {None, ""})


@pytest.mark.parametrize("cells", [list(range(50)), list(range(60)) * 6, [f"v{i}.5" for i in range(99)], ["1;2", "3"]])
def test_few_numbers_and_names_are_classes(cells: list[object]) -> None:
    assert len(read_labels(plain(pa.array(cells)), "kind").names) == len({*cells})


def test_a_class_that_looks_like_a_missing_cell_is_remarked() -> None:
    assert read_labels(plain(pa.array(["x", "NA"])), "kind").remarks == (
        "column 'kind': 'NA' is read as a class; if it means unknown, give missing='NA'",
    )
