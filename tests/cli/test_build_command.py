"""graphsage data build."""

from pathlib import Path

import pytest
from command_line import Command

INDEX = "Package: a\nSection: libs\nDescription: one\n\nPackage: b\nSection: doc\nDepends: a\nDescription: two\n"


def test_debian_tables_are_built_from_indexes(graphsage: Command, tmp_path: Path) -> None:
    (tmp_path / "Packages").write_text(INDEX)
    answer = graphsage(
        "data", "build", "debian", "--packages", f"sid={tmp_path / 'Packages'}", "--out", tmp_path / "d", "--json"
    )
    assert (answer.json["nodes"], answer.json["edges"]) == (2, 1)
    assert (tmp_path / "d" / "edges.csv").read_text().splitlines()[1] == "b,a,depends,sid"


@pytest.mark.parametrize(("words", "message"), [
    (["--packages", "bookworm"], "--packages takes RELEASE=FILE"),
    (["--packages", "sid=x", "--packages", "sid=y"], "names the release sid twice"),
    (["--packages", "sid=x", "--translations", "forky=y"], "needs --packages forky"),
    (["--packages", "sid=/nowhere/Packages"], "/nowhere/Packages does not exist"),
])  # fmt: skip
def test_wrong_words_are_named(graphsage: Command, words: list[str], message: str, tmp_path: Path) -> None:
    assert message in graphsage("data", "build", "debian", *words, "--out", tmp_path / "d").error
    assert not (tmp_path / "d").exists()
