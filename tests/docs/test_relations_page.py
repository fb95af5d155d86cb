"""Every command of the page on relations, in order, on a small mirror."""

import re
import shlex
import subprocess
from pathlib import Path

import pyarrow.csv
import pytest

from graphsage.cli.main import main
from mirror import RELEASES, write_mirror

PAGE = (Path(__file__).parents[2] / "docs" / "relations.md").read_text("utf-8")


def test_the_commands_work_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAPHSAGE_CACHE", str(tmp_path / "cache"))
    write_mirror(tmp_path)
    words = []
    for release in RELEASES:
        main_folder = f"dists/{release}/main"
        words += ["--packages", f"{release}={main_folder}/binary-amd64/Packages.xz"]
        words += ["--translations", f"{release}={main_folder}/i18n/Translation-en.bz2"]
    assert main(["data", "build", "debian", "--out", "debian", *words]) == 0
    for block in re.findall(r"^```bash\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("graphsage "):
                assert main(shlex.split(line)[1:]) == 0, line
            else:
                subprocess.run(["bash", "-e"], input=line, text=True, check=True)
    assert "relations depends in" in capsys.readouterr().err
    assert pyarrow.csv.read_csv("p.csv").to_pydict()["id"] == ["star-miner"]
    assert pyarrow.csv.read_csv("before_forky.csv").num_rows == 244


def test_every_option_of_the_page_exists(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["train"], ["embed"], ["predict"], ["live", "create"]):
        assert main([*command, "--help"]) == 0
    named = set(re.findall(r"--[a-z][a-z-]+", PAGE)) - {"--mode"}
    assert len(named) > 10
    assert named - set(re.findall(r"--[a-z][a-z-]+", capsys.readouterr().out)) == set()
