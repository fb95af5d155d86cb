"""`graphsage train`: settings, then a training run in this process, as one of several ranks, or as their launcher."""

import json as json_text
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphsage.cli.options import (
    Device,
    Json,
    argument,
    converted,
    option,
    option_name,
    shown_by,
    with_settings,
    with_tables,
)
from graphsage.cli.output import TrainingDisplay, data_summary, print_json, say, working
from graphsage.cli.runs import RunFolder, lasting_name
from graphsage.cli.settings import RUN_FILE, Settings, write_run_file
from graphsage.cli.yardsticks import Yardsticks, link_rows, print_links, print_yardsticks, yardstick_rows
from graphsage.errors import ConfigError, DataError, GraphSageError, refuse_unused, setting
from graphsage.evaluation.metrics import METRICS
from graphsage.recipes import RECIPES
from graphsage.recipes import recipe as recipe_settings
from graphsage.tables.spec import TableSpec
from graphsage.training.config import CHOICES, FORMS, OBJECTIVES, TASKS, Config

if TYPE_CHECKING:
    from graphsage.datasets.dataset import Dataset
    from graphsage.execution.ranks import Ranks
    from graphsage.inference.model import Model


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
        "layer_norm",
        "residual",
        "inference",
    ),
    "Classes and numbers": ("head_scale", "class_weights", "metric", "calibrate", "loss"),
    "Links": ("link_split", "pairs", "decoder", "negatives", "link_negatives", "source_encoder", "popularity"),
    "Neighborhoods": ("sample_sizes", "relation_sizes", "whole_batches", "max_degree", "cap", "redraw"),
    "Features": (
        "identity_dim",
        "degree_features",
        "projections",
        "label_inputs",
        "standardize",
        "keep_features",
        "feature_type",
    ),
    "Random walks (unsupervised and joint)": (
        "objective",
        "num_walks",
        "walk_length",
        "num_negatives",
        "negatives_per_pair",
        "temperature",
        "feature_dropout",
        "edge_dropout",
        "supervised_weight",
    ),
}


DEFAULTS = {
    **shown_by(FORMS),
    **shown_by(TASKS),
    **{
        name: f"{before}; contrastive {OBJECTIVES['contrastive'][name]}"
        for name, before in {**shown_by(TASKS), "walk_length": "5"}.items()
        if name in OBJECTIVES["contrastive"]
    },
    "objective": "equation-1",
    "projections": "0; 128 without features",
    "max_degree": "unlimited; 128 with --form",
    "calibrate": "on; off with --form",
    "cap": "off; row with --form or --max-degree",
    "keep_weights": "best; with --form: last, but best if --patience is set",
    "metric": "micro-f1; macro-f1 with --class-weights",
}


