"""The paper's two text recipes, against values worked out by hand and against gensim."""

import gzip
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsage.errors import BundleError, ConfigError, DataError
from graphsage.features.word_vectors import (
    FittedWord2Vec,
    Word2Vec,
    WordVectors,
    first_singular_vector,
    read_vectors,
    words_of,
)

WORDS = {"the": [1.0, 2.0], "cat's": [0.5, -1.0], "sat": [0.0, 4.0]}


def test_words_are_lower_case_and_without_signs() -> None:
    assert words_of("The cat's (big) House-boat, Ünïcode!") == ["the", "cat's", "big", "house", "boat", "ünïcode"]


def test_sif_worked_out_by_hand() -> None:
    fitted = FittedWord2Vec(
        Word2Vec(dim=2, a=0.5),
        ("t",),
        ("a", "b"),
        np.array([[2, 0], [0, 4]], np.float32),
        np.array([0.5, 0.25], np.float32),
        np.array([1, 0], np.float32),
    )
    # "a b": ((0.5 * 2, 0) + (0, 0.25 * 4)) / 2 = (0.5, 0.5), less its part along (1, 0)
    assert fitted.transform({"t": ["a b", "b unknown", "", "a"]}).tolist() == [[0, 0.5], [0, 1], [0, 0], [0, 0]]


def test_sif_weights_are_a_over_a_plus_the_words_share_of_training() -> None:
    texts = ["common rare", "common common", "held out rare rare"]
    fitted = Word2Vec(dim=3, min_count=1, a=0.25).fit({"t": texts}, np.array([0, 1]))
    assert fitted.words == ("common", "rare")
    assert fitted.weights.tolist() == pytest.approx([0.25 / (0.25 + 3 / 4), 0.25 / (0.25 + 1 / 4)])


def test_the_common_direction_is_the_first_right_singular_vector_and_is_taken_off() -> None:
    x = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32) + 2
    expected = np.linalg.svd(x.astype(np.float64), full_matrices=False)[2][0]
    assert abs(first_singular_vector(x) @ expected) == pytest.approx(1, abs=1e-6)
    assert not first_singular_vector(np.zeros((3, 2), np.float32)).any()
    texts = [f"w{i % 4} w{i % 3} w{i % 5}" for i in range(30)]
    fitted = Word2Vec(dim=4, min_count=1).fit({"t": texts}, np.arange(30))
    assert np.linalg.norm(fitted.common) == pytest.approx(1, abs=1e-5)
    assert fitted.transform({"t": texts}) @ fitted.common == pytest.approx(0, abs=1e-6)


def test_word2vec_is_gensims_and_the_same_every_time() -> None:
    from gensim.models import Word2Vec as Trainer

    texts = [f"w{i % 4} w{i % 3} w{i % 5}" for i in range(30)]
    one, two = (Word2Vec(dim=4, min_count=1, seed=3).fit({"t": texts}, np.arange(30)) for _ in range(2))
    assert np.array_equal(one.vectors, two.vectors)
    theirs = Trainer([text.split() for text in texts], vector_size=4, min_count=1, seed=3, workers=1)
    assert np.array_equal(one.vectors, np.stack([theirs.wv[word] for word in one.words]))


def test_word2vec_without_gensim_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(ConfigError, match=r"pip install 'graphsage\[text\]'"):
        Word2Vec(dim=2).fit({"t": ["a b"]}, np.arange(1))


def test_texts_without_a_word_are_an_error() -> None:
    with pytest.raises(DataError, match="hold no word in any training row"):
        Word2Vec(dim=2).fit({"t": ["", "?!", "words"]}, np.arange(2))


@pytest.mark.parametrize("change", [{"dim": 0}, {"a": 0.0}])
def test_settings_are_checked(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Word2Vec(**change)
    config, arrays = Word2Vec(dim=2, min_count=1).fit({"t": ["a b"]}, np.arange(1)).state()
    with pytest.raises(BundleError, match="settings are wrong"):
        FittedWord2Vec.from_state({**config, "settings": {**config["settings"], **change}}, arrays)


def write(path: Path, form: str) -> Path:
    """WORDS in one of the formats, written without our reader's help."""
    lines = [f"{word} {' '.join(map(str, vector))}" for word, vector in WORDS.items()]
    if form == "glove":
        path.write_text("\n".join(lines) + "\n")
    elif form == "text":
        path.write_text("\n".join(["3 2", *lines]) + "\n")
    elif form == "gzip":
        path = path.with_suffix(".txt.gz")
        path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))
    else:
        path = path.with_suffix(".bin")
        from gensim.models import KeyedVectors

        vectors = KeyedVectors(2)
        vectors.add_vectors(list(WORDS), np.array(list(WORDS.values()), np.float32))
        vectors.save_word2vec_format(str(path), binary=True)
    return path


@pytest.mark.parametrize("form", ["glove", "text", "gzip", "binary"])
def test_all_formats_of_word_vectors_are_read(tmp_path: Path, form: str) -> None:
    read = {word: vector.tolist() for word, vector in read_vectors(write(tmp_path / "vectors.txt", form))}
    assert read == WORDS


def test_the_reddit_recipe_is_the_mean_of_known_words_column_by_column(tmp_path: Path) -> None:
    path = write(tmp_path / "vectors.txt", "glove")
    columns = {"title": ["The cat's", "unknown"], "body": ["sat the sat", ""]}
    fitted = WordVectors(path=str(path)).fit(columns, np.array([0]))
    expected = [[0.75, 0.5, 1 / 3, 10 / 3], [0, 0, 0, 0]]
    assert np.allclose(fitted.transform(columns), expected)


def test_words_beyond_the_first_are_kept_only_if_training_has_them(tmp_path: Path) -> None:
    path = write(tmp_path / "vectors.txt", "glove")
    fitted = WordVectors(path=str(path), keep=1).fit({"t": ["sat", "cat's"]}, np.array([0]))
    assert fitted.words == ("the", "sat")


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"", "v.txt", "is empty"),
        (b"the 1 2\ncat 1\n", "v.txt", "line 2 is not a word and 2 numbers"),
        (b"the 1 nan\n", "v.txt", "line 1"),
        (b"the 1 x\n", "v.txt", "line 1"),
        (b"\x00\xff\xfe" * 10, "v.txt", "line 1"),
        (b"2 2\nthe \x00\x00\x80\x3f", "v.bin", "ends within word 1 of 2"),
        (b"2 2\n", "v.bin", "ends within word 1 of 2"),
        (b"\x1f\x8bnot gzip", "v.txt.gz", "cannot be read"),
    ],
)
def test_a_damaged_file_of_vectors_is_named(tmp_path: Path, content: bytes, name: str, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        list(read_vectors(tmp_path / name))
    assert str(tmp_path / name) in str(caught.value)


def test_a_file_that_does_not_fit_the_texts_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        WordVectors(path=str(tmp_path / "none")).fit({"t": ["a"]}, np.array([0]))
    path = write(tmp_path / "vectors.txt", "glove")
    with pytest.raises(DataError, match="has a vector for no word of the training texts"):
        WordVectors(path=str(path)).fit({"t": ["zebra"]}, np.array([0]))


def test_scripts_without_spaces_give_pairs_of_characters() -> None:
    assert words_of("GPU加速 and 猫!") == ["gpu", "加速", "and", "猫"]
    assert words_of("ชอบแมว")[:2] == ["ชอ", "อบ"]
