"""A data set finds its splits and computes text features once."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphsage.datasets import cache
from graphsage.datasets.dataset import Dataset, text_plan
from graphsage.errors import DataError
from graphsage.features.text import TfidfSvd
from graphsage.graph.build import from_edges
from graphsage.graph.split import Split

TEXTS = {"text": [f"word{i % 3} shared{i % 2} all" for i in range(10)]}
EDGES = [[i, i + 1] for i in range(9)]


def dataset(**changes: Any) -> Dataset:
    values: dict[str, Any] = {"graph": from_edges(EDGES, 10), "splits": {}, "default_split": "random", "columns": TEXTS}
    values["plan"] = text_plan(*changes.get("columns", TEXTS))
    return Dataset("example", **{**values, **changes})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPHSAGE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A record of every time that text features are fitted."""
    record: list[Any] = []
    real = TfidfSvd.fit
    monkeypatch.setattr(TfidfSvd, "fit", lambda self, texts, rows: (record.append(rows), real(self, texts, rows))[1])
    return record


def test_no_name_means_the_default_split() -> None:
    mine = Split.masks(np.arange(10) < 5, np.arange(10) == 5, np.arange(10) > 5)
    data = dataset(splits={"mine": mine}, default_split="mine")
    assert data.split() is mine
    assert data.split(None) is mine
    assert data.split("mine") is mine


def test_any_graph_has_a_random_split_of_seven_one_and_two() -> None:
    split = dataset().split("random")
    assert split.sizes() == {"train": 7, "val": 1, "test": 2}
    assert torch.equal(split.codes, dataset().split("random").codes)


def test_a_graph_with_times_has_a_split_by_time() -> None:
    data = dataset(graph=from_edges(EDGES, 10, time=np.arange(10)[::-1].copy()))
    assert data.split("time").nodes("test").tolist() == [0, 1]
    assert data.split_names == ("random", "time")


def test_a_stored_split_wins_over_a_computed_one() -> None:
    stored = Split.masks(np.ones(10, bool))
    assert dataset(splits={"random": stored}).split("random") is stored


def test_an_unknown_split_is_an_error_that_lists_what_there_is() -> None:
    with pytest.raises(DataError, match="example has no split 'time'; there are given, random"):
        dataset(splits={"given": Split.masks(np.ones(10, bool))}).split("time")


@pytest.mark.parametrize("column", [{"columns": {"text": ["a"]}}, {"splits": {"a": Split.random(3)}}])
def test_columns_and_splits_must_have_a_row_for_each_node(column: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=r"rows, but the graph has 10 nodes"):
        dataset(**column)


def test_own_features_are_left_alone(folder: Path) -> None:
    graph = from_edges(EDGES, 10, features=np.ones((10, 2)))
    assert dataset(graph=graph).with_features(Split.random(10)) == (graph, None)
    assert not folder.exists()


def test_a_graph_without_a_plan_is_left_alone() -> None:
    data = dataset(plan=None)
    assert data.with_features(Split.random(10)) == (data.graph, None)


def test_text_features_come_from_the_training_nodes_of_the_split(folder: Path) -> None:
    data, split = dataset(), Split.random(10)
    graph, fitted = data.with_features(split)
    expected = TfidfSvd().fit(TEXTS, split.nodes("train").numpy())
    assert fitted is not None
    assert [step.columns for step in fitted.steps] == [("text",)]
    assert fitted.state()[0]["steps"] == [expected.state()[0]]
    assert graph.features is not None
    assert np.array_equal(graph.features.numpy(), expected.transform(TEXTS))
    assert graph.features.any()
    assert data.graph.features is None


def test_features_are_computed_once(folder: Path, fits: list[Any]) -> None:
    first, fitted = dataset().with_features(Split.random(10))
    second, again = dataset().with_features(Split.random(10))
    assert len(fits) == 1
    assert torch.equal(first.features, second.features)
    assert again.state()[0] == fitted.state()[0]
    assert np.array_equal(again.transform(TEXTS), fitted.transform(TEXTS))


@pytest.mark.parametrize(
    "other",
    [
        {"split": Split.random(10, seed=1)},
        {"columns": {"text": [*TEXTS["text"][:9], "new"]}},
        {"columns": {"name": TEXTS["text"]}},
        {"columns": {"text": ["".join(TEXTS["text"]), *[""] * 9]}},
    ],
)
def test_other_texts_or_training_nodes_are_computed_again(folder: Path, fits: list[Any], other: dict[str, Any]) -> None:
    dataset().with_features(Split.random(10))
    dataset(columns=other.get("columns", TEXTS)).with_features(other.get("split", Split.random(10)))
    assert len(fits) == 2


def test_other_settings_are_computed_again(folder: Path, fits: list[Any]) -> None:
    for settings in (TfidfSvd(dim=3), TfidfSvd(dim=4)):
        _, features = cache.fit_one(settings, TEXTS, np.arange(5))
        assert features.shape == (10, settings.dim)
    assert len(fits) == 2
    assert len(list(folder.rglob("*.safetensors"))) == 2


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "text"])
def test_a_damaged_cache_is_made_again(folder: Path, fits: list[Any], damage: str) -> None:
    whole, _ = dataset().with_features(Split.random(10))
    (file,) = folder.rglob("*.safetensors")
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    damaged = {"cut": bytes(content[:-8]), "empty": b"", "flipped": bytes(content), "text": b"no tensors in here"}
    file.write_bytes(damaged[damage])
    repaired, _ = dataset().with_features(Split.random(10))
    assert torch.equal(whole.features, repaired.features)
    dataset().with_features(Split.random(10))
    assert len(fits) == 2


def test_a_cache_that_cannot_be_written_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("GRAPHSAGE_CACHE", str(tmp_path / "file"))
    graph, _ = dataset().with_features(Split.random(10))
    assert graph.num_features == TfidfSvd().dim


def test_the_cache_is_in_the_users_folder_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHSAGE_CACHE", "elsewhere")
    assert cache.cache_folder() == Path("elsewhere")
    monkeypatch.delenv("GRAPHSAGE_CACHE")
    assert cache.cache_folder().name == "graphsage"


def test_without_a_home_the_cache_is_among_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user whom the system does not know."""
    import pwd

    def unknown(number: int) -> None:
        raise KeyError(number)

    for name in ("GRAPHSAGE_CACHE", "HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert cache.cache_folder().is_absolute()
