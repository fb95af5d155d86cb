"""A training run once its settings are known: alone, as one of several ranks, or as the one who starts them."""

import json as json_text
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from graphsage.cli.opening import lasting_name
from graphsage.cli.run_folder import RunFolder
from graphsage.errors import ConfigError, GraphSageError

if TYPE_CHECKING:
    from graphsage.cli.settings import Settings
    from graphsage.datasets.dataset import Dataset
    from graphsage.execution.ranks import Ranks
    from graphsage.inference.model import Model
    from graphsage.training.config import Config


@dataclass(frozen=True)
class Asked:
    """What the command line asks for."""

    folder: RunFolder
    chosen: "Settings"
    device: str
    json: bool
    rank_timeout: float
    keep_graph: bool | None = None


def launches(workers: int) -> bool:
    """Whether this process has to start the workers; those that torch has started know their number already."""
    if workers < 1:
        raise ConfigError(f"--workers must be at least 1; got {workers}")
    return workers > 1 and "WORLD_SIZE" not in os.environ


def check(asked: Asked) -> None:
    """What can be known to be wrong before any worker is started."""
    asked.chosen.config()
    _check_data(asked.chosen)
    asked.folder.check()


def launch(asked: Asked, arguments: Sequence[str], workers: int, max_restarts: int) -> int:
    from graphsage.cli.output import say, working

    with working("loading torch"):
        from graphsage.cluster import launch as launcher
    try:
        return launcher.launch(arguments, workers, max_restarts, say)
    finally:
        asked.folder.end()


def run(asked: Asked) -> None:
    from graphsage.cli.output import working

    if "WORLD_SIZE" not in os.environ:  # nobody to ask: mistakes are told before torch is loaded
        check(asked)
    with working("loading torch"):
        from graphsage.cluster.ranks import device_of_rank, join
        from graphsage.training.train import choose_device
    choose_device(asked.device)
    with join(asked.device, asked.rank_timeout) as ranks:
        try:
            _train(asked, device_of_rank(asked.device), ranks)
        except GraphSageError as error:
            if ranks.rank and error.reported is None:
                error.reported = True  # all ranks read the same data: rank 0 reports the same error
            raise


@dataclass
class _Start:
    """What rank 0 finds out for all of them, and what it alone remembers."""

    config: "Config"
    resume: bool
    place: str | dict[str, Any]
    about: dict[str, Any]


def _train(asked: Asked, device: str, ranks: "Ranks") -> None:
    from graphsage.cli.output import TrainingDisplay, say
    from graphsage.cli.settings import RUN_FILE, write_run_file
    from graphsage.cluster.ranks import job
    from graphsage.training.loop import Interrupted
    from graphsage.training.train import train

    start, data, split_name = _start(asked, ranks)
    out = asked.folder.path

    def begin() -> None:
        asked.folder.begin(job(), start.resume)
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
                about=start.about | {"split": split_name},
                ranks=ranks,
                keep_graph=asked.keep_graph,
            )
    except Interrupted:
        if ranks.rank == 0:
            say(f"interrupted; continue with --resume (graphsage train --out {out} --resume)")
        raise typer.Exit(130) from None
    if ranks.rank == 0:
        _report(out, data, split_name, model, asked.json)


def _start(asked: Asked, ranks: "Ranks") -> "tuple[_Start, Dataset, str]":
    """Open the data and find out whether to resume, once for all ranks."""
    from graphsage.cli.output import say
    from graphsage.cluster.ranks import job, restarts
    from graphsage.training.config import Config

    starts: list[_Start] = []

    def open_it() -> "tuple[Dataset, str]":
        config = asked.chosen.config()
        _check_data(asked.chosen)
        resume = asked.folder.resumes(job(), restarts())
        data, split_name, place, about = _open(asked.chosen, config.task)
        shared = "" if ranks.count == 1 else f", {ranks.count} workers"
        say(
            f"model   {config.task}, {config.aggregator}, {config.form} form, {config.dim} wide, "
            f"sample sizes {', '.join(map(str, config.sample_sizes))}, seed {config.seed}{shared}"
        )
        starts.append(_Start(config, resume, place, about))
        return data, split_name

    if ranks.count == 1:
        data, split_name = open_it()
        return starts[0], data, split_name
    from graphsage.cluster.ranks import share_data

    data, split_name = share_data(ranks, open_it, _graph_folder(asked.chosen.data), asked.folder.path)
    told = json_text.loads(
        ranks.first(
            lambda: json_text.dumps({"config": starts[0].config.as_dict(), "resume": starts[0].resume}).encode()
        )
    )
    if not starts:
        starts.append(_Start(Config.from_dict(told["config"]), told["resume"], "", {}))
    return starts[0], data, split_name


def _graph_folder(data: str | None) -> Path | None:
    from graphsage.datasets.open import BUILT_IN

    folder = None if data is None or data in BUILT_IN else Path(data)
    return folder if folder is not None and (folder / "graph.json").is_file() else None


def _check_data(chosen: "Settings") -> None:
    if chosen.data is None and not chosen.tables:
        raise ConfigError(
            "say what to train on: graphsage train DATA --out RUN; DATA may be setmm, a folder or a prefix, or give "
            "--nodes and --edges"
        )


def _open(chosen: "Settings", task: str) -> "tuple[Dataset, str, str | dict[str, Any], dict[str, Any]]":
    """The data, the split's name, and how the run file and the model remember the data."""
    from graphsage.cli.output import data_summary, say, working
    from graphsage.datasets.open import open_data

    if not chosen.tables:
        assert chosen.data is not None
        with working(f"reading {chosen.data}"):
            data = open_data(chosen.data)
            split_name = chosen.split or data.default_split
        say(data_summary(data, split_name, data.split(split_name)))
        place = lasting_name(chosen.data)
        return data, split_name, place, {"data": place}
    from graphsage.cli.table_summary import check_classes, table_summary
    from graphsage.datasets.tables import open_tables
    from graphsage.tables.spec import TableSpec

    spec = TableSpec.from_dict(chosen.tables)
    with working(f"reading {spec.name}"):
        data = open_tables(spec)
        split_name = chosen.split or data.default_split
        if task != "unsupervised":
            check_classes(data, spec, data.split(split_name))
        lines = table_summary(data, spec, split_name, data.split(split_name))
    say("\n".join(lines))
    return data, split_name, data.about["tables"], {}


def _report(out: Path, data: "Dataset", split: str, model: "Model", json: bool) -> None:
    from graphsage.cli.output import print_json

    done = model.about["training"]
    f1 = done["best_val_f1"] if model.about["config"]["patience"] else _last_val_f1(out)
    if json:
        print_json(
            {
                "run": str(out),
                "data": data.name,
                "split": split,
                "task": model.about["config"]["task"],
                "seed": model.seed,
                "steps": done["steps"],
                "seconds": done["seconds"],
                "val_f1": f1,
            }
        )
    else:
        score = "" if f1 is None else f", validation F1 {f1:.4f}"
        print(f"{done['steps']:,} steps in {done['seconds']:.1f} s{score}; the model is in {out}")


def _last_val_f1(out: Path) -> float | None:
    """Of the weights that were kept, unless early stopping went back to better ones."""
    lines = (out / "log.jsonl").read_text(encoding="utf-8").splitlines()
    f1: float | None = json_text.loads(lines[-1])["val_f1"] if lines else None
    return f1
