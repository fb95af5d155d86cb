"""Settings from a file, from `--set` and from flags."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import SMALL, Command
from graphsage.cli.settings import Settings, from_file, from_pairs, write_run_file
from graphsage.errors import ConfigError
from graphsage.training.config import Config


def test_flags_override_pairs_and_pairs_override_the_file(graphsage: Command, data: Path, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('dim = 4\nlr = 1\ncombine = "halves"\nsample_sizes = [3, 2]\nmax_degree = "none"\n')
    words = ("--config", file, "--set", "lr=0.5", "--set", "clip=2", "--set", "bias=true", "--dim", "6", "--steps", "1")
    assert graphsage("train", data, "--out", tmp_path / "run", *words).code == 0
    settings = graphsage("info", tmp_path / "run", "--json").json["settings"]
    wanted = {
        "dim": 6,
        "lr": 0.5,
        "combine": "halves",
        "sample_sizes": [3, 2],
        "max_degree": None,
        "clip": 2.0,
        "bias": True,
    }
    assert {name: settings[name] for name in wanted} == wanted


def test_asking_for_epochs_forgets_the_files_steps() -> None:
    file = Settings({"steps": 5, "dim": 8})
    assert file.followed_by(Settings({"epochs": 3})).values == {"epochs": 3, "dim": 8}
    assert file.followed_by(Settings({"epochs": 3, "steps": 9})).values == {"epochs": 3, "steps": 9, "dim": 8}
    assert file.followed_by(Settings({"dim": 4})).values == {"steps": 5, "dim": 4}


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("dim = ", "is not TOML"),
        ('dim = "wide"', "dim: input should be a valid integer; got 'wide'"),
        ("dim = 2.5", "dim: input should be a valid integer"),
        ("seed = true", "seed: input should be a valid integer"),
        ("sample_sizes = [25, 'x']", "sample_sizes.1: input should be a valid integer; got 'x'"),
        ("dims = 8", "there is no setting 'dims'"),
        ("[model]\ndim = 8", "there is no setting 'model'"),
        ("data = 5", "data must be a string; got 5"),
    ],
)
def test_a_wrong_file_is_an_error_that_names_file_and_key(
    graphsage: Command, data: Path, tmp_path: Path, content: str, part: str
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(content)
    error = graphsage("train", data, "--out", tmp_path / "run", *SMALL, "--config", file).error
    assert str(file) in error
    assert part in error
    assert not (tmp_path / "run").exists()


def test_a_missing_file_is_an_error_that_names_it(graphsage: Command, data: Path, tmp_path: Path) -> None:
    words = ("train", data, "--out", tmp_path / "run", "--config")
    assert f"{tmp_path / 'none.toml'} does not exist" in graphsage(*words, tmp_path / "none.toml").error
    assert f"{tmp_path} is a folder" in graphsage(*words, tmp_path).error


@pytest.mark.parametrize("pair", ["clip", "=5", ""])
def test_set_without_a_name_and_a_value_is_an_error(pair: str) -> None:
    with pytest.raises(ConfigError, match="--set takes name=value"):
        from_pairs([pair])


def test_set_reads_toml_values_and_bare_words() -> None:
    pairs = ["cap=row", "clip=5.0", "redraw = false", "sample_sizes=[3, 2]", "max_degree=none", 'combine="halves"']
    assert from_pairs(pairs).values == {
        "cap": "row",
        "clip": 5.0,
        "redraw": False,
        "sample_sizes": (3, 2),
        "max_degree": None,
        "combine": "halves",
    }


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "task": st.sampled_from(["supervised", "unsupervised", "joint"]),
            "lr": st.floats(1e-9, 10),
            "sample_sizes": st.lists(st.integers(1, 50), min_size=1, max_size=3).map(tuple),
            "max_degree": st.none() | st.integers(1, 999),
            "redraw": st.booleans(),
            "seed": st.integers(0, 2**40),
            "hidden_dim": st.integers(1, 64),
        },
    ),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
)
def test_what_is_written_is_what_is_read(tmp_path_factory: Any, values: dict[str, Any], data: str) -> None:
    file = tmp_path_factory.mktemp("run") / "run.toml"
    config = Config(**values).resolved()
    write_run_file(file, config, data, "given")
    read = from_file(file)
    assert read.config() == config
    assert (read.data, read.split) == (data, "given")
