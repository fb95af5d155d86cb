"""Every command and every Python block of the tutorial, in order, on a small mirror."""

import contextlib
import io
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest

from graphsage.cli.main import main
from mirror import write_mirror

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCKS = re.compile(r"^```(bash|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_mirror(tmp_path / "server")
    place = tmp_path / "reader"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("MIRROR", f"file://{tmp_path / 'server'}")
    monkeypatch.setenv("GRAPHSAGE_CACHE", str(tmp_path / "cache"))
    return place


def type_in(block: str) -> dict[str, str]:
    """Run a bash block: graphsage's lines in this process, to spare its start; the others by bash. -> line: output."""
    said = {}
    waiting: list[str] = []
    for line in [*block.replace("\\\n", " ").splitlines(), "graphsage --version"]:
        if not line.startswith("graphsage "):
            waiting.append(line)
            continue
        if waiting:
            told = subprocess.run(["bash", "-e"], input="\n".join(waiting), text=True, check=True, capture_output=True)
            said[waiting[-1]] = told.stdout
            waiting = []
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert main(shlex.split(line)[1:]) == 0, line
        said[line] = out.getvalue()
    return said


@pytest.mark.skipif(shutil.which("curl") is None, reason="the tutorial fetches its data with curl")
def test_the_tutorial_works_from_top_to_bottom(folder: Path) -> None:
    blocks = BLOCKS.findall(PAGE.read_text("utf-8"))
    assert [language for language, _ in blocks].count("python") == 3
    said: dict[str, str] = {}
    for language, block in blocks:
        if language == "bash":
            said |= type_in(block)
        else:
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(block, str(PAGE), "exec"), {"__name__": "tutorial"})
            said[block] = out.getvalue()
    assert "244 packages" in next(text for line, text in said.items() if "data build debian" in line)
    predicted = pyarrow.csv.read_csv(folder / "p.csv").to_pydict()
    assert predicted["id"] == ["star-miner", "star-miner-editor"]
    assert predicted["class"] == ["games", "games"]
    assert pyarrow.parquet.read_table(folder / "z.parquet").num_rows == 244
    assert pyarrow.parquet.read_table(folder / "z_new.parquet")["id"].to_pylist() == predicted["id"]
    assert (folder / "map.html").stat().st_size > 1000
    assert said[blocks[-1][1]].splitlines()[-1] == "games"


def test_the_small_mirror_is_laid_out_like_a_large_one(tmp_path: Path) -> None:
    write_mirror(tmp_path)
    assert {path.name for path in tmp_path.glob("dists/*/main/*/*")} == {"Packages.xz", "Translation-en.bz2"}
