"""All kinds of columns in one plan: fitted on training rows only, the same after saving."""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from graphsage.errors import BundleError, ConfigError, DataError
from graphsage.features.columns import Categorical, Dates, Numeric, Ready
from graphsage.features.pipeline import FeaturePlan, FittedFeatures, Step
from graphsage.features.sentences import Sentences
from graphsage.features.text import TfidfSvd
from graphsage.features.word_vectors import Word2Vec, WordVectors

N = 12
COLUMNS: dict[str, Any] = {
    "size": [str(i) if i % 5 else "" for i in range(N)],
    "kind": ["ab"[i % 2] for i in range(N)],
    "when": [f"2020-01-{i + 1:02}" for i in range(N)],
    "text": [f"word{i % 3} shared all" for i in range(N)],
    "vector": np.arange(2 * N, dtype=np.float32).reshape(N, 2),
}
TRAIN = np.arange(8)


@pytest.fixture
def plan(tmp_path: Path) -> FeaturePlan:
    (tmp_path / "glove.txt").write_text("word1 1 0\nshared 0 1\n")
    return FeaturePlan(
        (
            Step(Numeric(log=True), ("size",)),
            Step(Categorical(), ("kind",)),
            Step(Dates(), ("when",)),
            Step(TfidfSvd(dim=3), ("text", "kind")),
            Step(Word2Vec(dim=4, min_count=1), ("text",)),
            Step(WordVectors(path=str(tmp_path / "glove.txt")), ("text", "kind")),
            Step(Ready(), ("vector",)),
        )
    )


def test_features_lie_side_by_side_and_are_described(plan: FeaturePlan) -> None:
    fitted, features = plan.fit(COLUMNS, TRAIN)
    assert features.dtype == np.float32
    assert features.shape == (N, fitted.width) == (N, 2 + 3 + 4 + 3 + 4 + 4 + 2)
    assert np.array_equal(features[:, -2:], COLUMNS["vector"])
    assert [(tuple(one["columns"]), one["width"]) for one in fitted.describe()] == [
        (("size",), 2),
        (("kind",), 3),
        (("when",), 4),
        (("text", "kind"), 3),
        (("text",), 4),
        (("text", "kind"), 4),
        (("vector",), 2),
    ]
    assert fitted.columns == plan.columns == ("size", "kind", "when", "text", "vector")


def test_a_row_by_itself_has_the_features_it_has_among_others(plan: FeaturePlan) -> None:
    fitted, features = plan.fit(COLUMNS, TRAIN)
    for row in range(N):
        alone = fitted.transform({name: column[row : row + 1] for name, column in COLUMNS.items()})
        assert np.allclose(alone[0], features[row], atol=1e-6)


def test_held_out_rows_change_nothing_that_is_learned(plan: FeaturePlan) -> None:
    other = {name: [*column[:8], *[column[0]] * 4] for name, column in COLUMNS.items()} | {
        "text": [*COLUMNS["text"][:8], *["new words"] * 4],
        "size": [*COLUMNS["size"][:8], *["1e9"] * 4],
    }
    (one, _), (two, _) = plan.fit(COLUMNS, TRAIN), plan.fit(other, TRAIN)
    assert one.state()[0] == two.state()[0]
    assert all(np.array_equal(array, two.state()[1][name]) for name, array in one.state()[1].items())


def test_the_state_makes_the_identical_transform_after_json(plan: FeaturePlan) -> None:
    fitted, features = plan.fit(COLUMNS, TRAIN)
    config, arrays = fitted.state()
    again = FittedFeatures.from_state(json.loads(json.dumps(config)), {n: a.copy() for n, a in arrays.items()})
    assert np.array_equal(again.transform(COLUMNS), features)
    assert again.describe() == fitted.describe()


def test_missing_columns_are_named(plan: FeaturePlan) -> None:
    fitted, _ = plan.fit(COLUMNS, TRAIN)
    with pytest.raises(DataError, match="need the columns 'size', 'when'; there are 'kind', 'text', 'vector'"):
        fitted.transform({name: c for name, c in COLUMNS.items() if name not in ("size", "when")})
    with pytest.raises(DataError, match="same number of rows"):
        fitted.transform({**COLUMNS, "kind": ["a"]})
    with pytest.raises(DataError, match="at least one training row"):
        plan.fit(COLUMNS, np.arange(0))


def every_value(config: Any) -> list[tuple[Any, Any]]:
    """(container, key) of every value inside a JSON object."""
    inside = config.items() if isinstance(config, dict) else enumerate(config) if isinstance(config, list) else ()
    return [found for key, value in inside for found in [(config, key), *every_value(value)]]


def test_a_damaged_state_is_refused_wherever_it_is_damaged(plan: FeaturePlan) -> None:
    fitted, _ = plan.fit(COLUMNS, TRAIN)
    config, arrays = fitted.state()
    text = json.dumps(config)
    for place in range(len(every_value(config))):
        damaged = json.loads(text)
        container, key = every_value(damaged)[place]
        container[key] = {"not": "this"}
        with pytest.raises(BundleError):
            FittedFeatures.from_state(damaged, arrays)
    for name in arrays:
        with pytest.raises(BundleError, match="lack the array"):
            FittedFeatures.from_state(config, {n: a for n, a in arrays.items() if n != name})


def test_sentences_go_through_the_model_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Fake:
        def __init__(self, path: str, **options: Any) -> None:
            assert options == {"trust_remote_code": False, "local_files_only": True}

        def encode(self, texts: list[str], show_progress_bar: bool) -> Any:
            return np.array([[len(text), text.count(" ")] for text in texts])

    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = Fake  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    plan = FeaturePlan((Step(Sentences(path=str(tmp_path)), ("text", "kind")),))
    fitted, features = plan.fit(COLUMNS, TRAIN)
    assert features[1].tolist() == [16, 2, 1, 0]
    assert FittedFeatures.from_state(*fitted.state()).transform(COLUMNS).tolist() == features.tolist()
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ConfigError, match=r"pip install 'graphsage\[sentences\]'"):
        fitted.transform(COLUMNS)
    with pytest.raises(ConfigError, match="is not a folder"):
        FeaturePlan((Step(Sentences(path=str(tmp_path / "none")), ("text",)),)).fit(COLUMNS, TRAIN)
