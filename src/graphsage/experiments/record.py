"""Runs and their records: train with some settings and seeds, score, and keep everything needed to judge the number."""

import importlib.metadata
import json
import multiprocessing
import platform
import statistics
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graphsage.atomic import atomic_file
from graphsage.errors import DataError
from graphsage.training.score import Run, Score, score

MEASURED = ("table1", "figure2a", "figure2b", "depth", "figure3", "pooling", "rotation", "theory", "facts", "wilcoxon")
EXPERIMENTS = (*MEASURED, "claims")
"""In the order in which all are made: the last ones read what the others wrote."""
LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn", "graphsage")


def score_all(
    runs: Iterable[Run],
    jobs: int = 1,
    keep: Callable[[list[Score]], None] | None = None,
    journal: Path | None = None,
) -> list[Score]:
    """Make the runs, `jobs` at a time, and return their scores in order. `keep` is given what there is after each.

    Scores are also added to `journal`, a line each; those that it has already, from an interrupted call, are not made
    again.
    """
    todo = list(runs)
    before = [] if journal is None else read_journal(journal)
    scores = {n: made for n, run in enumerate(todo) for made in before
              if (made.label, made.settings) == (run.label, run.settings)}  # fmt: skip
    left = [(number, run) for number, run in enumerate(todo) if number not in scores]

    def done(number: int, made: Score) -> None:
        scores[number] = made
        line = json.dumps(asdict(made))
        print(line, file=sys.stderr, flush=True)
        if journal is not None:
            with journal.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        if keep is not None:
            keep([scores[n] for n in sorted(scores)])

    if jobs == 1:
        for number, run in left:
            done(number, score(run))
    else:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, mp_context=context) as pool:
            waiting = {pool.submit(score, run): number for number, run in left}
            for future in as_completed(waiting):
                done(waiting[future], future.result())
    return [scores[number] for number in range(len(todo))]


def read_journal(path: Path) -> list[Score]:
    """The scores that an interrupted call left."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [Score(**{**one, "settings": _tuples(one["settings"]), "exact": _tuples(one["exact"]),
                     "curve": tuple(one["curve"])}) for one in map(json.loads, lines)]  # fmt: skip


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    """JSON has no tuples, only lists."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def threads(jobs: int) -> int | None:
    """Of each job: one where several share the cores, else as many as torch likes."""
    return 1 if jobs > 1 else None


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
        })  # fmt: skip
        for part in group[0].exact:
            made[-1] |= {f"{part}_micro_f1": spread(score.exact[part][0] for score in group),
                         f"{part}_macro_f1": spread(score.exact[part][1] for score in group)}  # fmt: skip
        made[-1]["train_seconds"] = spread(score.train_seconds for score in group)
        for part in group[0].sampled:
            made[-1][f"sampled_{part}_micro_f1"] = spread(score.sampled[part] for score in group)
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


def read_result(path: Path) -> dict[str, Any] | None:
    """What an experiment wrote; None where it has written nothing."""
    if not path.exists():
        return None
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is no result ({error}); delete it and make it again") from error
    if not isinstance(record, dict):
        raise DataError(f"{path} is no result of an experiment; delete it and make it again")
    return record


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


def machine(hardware: dict[str, Any]) -> str:
    """In words."""
    return hardware["gpu"] or f"{hardware['cores']} cores, no GPU"


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
