"""What the ranks of test_ranks.py do, in a module that a fresh process imports quickly."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import graphsage.cluster.ranks as sharing
from graphsage.datasets.dataset import Dataset, text_plan
from graphsage.datasets.open import load_folder
from graphsage.errors import DataError
from graphsage.execution import step
from graphsage.execution.ranks import Ranks
from graphsage.training.train import train as train_model
from planted import SMALL, planted_graph, planted_split

Weights = dict[str, np.ndarray]


def train(ranks: Ranks, options: dict[str, Any], out: Path | None = None, resume: bool = False) -> Weights:
    settings = {**SMALL, **options}
    graph = planted_graph(direction=settings.pop("direction", "merged"), weighted=settings.pop("weighted", False))
    model = train_model(graph, planted_split(graph), out=out, resume=resume, device="cpu", ranks=ranks, **settings)
    head = {} if model.head is None else {f"head.{n}": v for n, v in model.head.state_dict().items()}
    return {name: value.numpy() for name, value in {**model.encoder.state_dict(), **head}.items()}


def train_each(ranks: Ranks, options: dict[str, dict[str, Any]]) -> dict[str, Weights]:
    return {name: train(ranks, each) for name, each in options.items()}


def stop_then_train(ranks: Ranks, options: dict[str, Any], out: Path, at: int) -> Weights:
    """Train, but a signal reaches the last rank after step `at`."""
    real = step.EagerStep.run

    def run(self: step.EagerStep, number: int) -> None:
        real(self, number)
        if number + 1 == at and ranks.rank == ranks.count - 1:
            os.kill(os.getpid(), signal.SIGTERM)

    step.EagerStep.run = run  # type: ignore[method-assign]
    return train(ranks, options, out)


def train_in_own_folder(ranks: Ranks, folder: Path) -> Weights:
    return train(ranks, {"steps": 3}, folder / str(ranks.rank))


def fail(ranks: Ranks) -> bytes:
    def call() -> bytes:
        raise DataError("edge 7 points nowhere")

    return ranks.first(call)


def work_long(ranks: Ranks) -> bytes:
    def call() -> bytes:
        time.sleep(3)
        return b"done"

    return ranks.first(call)


def disappear(ranks: Ranks, silent: bool) -> None:
    if ranks.rank == 1:
        if silent:
            time.sleep(8)
        os._exit(9)
    ranks.add(torch.zeros(3))


def read_other_data(ranks: Ranks) -> None:
    graph = planted_graph(seed=ranks.rank)
    train_model(graph, planted_split(graph), ranks=ranks, **SMALL)


def share(ranks: Ranks, run: Path) -> tuple[Any, ...]:
    os.environ["GRAPHSAGE_CACHE"] = str(run / "cache")

    def opened() -> tuple[Dataset, str]:
        assert ranks.rank == 0
        graph = planted_graph()
        words = [f"word{row % 7} of {row % 3}" for row in range(graph.num_nodes)]
        data = Dataset(
            "texts",
            graph.replace(features=None),
            {"mine": planted_split(graph)},
            "mine",
            columns={"words": words},
            plan=text_plan("words"),
        )
        return data, "mine"

    data, name = sharing.share_data(ranks, opened, None, run)
    mapped = [line for line in Path("/proc/self/maps").read_text().splitlines() if "features.npy" in line]
    features = data.graph.features
    assert features is not None
    return (
        name,
        features.numpy().copy(),
        len(mapped),
        data.fitted is not None,
        data.split("mine").sizes(),
        sorted(data.columns),
    )


def open_folder(ranks: Ranks, folder: Path, run: Path) -> None:
    if ranks.rank == 1:  # a machine without the folder
        sharing.load_folder = lambda place: load_folder(place / "missing")
    sharing.share_data(ranks, lambda: (load_folder(folder), "given"), folder, run)
