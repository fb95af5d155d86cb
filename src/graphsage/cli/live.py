"""`graphsage live`: make, look after and check the folder of a live graph."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from graphsage.cli.options import App, Json, OtherData, Run, argument
from graphsage.cli.output import print_facts, print_json, working
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


@app.command("create")
def create_command(run: Run, folder: Copy, data: OtherData = None, json: Json = False) -> None:
    """Create a live graph from the data of RUN, or from other data.

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
    with working(f"writing {folder}"):
        store_from_data(folder, opened.model, opened.data, opened.graph)
    _report(verify(folder), json)


@app.command("backup")
def backup_command(folder: Store, to: Copy, json: Json = False) -> None:
    """Copy a live graph that no service has open. A running service copies its own: POST /v1/admin/backup."""
    from graphsage.live.backup import backup

    _report(backup(folder, to), json)


@app.command("restore")
def restore_command(copy: Store, to: Copy, json: Json = False) -> None:
    """Check a backup and create a live graph from it."""
    from graphsage.live.backup import restore

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
def verify_command(folder: Store, json: Json = False) -> None:
    """Read every byte: checksums of the generation, its graph, the chain of the journal."""
    from graphsage.live.backup import verify

    with working(f"reading {folder}"):
        report = verify(folder)
    _report(report, json)
