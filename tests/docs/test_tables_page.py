"""The guide to tables names only options that there are."""

import re
import tomllib
from pathlib import Path

import pytest

from graphsage.cli.main import main
from graphsage.tables.spec import TableSpec

GUIDE = (Path(__file__).parents[2] / "docs" / "tables.md").read_text("utf-8")


def test_every_option_of_the_guide_exists(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("train", "embed", "predict", "evaluate"):
        assert main([command, "--help"]) == 0
    helped = capsys.readouterr().out
    named = set(re.findall(r"--[a-z][a-z-]+", GUIDE))
    assert len(named) > 20
    assert named - set(re.findall(r"--[a-z][a-z-]+", helped)) == set()


def test_every_setting_of_the_guide_exists() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    spec = TableSpec.from_dict(tomllib.loads(block)["data"])
    assert spec.time_order[-1] == "sid"
