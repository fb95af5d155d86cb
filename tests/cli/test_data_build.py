"""graphsage data build."""

from pathlib import Path

import pytest

from command_line import Command
from graphsage.graph.graph import Graph

INDEX = "Package: a\nSection: libs\nDescription: one\n\nPackage: b\nSection: doc\nDepends: a\nDescription: two\n"


def test_debian_tables_are_built_from_indexes(graphsage: Command, tmp_path: Path) -> None:
    (tmp_path / "Packages").write_text(INDEX)
    answer = graphsage(
        "data", "build", "debian", "--packages", f"sid={tmp_path / 'Packages'}", "--out", tmp_path / "d", "--json"
    )
    assert (answer.json["nodes"], answer.json["edges"]) == (2, 1)
    assert (tmp_path / "d" / "edges.csv").read_text().splitlines()[1] == "b,a,depends,sid"


def test_debian_tables_replace_nothing_but_such_tables(graphsage: Command, tmp_path: Path) -> None:
    (tmp_path / "Packages").write_text(INDEX)
    build = ("data", "build", "debian", "--packages", f"sid={tmp_path / 'Packages'}", "--out")
    assert "not written by" in graphsage(*build, tmp_path, "--overwrite").error
    assert (tmp_path / "Packages").read_text() == INDEX
    assert graphsage(*build, tmp_path / "d").code == 0
    assert "replace it with --overwrite" in graphsage(*build, tmp_path / "d").error
    assert graphsage(*build, tmp_path / "d", "--overwrite").code == 0
    Graph.from_edges([[0, 1]], 2).save(tmp_path / "g")
    assert "not written by" in graphsage(*build, tmp_path / "g", "--overwrite").error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--packages", "bookworm"], "--packages takes RELEASE=FILE"),
        (["--packages", "sid=x", "--packages", "sid=y"], "names the release sid twice"),
        (["--packages", "sid=x", "--translations", "forky=y"], "needs --packages forky"),
        (["--packages", "sid=/nowhere/Packages"], "/nowhere/Packages does not exist"),
    ],
)
def test_wrong_words_are_named(graphsage: Command, words: list[str], message: str, tmp_path: Path) -> None:
    assert message in graphsage("data", "build", "debian", *words, "--out", tmp_path / "d").error
    assert not (tmp_path / "d").exists()


SIZES = ("--train-graphs", 1, "--held-out", 1, "--min-train-edges", 1, "--min-held-out-edges", 1)


def tissues(folder: Path) -> list[object]:
    """Words that name three small graphs and a gene set."""
    folder.mkdir(exist_ok=True)
    for name in ("a", "b", "c"):
        (folder / f"{name}.edgelist").write_text("1 2\n2 3\n")
    (folder / "sets.gmt").write_text("S\tx\t1\t2\n")
    sets = folder / "sets.gmt"
    return ["--tissues", folder / "*.edgelist", "--features", sets, "--labels", sets]


def test_ppi_graphs_are_built_from_patterns(graphsage: Command, tmp_path: Path) -> None:
    words = tissues(tmp_path)
    answer = graphsage("data", "build", "ppi", *words, *SIZES, "--out", tmp_path / "ppi", "--json")
    assert (answer.json["nodes"], answer.json["edges"], answer.json["classes"]) == (9, 6, 1)
    wrong = graphsage("data", "build", "ppi", "--tissues", tmp_path / "*.txt", *words[2:], "--out", tmp_path / "x")
    assert "names no file" in wrong.error
    again = graphsage("data", "build", "ppi", *words, "--features", tmp_path / "*.gmt", "--out", tmp_path / "x")
    assert "sets.gmt twice; name each file once" in again.error


def test_what_is_there_stays_unless_it_is_a_graph_folder_to_be_replaced(graphsage: Command, tmp_path: Path) -> None:
    """The folder of the input has the name that a person gives the output."""
    build = ("data", "build", "ppi", *tissues(tmp_path / "ppi"), *SIZES, "--overwrite", "--out")
    before = sorted(path.name for path in (tmp_path / "ppi").iterdir())
    for taken in (tmp_path / "ppi", tmp_path / "ppi" / "sets.gmt"):
        assert "not written by this command" in graphsage(*build, taken).error
    assert sorted(path.name for path in (tmp_path / "ppi").iterdir()) == before
    (tmp_path / "out").mkdir()
    assert graphsage(*build, tmp_path / "out").code == 0  # an empty folder is free
    assert "replace it with --overwrite" in graphsage(*build[:-2], "--out", tmp_path / "out").error
    assert graphsage(*build, tmp_path / "out").code == 0


@pytest.mark.parametrize("share", ["nan", "2", "-1"])
def test_a_share_lies_between_0_and_1(graphsage: Command, share: str, tmp_path: Path) -> None:
    wrong = graphsage("data", "build", "ppi", *tissues(tmp_path), f"--min-share={share}", "--out", tmp_path / "x")
    assert "from 0 to 1; got" in wrong.error


@pytest.mark.parametrize("kind", ["reddit", "citation"])
def test_a_file_in_the_place_of_the_output_stays(graphsage: Command, kind: str, tmp_path: Path) -> None:
    taken = tmp_path / "mine.txt"
    taken.write_text("precious")
    names = ("submissions", "comments", "text-model", "communities") if kind == "reddit" else ("nodes", "edges")
    words = [word for name in names for word in (f"--{name}", taken)]
    assert "not written by this command" in graphsage("data", "build", kind, *words, "--out", taken).error
    assert taken.read_text() == "precious"


def test_reddit_needs_one_way_to_choose_communities(graphsage: Command, tmp_path: Path) -> None:
    files = ("--submissions", tmp_path / "s", "--comments", tmp_path / "c", "--text-model", tmp_path / "v")
    assert "one of the two" in graphsage("data", "build", "reddit", *files).error
    both = ("--communities", tmp_path / "n", "--rank-comments", "RC*")
    assert "one of the two" in graphsage("data", "build", "reddit", *files, *both).error


def test_citations_are_built_from_two_tables(graphsage: Command, tmp_path: Path) -> None:
    pytest.importorskip("gensim")
    (tmp_path / "p.csv").write_text("id,topic,year,words\na,x,2001,some cells\nb,y,2005,more cells\nc,x,2002,cells\n")
    (tmp_path / "c.csv").write_text("source,target\nb,a\nc,a\n")
    words = ("--nodes", tmp_path / "p.csv", "--edges", tmp_path / "c.csv", "--label", "topic", "--text", "words")
    answer = graphsage("data", "build", "citation", *words, "--text-dim", 3, "--out", tmp_path / "cite")
    assert "3 nodes, 2 edges" in answer.out
    for years in (("--train-until", 2005), ("--first-year", 2005)):
        answer = graphsage("data", "build", "citation", *words, *years, "--out", tmp_path / "none")
        assert answer.code == 2
        assert "--first-year <= --train-until < --last-year" in answer.err
