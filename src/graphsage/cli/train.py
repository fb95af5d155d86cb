"""`graphsage train`: learn an encoder from the training part of a graph."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphsage.cli import table_options as t
from graphsage.cli import training_run
from graphsage.cli.options import Device, Json
from graphsage.cli.run_folder import RunFolder
from graphsage.errors import ConfigError

if TYPE_CHECKING:
    from graphsage.cli.settings import Settings

MODEL, SAMPLING, LEARNING, FEATURES, RANKS = "Model", "Neighborhoods", "Learning", "Features", "Several processes"


def _option(*names: str, help: str, panel: str, default: str | None = None, metavar: str | None = None) -> Any:
    shown: str | bool = False if default is None else default
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=shown, metavar=metavar)


def command(
    context: typer.Context,
    data: Annotated[str | None, typer.Argument(
        help="A built-in name (setmm), or a path in any format that `graphsage data list` names: a graph folder, a "
             "GraphSAGE release prefix such as data/ppi, PyG's PPI folder and more.",
        metavar="DATA", show_default=False)] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the run: model, graph, checkpoint, log.",
                                             metavar="RUN", show_default="runs/DATA-AGGREGATOR-SEED")] = None,
    split: Annotated[str | None, typer.Option(
        "--split", help="Which of the data's splits; random and time work for most data.", metavar="NAME",
        show_default="the data's own")] = None,
    config: Annotated[Path | None, typer.Option("--config", help="TOML file of settings; flags override it.",
                                                metavar="FILE", show_default=False)] = None,
    settings: Annotated[list[str] | None, typer.Option(
        "--set", metavar="NAME=VALUE", show_default=False,
        help="Any setting by its name, also the rare ones: combine, normalize, last_activation, cap, redraw, clip, "
             "bias, depth, num_walks, walk_length, num_negatives. May be repeated.")] = None,
    resume: Annotated[bool, typer.Option("--resume",
                                         help="Continue the run in RUN; its settings are remembered.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in RUN.")] = False,
    keep_graph: Annotated[bool | None, typer.Option(
        "--keep-graph/--no-keep-graph", show_default="up to 2 GiB",
        help="Copy the graph into RUN, or keep only its path and a fingerprint.")] = None,
    device: Device = "auto",
    json: Json = False,
    task: Annotated[str | None, _option("--task", help="supervised (classes), unsupervised (the graph itself) or "
                                        "joint (both).", panel=LEARNING, default="supervised", metavar="TASK")] = None,
    epochs: Annotated[int | None, _option("--epochs", help="Passes over the training nodes (or pairs).", panel=LEARNING,
                                          default="10; unsupervised 1")] = None,
    steps: Annotated[int | None, _option("--steps", help="Stop after this many steps instead.", panel=LEARNING)] = None,
    batch_size: Annotated[int | None, _option("--batch-size", help="Targets in a step, of all workers together.",
                                              panel=LEARNING, default="512")] = None,
    lr: Annotated[float | None, _option("--lr", help="Adam's learning rate.", panel=LEARNING,
                                        default="0.01; joint 0.001; unsupervised 0.0001")] = None,
    dropout: Annotated[float | None, _option("--dropout", help="Share of hidden values zeroed in training.",
                                             panel=LEARNING, default="0")] = None,
    weight_decay: Annotated[float | None, _option("--weight-decay", help="L2 penalty on the weights.", panel=LEARNING,
                                                  default="0")] = None,
    patience: Annotated[int | None, _option("--patience", help="Stop after this many epochs without a better "
                                            "validation F1 and keep the best weights.", panel=LEARNING,
                                            default="never")] = None,
    supervised_weight: Annotated[float | None, _option("--supervised-weight", panel=LEARNING, default="1",
                                                       help="Weight of the class loss in the joint task.")] = None,
    negatives_per_pair: Annotated[bool | None, _option("--negatives-per-pair", panel=LEARNING,
                                                       help="Draw negatives for each pair, not once a batch.")] = None,
    seed: Annotated[int | None, _option("--seed", help="The same seed gives the same model.", panel=LEARNING,
                                        default="0")] = None,
    aggregator: Annotated[str | None, _option("--aggregator", help="How neighbors are summed up: mean, gcn, lstm, pool "
                                              "or meanpool.", panel=MODEL, default="mean", metavar="NAME")] = None,
    form: Annotated[str | None, _option("--form", help="paper (its text) or reference (what the authors' code does).",
                                        panel=MODEL, default="paper", metavar="FORM")] = None,
    dim: Annotated[int | None, _option("--dim", help="Width of the embeddings.", panel=MODEL, default="256")] = None,
    hidden_dim: Annotated[int | None, _option("--hidden-dim", help="Width inside pool and LSTM aggregators.",
                                              panel=MODEL, default="pool 512, LSTM 128")] = None,
    head_scale: Annotated[bool | None, _option("--head-scale", panel=MODEL,
                                               help="Learn one factor for all class scores; helps small data.")] = None,
    inference: Annotated[str | None, _option("--inference", help="How the model embeds later: exact (from all "
                                             "neighbors) or sampled.", panel=MODEL, metavar="KIND",
                                             default="exact")] = None,
    sample_sizes: Annotated[str | None, _option("--sample-sizes", help="Neighbors drawn in each layer, S_1 first; the "
                                                "last are a node's direct neighbors. As many numbers as layers.",
                                                panel=SAMPLING, default="25,10", metavar="S1,S2")] = None,
    max_degree: Annotated[str | None, _option("--max-degree", help="Nodes keep at most this many neighbors; none keeps "
                                              "all.", panel=SAMPLING, default="128", metavar="N|none")] = None,
    identity_dim: Annotated[int | None, _option("--identity-dim", help="Width of a learned vector for each node; such "
                                                "a model knows only its training graph.", panel=FEATURES,
                                                default="0")] = None,
    degree_features: Annotated[bool | None, _option("--degree-features", panel=FEATURES,
                                                    help="Add the node's degree to its features; done anyway for a "
                                                    "graph without features.")] = None,
    no_standardize: Annotated[bool | None, _option("--no-standardize", panel=FEATURES,
                                                   help="Take features as they are, not shifted and scaled.")] = None,
    workers: Annotated[int | None, _option("--workers", panel=RANKS, default="1", metavar="N",
                                           help="Processes that share every step, on this machine; each maps the same "
                                           "graph folder. The model does not depend on their number.")] = None,
    max_restarts: Annotated[int, typer.Option("--max-restarts", rich_help_panel=RANKS, min=0, metavar="N",
                                              help="Begin again from the last checkpoint when a worker dies, so often "
                                              "at most.")] = 3,
    rank_timeout: Annotated[float, typer.Option("--rank-timeout", rich_help_panel=RANKS, metavar="SECONDS",
                                                help="Stop when a worker gives no answer for so long.")] = 600.0,
    nodes: t.NodeTable = None, edges: t.EdgeTable = None, id: t.Id = None, source: t.Source = None,
    target: t.Target = None, directed: t.Directed = None, unknown_nodes: t.UnknownNodes = None,
    delimiter: t.Delimiter = None, label: t.Label = None, text: t.Text = None, text_method: t.TextMethod = None,
    text_model: t.TextModel = None, text_dim: t.TextDim = None, numeric: t.Number = None,
    log_numeric: t.LogNumber = None, categorical: t.Category = None, date: t.Day = None, vectors: t.Vector = None,
    time: t.Time = None, edge_time: t.EdgeTime = None, time_order: t.TimeOrder = None,
    train_until: t.TrainUntil = None, val_until: t.ValUntil = None, split_column: t.SplitColumn = None,
    fractions: t.Fractions = None,
) -> None:  # fmt: skip
    """Train a model on DATA, or on two tables, and keep it in RUN.

    Only the training part of the split is seen, with the edges among its nodes.
    Ctrl-C stops after the current step; --resume continues to the same bits.

    \b
    Examples:
      graphsage train setmm --out run
      graphsage train data/ppi --out run --aggregator pool --patience 5
      graphsage train setmm --out run --task unsupervised --steps 2000
      graphsage train setmm --out run --form reference --set clip=1.0
      graphsage train --out run --resume --epochs 20
      graphsage train --nodes nodes.csv --edges edges.csv --label section --text description --out run
      graphsage train data/ppi --out run --workers 4
      torchrun --nnodes 2 --nproc-per-node 4 ... -m graphsage train folder --out run
    """
    from graphsage.cli import settings as reading

    tables = t.table_values(
        time_order, fractions, nodes=nodes, edges=edges, id=id, source=source, target=target, directed=directed,
        unknown_nodes=unknown_nodes, delimiter=delimiter, label=label, text=text, text_method=text_method,
        text_model=text_model, text_dim=text_dim, numeric=numeric, log_numeric=log_numeric, categorical=categorical,
        dates=date, vectors=vectors, time=time, edge_time=edge_time, train_until=train_until, val_until=val_until,
        split_column=split_column,
    )  # fmt: skip
    if data is not None and tables:
        raise ConfigError(f"give DATA ({data}) or tables (--{next(iter(tables))}), not both")
    given = reading.Settings({}, data, split, tables)
    flags = reading.from_flags(
        task=task, form=form, aggregator=aggregator, sample_sizes=sample_sizes, dim=dim, hidden_dim=hidden_dim,
        epochs=epochs, steps=steps, batch_size=batch_size, lr=lr, dropout=dropout, head_scale=head_scale,
        weight_decay=weight_decay, patience=patience, max_degree=max_degree, identity_dim=identity_dim,
        degree_features=degree_features, standardize=False if no_standardize else None, inference=inference,
        negatives_per_pair=negatives_per_pair, supervised_weight=supervised_weight, seed=seed,
    )  # fmt: skip
    chosen = reading.Settings({})
    if resume and out is None:
        raise ConfigError("--resume needs to know which run: give its folder with --out RUN")
    if resume and out is not None and (out / reading.RUN_FILE).exists():
        chosen = reading.from_file(out / reading.RUN_FILE)
    if config is not None:
        chosen = chosen.followed_by(reading.from_file(config))
    chosen = chosen.followed_by(reading.from_pairs(settings or [])).followed_by(flags).followed_by(given)
    out = out or _default_place(chosen)
    asked = training_run.Asked(RunFolder(out, resume, overwrite), chosen, device, json, rank_timeout, keep_graph)
    if workers is not None and training_run.launches(workers):
        training_run.check(asked)
        raise typer.Exit(training_run.launch(asked, context.find_root().obj, workers, max_restarts))
    training_run.run(asked)


def _default_place(chosen: "Settings") -> Path:
    config = chosen.config()
    data = chosen.data or str(chosen.tables.get("nodes") or chosen.tables.get("edges") or "run")
    return Path("runs") / f"{Path(data).name.split('.')[0]}-{config.aggregator}-{config.seed}"
