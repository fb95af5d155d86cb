"""`graphsage embed` and `graphsage predict`: a model's results for all nodes, or for those in a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphsage.cli.options import Device, Inference, Json, Nodes, OtherData, Run

if TYPE_CHECKING:
    from torch import Tensor

    from graphsage.cli.opening import Opened


def embed_command(
    run: Run,
    out: Annotated[Path, typer.Option("--out", help="File to write: .parquet, .npy (ids go to .ids.json beside it), "
                                      ".csv or .txt (word2vec's format).", metavar="FILE", show_default=False)],
    data: OtherData = None,
    nodes: Nodes = None,
    inference: Inference = None,
    device: Device = "auto",
    json: Json = False,
) -> None:  # fmt: skip
    """Write the embeddings of nodes, also of nodes and graphs the model never saw.

    \b
    Examples:
      graphsage embed run --out z.parquet
      graphsage embed run new-graph --out z.npy
      echo pythag | graphsage embed run --nodes - --out z.csv
    """
    from graphsage.inference.export import check_suffix, embedding_columns, write_table

    check_suffix(out)
    opened, rows, z = _embedded(run, data, nodes, inference, device)
    made = write_table(out, embedding_columns(opened.graph, rows, z))
    _report("embeddings", made, opened, len(rows), json, dim=z.shape[1], inference=inference)


def predict_command(
    run: Run,
    out: Annotated[Path, typer.Option("--out", help="File to write: .parquet or .csv.", metavar="FILE",
                                      show_default=False)],
    data: OtherData = None,
    nodes: Nodes = None,
    inference: Inference = None,
    device: Device = "auto",
    json: Json = False,
) -> None:  # fmt: skip
    """Write the predicted class of nodes (or their labels) and the probability of every class.

    \b
    Examples:
      graphsage predict run --out p.parquet
      graphsage predict run new-graph --nodes ids.txt --out p.csv
    """
    from graphsage.inference.export import check_suffix, prediction_columns, write_table

    check_suffix(out, (".parquet", ".csv"))
    opened, rows, z = _embedded(run, data, nodes, inference, device, needs_head=True)
    probabilities = opened.model.probabilities(z)
    made = write_table(out, prediction_columns(opened.model, opened.graph, rows, probabilities))
    _report("predictions", made, opened, len(rows), json, classes=probabilities.shape[1], inference=inference)


def _embedded(
    run: Path, data: str | None, nodes: str | None, inference: str | None, device: str, needs_head: bool = False
) -> "tuple[Opened, Tensor, Tensor]":
    import torch

    from graphsage.cli.opening import open_run
    from graphsage.cli.output import block_progress

    opened = open_run(run, data, device)
    if needs_head:
        opened.model.probabilities(torch.zeros(0, opened.model.encoder.config.dim))  # refuses before the long work
    rows = opened.rows(nodes)
    with block_progress("embedding") as on_block:
        return opened, rows, opened.model.embed(opened.graph, None if nodes is None else rows, inference=inference,
                                                on_block=on_block)  # fmt: skip


def _report(what: str, made: list[Path], opened: "Opened", count: int, json: bool, inference: str | None,
            **shape: int) -> None:  # fmt: skip
    from graphsage.cli.output import print_json

    how = inference or opened.model.inference
    if json:
        print_json(
            {"nodes": count, **shape, "inference": how, "data": opened.spec, "files": [str(path) for path in made]}
        )
    else:
        print(f"{what} of {count:,} nodes ({how} inference): {', '.join(str(path) for path in reversed(made))}")
