"""Text features: known weights, learned from training rows only, the same after a round trip."""

import json
import math
import warnings
from typing import Any

import numpy as np
import pytest
import torch

from graphsage.errors import BundleError, ConfigError, DataError, DataWarning
from graphsage.features.scaler import fit_scaler
from graphsage.features.text import FittedText, TfidfSvd, tokens

DOCUMENTS = {"text": ["apple apple pear", "pear plum", "plum plum plum fig"]}
ALL = np.arange(3)
COLUMNS = {
    "comment": ["The sum of two integers.", "A product, of sums.", "Sum and product.", "Nothing in common", ""],
    "formula": ["( A + B ) e. ZZ", "( A x. B ) e. ZZ", "( A + B ) = C", "|- ph", "( A + C )"],
}


def fit(columns: Any = COLUMNS, rows: Any = (0, 1, 2), **settings: Any) -> FittedText:
    return TfidfSvd(**{"dim": 4, "min_df": 1, **settings}).fit(columns, np.array(rows))


def test_weights_of_a_small_corpus_are_those_computed_by_hand() -> None:
    fitted = fit(DOCUMENTS, ALL)
    assert fitted.vocabularies == {"text": ("apple", "fig", "pear", "plum")}
    rare, common = 1 + math.log(4 / 2), 1 + math.log(4 / 3)  # in one document of three, in two of three
    assert fitted.idf.tolist() == pytest.approx([rare, rare, common, common])
    apple, pear = (1 + math.log(2)) * rare, common
    length = math.hypot(apple, pear)
    first = fitted.weigh(DOCUMENTS).toarray()[0]
    assert first.tolist() == pytest.approx([apple / length, 0, pear / length, 0])


def test_full_rank_projection_keeps_all_inner_products() -> None:
    fitted = fit(DOCUMENTS, ALL)
    weights = fitted.weigh(DOCUMENTS).toarray()
    features = fitted.transform(DOCUMENTS)
    assert features.dtype == np.float32
    assert features @ features.T == pytest.approx(weights @ weights.T, abs=1e-5)


def test_weights_agree_with_scikit_learn_column_by_column() -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    fitted = fit(rows=np.arange(5))
    weights = fitted.weigh(COLUMNS).toarray()
    start = 0
    for name, texts in COLUMNS.items():
        reference = TfidfVectorizer(analyzer=lambda text: list(tokens(text)), sublinear_tf=True)
        expected = reference.fit_transform(texts).toarray()
        assert list(fitted.vocabularies[name]) == reference.get_feature_names_out().tolist()
        assert weights[:, start : start + expected.shape[1]] == pytest.approx(expected, abs=1e-6)
        start += expected.shape[1]
    assert start == weights.shape[1]


def test_symbols_stay_and_words_lose_their_punctuation() -> None:
    assert list(tokens("|- ( A e. _V )")) == ["|-", "(", "A", "a", "e.", "e", "_V", "_v", ")"]
    assert list(tokens("Law (first), USGraph")) == [
        "Law",
        "law",
        "(first),",
        "first",
        "USGraph",
        "usgraph",
        "us",
        "graph",
    ]
    assert list(tokens(" \t\n")) == []


def test_only_training_rows_are_learned_from() -> None:
    changed = {name: [*texts[:3], "other words", "( X + Y )"] for name, texts in COLUMNS.items()}
    (config, arrays), (other_config, other_arrays) = fit().state(), fit(changed).state()
    assert config == other_config
    assert arrays.keys() == other_arrays.keys()
    assert all(np.array_equal(arrays[name], other_arrays[name]) for name in arrays)
    assert fit(rows=(0, 1, 2, 3)).state()[0] != config


def test_each_column_has_its_own_words() -> None:
    fitted = fit({"a": ["x y", "x"], "b": ["z", "x z"]}, (0, 1))
    assert fitted.vocabularies == {"a": ("x", "y"), "b": ("x", "z")}
    swapped = fitted.transform({"a": ["z"], "b": ["y"]})
    assert not swapped.any()


def test_unknown_words_and_empty_texts_count_nothing() -> None:
    fitted = fit(DOCUMENTS, ALL)
    known, noisy, unknown, empty = fitted.transform({"text": ["apple pear", "apple kiwi pear", "kiwi", ""]})
    assert np.array_equal(known, noisy)
    assert not unknown.any()
    assert not empty.any()


