"""Run folders: what training may replace, and a finished run with the data to use it on."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphsage.atomic import writing
from graphsage.cli.output import say, working
from graphsage.errors import BundleError, ConfigError, DataError, OutputError

if TYPE_CHECKING:
    from torch import Tensor

    from graphsage.datasets.dataset import Dataset
    from graphsage.graph.graph import Graph
    from graphsage.graph.split import Split
    from graphsage.inference.model import Model
    from graphsage.inference.run_data import RunData


CHECKPOINT = "checkpoint.safetensors"
RUN_FILES = (
    "config.json",
    "model.safetensors",
    "features.json",
    "features.safetensors",
    CHECKPOINT,
    "log.jsonl",
    "run.toml",
    "yardsticks.json",
)
DATA_FOLDER = "data"  # the graph that the run keeps; `train` replaces it (inference.run_data)
JOB_FILE = ".job.part"  # which job began the run; named as what a killed process leaves behind


@dataclass(frozen=True)
class RunFolder:
    path: Path
    resume: bool
    overwrite: bool

    def check(self) -> None:
        """Refuse a folder that holds something else, or a run without --resume or --overwrite."""
        if self.resume and self.overwrite:
            raise ConfigError("--resume continues the run and --overwrite removes it; give one of them")
        if self.resume or not self.path.is_dir():
            return
        if holds_run(self.path):
            if not self.overwrite:
                raise OutputError(
                    f"{self.path} already holds a run; continue it with --resume, replace it with "
                    "--overwrite, or choose another --out"
                )
        elif others := sorted(path.name for path in self.path.iterdir() if not _ours(path)):
            raise OutputError(f"{self.path} is not empty (it holds {others[0]}) and is not a run; choose another --out")

    def resumes(self, job: str | None, restarts: int) -> bool:
        """Whether to resume: if requested, or if a lost rank ended a run that this job began."""
        if restarts and job is not None and self._begun_by() == job:
            return (self.path / CHECKPOINT).exists()
        self.check()
        return self.resume

    def begin(self, job: str | None, resumed: bool) -> None:
        """Just before the first step."""
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            for name in () if resumed else RUN_FILES:
                (self.path / name).unlink(missing_ok=True)
            if job is not None:
                (self.path / JOB_FILE).write_text(job, encoding="utf-8")

    def end(self) -> None:
        """After the last restart."""
        (self.path / JOB_FILE).unlink(missing_ok=True)

    def _begun_by(self) -> str | None:
        try:
            return (self.path / JOB_FILE).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None


def _ours(path: Path) -> bool:
    """A run's file, its data, or what a killed process left of one."""
    name = path.name
    if name == DATA_FOLDER:  # a user's folder of that name is never replaced
        from graphsage.inference.run_data import is_run_data

        return is_run_data(path)
    return name in RUN_FILES or (name.startswith(".") and ".part" in name)


@dataclass(frozen=True)
class Opened:
    """`own`: the data is that of the run; `stored` is the copy that the run keeps, or None."""

    model: "Model"
    data: "Dataset"
    graph: "Graph"
    spec: str
    own: bool
    stored: "RunData | None" = None

    def split(self, name: str | None) -> tuple[str, "Split"]:
        """A split by name; by default the run's own, or that of other data."""
        if self.stored is not None and name in (None, self.stored.split_name):
            return self.stored.split_name, self.stored.split
        chosen = name or (self.model.about.get("split") if self.own else None) or self.data.default_split
        return chosen, self.data.split(chosen)

    def rows(self, nodes: str | None) -> "Tensor":
        """Rows of the ids in a file (`-` for stdin), one per line; all rows for None."""
        import torch

        return torch.arange(self.graph.num_nodes) if nodes is None else self.graph.rows_of(_read_ids(nodes))


def holds_run(folder: Path) -> bool:
    """Whether a run was begun or finished here."""
    return any((folder / name).exists() for name in ("config.json", "checkpoint.safetensors"))


def lasting_name(data: str) -> str:
    """How a run remembers its data: a built-in name as it is, a path from the root."""
    from graphsage.datasets.open import BUILT_IN

    return data if data in BUILT_IN else str(Path(data).absolute())


def load_run(run: Path, device: str) -> "Model":
    from graphsage.inference.model import load
    from graphsage.training.train import choose_device

    place = choose_device(device)
    if not (run / "config.json").exists() and (run / "checkpoint.safetensors").exists():
        raise BundleError(f"the run in {run} is not finished; continue it: graphsage train --out {run} --resume")
    return load(run).to(place)


def open_run(run: Path, data: str | None, device: str) -> Opened:
    """The model in `run` and the data to use it on: `data`, or what the run keeps of its own."""
    with working(f"reading {run}"):
        from graphsage.datasets.open import open_data
        from graphsage.inference.export import graph_for

        model = load_run(run, device)
        if data is None:
            stored = model.run_data()
            spec = str(model.about.get("data") or run)
            opened = Opened(model, stored.dataset, stored.graph, spec, True, stored)
        else:
            name, dataset = lasting_name(data), open_data(data)
            own = model.about.get("data") in (data, name)
            opened = Opened(model, dataset, graph_for(model, dataset), name, own)
    if opened.stored is not None and opened.stored.remark is not None:
        say(f"warning: {opened.stored.remark}")
    return opened


def _read_ids(nodes: str) -> list[str]:
    with _lines(nodes) as lines:
        ids = [text for line in lines if (text := line.strip())]
    if not ids:
        raise DataError(f"{'stdin' if nodes == '-' else nodes} holds no node id; write one per line")
    return ids


@contextmanager
def _lines(nodes: str) -> Iterator[Iterator[str]]:
    if nodes == "-":
        yield iter(sys.stdin)
        return
    try:
        with Path(nodes).open(encoding="utf-8") as file:
            yield iter(file)
    except FileNotFoundError:
        raise DataError(
            f"{nodes} does not exist; --node-ids takes a file with one node id per line, or - for stdin"
        ) from None
    except UnicodeDecodeError as error:
        raise DataError(f"{nodes} is not UTF-8 text ({error.reason}); write one node id per line") from error
