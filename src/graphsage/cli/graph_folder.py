"""The folder that `graphsage data build` and `graphsage data convert` write: it never replaces somebody's files."""

from pathlib import Path
from typing import Annotated

import typer

from graphsage.errors import OutputError

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier run wrote there.")]


def check_free(out: Path, overwrite: bool, tables: tuple[str, ...] = ()) -> None:
    """Refuse to write where something is already, but for a graph folder, or one of these tables alone, that is to be
    replaced."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    ours = (out / "graph.json").is_file() or (out.is_dir() and all(path.name in tables for path in out.iterdir()))
    if not ours:
        raise OutputError(f"{out} is already there, and this command did not write it; choose another folder")
    if not overwrite:
        raise OutputError(f"{out} is already there; replace it with --overwrite, or choose another folder")
