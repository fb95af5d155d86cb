"""Spaces: what they try, and what they refuse."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsage.errors import ConfigError
from graphsage.training.space import Choice, Space, make_range, paper_space


def test_a_grid_is_every_combination_with_the_last_setting_changing_fastest() -> None:
    space = Space({"epochs": 2}, {"lr": Choice((0.1, 0.01)), "dropout": make_range("dropout", 0.0, 0.5, step=0.25)})
    expected = [{"lr": lr, "dropout": d} for lr, d in itertools.product((0.1, 0.01), (0.0, 0.25, 0.5))]
    assert space.grid() == expected
    assert space.settings(expected[0]) == {"epochs": 2, "lr": 0.1, "dropout": 0.0}


@given(low=st.integers(0, 50), count=st.integers(2, 40), tenths=st.integers(1, 30))
def test_steps_reach_the_upper_end_and_are_the_decimals_people_write(low: int, count: int, tenths: int) -> None:
    low_, high = low / 10, (low + (count - 1) * tenths) / 10
    values = make_range("weight_decay", low_, high, step=tenths / 10).grid("weight_decay")
    assert list(values) == [(low + k * tenths) / 10 for k in range(count)]


def test_whole_settings_have_whole_steps() -> None:
    assert make_range("dim", 8, 12, whole=True).grid("dim") == (8, 9, 10, 11, 12)
    assert all(type(value) is int for value in make_range("dim", 8, 64, step=8, whole=True).grid("dim"))


def test_the_papers_space_is_the_appendixs_grid_of_each_aggregator() -> None:
    space = paper_space({"epochs": 5})
    own = {a: paper_space({"aggregator": a}).grid() for a in ("gcn", "mean", "lstm", "pool")}
    assert space.grid() == [{"aggregator": a, **p} for a, points in own.items() for p in points]
    assert own["pool"] == [{"lr": lr, "hidden_dim": width} for width in (512, 1024) for lr in (0.01, 0.001, 0.0001)]


@pytest.mark.parametrize(
    ("fixed", "axes", "message"),
    [
        ({}, {}, "no setting to search"),
        ({"lr": 0.1}, {"lr": Choice((0.1, 0.2))}, "lr is in .space. and also fixed to 0.1"),
        ({}, {"lr": Choice(())}, "lr has no value"),
        ({}, {"lr": Choice((0.1, 0.1))}, "lr names a value twice"),
        ({}, {"seed": Choice((0, 1))}, "seeds repeats the winner"),
        ({}, {"lr": Choice((0.1, -1.0))}, "no trial could have lr -1.0: lr must be above 0"),
        ({}, {"learning_rate": Choice((0.1,))}, "there is no setting 'learning_rate'"),
        ({}, {"aggregator": Choice(("mean", "max"))}, "aggregator must be one of"),
        ({"num_layers": 2}, {"sample_sizes": Choice(((5, 5), (5,)))}, "one number for each of the 2 layers"),
        ({}, {"dropout": make_range("dropout", 0.0, 1.0)}, "dropout must be at least 0 and below 1"),
    ],
)
def test_a_space_that_no_trial_could_use_is_refused(fixed: dict[str, Any], axes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Space(fixed, axes)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"low": 1.0, "high": 1.0}, "low must be below high"),
        ({"low": 0.0, "high": float("inf")}, "both finite"),
        ({"low": 0.0, "high": 1.0, "log": True}, "log = true needs low above 0"),
        ({"low": 0.1, "high": 1.0, "log": True, "step": 0.1}, "log or step, not both"),
        ({"low": 0.1, "high": 1.0, "step": 2.0}, "at most high - low = 0.9"),
        ({"low": 0.1, "high": 1.0, "step": 0.0}, "step must be above 0"),
    ],
)
def test_a_range_that_makes_no_sense_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_range("lr", **values)


def test_a_range_without_steps_has_no_grid() -> None:
    space = Space({}, {"lr": make_range("lr", 0.001, 0.1, log=True)})
    with pytest.raises(ConfigError, match="lr is a range without steps"):
        space.grid()


def test_the_papers_grid_chooses_the_rate_itself() -> None:
    with pytest.raises(ConfigError, match="the paper's grid chooses lr"):
        paper_space({"lr": 0.1})
