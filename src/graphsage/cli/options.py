"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Device = Annotated[str, typer.Option("--device", help="Where to compute.", metavar="auto|cpu|cuda")]
Inference = Annotated[
    str | None,
    typer.Option(
        "--inference",
        help="From all neighbors or from a sample.",
        metavar="exact|sampled",
        show_default="the model's own",
    ),
]
Run = Annotated[Path, typer.Argument(help="Folder that `graphsage train` wrote.", metavar="RUN", show_default=False)]
OtherData = Annotated[
    str | None,
    typer.Argument(help="Data to use, also data the model never saw.", metavar="DATA", show_default="the run's own"),
]
NodeIds = Annotated[
    str | None,
    typer.Option(
        "--node-ids", help="File with one node id per line; - reads stdin.", metavar="FILE", show_default="all nodes"
    ),
]
NewNodes = Annotated[
    str | None,
    typer.Option(
        "--new-nodes",
        help="Table of nodes that arrived after training; only they are written.",
        metavar="FILE",
        show_default=False,
    ),
]
NewEdges = Annotated[
    str | None,
    typer.Option(
        "--new-edges",
        help="Table of their edges, to old nodes and among themselves.",
        metavar="FILE",
        show_default=False,
    ),
]
NewOnly = Annotated[bool, typer.Option("--new-only", help="Make a graph of the new rows only.")]
Part = Annotated[
    str, typer.Option("--part", help="Nodes of one part of the split, or all.", metavar="test|val|train|all")
]

RENAMED = {
    "train": {"--date": "--dates"},
    "embed": {
        "--alone": "--new-only",
        "--nodes": "--node-ids",
        "--store": "--layer-dtype",
        "--work": "--resume-dir",
        "--graph": "the argument DATA",
    },
    "predict": {"--alone": "--new-only", "--nodes": "--node-ids", "--graph": "the argument DATA"},
    "evaluate": {"--split-name": "--split"},
    "plot": {"--split": "--part"},
    "plan": {"--nodes": "--num-nodes", "--edges": "--num-edges", "--width": "--dim", "--precision": "--feature-type"},
    "serve": {"--keys": "--api-keys"},
    "reddit": {"--vectors": "--text-model"},
    "citation": {"--dim": "--text-dim"},
}
"""Options that a command had under another name: one name means one thing in all commands."""
