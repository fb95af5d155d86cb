"""`graphsage data build`: data sets made from their sources."""

from pathlib import Path
from typing import Annotated

import typer

from graphsage.cli import build_large, build_paper
from graphsage.cli.app import App
from graphsage.cli.graph_folder import Overwrite, check_free
from graphsage.cli.options import Json
from graphsage.errors import ConfigError

app = App(help="Build a data set from its source.", no_args_is_help=True)
app.command("tables")(build_large.tables)
app.command("reddit")(build_paper.reddit)
app.command("citation")(build_paper.citation)
app.command("ppi")(build_paper.ppi)


@app.command("setmm")
def setmm_command(
    source: Annotated[
        Path,
        typer.Option(
            "--from", help="The database set.mm (Debian: metamath-databases).", metavar="FILE", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder to write.", metavar="FOLDER")] = Path("setmm-built"),
    json: Json = False,
) -> None:
    """Build the citation graph of theorems from Metamath's set.mm; `graphsage train FOLDER` reads the result.

    \b
    Example:
      graphsage data build setmm --from set.mm
    """
    from graphsage.cli.output import print_json, working

    with working(f"reading {source}"):
        from graphsage.datasets.setmm import build_setmm

        build_setmm(source, out)
    if json:
        print_json({"data": "setmm", "from": str(source), "out": str(out)})
    else:
        print(f"setmm built from {source} is in {out}")


@app.command("debian")
def debian_command(
    packages: Annotated[
        list[str],
        typer.Option(
            "--packages",
            metavar="RELEASE=FILE",
            show_default=False,
            help="A release's Packages.xz; repeat, oldest release first.",
        ),
    ],
    translations: Annotated[
        list[str] | None,
        typer.Option(
            "--translations",
            metavar="RELEASE=FILE",
            show_default=False,
            help="Its Translation-en.bz2 with the long descriptions; may be repeated.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder for nodes.csv and edges.csv.", metavar="FOLDER")] = Path(
        "debian"
    ),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Build the tables of the Debian package graph from a mirror's package indexes.

    Each release's index is dists/RELEASE/main/binary-amd64/Packages.xz on any
    mirror, the long descriptions dists/RELEASE/main/i18n/Translation-en.bz2.

    \b
    Example:
      graphsage data build debian --packages bookworm=12/Packages.xz --packages trixie=13/Packages.xz
    """
    from graphsage.cli.output import print_json, working
    from graphsage.datasets.debian import Release, build_debian, is_debian_folder

    check_free(out, overwrite, is_debian_folder)
    indexes, long = _pairs("--packages", packages), _pairs("--translations", translations or [])
    for name in long:
        if name not in indexes:
            raise ConfigError(f"--translations {name}=... needs --packages {name}=... too")
    with working("reading package indexes"):
        releases = [Release(name, path, long.get(name)) for name, path in indexes.items()]
        nodes, edges = build_debian(releases, out)
    if json:
        print_json({"data": "debian", "nodes": nodes, "edges": edges, "out": str(out)})
    else:
        print(f"{nodes:,} packages and {edges:,} relations are in {out}/nodes.csv and {out}/edges.csv")


def _pairs(flag: str, words: list[str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for word in words:
        name, sign, path = word.partition("=")
        if not (sign and name and path):
            raise ConfigError(f"{flag} takes RELEASE=FILE, such as {flag} bookworm=Packages.xz; got {word!r}")
        if name in found:
            raise ConfigError(f"{flag} names the release {name} twice")
        found[name] = Path(path)
    return found
