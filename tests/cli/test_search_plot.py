"""search and plot."""

import re
from pathlib import Path

import pytest

from command_line import Command, N
from graphsage.cli.pictures import write_page


def test_search_shows_the_nearest_nodes_and_not_the_node_itself(graphsage: Command, run: Path) -> None:
    answer = graphsage("search", run, "node-4", "-k", 5, "--json").json
    assert (answer["id"], answer["recall"], len(answer["nearest"])) == ("node-4", 1.0, 5)
    cosines = [near["cosine"] for near in answer["nearest"]]
    assert cosines == sorted(cosines, reverse=True)
    assert "node-4" not in {near["id"] for near in answer["nearest"]}
    lines = graphsage("search", run, "node-4", "-k", 5).out.splitlines()
    assert [line.split()[1] for line in lines] == [near["id"] for near in answer["nearest"]]


def test_search_names_an_unknown_node(graphsage: Command, run: Path) -> None:
    assert "unknown node id 'nobody'" in graphsage("search", run, "nobody").error


@pytest.mark.parametrize("suffix", ["png", "html"])
@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_plot_writes_a_picture_or_a_page(
    graphsage: Command, run: Path, tmp_path: Path, suffix: str, method: str
) -> None:
    pytest.importorskip("openTSNE")
    out = tmp_path / f"map.{suffix}"
    assert graphsage("plot", run, "--out", out, "--method", method, "--json").json["nodes"] == N
    content = out.read_bytes()
    assert content.startswith(b"\x89PNG" if suffix == "png" else b"<!doctype html>")
    if suffix == "html":
        assert b"node-89" in content
        assert not re.search(rb"(src|href)=", content), "the page must need nothing else"


def test_plot_refuses_what_it_cannot_draw(graphsage: Command, run: Path, tmp_path: Path) -> None:
    assert ".png or .html" in graphsage("plot", run, "--out", tmp_path / "map.pdf").error
    assert "--method must be one of" in graphsage("plot", run, "--out", tmp_path / "a.png", "--method", "x").error
    assert "parts train, val and test" in graphsage("plot", run, "--out", tmp_path / "a.png", "--part", "x").error


def test_a_node_cannot_break_out_of_the_page(tmp_path: Path) -> None:
    import numpy as np

    evil = "</script><script>alert(1)</script>"
    write_page(tmp_path / "map.html", np.eye(3, 2), [evil] * 3, [evil, "a", "b"], title=evil, subtitle="")
    assert (tmp_path / "map.html").read_text().count("</script>") == 1


def test_embeddings_in_word2vecs_format_are_opened_by_gensim(graphsage: Command, run: Path, tmp_path: Path) -> None:
    models = pytest.importorskip("gensim.models")
    assert graphsage("embed", run, "--out", tmp_path / "z.txt").code == 0
    vectors = models.KeyedVectors.load_word2vec_format(str(tmp_path / "z.txt"))
    assert len(vectors) == N
    assert vectors["node-7"].shape == (8,)
