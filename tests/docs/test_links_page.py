"""Every command of the page about links, in order, on a small mirror."""

import json
import shutil
from pathlib import Path

import pytest

from mirror import write_mirror
from pages import blocks_of, type_in


@pytest.mark.skipif(shutil.which("curl") is None, reason="the tutorial fetches its data with curl")
def test_the_page_works_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_mirror(tmp_path / "server")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MIRROR", f"file://{tmp_path / 'server'}")
    monkeypatch.setenv("GRAPHSAGE_CACHE", str(tmp_path / "cache"))
    for _, block in blocks_of("tutorial.md")[:2]:  # the tables
        type_in(block)
    said: dict[str, str] = {}
    for language, block in blocks_of("links.md"):
        if language == "bash":  # tests/docs/test_documents.py runs the Python blocks
            said |= type_in(block)
    found = json.loads(said["graphsage evaluate links --json"])
    assert len(found["yardsticks"]) == 4
    assert found["mrr"] > 0.3
    assert said["graphsage score links pairs.csv"].startswith("source,target,score\n")
    assert len(said["graphsage recommend links games-sid-1 -k 3"].splitlines()) == 3
    new = said["graphsage recommend new-links --new-nodes new.csv -k 5"].splitlines()
    assert [line.split()[0] for line in new] == ["my-game"] * 5
