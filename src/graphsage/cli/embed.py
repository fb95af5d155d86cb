"""`graphsage embed` and `graphsage predict`: a model's results for all nodes, or for those in a file."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphsage.cli.embed_blocks import Blocks, LayerDtype, Memory, Ray, ResumeDir, Workers
from graphsage.cli.options import (
    Device,
    Inference,
    Json,
    NewEdges,
    NewNodes,
    NewOnly,
    NodeIds,
    OtherData,
    Run,
)
from graphsage.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor

    from graphsage.graph.graph import Graph
    from graphsage.inference.model import Model


def embed_command(
    run: Run,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            help="File to write: .parquet, .npy (ids go to .ids.json beside it), .csv or .txt (word2vec's format).",
            metavar="FILE",
            show_default=False,
        ),
    ],
    data: OtherData = None,
    node_ids: NodeIds = None,
    new_nodes: NewNodes = None,
    new_edges: NewEdges = None,
    new_only: NewOnly = False,
    with_label: Annotated[
        bool, typer.Option("--with-label", help="A column with the true class, where known.")
    ] = False,
    with_prediction: Annotated[
        bool, typer.Option("--with-prediction", help="A column with the predicted class.")
    ] = False,
    inference: Inference = None,
    memory: Memory = None,
    workers: Workers = None,
    ray: Ray = None,
    layer_dtype: LayerDtype = None,
    resume_dir: ResumeDir = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Write the embeddings of nodes, also of nodes and graphs the model never saw.

    \b
    Examples:
      graphsage embed run --out z.parquet
      graphsage embed run new-graph --out z.npy
      echo pythag | graphsage embed run --node-ids - --out z.csv
      graphsage embed run --new-nodes new.csv --new-edges new_edges.csv --out z.parquet
      graphsage embed run --with-label --with-prediction --out z.parquet
      graphsage embed run large-graph --memory 4GB --out z.npy
    """
    from graphsage.inference.export import check_suffix, decided_column, embedding_columns, label_column, write_table

    check_suffix(out, (".parquet", ".csv") if with_label or with_prediction else None)
    asked = Asked(run, data, node_ids, new_nodes, new_edges, new_only)
    blocks = Blocks(memory, workers, ray, layer_dtype, resume_dir)
    if blocks.asked():
        blocks.refuse_with(
            {
                "--node-ids": node_ids,
                "--new-nodes": new_nodes,
                "--new-edges": new_edges,
                "--new-only": new_only,
                "--inference sampled": inference == "sampled",
                f"--device {device}": device not in ("auto", "cpu"),
            }
        )
        _embed_in_blocks(asked, blocks, out, with_label, with_prediction, json)
        return
    found = _embedded(asked, inference, device, needs_head=with_prediction)
    columns = embedding_columns(found.graph, found.rows, found.z)
    if with_label:
        columns["label"] = label_column(found.graph, found.rows)
    if with_prediction:
        columns["prediction"] = decided_column(found.model, found.model.probabilities(found.z))
    made = write_table(out, columns)
    _report("embeddings", made, found, json, dim=found.z.shape[1], inference=inference)


def _embed_in_blocks(
    asked: "Asked", blocks: Blocks, out: Path, with_label: bool, with_prediction: bool, json: bool
) -> None:
    import shutil

    import torch

    from graphsage.cli.embed_blocks import embed
    from graphsage.cli.opening import open_run
    from graphsage.cli.output import block_progress, print_json
    from graphsage.inference.export import label_column, write_batches
    from graphsage.inference.out_of_core.embed import embedding_batches

    opened = open_run(asked.run, asked.data, "cpu")
    if with_prediction:
        opened.model.probabilities(torch.zeros(0, opened.model.encoder.config.dim))  # refuses before the long work
    if with_label:
        label_column(opened.graph, torch.zeros(0, dtype=torch.int64))
    work = blocks.resume_dir or out.with_name(f"{out.name}.work")
    found = embed(opened, blocks, work)
    with block_progress("writing") as on_block:
        batches = embedding_batches(
            found, opened.graph, opened.model if with_prediction else None, with_label=with_label, on_block=on_block
        )
        made = write_batches(out, batches, found.num_nodes)
    if blocks.resume_dir is None:
        shutil.rmtree(work)
    if json:
        print_json(
            {
                "nodes": found.num_nodes,
                "dim": found.dim,
                "inference": "exact",
                "data": opened.spec,
                "blocks": found.blocks,
                "files": [str(path) for path in made],
            }
        )
    else:
        files = ", ".join(str(path) for path in reversed(made))
        print(f"embeddings of {found.num_nodes:,} nodes (exact inference in {found.blocks:,} blocks): {files}")


