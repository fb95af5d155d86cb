"""`graphsage embed` and `graphsage predict`: results for all nodes, for chosen ones, or for new rows."""

import filecmp
import functools
import inspect
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphsage.cli.options import (
    AsOf,
    Device,
    Inference,
    Json,
    NewEdges,
    NewNodes,
    NewOnly,
    NewVectors,
    NodeIds,
    OtherData,
    Run,
    option,
)
from graphsage.cli.output import block_progress, print_json, say, working
from graphsage.cli.runs import Opened, load_run, open_run
from graphsage.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor

    from graphsage.graph.graph import Graph
    from graphsage.inference.model import Model
    from graphsage.inference.out_of_core.embed import Embedded

PANEL = "Graphs larger than memory"


_option = partial(option, rich_help_panel=PANEL)


@dataclass(frozen=True)
class Nodes:
    """The nodes of a command line, and the graph they are in. Its fields are options."""

    run: Run
    data: OtherData = None
    node_ids: NodeIds = None
    new_nodes: NewNodes = None
    new_edges: NewEdges = None
    new_vectors: NewVectors = None
    new_only: NewOnly = False
    as_of: AsOf = None

    def __post_init__(self) -> None:
        if self.new_only and self.new_nodes is None:
            raise ConfigError("--new-only makes a graph of the new rows; give --new-nodes")
        if self.new_only and self.data is not None:
            raise ConfigError(f"--new-only makes a graph of the new rows alone; leave DATA ({self.data}) out")
        if self.new_vectors is not None and self.new_nodes is None:
            raise ConfigError("--new-vectors describe new nodes; give --new-nodes too")
        if self.node_ids is not None and self.new_nodes is not None:
            raise ConfigError("--node-ids chooses old nodes and --new-nodes gives new ones; give one of them")


