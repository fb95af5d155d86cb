"""A run and the data to use it on, as `evaluate`, `embed` and `predict` need them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphsage.errors import BundleError, ConfigError, DataError

if TYPE_CHECKING:
    from torch import Tensor

    from graphsage.datasets.dataset import Dataset
    from graphsage.graph.graph import Graph
    from graphsage.graph.split import Split
    from graphsage.inference.model import Model


@dataclass(frozen=True)
class Opened:
    """`graph` is the data's as the model sees it; `own` says that it is the data of the run."""

    model: "Model"
    data: "Dataset"
    graph: "Graph"
    spec: str
    own: bool

    def split(self, name: str | None) -> tuple[str, "Split"]:
        """A split by name; by default the run's own, or that of other data."""
        chosen = name or (self.model.about.get("split") if self.own else None) or self.data.default_split
        return chosen, self.data.split(chosen)

    def rows(self, nodes: str | None) -> "Tensor":
        """Rows of the ids in a file (`-` for stdin), one a line; all rows for None."""
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
    from graphsage.cli.output import working

    with working(f"reading {run}"):
        from graphsage.datasets.open import open_data
        from graphsage.inference.export import graph_for
        from graphsage.inference.training_data import open_own

        model = load_run(run, device)
        spec = data if data is not None else model.about.get("data")
        if not isinstance(spec, str):
            raise ConfigError(f"the model in {run} does not say what it was trained on; give DATA after RUN")
        if data is None:
            dataset = open_own(model.about)
            return Opened(model, dataset, graph_for(model, dataset), spec, True)
        name, dataset = lasting_name(spec), open_data(spec)
        return Opened(model, dataset, graph_for(model, dataset), name, model.about.get("data") in (spec, name))


def _read_ids(nodes: str) -> list[str]:
    with _lines(nodes) as lines:
        ids = [text for line in lines if (text := line.strip())]
    if not ids:
        raise DataError(f"{'stdin' if nodes == '-' else nodes} holds no node id; write one a line")
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
        raise DataError(f"{nodes} is not UTF-8 text ({error.reason}); write one node id a line") from error
