"""`graphsage data build tables`: two tables, also larger than memory, as a graph folder."""

from pathlib import Path
from typing import Annotated

import typer

from graphsage.cli import table_options as columns
from graphsage.cli.graph_folder import Overwrite, check_free
from graphsage.cli.options import Json
from graphsage.errors import ConfigError


def tables(
    edges: columns.EdgeTable = None,
    out: Annotated[Path, typer.Option("--out", help="Graph folder to write.", metavar="FOLDER")] = Path("graph"),
    nodes: columns.NodeTable = None,
    id: columns.Id = None,
    source: columns.Source = None,
    target: columns.Target = None,
    directed: columns.Directed = None,
    unknown_nodes: columns.UnknownNodes = None,
    delimiter: columns.Delimiter = None,
    vectors: columns.Vector = None,
    label: columns.Label = None,
    split_column: columns.SplitColumn = None,
    memory: Annotated[str, typer.Option("--memory", help="Most memory to use, such as 3GB.", metavar="SIZE")] = "4GB",
    feature_type: Annotated[str, typer.Option("--feature-type", help="Dtype of the features.",
                                              metavar="float32|float16")] = "float32",
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:  # fmt: skip
    """Build a graph folder from two tables in bounded memory; `graphsage train FOLDER` reads the result.

    Edges are sorted on disk, beside FOLDER. Features are vectors as they are;
    columns that must be fitted (text, numbers, categories) are for `graphsage
    train --nodes --edges`, which reads the tables whole.

    \b
    Example:
      graphsage data build tables --nodes n.parquet --edges e.parquet --vectors x --memory 3GB --out graph
    """
    from graphsage.cli.output import print_json, row_progress, say

    if edges is None:
        raise ConfigError("a graph needs edges: give --edges FILE")
    check_free(out, overwrite)
    from graphsage.datasets.table_folder import build_large
    from graphsage.graph.external.size import parse_size
    from graphsage.tables.spec import TableSpec

    given = columns.table_values(None, None, edges=edges, nodes=nodes, id=id, source=source, target=target,
                                 directed=directed, unknown_nodes=unknown_nodes, delimiter=delimiter, vectors=vectors,
                                 label=label, split_column=split_column)  # fmt: skip
    with row_progress() as report:
        built = build_large(TableSpec.from_dict(given), out, memory=parse_size(memory, "--memory"),
                            feature_type=feature_type, report=report)  # fmt: skip
    if built.dropped:
        say(f"warning: {built.dropped:,} edges to unknown nodes are dropped")
    facts = {"nodes": built.nodes, "stored_edges": built.stored_edges, "features": built.features,
             "classes": built.classes}  # fmt: skip
    if json:
        print_json({**facts, "dropped_edges": built.dropped, "out": str(out)})
    else:
        told = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in facts.items())
        print(f"{told}\nwritten to {out}")
