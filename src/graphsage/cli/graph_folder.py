"""The folder that `graphsage data build` and `graphsage data convert` write: it never replaces somebody's files."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from graphsage.atomic import is_free
from graphsage.errors import OutputError

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier run wrote there.")]


def check_free(out: Path, overwrite: bool, ours: Callable[[Path], bool] | None = None) -> None:
    """Refuse, before any work, to write where something is already, but for a folder of `ours` to be replaced (by
    default one that holds a graph and nothing else)."""
    if is_free(out):
        return
    from graphsage.graph.storage import is_graph_folder

    if not (ours or is_graph_folder)(out):
        raise OutputError(f"{out} is already there and holds what this command did not write; choose another folder")
    if not overwrite:
        raise OutputError(f"{out} is already there; replace it with --overwrite, or choose another folder")
