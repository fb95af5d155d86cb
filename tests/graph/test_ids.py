"""Outside ids: strings of any kind or integers, one for each row, found again exactly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsage.errors import GraphError
from graphsage.graph.build import from_edges
from graphsage.graph.ids import NodeIds

TEXTS = st.lists(st.text(max_size=6), min_size=1, max_size=12, unique=True)
NUMBERS = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=12, unique=True)


@given(st.one_of(TEXTS, NUMBERS))
def test_every_id_leads_to_its_row_and_back(ids: list[str] | list[int]) -> None:
    made = NodeIds.of(ids)
    assert list(made) == ids
    assert len(made) == len(ids)
    assert made.rows(ids).tolist() == list(range(len(ids)))
    assert made.rows(ids[::-1]).tolist() == list(range(len(ids)))[::-1]
    assert made[-1] == ids[-1]
    assert made.are_integers == isinstance(ids[0], int)


@given(st.one_of(TEXTS, NUMBERS))
def test_arrays_hold_the_ids_whole(ids: list[str] | list[int]) -> None:
    made = NodeIds.of(ids)
    assert NodeIds.from_arrays(made.arrays()) == made
    assert NodeIds.from_arrays({}) is None


def test_strange_strings_are_ids_like_any_other() -> None:
    ids = ["nan", "NaN", "", "None", "2048", "02048", " ", "é", "e\u0301", "名前", "🙂", "a\x00b", "\ud800"]
    made = NodeIds.of(ids)
    assert list(made) == ids
    assert made.rows(["nan", "", "🙂", "\ud800"]).tolist() == [0, 2, 10, 12]


def test_text_digits_find_integer_ids_but_integers_do_not_find_text() -> None:
    assert NodeIds.of([5, -7]).rows(["-7", "5", 5]).tolist() == [1, 0, 0]
    with pytest.raises(GraphError, match="unknown node id 5;"):
        NodeIds.of(["5"]).rows([5])


def test_numpy_arrays_are_taken_as_they_are() -> None:
    assert list(NodeIds.of(np.array([3, 1], np.uint8))) == [3, 1]
    assert list(NodeIds.of(np.array(["x", "nan"]))) == ["x", "nan"]
    assert list(NodeIds.of(np.array(["x", "y"], object))) == ["x", "y"]
    made = NodeIds.of(["a"])
    assert NodeIds.of(made) is made


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a", "b", "a"], "row 2 repeats 'a'"),
        ([1, 2, 2], "row 2 repeats 2"),
        (["", "x", ""], "row 2 repeats ''"),
        (["a", 1], "row 1 is 1"),
        ([1, "a"], "row 0 is 1"),
        (["a", None], "row 1 is None"),
        ([1.5], "row 0 is 1.5"),
        ([True, False], "row 0 is True"),
        ([float("nan")], "row 0 is nan"),
        ([2**63], "64 signed bits"),
        (np.array([2**63], np.uint64), "64 signed bits"),
    ],
)
def test_wrong_ids_are_named(ids: object, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        NodeIds.of(ids)  # type: ignore[arg-type]


def test_an_unknown_id_is_named_with_an_example_of_a_known_one() -> None:
    with pytest.raises(GraphError, match="unknown node id 'z'; the graph has 2 nodes, the first is 'a'"):
        NodeIds.of(["a", "b"]).rows(["b", "z"])
    with pytest.raises(GraphError, match="no nodes"):
        NodeIds.of([]).rows(["z"])


def test_more_ids_follow_the_old_ones() -> None:
    made = NodeIds.of(["a", "b"]).followed_by(["c"])
    assert list(made) == ["a", "b", "c"]
    with pytest.raises(GraphError, match="row 2 repeats 'a'"):
        NodeIds.of(["a", "b"]).followed_by(["a"])
    with pytest.raises(GraphError, match="row 2 is 5"):
        NodeIds.of(["a", "b"]).followed_by([5])


def test_equality_is_by_value_and_order() -> None:
    assert NodeIds.of(["a", "b"]) == NodeIds.of(["a", "b"])
    assert NodeIds.of(["a", "b"]) != NodeIds.of(["b", "a"])
    assert NodeIds.of([1]) != NodeIds.of(["1"])
    assert NodeIds.of([1]) != [1]


def test_without_outside_ids_row_numbers_are_the_ids() -> None:
    graph = from_edges([(0, 1)], 3)
    assert graph.rows_of([2, "0"]).tolist() == [2, 0]
    for wrong in (3, -1, "x"):
        with pytest.raises(GraphError, match=f"unknown node {wrong!r}; rows of this graph are 0 to 2"):
            graph.rows_of([wrong])
