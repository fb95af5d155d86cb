"""`graphsage live`: make, look after and check the folder of a live graph."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from graphsage.cli.options import App, AsOf, Json, OtherData, Run, argument
from graphsage.cli.output import print_facts, print_json, say, working
from graphsage.cli.runs import open_run

app = App(help="A live graph's folder: create, backup, restore, compact, verify.", no_args_is_help=False)

Store = Annotated[Path, argument("FOLDER", "Folder of a live graph.")]
Copy = Annotated[Path, argument("TO", "Folder to create.")]


def _report(report: object, json: bool) -> None:
    facts = asdict(report)  # type: ignore[call-overload]
    if json:
        print_json(facts)
    else:
        print_facts({name: f"{value:,}" for name, value in facts.items()})


@contextmanager
def _sigterm_cleans_up() -> Iterator[None]:
    """Within the block, SIGTERM is an exception, so that unfinished files are removed."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@app.command("create")
def create_command(run: Run, folder: Copy, data: OtherData = None, as_of: AsOf = None, json: Json = False) -> None:
    """Create a live graph from the data of RUN, or from other data, for `graphsage serve`.

    \b
    Example:
      graphsage live create run graph
    """
    from graphsage.errors import OutputError
    from graphsage.live.backup import verify
    from graphsage.live.node_features import store_from_data

    if folder.exists():
        raise OutputError(f"{folder} already exists; choose another folder")
    opened = open_run(run, data, "cpu")
    graph = opened.graph if as_of is None else opened.model.as_of(opened.graph, as_of)
    with working(f"writing {folder}"):
        store_from_data(folder, opened.model, opened.data, graph)
    _report(verify(folder), json)


@app.command("backup")
def backup_command(folder: Store, to: Copy, json: Json = False) -> None:
    """Copy a live graph that no service has open. A running service copies its own: POST /v1/admin/backup."""
    from graphsage.live.backup import backup

    with _sigterm_cleans_up():
        _report(backup(folder, to), json)


@app.command("restore")
def restore_command(copy: Store, to: Copy, json: Json = False) -> None:
    """Check a backup and create a live graph from it."""
    from graphsage.live.backup import restore

    with _sigterm_cleans_up():
        _report(restore(copy, to), json)


@app.command("compact")
def compact_command(folder: Store, json: Json = False) -> None:
    """Write the changes in the journal into a new generation. A running service does this itself."""
    from graphsage.live.adjacency import Cap
    from graphsage.live.store import LiveGraph

    with working(f"compacting {folder}"), LiveGraph(folder, Cap(None, "symmetric", 0)) as live:
        version = live.compact()
    _report(version, json)


@app.command("verify")
def verify_command(
    folder: Store,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also check what each node holds and make the journal's changes.")
    ] = False,
    json: Json = False,
) -> None:
    """Read every byte: checksums of the generation, its graph, the chain of the journal. Nothing is written."""
    from graphsage.live.backup import verify

    with working(f"reading {folder}"):
        report = verify(folder, deep)
    _report(report, json)


@app.command("recover")
def recover_command(
    folder: Store,
    last_good: Annotated[int, typer.Option("--last-good", help="Number of the last good change.", min=0)],
    json: Json = False,
) -> None:
    """Accept that changes at the end of a damaged journal are lost. The error that refuses the journal names the last
    good change. Restore a backup instead if there is one with later changes.

    \b
    Example:
      graphsage live recover graph --last-good 8526
    """
    from graphsage.live.backup import recover, verify

    kept = recover(folder, last_good)
    say(f"the files of the old journal are in {kept}")
    _report(verify(folder), json)
