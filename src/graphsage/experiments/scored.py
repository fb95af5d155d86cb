"""Runs of the experiments on one data set, made as trials of a sweep: each once, several at a time, resumable; and the
rows of a table that they make."""

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graphsage.experiments.record import spread
from graphsage.training.score import Run, Score, score
from graphsage.training.trials import Result, Runner, Trial, TrialKey, TrialStore

ScoreAll = Callable[[Iterable[Run]], list[Score]]


@contextmanager
def unfinished(folder: Path, jobs: int = 1) -> Iterator[ScoreAll]:
    """A function that makes runs, `jobs` at a time, and returns their scores in order.

    Runs are kept in `folder` until the end of the context: an interrupted experiment goes on from there, while a later
    one makes all again.
    """

    def score_all(runs: Iterable[Run]) -> list[Score]:
        named = [(_trial(run), run) for run in runs]
        make = _Make({trial.key: run for trial, run in named})
        trials = Runner(TrialStore(folder), make, jobs, on_done=lambda trial, result, *_: _tell(trial, result))
        return [_score(result) for result in trials.run(trial for trial, _ in named)]

    yield score_all
    shutil.rmtree(folder, ignore_errors=True)


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


@dataclass(frozen=True)
class _Make:
    """Makes the runs, in this process or another one."""

    runs: dict[TrialKey, Run]

    def __call__(self, trial: Trial) -> Result:
        return asdict(score(self.runs[trial.key]))


def _trial(run: Run) -> Trial:
    data = run.data if isinstance(run.data, str) else asdict(run.data)
    return Trial(run.label, {"data": data, "split": run.split, "parts": run.parts, "settings": run.settings})


def _score(result: Result) -> Score:
    """JSON has no tuples, only lists."""
    fields = {name: result[name] for name in Score.__dataclass_fields__}
    return Score(**{**fields, "settings": _tuples(fields["settings"]), "exact": _tuples(fields["exact"]),
                    "curve": tuple(fields["curve"])})  # fmt: skip


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def _tell(trial: Trial, result: Result) -> None:
    print(json.dumps({"label": trial.label, **result}), file=sys.stderr, flush=True)
