"""`graphsage data`: built-in data sets, and other people's formats."""

from pathlib import Path
from typing import Annotated

import typer

from graphsage.cli import build
from graphsage.cli.app import App
from graphsage.cli.graph_folder import Overwrite, check_free
from graphsage.cli.options import Json

app = App(help="Data: list what is known, build a set from its source, convert files.", no_args_is_help=False)
app.add_typer(build.app, name="build")

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
        print_json(
            {
                "data": [{"name": name, "about": about} for name, about in known.items()],
                "formats": [{"format": form.name, "file": form.file} for form in FORMATS],
            }
        )
    else:
        print_columns(list(known.items()))
        print("\nor the PATH of")
        print_columns([(form.name, _where(form.file)) for form in FORMATS], indent="  ")


def _where(file: str) -> str:
    return "  ".join(f"PATH{end}" for end in file.split(", "))


@app.command("convert")
def convert_command(
    source: Annotated[
        str,
        typer.Argument(help="Data in any format that `graphsage data list` names.", metavar="IN", show_default=False),
    ],
    out: Annotated[Path, typer.Argument(help="Graph folder to write.", metavar="OUT", show_default=False)],
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Write data as a graph folder, with its splits: it opens at once, whatever its size.

    \b
    Examples:
      graphsage data convert amazon_photo.npz photo
      graphsage data convert reddit-npz reddit
    """
    from graphsage.cli.output import data_summary, print_json, say, working

    check_free(out, overwrite)
    with working(f"reading {source}"):
        from graphsage.datasets.open import open_data
        from graphsage.graph.storage import save_graph

        data = open_data(source)
        name, split = data.default_split, data.split()
        graph = data.graph
        if graph.features is None and data.columns:
            say(f"features are made of {', '.join(data.columns)}, fitted on training nodes of split {name}")
            graph = data.with_features(split)[0]
    with working(f"writing {out}"):
        save_graph(graph, out, data.splits)
    if json:
        counts = {"nodes": graph.num_nodes, "edges": graph.num_edges, "features": graph.num_features}
        classes = {"classes": graph.num_classes, "splits": list(data.splits)}
        print_json({"data": source, "out": str(out), **counts, **classes})
    else:
        print(f"{data_summary(data, name, split)}\nwritten to {out}")
