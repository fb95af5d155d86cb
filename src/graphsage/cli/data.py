"""`graphsage data`: built-in data sets."""

from pathlib import Path
from typing import Annotated

import typer

from graphsage.cli.options import Json
from graphsage.errors import ConfigError

app = typer.Typer(help="Built-in data: list it, or build it from its source.", no_args_is_help=False)

ABOUT = {
    "setmm": "theorems of Metamath's set.mm (CC0): edges are citations in proofs, features come from comment and "
    "formula, classes are the parts of mathematics; splits random and date",
}


@app.command("list")
def list_command(json: Json = False) -> None:
    """List the data that `graphsage train NAME` knows without a file."""
    from graphsage.cli.output import print_columns, print_json
    from graphsage.datasets.open import BUILT_IN

    known = {name: ABOUT.get(name, "") for name in BUILT_IN}
    if json:
        print_json({"data": [{"name": name, "about": about} for name, about in known.items()]})
    else:
        print_columns(list(known.items()))


@app.command("build")
def build_command(
    name: Annotated[str, typer.Argument(help="setmm", metavar="NAME", show_default=False)],
    source: Annotated[Path, typer.Option("--from", help="The database set.mm (Debian: metamath-databases).",
                                         metavar="FILE", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="Folder to write.", metavar="FOLDER", show_default=False)],
    json: Json = False,
) -> None:  # fmt: skip
    """Build a data set from its source.

    \b
    Example:
      graphsage data build setmm --from set.mm --out setmm-new
    """
    from graphsage.cli.output import print_json, working

    if name != "setmm":
        raise ConfigError(f"only setmm can be built; got {name!r}")
    with working(f"reading {source}"):
        from graphsage.datasets.setmm import build_setmm

        build_setmm(source, out)
    if json:
        print_json({"data": name, "from": str(source), "out": str(out)})
    else:
        print(f"{name} built from {source} is in {out}")
