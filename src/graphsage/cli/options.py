"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Device = Annotated[str, typer.Option("--device", help="Where to compute.", metavar="auto|cpu|cuda")]
Inference = Annotated[
    str | None,
    typer.Option("--inference", help="From all neighbors or from a sample.", metavar="exact|sampled",
                 show_default="the model's own"),
]  # fmt: skip
Run = Annotated[Path, typer.Argument(help="Folder that `graphsage train` wrote.", metavar="RUN", show_default=False)]
OtherData = Annotated[
    str | None,
    typer.Argument(help="Data to use, also data the model never saw.", metavar="DATA", show_default="the run's own"),
]
Nodes = Annotated[
    str | None,
    typer.Option(
        "--nodes", help="File with one node id a line; - reads stdin.", metavar="FILE", show_default="all nodes"
    ),
]
NewNodes = Annotated[
    str | None,
    typer.Option("--new-nodes", help="Table of nodes that arrived after training; only they are written.",
                 metavar="FILE", show_default=False),
]  # fmt: skip
NewEdges = Annotated[
    str | None,
    typer.Option("--new-edges", help="Table of their edges, to old nodes and among themselves.", metavar="FILE",
                 show_default=False),
]  # fmt: skip
OtherGraph = Annotated[
    str | None,
    typer.Option("--graph", help="Attach the new rows to this graph; the same as DATA.", metavar="DATA",
                 show_default="the run's own"),
]  # fmt: skip
Alone = Annotated[bool, typer.Option("--alone", help="The new rows are a whole graph of their own.")]
