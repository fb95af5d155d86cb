"""The folder that `graphsage data build` and `graphsage data convert` write: it never replaces somebody's files."""

from pathlib import Path
from typing import Annotated

import typer

from graphsage.errors import OutputError

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier run wrote there.")]


def check_free(out: Path, overwrite: bool, tables: tuple[str, ...] = ()) -> None:
    """Refuse to write where something is already, but for a folder to be replaced that holds a graph and nothing else,
    or nothing but these `tables`."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    from graphsage.graph.storage import is_graph_folder

    whole = out.is_dir() and all(path.name in tables for path in out.iterdir()) if tables else is_graph_folder(out)
    if not whole:
        raise OutputError(f"{out} is already there and holds what this command did not write; choose another folder")
    if not overwrite:
        raise OutputError(f"{out} is already there; replace it with --overwrite, or choose another folder")