def test_rare_words_and_words_beyond_the_limit_are_left_out() -> None:
    assert fit(DOCUMENTS, ALL, min_df=2).vocabularies == {"text": ("pear", "plum")}
    assert fit(DOCUMENTS, ALL, max_features=3).vocabularies == {"text": ("apple", "pear", "plum")}
    assert fit(DOCUMENTS, [0], min_df=2).vocabularies == {"text": ("apple", "pear")}


def test_missing_dimensions_are_zero_columns() -> None:
    features = fit(DOCUMENTS, ALL, dim=10).transform(DOCUMENTS)
    assert features.shape == (3, 10)
    assert features[:, :3].any(axis=0).all()
    assert not features[:, 3:].any()


def test_directions_of_rounding_alone_are_left_out() -> None:
    """Repeated texts whose words always occur together: a scaler would make a new combination of them huge."""
    pairs = [("red", "car"), ("blue", "boat"), ("green", "bike"), ("old", "house")]
    texts = [" ".join(pairs[i % 4]) for i in range(40)]
    fitted = fit({"text": texts}, np.arange(40), dim=16)
    assert len(fitted.components) == 4
    scaler = fit_scaler([torch.from_numpy(fitted.transform({"text": texts}))], torch.arange(40))
    new = torch.from_numpy(fitted.transform({"text": ["red boat", "old bike car"]}))
    assert scaler.apply(new).abs().max() < 10


def test_a_projection_keeps_the_strongest_directions() -> None:
    columns = {"text": ["a b", "a b", "a b", "c"]}
    features = fit(columns, np.arange(4), dim=1).transform(columns)
    assert np.abs(features[:, 0]).tolist() == pytest.approx([1, 1, 1, 0], abs=1e-5)


@pytest.mark.parametrize("texts", [["", "", ""], ["a", "", ""]])
def test_empty_columns_do_no_harm(texts: list[str]) -> None:
    columns = {"text": texts, "other": ["", "", ""]}
    features = fit(columns, ALL).transform(columns)
    assert features.shape == (3, 4)
    assert bool(features.any()) == (texts[0] == "a")


def test_no_rows_give_no_features() -> None:
    assert fit().transform({"comment": [], "formula": []}).shape == (0, 4)


def test_fitting_twice_gives_the_same_numbers() -> None:
    assert np.array_equal(fit().transform(COLUMNS), fit().transform(COLUMNS))


def test_state_makes_the_identical_transform_after_json() -> None:
    fitted = fit()
    config, arrays = fitted.state()
    again = FittedText.from_state(
        json.loads(json.dumps(config)), {name: array.copy() for name, array in arrays.items()}
    )
    assert again.settings == fitted.settings
    assert np.array_equal(again.transform(COLUMNS), fitted.transform(COLUMNS))
    assert fitted.transform(COLUMNS).any()


