"""`graphsage data build tables`: two tables, also larger than memory, as a graph folder."""

from pathlib import Path
from typing import Annotated, Any

import typer

from graphsage.cli.graph_folder import Overwrite, check_free
from graphsage.cli.options import Json
from graphsage.cli.setting_options import converted
from graphsage.cli.table_options import with_tables
from graphsage.errors import ConfigError
from graphsage.tables.spec import TableSpec


@with_tables(
    (
        "edges",
        "nodes",
        "id",
        "source",
        "target",
        "directed",
        "unknown_nodes",
        "delimiter",
        "vectors",
        "label",
        "split_column",
    )
)
def tables(
    out: Annotated[Path, typer.Option("--out", help="Graph folder to write.", metavar="FOLDER")] = Path("graph"),
    memory: Annotated[str, typer.Option("--memory", help="Most memory to use, such as 3GB.", metavar="SIZE")] = "4GB",
    feature_type: Annotated[
        str, typer.Option("--feature-type", help="Dtype of the features.", metavar="float32|float16")
    ] = "float32",
    overwrite: Overwrite = False,
    json: Json = False,
    **options: Any,
) -> None:
    """Build a graph folder from two tables in bounded memory; `graphsage train FOLDER` reads the result.

    Edges are sorted on disk, beside FOLDER. Features are vectors as they are;
    columns that must be fitted (text, numbers, categories) are for `graphsage
    train --nodes --edges`, which reads the tables whole.

    \b
    Example:
      graphsage data build tables --nodes n.parquet --edges e.parquet --vectors x --memory 3GB --out graph
    """
    from graphsage.cli.output import print_json, row_progress, say

    given = converted(TableSpec, options)
    if "edges" not in given:
        raise ConfigError("a graph needs edges: give --edges FILE")
    check_free(out, overwrite)
    from graphsage.datasets.table_folder import build_large
    from graphsage.graph.external.size import parse_size

    with row_progress() as report:
        built = build_large(
            TableSpec.from_dict(given),
            out,
            memory=parse_size(memory, "--memory"),
            feature_type=feature_type,
            report=report,
        )
    if built.dropped:
        say(f"warning: {built.dropped:,} edges to unknown nodes are dropped")
    facts = {
        "nodes": built.nodes,
        "stored_edges": built.stored_edges,
        "features": built.features,
        "classes": built.classes,
    }
    if json:
        print_json({**facts, "dropped_edges": built.dropped, "out": str(out)})
    else:
        told = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in facts.items())
        print(f"{told}\nwritten to {out}")
