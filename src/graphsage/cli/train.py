"""`graphsage train`: learn an encoder from the training part of a graph."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphsage.cli import training_run
from graphsage.cli.options import Device, Json
from graphsage.cli.run_folder import RunFolder
from graphsage.cli.setting_options import converted, option_name, shown_by, with_settings
from graphsage.cli.table_options import with_tables
from graphsage.errors import ConfigError
from graphsage.tables.spec import TableSpec
from graphsage.training.config import CHOICES, FORMS, TASKS, Config

if TYPE_CHECKING:
    from graphsage.cli.settings import Settings

RANKS = "Several processes"
PANELS = {
    "Model": (
        "form",
        "aggregator",
        "num_layers",
        "dim",
        "hidden_dim",
        "depth",
        "combine",
        "normalize",
        "last_activation",
        "bias",
        "head_scale",
        "inference",
    ),
    "Neighborhoods": ("sample_sizes", "max_degree", "cap", "redraw"),
    "Features": ("identity_dim", "degree_features", "standardize", "feature_type"),
    "Random walks (unsupervised and joint)": (
        "num_walks",
        "walk_length",
        "num_negatives",
        "negatives_per_pair",
        "supervised_weight",
    ),
}


@with_settings(Config, PANELS, rest="Learning", choices=CHOICES, defaults=shown_by(FORMS) | shown_by(TASKS))
@with_tables()
def command(
    context: typer.Context,
    data: Annotated[
        str | None,
        typer.Argument(
            help="A built-in name (setmm), or a path in any format that `graphsage data list` names: a graph folder, a "
            "GraphSAGE release prefix such as data/ppi, PyG's PPI folder and more.",
            metavar="DATA",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Folder for the run: model, graph, checkpoint, log.",
            metavar="RUN",
            show_default="runs/DATA-AGGREGATOR-SEED",
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            "--split",
            help="Which of the data's splits; random and time work for most data.",
            metavar="NAME",
            show_default="the data's own",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", help="TOML file of settings; flags override it.", metavar="FILE", show_default=False),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            show_default=False,
            help="A setting by its name in the files of --config, such as max_degree=none. May be repeated.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in RUN; its settings are remembered.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in RUN.")] = False,
    keep_graph: Annotated[
        bool | None,
        typer.Option(
            "--keep-graph/--no-keep-graph",
            show_default="up to 2 GiB",
            help="Copy the graph into RUN, or keep only its path and a fingerprint.",
        ),
    ] = None,
    device: Device = "auto",
    json: Json = False,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            rich_help_panel=RANKS,
            show_default="1",
            metavar="N",
            help="Processes on this machine that share every step. The model does not depend on their number.",
        ),
    ] = None,
    max_restarts: Annotated[
        int,
        typer.Option(
            "--max-restarts",
            rich_help_panel=RANKS,
            min=0,
            metavar="N",
            help="Maximum restarts from the last checkpoint when a worker dies.",
        ),
    ] = 3,
    rank_timeout: Annotated[
        float,
        typer.Option(
            "--rank-timeout",
            rich_help_panel=RANKS,
            metavar="SECONDS",
            help="Stop when a worker does not answer for this long.",
        ),
    ] = 600.0,
    **options: Any,
) -> None:
    """Train a model on DATA, or on two tables, and keep it in RUN.

    Only the training part of the split is seen, with the edges among its nodes.
    Ctrl-C stops after the current step; --resume continues to the same bits.

    \b
    Examples:
      graphsage train setmm --out run
      graphsage train data/ppi --out run --aggregator pool --patience 5
      graphsage train setmm --out run --task unsupervised --steps 2000
      graphsage train setmm --out run --form reference --clip 1.0
      graphsage train --out run --resume --epochs 20
      graphsage train --nodes nodes.csv --edges edges.csv --label section --text description --out run
      graphsage train data/ppi --out run --workers 4
      torchrun --nnodes 2 --nproc-per-node 4 ... -m graphsage train folder --out run
    """
    from graphsage.cli import settings as reading

    tables = converted(TableSpec, options)
    if data is not None and tables:
        raise ConfigError(f"give DATA ({data}) or tables ({option_name(next(iter(tables)))}), not both")
    given = reading.Settings({}, data, split, tables)
    flags = reading.Settings(converted(Config, options))
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
