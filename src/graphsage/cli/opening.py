"""A run and the data to use it on, as `evaluate`, `embed` and `predict` need them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphsage.errors import BundleError, DataError

if TYPE_CHECKING:
    from torch import Tensor

    from graphsage.datasets.dataset import Dataset
    from graphsage.graph.graph import Graph
    from graphsage.graph.split import Split
    from graphsage.inference.model import Model
    from graphsage.inference.run_data import RunData


@dataclass(frozen=True)
class Opened:
    """`graph` is the data's as the model reads it; `own` says that it is the data of the run.

    `stored` is what the run keeps of it, unless the user has named the data.
    """

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
    """The model in `run` and the data to use it on: `data`, or what the run keeps of its own."""
    from graphsage.cli.output import say, working

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
