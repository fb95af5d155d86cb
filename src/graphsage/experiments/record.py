"""Runs and their records: train with some settings and seeds, score, and keep everything needed to judge the number."""

import importlib.metadata
import json
import multiprocessing
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graphsage.atomic import atomic_file

LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn", "graphsage")


@dataclass(frozen=True)
class Run:
    """One training run to make: a label for its row, the data, the split's name and the settings."""

    label: str
    data: str
    split: str | None
    settings: dict[str, Any]
    device: str = "auto"
    threads: int | None = None


@dataclass(frozen=True)
class Score:
    """What a run reached, by exact and by sampled inference. Choices are made on `val`; `test` is only reported."""

    label: str
    settings: dict[str, Any]
    val: float
    test: float
    test_macro: float
    sampled: tuple[float, float] | None
    """val and test by sampled inference, where that was measured."""
    train_seconds: float
    device: str


def score(run: Run) -> Score:
    """Make one run."""
    import torch

    from graphsage.datasets.open import open_data
    from graphsage.training.train import train

    if run.threads is not None:
        torch.set_num_threads(run.threads)
    data = open_data(run.data)
    split = data.split(run.split)
    graph, _ = data.with_features(split)
    began = time.monotonic()
    model = train(graph, split, device=run.device, **run.settings)
    seconds = time.monotonic() - began
    exact = model.evaluate_parts(graph, split, ("val", "test"), inference="exact")
    # Without a head each of these fits a probe, minutes for PPI's 121 labels: once is enough.
    sampled = None
    if model.head is not None:
        both = model.evaluate_parts(graph, split, ("val", "test"), inference="sampled")
        sampled = (both["val"].micro, both["test"].micro)
    return Score(run.label, run.settings, exact["val"].micro, exact["test"].micro, exact["test"].macro, sampled,
                 seconds, str(model.device))  # fmt: skip


def score_all(runs: Iterable[Run], jobs: int = 1, keep: Callable[[list[Score]], None] | None = None) -> list[Score]:
    """Make the runs, `jobs` at a time, and return their scores in order. `keep` is given what there is after each."""
    todo = list(runs)
    scores: dict[int, Score] = {}

    def done(number: int, made: Score) -> None:
        scores[number] = made
        print(json.dumps(asdict(made)), file=sys.stderr, flush=True)
        if keep is not None:
            keep([scores[n] for n in sorted(scores)])

    if jobs == 1:
        for number, run in enumerate(todo):
            done(number, score(run))
    else:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, mp_context=context) as pool:
            waiting = {pool.submit(score, run): number for number, run in enumerate(todo)}
            for future in as_completed(waiting):
                done(waiting[future], future.result())
    return [scores[number] for number in range(len(todo))]


def rows(scores: list[Score]) -> list[dict[str, Any]]:
    """One row for each label: mean and spread over its runs (seeds), with the values themselves."""
    labels = list(dict.fromkeys(score.label for score in scores))
    made: list[dict[str, Any]] = []
    for label in labels:
        group = [score for score in scores if score.label == label]
        settings = {k: v for k, v in group[0].settings.items() if k != "seed"}
        made.append({
            "label": label,
            "settings": settings,
            "seeds": [score.settings.get("seed", 0) for score in group],
            "val_micro_f1": spread(score.val for score in group),
            "test_micro_f1": spread(score.test for score in group),
            "test_macro_f1": spread(score.test_macro for score in group),
            "train_seconds": spread(score.train_seconds for score in group),
        })  # fmt: skip
        sampled = [score.sampled for score in group if score.sampled is not None]
        if sampled:
            made[-1] |= {"sampled_val_micro_f1": spread(val for val, _ in sampled),
                         "sampled_test_micro_f1": spread(test for _, test in sampled)}  # fmt: skip
    return made


def spread(values: Iterable[float]) -> dict[str, Any]:
    """Mean, sample standard deviation and the values, rounded to what a reader needs."""
    kept = [round(value, 4) for value in values]
    return {
        "mean": round(statistics.fmean(kept), 4),
        "std": round(statistics.stdev(kept), 4) if len(kept) > 1 else 0.0,
        "values": kept,
    }


def write_result(path: Path, about: str, command: str, body: dict[str, Any]) -> None:
    """Write `body` with the hardware and library versions it was made on."""
    record = {"about": about, "command": command, "hardware": hardware(), "versions": versions(), **body}
    with atomic_file(path) as temporary:
        temporary.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def earlier_rows(path: Path) -> list[dict[str, Any]]:
    """Rows that an earlier piece of the same experiment wrote, on the same hardware with the same libraries."""
    if not path.exists():
        return []
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    same = record["hardware"] == hardware() and record["versions"] == versions()
    found: list[dict[str, Any]] = record["rows"] if same else []
    return found


def hardware() -> dict[str, Any]:
    import os

    import torch

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {"machine": platform.machine(), "cores": os.cpu_count(), "gpu": gpu}


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