def predict_command(
    run: Run,
    out: Annotated[
        Path, typer.Option("--out", help="File to write: .parquet or .csv.", metavar="FILE", show_default=False)
    ],
    data: OtherData = None,
    node_ids: NodeIds = None,
    new_nodes: NewNodes = None,
    new_edges: NewEdges = None,
    new_only: NewOnly = False,
    inference: Inference = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Write the predicted class of nodes (or their labels) and the probability of every class.

    \b
    Examples:
      graphsage predict run --out p.parquet
      graphsage predict run new-graph --node-ids ids.txt --out p.csv
      graphsage predict run --new-nodes new.csv --new-edges new_edges.csv --out p.csv
    """
    from graphsage.inference.export import check_suffix, prediction_columns, write_table

    check_suffix(out, (".parquet", ".csv"))
    asked = Asked(run, data, node_ids, new_nodes, new_edges, new_only)
    found = _embedded(asked, inference, device, needs_head=True)
    probabilities = found.model.probabilities(found.z)
    made = write_table(out, prediction_columns(found.model, found.graph, found.rows, probabilities))
    _report("predictions", made, found, json, classes=probabilities.shape[1], inference=inference)


@dataclass(frozen=True)
class Asked:
    """Which nodes of which graph a person wants."""

    run: Path
    data: str | None
    node_ids: str | None
    new_nodes: str | None
    new_edges: str | None
    new_only: bool

    def __post_init__(self) -> None:
        if self.new_only and self.new_nodes is None:
            raise ConfigError("--new-only makes a graph of the new rows; give --new-nodes")
        if self.node_ids is not None and self.new_nodes is not None:
            raise ConfigError("--node-ids chooses old nodes and --new-nodes gives new ones; give one of them")


@dataclass(frozen=True)
class Answered:
    """Vectors `z` of `rows` of a graph; `spec` is what the person calls the graph."""

    model: "Model"
    graph: "Graph"
    spec: str
    rows: "Tensor"
    z: "Tensor"


def _embedded(asked: Asked, inference: str | None, device: str, needs_head: bool = False) -> Answered:
    import torch

    from graphsage.cli.opening import load_run, open_run
    from graphsage.cli.output import block_progress

    graph: Graph | None = None
    if asked.new_only:
        model, spec = load_run(asked.run, device), str(asked.new_nodes)
    else:
        opened = open_run(asked.run, asked.data, device)
        model, graph, spec = opened.model, opened.graph, opened.spec
    if needs_head:
        model.probabilities(torch.zeros(0, model.encoder.config.dim))  # refuses before the long work
    rows: Tensor | None = None if asked.node_ids is None else opened.rows(asked.node_ids)
    if asked.new_nodes is not None or asked.new_edges is not None:
        graph, new = _grown(model, graph, asked)
        rows = rows if asked.new_nodes is None else new
    assert graph is not None
    with block_progress("embedding") as on_block:
        z = model.embed(graph, rows, inference=inference, on_block=on_block)
    return Answered(model, graph, spec, torch.arange(graph.num_nodes) if rows is None else rows, z)


def _grown(model: "Model", graph: "Graph | None", asked: Asked) -> "tuple[Graph, Tensor]":
    """The graph with new rows attached, and where the new nodes are."""
    import warnings

    from graphsage.cli.output import say, working

    with working("reading new rows"), warnings.catch_warnings(record=True) as remarks:
        warnings.simplefilter("always")
        attached = model.attach(graph, asked.new_nodes, asked.new_edges)
    for remark in remarks:
        say(f"warning: {remark.message}")
    if attached.dropped_edges:
        say(f"warning: {attached.dropped_edges:,} new edges to unknown nodes are dropped")
    return attached.graph, attached.rows


def _report(what: str, made: list[Path], found: Answered, json: bool, inference: str | None, **shape: int) -> None:
    from graphsage.cli.output import print_json

    how, count = inference or found.model.inference, len(found.rows)
    if json:
        print_json(
            {"nodes": count, **shape, "inference": how, "data": found.spec, "files": [str(path) for path in made]}
        )
    else:
        print(f"{what} of {count:,} nodes ({how} inference): {', '.join(str(path) for path in reversed(made))}")
