"""The guide to tables names only options that there are."""

import re
import tomllib
from pathlib import Path

from command_line import Command
from graphsage.tables.spec import TableSpec

GUIDE = (Path(__file__).parents[2] / "docs" / "tables.md").read_text("utf-8")


def test_every_option_of_the_guide_exists(graphsage: Command) -> None:
    helped = "".join(graphsage(command, "--help").out for command in ("train", "embed", "predict", "evaluate"))
    named = set(re.findall(r"--[a-z][a-z-]+", GUIDE))
    assert len(named) > 20
    assert named - set(re.findall(r"--[a-z][a-z-]+", helped)) == set()


def test_every_setting_of_the_guide_exists() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    spec = TableSpec.from_dict(tomllib.loads(block)["data"])
    assert spec.time_order[-1] == "sid"
