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
    typer.Argument(help="Data to use, also data the model never saw.", metavar="[DATA]", show_default="the run's own"),
]
Nodes = Annotated[
    str | None,
    typer.Option(
        "--nodes", help="File with one node id a line; - reads stdin.", metavar="FILE", show_default="all nodes"
    ),
]