def _with_nodes(command: Callable[..., None]) -> Callable[..., None]:
    """Replace a command's parameter `nodes` by the fields of `Nodes`."""
    fields = inspect.signature(Nodes).parameters

    @functools.wraps(command)
    def run(**options: Any) -> None:
        command(nodes=Nodes(**{name: options.pop(name) for name in fields}), **options)

    _, out, *own = inspect.signature(command).parameters.values()
    parameters = [
        each.replace(kind=each.KEYWORD_ONLY) for each in (fields["run"], out, *list(fields.values())[1:], *own)
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


@_with_nodes
def embed_command(
    nodes: Nodes,
    out: Annotated[
        Path,
        option(
            "--out",
            "File to write: .parquet, .npy (with the ids in FILE.ids.json), .csv, or .txt in word2vec's format.",
            "FILE",
        ),
    ],
    with_label: Annotated[bool, typer.Option("--with-label", help="Add a column with the true class.")] = False,
    with_prediction: Annotated[
        bool, typer.Option("--with-prediction", help="Add a column with the predicted class.")
    ] = False,
    keep_features: Annotated[
        bool | None,
        option("--keep-features/--no-keep-features", "Append the scaled features.", default="as trained"),
    ] = None,
    inference: Inference = None,
    memory: Annotated[
        str | None,
        _option("--memory", "Embed all nodes in blocks, with at most this memory per machine, such as 4GB.", "SIZE"),
    ] = None,
    workers: Annotated[int | None, _option("--workers", "Processes that share the memory.", "N", "1")] = None,
    ray: Annotated[
        str | None,
        _option("--ray", "Ray cluster that computes the blocks; local starts one here.", "ADDRESS|auto|local"),
    ] = None,
    layer_dtype: Annotated[
        str | None, _option("--layer-dtype", "Dtype of intermediate layers on disk.", "float32|float16", "float32")
    ] = None,
    resume_dir: Annotated[
        Path | None,
        _option("--resume-dir", "Folder for finished blocks; the same command resumes there.", "FOLDER", "FILE.work"),
    ] = None,
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
      graphsage embed run --keep-features --out z.parquet
      graphsage embed run large-graph --memory 4GB --out z.npy
    """
    from graphsage.inference.export import check_suffix, decided_column, embedding_columns, label_column, write_table

    check_suffix(out, (".parquet", ".csv") if with_label or with_prediction else None)
    blocks = {"--workers": workers, "--ray": ray, "--layer-dtype": layer_dtype, "--resume-dir": resume_dir}
    if memory is None:
        for flag, value in blocks.items():
            if value is not None:
                raise ConfigError(f"{flag} needs --memory, the limit for inference in blocks, such as --memory 4GB")
        found = _embedded(nodes, inference, device, needs_head=with_prediction, keep_features=keep_features)
        columns = embedding_columns(found.graph, found.rows, found.z)
        if with_label:
            columns["label"] = label_column(found.graph, found.rows)
        if with_prediction:
            columns["prediction"] = decided_column(found.model, found.z)
        _report("embeddings", write_table(out, columns), found, json, dim=found.z.shape[1], inference=inference)
        return
    for flag, value in {
        "--node-ids": nodes.node_ids,
        "--new-nodes": nodes.new_nodes,
        "--new-edges": nodes.new_edges,
        "--new-vectors": nodes.new_vectors is not None,
        "--as-of": nodes.as_of,
        "--inference sampled": inference == "sampled",
        f"--device {device}": device not in ("auto", "cpu"),
    }.items():
        if value:
            raise ConfigError(f"--memory embeds all nodes on CPUs by exact inference; leave {flag} out")
    _embed_in_blocks(
        nodes, out, memory, workers, ray, layer_dtype, resume_dir, with_label, with_prediction, keep_features, json
    )


@_with_nodes
def predict_command(
    nodes: Nodes,
    out: Annotated[Path, option("--out", "File to write: .parquet or .csv.", "FILE")],
    inference: Inference = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Write the predicted class (or labels) of nodes and the probability of every class, or the predicted numbers.

    \b
    Examples:
      graphsage predict run --out p.parquet
      graphsage predict run new-graph --node-ids ids.txt --out p.csv
      graphsage predict run --new-nodes new.csv --new-edges new_edges.csv --out p.csv
    """
    from graphsage.inference.export import check_suffix, prediction_columns, write_table

    check_suffix(out, (".parquet", ".csv"))
    found = _embedded(nodes, inference, device, needs_head=True)
    made = write_table(out, prediction_columns(found.model, found.graph, found.rows, found.z))
    head, kind = found.model.head, "targets" if found.model.regression else "classes"
    shape = {} if head is None else {kind: head.linear.out_features}
    _report("predictions", made, found, json, **shape, inference=inference)


@dataclass(frozen=True)
class Result:
    """Embeddings `z` of `rows` of a graph; `spec` is the graph's name on the command line."""

    model: "Model"
    graph: "Graph"
    spec: str
    rows: "Tensor"
    z: "Tensor"


def _embedded(
    nodes: Nodes, inference: str | None, device: str, *, needs_head: bool, keep_features: bool | None = None
) -> Result:
    import torch

    graph: Graph | None = None
    if nodes.new_only:
        model, spec = load_run(nodes.run, device), str(nodes.new_nodes)
    else:
        opened = open_run(nodes.run, nodes.data, device)
        model, graph, spec = opened.model, opened.graph, opened.spec
    if needs_head:
        _check_head(model)
    rows: Tensor | None = None if nodes.node_ids is None else opened.rows(nodes.node_ids)
    if nodes.new_nodes is not None or nodes.new_edges is not None:
        graph, new = _attached(model, graph, nodes)
        rows = rows if nodes.new_nodes is None else new
    assert graph is not None
    with block_progress("embedding") as on_block:
        z = model.embed(
            graph, rows, inference=inference, keep_features=keep_features, as_of=nodes.as_of, on_block=on_block
        )
    return Result(model, graph, spec, torch.arange(graph.num_nodes) if rows is None else rows, z)


def _check_head(model: "Model") -> None:
    """Refuse a model without classes before the long work."""
    import torch

    model.outputs(torch.zeros(0, model.encoder.config.dim))


def _attached(model: "Model", graph: "Graph | None", nodes: Nodes) -> "tuple[Graph, Tensor]":
    """The graph with the new rows, and the rows of the new nodes."""
    with working("reading new rows"):
        attached = model.attach(graph, nodes.new_nodes, nodes.new_edges, nodes.new_vectors)
    if attached.dropped_edges:
        say(f"warning: {attached.dropped_edges:,} new edges to unknown nodes are dropped")
    return attached.graph, attached.rows


def _report(what: str, files: list[Path], found: Result, json: bool, inference: str | None, **shape: int) -> None:
    how, count = inference or found.model.inference, len(found.rows)
    if json:
        print_json({"nodes": count, **shape, "inference": how, "data": found.spec, "files": list(map(str, files))})
    else:
        print(f"{what} of {count:,} nodes ({how} inference): {', '.join(map(str, reversed(files)))}")


def _embed_in_blocks(
    nodes: Nodes,
    out: Path,
    memory: str,
    workers: int | None,
    ray: str | None,
    layer_dtype: str | None,
    resume_dir: Path | None,
    with_label: bool,
    with_prediction: bool,
    keep_features: bool | None,
    json: bool,
) -> None:
    """Embed a whole graph in bounded memory. The same command continues an interrupted one."""
    import torch

    from graphsage.cluster.executors import executor_for
    from graphsage.graph.external.size import parse_size
    from graphsage.inference.export import label_column, write_batches
    from graphsage.inference.out_of_core.embed import embed_in_blocks, embedding_batches

    opened = open_run(nodes.run, nodes.data, "cpu")
    if with_prediction:
        _check_head(opened.model)
    if with_label:
        label_column(opened.graph, torch.zeros(0, dtype=torch.int64))
    work = resume_dir or out.with_name(f"{out.name}.work")
    size, count = parse_size(memory, "--memory"), 1 if workers is None else workers
    with executor_for(ray, count, size, say) as executor, block_progress("embedding") as on_block:
        found = embed_in_blocks(
            opened.model,
            _graph_folder(opened, work),
            work,
            memory=size,
            workers=count,
            layer_dtype=layer_dtype or "float32",
            executor=executor,
            on_block=on_block,
            capped=None if opened.stored is None else opened.stored.capped_folder,
        )
    _say_resumed(found, work)
    with block_progress("writing") as on_block:
        model = opened.model if with_prediction else None
        kept_by = opened.model if (opened.model.keep_features if keep_features is None else keep_features) else None
        batches = embedding_batches(
            found, opened.graph, model, with_label=with_label, kept_by=kept_by, on_block=on_block
        )
        made = write_batches(out, batches, found.num_nodes)
    if resume_dir is None:
        shutil.rmtree(work)
    if json:
        dim = found.dim + (0 if kept_by is None else kept_by.encoder.in_dim)
        facts = {"nodes": found.num_nodes, "dim": dim, "inference": "exact", "data": opened.spec}
        print_json({**facts, "blocks": found.blocks, "files": list(map(str, made))})
    else:
        files = ", ".join(map(str, reversed(made)))
        print(f"embeddings of {found.num_nodes:,} nodes (exact inference in {found.blocks:,} blocks): {files}")


def _say_resumed(found: "Embedded", work: Path) -> None:
    if found.kept:
        say(f"resumed in {work}: {found.kept:,} of {found.blocks:,} blocks were finished")
    if found.damaged:
        say(f"warning: {found.damaged:,} blocks in {work} were damaged and computed again")


def _graph_folder(opened: "Opened", work: Path) -> Path:
    """The graph's folder on disk; a graph in memory is saved in `work`."""
    if opened.stored is not None and opened.stored.graph_folder is not None:
        return opened.stored.graph_folder
    if opened.model.features is None and (Path(opened.spec) / "graph.json").is_file():
        return Path(opened.spec)
    folder, fresh = work / "graph", work / "graph.new"
    opened.graph.save(fresh)
    if folder.exists() and all(
        (folder / file.name).exists() and filecmp.cmp(file, folder / file.name, shallow=False)
        for file in fresh.iterdir()
    ):
        shutil.rmtree(fresh)  # the old files keep their modification times, which identify the work
    else:
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
    return folder
