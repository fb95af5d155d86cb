"""`graphsage data`: built-in data sets, and other people's formats."""

from pathlib import Path
from typing import Annotated

import typer

from graphsage.cli.options import Json
from graphsage.errors import ConfigError, OutputError

app = typer.Typer(help="Data: list what is known, build a set from its source, convert files.", no_args_is_help=False)

ABOUT = {
    "setmm": "theorems of Metamath's set.mm (CC0): edges are citations in proofs, features come from comment and "
    "formula, classes are the parts of mathematics; splits random and date",
}


@app.command("list")
def list_command(json: Json = False) -> None:
    """List the data that `graphsage train NAME` knows without a file, and the formats of files it reads."""
    from graphsage.cli.output import print_columns, print_json
    from graphsage.datasets.open import BUILT_IN, FORMATS

    known = {name: ABOUT.get(name, "") for name in BUILT_IN}
    if json:
        print_json({"data": [{"name": name, "about": about} for name, about in known.items()],
                    "formats": [{"format": form.name, "file": form.file} for form in FORMATS]})  # fmt: skip
    else:
        print_columns(list(known.items()))
        print("\nor the PATH of")
        print_columns([(form.name, _where(form.file)) for form in FORMATS], indent="  ")


def _where(file: str) -> str:
    return "  ".join(f"PATH{end}" for end in file.split(", "))


@app.command("convert")
def convert_command(
    source: Annotated[str, typer.Argument(help="Data in any format that `graphsage data list` names.", metavar="IN",
                                          show_default=False)],
    out: Annotated[Path, typer.Argument(help="Graph folder to write.", metavar="OUT", show_default=False)],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is in OUT.")] = False,
    json: Json = False,
) -> None:  # fmt: skip
    """Write data as a graph folder, with its splits: it opens at once, whatever its size.

    \b
    Examples:
      graphsage data convert planetoid/ind.cora cora
      graphsage data convert reddit-npz reddit
    """
    from graphsage.cli.output import data_summary, print_json, say, working

    if out.exists() and not overwrite:
        raise OutputError(f"{out} is already there; replace it with --overwrite, or choose another folder")
    with working(f"reading {source}"):
        from graphsage.datasets.open import open_data
        from graphsage.graph.storage import save_graph

        data = open_data(source)
        name, split = data.default_split, data.split()
        graph = data.graph
        if graph.features is None and data.texts:
            say(f"features are computed from text ({', '.join(data.texts)}), fitted on training nodes of split {name}")
            graph = data.with_features(split)[0]
    with working(f"writing {out}"):
        save_graph(graph, out, data.splits)
    if json:
        counts = {"nodes": graph.num_nodes, "edges": graph.num_edges, "features": graph.num_features}
        classes = {"classes": graph.num_classes, "splits": list(data.splits)}
        print_json({"data": source, "out": str(out), **counts, **classes})
    else:
        print(f"{data_summary(data, name, split)}\nwritten to {out}")


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