@with_settings(Config, PANELS, rest="Learning", choices=CHOICES, defaults=DEFAULTS)
@with_tables()
def command(
    context: typer.Context,
    data: Annotated[
        str | None,
        argument(
            "DATA",
            "A built-in name (setmm), or a path in any format that `graphsage data list` names: a graph folder, a "
            "GraphSAGE release prefix such as data/ppi, PyG's PPI folder and more.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        option("--out", "Folder for the run: model, graph, checkpoint, log.", "RUN", "runs/DATA-AGGREGATOR-SEED"),
    ] = None,
    split: Annotated[
        str | None,
        option("--split", "Which of the data's splits; random and time work for most data.", "NAME", "the data's own"),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            "--recipe",
            help=f"Settings for a kind of data: {', '.join(RECIPES)} (docs/recipes.md); other options override them.",
            metavar="NAME",
            show_default=False,
            autocompletion=lambda: list(RECIPES),
        ),
    ] = None,
    config: Annotated[Path | None, option("--config", "TOML file of settings; flags override it.", "FILE")] = None,
    settings: Annotated[
        list[str] | None,
        option(
            "--set", "A setting by its name in the files of --config, such as cap=off. May be repeated.", "NAME=VALUE"
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in RUN; its settings are remembered.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in RUN.")] = False,
    keep_graph: Annotated[
        bool | None,
        option(
            "--keep-graph/--no-keep-graph",
            "Copy the graph into RUN, or keep only its path and a fingerprint.",
            default="up to 2 GiB",
        ),
    ] = None,
    device: Device = "auto",
    json: Json = False,
    workers: Annotated[
        int | None,
        option(
            "--workers",
            "Processes on this machine that share every step. The model does not depend on their number.",
            "N",
            "1",
            rich_help_panel=RANKS,
        ),
    ] = None,
    max_restarts: Annotated[
        int | None,
        option(
            "--max-restarts",
            "Maximum restarts from the last checkpoint when a worker dies.",
            "N",
            "3",
            rich_help_panel=RANKS,
            min=0,
        ),
    ] = None,
    rank_timeout: Annotated[
        float | None,
        option(
            "--rank-timeout",
            "Stop when a worker does not answer for this long.",
            "SECONDS",
            "600",
            rich_help_panel=RANKS,
        ),
    ] = None,
    yardsticks: Yardsticks = True,
    **options: Any,
) -> None:
    """Train a model on DATA or on two tables, and write it to RUN.

    Training reads only the training part of the split, with the edges among its nodes.
    Ctrl-C stops after the current step; --resume continues with bit-identical results.

    \b
    Examples:
      graphsage train setmm --out run
      graphsage train data/ppi --out run --aggregator pool --patience 5
      graphsage train setmm --out run --task unsupervised --steps 2000
      graphsage train setmm --out run --form reference --clip 1.0
      graphsage train data/cora --out run --recipe small-graph
      graphsage train --out run --resume --epochs 20
      graphsage train --nodes nodes.csv --edges edges.csv --label section --text description --out run
      graphsage train --nodes homes.csv --edges roads.csv --label price --task regression --numeric rooms --out run
      graphsage train --nodes nodes.csv --edges edges.csv --text description --task links --out run
      graphsage train data/ppi --out run --workers 4
      torchrun --nnodes 2 --nproc-per-node 4 ... -m graphsage train folder --out run
    """
    from graphsage.cli import settings as reading

    tables = converted(TableSpec, options)
    if data is not None and tables:
        raise ConfigError(f"give DATA ({data}) or tables ({option_name(next(iter(tables)))}), not both")
    given = reading.Settings({}, data, split, tables)
    flags = reading.Settings(converted(Config, options) | reading.from_pairs(settings or []).values)
    if "WORLD_SIZE" not in os.environ:
        for flag, value in (("--max-restarts", max_restarts), ("--rank-timeout", rank_timeout)):
            if value is not None and (workers or 1) == 1:
                raise ConfigError(f"{flag} has no effect here: it applies to several --workers; leave it out")
    chosen = reading.Settings({})
    if resume and out is None:
        raise ConfigError("--resume needs the run's folder: give --out RUN")
    if resume and out is not None and (out / reading.RUN_FILE).exists():
        chosen = reading.from_file(out / reading.RUN_FILE)
    if recipe is not None:
        chosen = chosen.followed_by(reading.Settings(reading.checked(recipe_settings(recipe), f"--recipe {recipe}")))
    if config is not None:
        chosen = chosen.followed_by(reading.from_file(config))
    chosen = chosen.followed_by(flags).followed_by(given)
    if tables.get("edges"):
        refuse_unused(tables, TableSpec.from_dict(tables).without_effect())
    out = out or _default_place(chosen)
    request = Request(
        RunFolder(out, resume, overwrite),
        chosen,
        device,
        json,
        600.0 if rank_timeout is None else rank_timeout,
        keep_graph,
        yardsticks,
    )
    if workers is not None and launches(workers):
        if chosen.config().task == "links":
            raise ConfigError(f"{setting('task', 'links')} trains in one process; leave out --workers")
        check(request)
        raise typer.Exit(launch(request, context.find_root().obj, workers, 3 if max_restarts is None else max_restarts))
    run(request)


def _default_place(chosen: "Settings") -> Path:
    config = chosen.config()
    data = chosen.data or str(chosen.tables.get("nodes") or chosen.tables.get("edges") or "run")
    return Path("runs") / f"{Path(data).name.split('.')[0]}-{config.aggregator}-{config.seed}"


@dataclass(frozen=True)
class Request:
    """A parsed command line."""

    folder: RunFolder
    chosen: "Settings"
    device: str
    json: bool
    rank_timeout: float
    keep_graph: bool | None = None
    yardsticks: bool = True


def launches(workers: int) -> bool:
    """Whether this process starts the workers. Processes started by torchrun do not."""
    if workers < 1:
        raise ConfigError(f"--workers must be at least 1; got {workers}")
    return workers > 1 and "WORLD_SIZE" not in os.environ


def check(request: Request) -> None:
    """Checks before any worker starts."""
    request.chosen.config()
    _check_data(request.chosen)
    request.folder.check()


def launch(request: Request, arguments: Sequence[str], workers: int, max_restarts: int) -> int:
    with working("loading torch"):
        from graphsage.cluster import launch as launcher
    try:
        return launcher.launch(arguments, workers, max_restarts, say)
    finally:
        request.folder.end()


def run(request: Request) -> None:
    if "WORLD_SIZE" not in os.environ:  # a single rank reports mistakes before it loads torch
        check(request)
    with working("loading torch"):
        from graphsage.cluster.ranks import device_of_rank, join
        from graphsage.training.train import choose_device
    if choose_device(request.device).type == "cpu" and request.chosen.values.get("tf32"):
        say("warning: --tf32 has no effect on a CPU")
    with join(request.device, request.rank_timeout) as ranks:
        try:
            _train(request, device_of_rank(request.device), ranks)
        except GraphSageError as error:
            if ranks.rank and error.reported is None:
                error.reported = True  # all ranks read the same data: rank 0 reports the same error
            raise


@dataclass
class _Start:
    """What rank 0 reads for all ranks. `place` and `about` stay on rank 0."""

    config: "Config"
    resume: bool
    place: str | dict[str, Any]
    about: dict[str, Any]


def _train(request: Request, device: str, ranks: "Ranks") -> None:
    from graphsage.cluster.ranks import job
    from graphsage.training.loop import Interrupted
    from graphsage.training.train import train

    start, data, split_name = _start(request, ranks)
    out = request.folder.path

    def begin() -> None:
        request.folder.begin(job(), start.resume)
        write_run_file(out / RUN_FILE, start.config, start.place, split_name)

    try:
        with TrainingDisplay(shown=ranks.rank == 0) as display:
            model = train(
                data,
                split_name,
                start.config,
                out=out,
                resume=start.resume,
                device=device,
                on_begin=begin,
                on_event=display,
                on_note=say,
                about=start.about | {"split": split_name},
                ranks=ranks,
                keep_graph=request.keep_graph,
            )
    except Interrupted:
        if ranks.rank == 0:
            say(f"interrupted; continue with --resume (graphsage train --out {out} --resume)")
        raise typer.Exit(130) from None
    if ranks.rank == 0:
        rows = None
        if request.yardsticks and model.links is not None:
            rows = link_rows(model, model.run_graph(), model.run_split(), "val")
        elif request.yardsticks and model.head is None:
            if ranks.count > 1:
                say(f"`graphsage evaluate {out}` prints the yardsticks")
            else:
                rows = yardstick_rows(model, model.run_graph(), model.run_split())
        _report(out, data, split_name, model, request.json, rows)


def _start(request: Request, ranks: "Ranks") -> "tuple[_Start, Dataset, str]":
    """Open the data and find out whether to resume, once for all ranks."""
    from graphsage.cluster.ranks import job, restarts
    from graphsage.inference.run_data import refuse_changed_sources
    from graphsage.training.config import Config
    from graphsage.training.train import settled

    starts: list[_Start] = []

    def open_it() -> "tuple[Dataset, str]":
        config = request.chosen.config()
        _check_data(request.chosen)
        resume = request.folder.resumes(job(), restarts())
        if resume:
            refuse_changed_sources(request.folder.path)
        data, split_name, place, about = _open(request.chosen, config)
        config = settled(Config.from_dict(request.chosen.values), data, split_name)
        form = "" if config.form is None else f"{config.form} form, "
        shared = "" if ranks.count == 1 else f", {ranks.count} workers"
        say(
            f"model   {config.task}, {config.aggregator}, {form}{config.dim} wide, "
            f"sample sizes {_sizes(config, data)}, seed {config.seed}{shared}"
        )
        starts.append(_Start(config, resume, place, about))
        return data, split_name

    if ranks.count == 1:
        data, split_name = open_it()
        return starts[0], data, split_name
    from graphsage.cluster.ranks import share_data

    data, split_name = share_data(ranks, open_it, _graph_folder(request.chosen.data), request.folder.path)
    sent = json_text.loads(
        ranks.first(
            lambda: json_text.dumps({"config": starts[0].config.as_dict(), "resume": starts[0].resume}).encode()
        )
    )
    if not starts:
        starts.append(_Start(Config.from_dict(sent["config"]), sent["resume"], "", {}))
    return starts[0], data, split_name


def _sizes(config: "Config", data: "Dataset") -> str:
    """The sample sizes, of each relation if there are several."""
    relations = data.graph.relations
    if not relations:
        return ", ".join(map(str, config.sample_sizes))
    of_each = zip(*config.sampling().sizes(len(relations)), strict=True)
    return "; ".join(f"{name} {', '.join(map(str, sizes))}" for name, sizes in zip(relations, of_each, strict=True))


def _graph_folder(data: str | None) -> Path | None:
    from graphsage.datasets.open import BUILT_IN

    folder = None if data is None or data in BUILT_IN else Path(data)
    return folder if folder is not None and (folder / "graph.json").is_file() else None


def _check_data(chosen: "Settings") -> None:
    if chosen.data is None and not chosen.tables:
        raise ConfigError("nothing to train on: give DATA (setmm, a folder or a prefix), or --nodes and --edges")


def _open(chosen: "Settings", config: "Config") -> "tuple[Dataset, str, str | dict[str, Any], dict[str, Any]]":
    """The data, the split's name, and how the run file and the model remember the data."""
    from graphsage.datasets.open import open_data

    if not chosen.tables:
        assert chosen.data is not None
        with working(f"reading {chosen.data}"):
            data, split_name = _with_split(open_data(chosen.data), chosen.split, config)
        say(data_summary(data, split_name, data.split(split_name)))
        place = lasting_name(chosen.data)
        return data, split_name, place, {"data": place}
    from graphsage.cli.table_summary import table_summary
    from graphsage.datasets.tables import open_tables
    from graphsage.training.train import check_classes, check_task

    spec, task = chosen.spec(), config.task
    with working(f"reading {spec.name}"):
        data, split_name = _with_split(open_tables(spec), chosen.split, config)
        if split_name == "given":
            refuse_unused(
                chosen.tables, dict.fromkeys(("fractions", "split_seed"), f"to {setting('split', 'random')} or time")
            )
        if task not in ("unsupervised", "links"):
            if data.graph.labels is None:
                raise DataError(
                    f"give the label column with {setting('label')}, or use {setting('task', 'unsupervised')}"
                )
            check_task(data.graph, task)
            check_classes(data.graph, data.split(split_name).nodes("train"), f"{spec.nodes} column {spec.label!r}")
        lines = table_summary(data, spec, split_name, data.split(split_name))
    say("\n".join(lines))
    return data, split_name, data.about["tables"], {}


def _with_split(data: "Dataset", split: str | None, config: "Config") -> "tuple[Dataset, str]":
    """The data, and the name of the split of its nodes."""
    if config.task == "links":
        from graphsage.training.train import with_node_split

        data, split = with_node_split(config.resolved(), data, split)
    return data, split or data.default_split


def _report(
    out: Path, data: "Dataset", split: str, model: "Model", json: bool, yardsticks: list[dict[str, Any]] | None
) -> None:
    done = model.about["training"]
    score = done["val_score"]
    if json:
        facts = {"run": str(out), "data": data.name, "split": split, "task": model.about["config"]["task"]}
        facts |= {"seed": model.seed, "steps": done["steps"], "seconds": done["seconds"]}
        facts |= {"metric": done["metric"], "val_score": score}
        facts |= {"yardsticks": yardsticks} if model.head is None else {}
        print_json(facts)
    else:
        shown, metric = "", METRICS[done["metric"] or "micro-f1"]
        if score is not None:
            shown = f", validation {metric.title} {metric.shown(score)} (epoch {done['kept_epoch']})"
        print(f"{done['steps']:,} steps in {done['seconds']:.1f} s{shown}; the model is in {out}")
        if yardsticks is not None and model.links is not None:
            print_links(yardsticks, "val")
        elif yardsticks is not None:
            print_yardsticks(yardsticks, "val", "test")