def broken(path: list[Any], value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A fitted state with one value replaced (or, for None, taken out)."""
    config, arrays = fit().state()
    whole: dict[Any, Any] = {"config": json.loads(json.dumps(config)), "arrays": dict(arrays)}
    place = whole
    for step in path[:-1]:
        place = place[step]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return whole["config"], whole["arrays"]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["config", "kind"], None, "kind"),
        (["config", "columns"], None, "columns"),
        (["config", "columns"], [], "no column"),
        (["config", "columns", 0, "terms"], None, "terms"),
        (["config", "columns", 0, "terms"], ["a", "a"], "different strings"),
        (["config", "columns", 0, "terms"], ["a"], "idf must be float32"),
        (["config", "settings"], None, "settings"),
        (["config", "settings", "dim"], None, "settings"),
        (["config", "settings", "dim"], "4", "dim is missing or damaged"),
        (["config", "settings", "dim"], 0, "dim must be at least 1"),
        (["config", "settings", "dim"], 1, "components have 3 rows"),
        (["arrays", "idf"], None, "lack the array 'idf'"),
        (["arrays", "components"], None, "lack the array 'components'"),
        (["arrays", "components"], np.zeros((2, 2), np.float32), "components must be float32"),
        (["arrays", "idf"], fit().idf.astype(np.float64), "idf must be float32"),
        (["arrays", "idf"], fit().idf[:-1], "idf must be float32"),
    ],
)
def test_a_state_that_lacks_something_is_refused_by_name(path: list[Any], value: Any, message: str) -> None:
    config, arrays = broken(path, value)
    with pytest.raises(BundleError, match=message):
        FittedText.from_state(config, arrays)


def test_a_state_with_nan_is_refused() -> None:
    config, arrays = fit().state()
    arrays["idf"] = np.full_like(arrays["idf"], np.nan)
    with pytest.raises(BundleError, match="idf hold NaN"):
        FittedText.from_state(config, arrays)


@pytest.mark.parametrize(
    ("columns", "rows", "message"),
    [
        ({}, [0], "at least one text column"),
        ({"a": ["x"], "b": ["x", "y"]}, [0], "same number of rows"),
        ({"a": ["x", ["y"]]}, [1], "column 'a' row 1 is .'y'., not text"),
        ({"a": ["x"]}, [], "at least one training row"),
        ({"a": ["x"]}, [1], "training rows must be 0 to 0"),
        ({"a": ["x"]}, [-1], "training rows must be 0 to 0"),
    ],
)
def test_columns_that_do_not_fit_are_refused(columns: Any, rows: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        TfidfSvd().fit(columns, np.array(rows, np.int64))


def test_transform_needs_the_columns_it_was_fitted_on() -> None:
    with pytest.raises(DataError, match="got no formula"):
        fit().transform({"comment": ["x"]})


@pytest.mark.parametrize("settings", [{"dim": 0}, {"min_df": 0}, {"max_features": 0}, {"iterations": -1}])
def test_settings_are_checked(settings: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(settings))} must be"):
        TfidfSvd(**settings)


UNSPACED = {
    "Chinese": ["我喜欢小猫和小狗", "小狗喜欢吃骨头，小猫也是", "数学是抽象的", "抽象数学的定理"],
    "Japanese": ["猫が好きです、犬がいます", "犬がいます、猫がいます", "数学は難しい", "難しい数学の定理"],
    "Thai": ["ฉันชอบแมวและสุนัข", "สุนัขชอบกระดูก", "คณิตศาสตร์เป็นนามธรรม", "ทฤษฎีบทของคณิตศาสตร์"],
}


@pytest.mark.parametrize("script", UNSPACED)
def test_text_without_spaces_tells_its_topics_apart(script: str) -> None:
    """Texts 0 and 1 are about animals, 2 and 3 about mathematics."""
    texts = UNSPACED[script]
    fitted = TfidfSvd(dim=4).fit({"t": texts}, np.arange(4))
    z = fitted.transform({"t": texts})
    likeness = z @ z.T
    assert likeness[0, 1] > likeness[0, 2:].max() + 0.05
    assert likeness[2, 3] > likeness[:2, 3].max() + 0.05
    assert fitted.by_character == ()
    mixed = TfidfSvd(dim=2).fit({"t": ["GPU加速", "the GPU", "加速器"]}, np.arange(3))
    assert "加速" in mixed.vocabularies["t"]


def test_where_words_fail_groups_of_characters_count() -> None:
    codes = ["ACGTACGT", "TACGTACC", "GGGTTTAA", "AGGGTTTC"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = TfidfSvd(dim=4).fit({"t": codes, "u": ["a b", "a b", "b", "a"]}, np.arange(4))
    assert fitted.by_character == ("t",)
    assert "acg" in fitted.vocabularies["t"]
    assert fitted.vocabularies["u"] == ("a", "b")
    assert fitted.kind == "text (TF-IDF of characters, SVD)"
    z = fitted.transform({"t": codes, "u": [""] * 4})
    assert z[0] @ z[1] > 0.2
    assert z[2] @ z[3] > 0.2
    again = FittedText.from_state(*fitted.state())
    assert again.transform({"t": codes, "u": codes}).tolist() == fitted.transform({"t": codes, "u": codes}).tolist()


@pytest.mark.parametrize("texts", [["ab", "cd", "ef", "gh"], ["", " ", "", ""]])
def test_a_column_with_nearly_no_vocabulary_is_a_warning(texts: list[str]) -> None:
    with pytest.warns(DataWarning, match="column 't': 0% of its training texts share a term with another"):
        TfidfSvd(dim=4).fit({"t": texts}, np.arange(4))
