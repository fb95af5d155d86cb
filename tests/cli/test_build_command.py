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


def test_ppi_graphs_are_built_from_patterns(graphsage: Command, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.edgelist").write_text("1 2\n2 3\n")
    (tmp_path / "sets.gmt").write_text("S\tx\t1\t2\n")
    sizes = ("--train-graphs", 1, "--held-out", 1, "--min-train-edges", 1, "--min-held-out-edges", 1)
    words = (
        "--tissues",
        tmp_path / "*.edgelist",
        "--features",
        tmp_path / "sets.gmt",
        "--labels",
        tmp_path / "sets.gmt",
    )
    answer = graphsage("data", "build", "ppi", *words, *sizes, "--out", tmp_path / "ppi", "--json")
    assert (answer.json["nodes"], answer.json["edges"], answer.json["classes"]) == (9, 6, 1)
    wrong = graphsage("data", "build", "ppi", "--tissues", tmp_path / "*.txt", *words[2:], "--out", tmp_path / "x")
    assert "names no file" in wrong.error


def test_reddit_needs_one_way_to_choose_communities(graphsage: Command, tmp_path: Path) -> None:
    files = ("--submissions", tmp_path / "s", "--comments", tmp_path / "c", "--vectors", tmp_path / "v")
    assert "one of the two" in graphsage("data", "build", "reddit", *files).error
    both = ("--communities", tmp_path / "n", "--rank-comments", "RC*")
    assert "one of the two" in graphsage("data", "build", "reddit", *files, *both).error


def test_citations_are_built_from_two_tables(graphsage: Command, tmp_path: Path) -> None:
    pytest.importorskip("gensim")
    (tmp_path / "p.csv").write_text("id,topic,year,words\na,x,2001,some cells\nb,y,2005,more cells\nc,x,2002,cells\n")
    (tmp_path / "c.csv").write_text("source,target\nb,a\nc,a\n")
    words = ("--nodes", tmp_path / "p.csv", "--edges", tmp_path / "c.csv", "--label", "topic", "--text", "words")
    answer = graphsage("data", "build", "citation", *words, "--dim", 3, "--out", tmp_path / "cite")
    assert "3 nodes, 2 edges" in answer.out
    for years in (("--train-until", 2005), ("--first-year", 2005)):
        answer = graphsage("data", "build", "citation", *words, *years, "--out", tmp_path / "none")
        assert answer.code == 2
        assert "--first-year <= --train-until < --last-year" in answer.err
