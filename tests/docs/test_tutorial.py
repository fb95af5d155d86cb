"""Every command and every Python block of the tutorial, in order, on a small mirror."""

import contextlib
import io
import shutil
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest

from mirror import write_mirror
from pages import blocks_of, type_in


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_mirror(tmp_path / "server")
    place = tmp_path / "reader"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("MIRROR", f"file://{tmp_path / 'server'}")
    monkeypatch.setenv("GRAPHSAGE_CACHE", str(tmp_path / "cache"))
    return place


@pytest.mark.skipif(shutil.which("curl") is None, reason="the tutorial fetches its data with curl")
def test_the_tutorial_works_from_top_to_bottom(folder: Path) -> None:
    blocks = blocks_of("tutorial.md")
    assert [language for language, _ in blocks].count("python") == 3
    said: dict[str, str] = {}
    for language, block in blocks:
        if language == "bash":
            said |= type_in(block)
        else:
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(block, "tutorial.md", "exec"), {"__name__": "tutorial"})
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
