"""Types in the commands of a page of the documentation."""

import contextlib
import io
import re
import shlex
import subprocess
from pathlib import Path

from graphsage.cli.main import main

DOCS = Path(__file__).parents[2] / "docs"
_BLOCKS = re.compile(r"^```(bash|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks_of(page: str) -> list[tuple[str, str]]:
    """The language and the text of each block."""
    return _BLOCKS.findall((DOCS / page).read_text("utf-8"))


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
