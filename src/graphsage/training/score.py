"""Train with some settings and score the model: the unit of every sweep."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from graphsage.errors import DataError
from graphsage.evaluation.metrics import METRICS, Metric
from graphsage.tables.spec import TableSpec
from graphsage.training.config import Config
from graphsage.training.trials import Result, Trial

if TYPE_CHECKING:
    from graphsage.datasets.dataset import Dataset
    from graphsage.graph.graph import Graph
    from graphsage.graph.split import Split


def metric_of(settings: Mapping[str, Any]) -> Metric:
    """The score that `settings` choose a model by."""
    given = {name: settings[name] for name in ("task", "metric") if settings.get(name) is not None}
    return Config.from_dict(given).selection()


@dataclass(frozen=True)
class Score:
    """The chosen score and macro F1 (of a regression R2) of each part by exact inference, and the chosen score by
    sampled inference if that was measured. The chosen one is the setting `metric`, micro F1 by default. Choices are
    made on validation; test is only reported."""

    settings: dict[str, Any]
    exact: dict[str, tuple[float, float]]
    sampled: dict[str, float]
    curve: tuple[float, ...]
    """The validation score after each epoch."""
    train_seconds: float

    @property
    def val(self) -> float:
        """Validation score of the weights that are kept; of the probe if training reports no scores (unsupervised)."""
        if not self.curve:
            return self.exact["val"][0]
        best = Config.from_dict(self.settings).keeps_best
        return max(self.curve, key=metric_of(self.settings).ascending) if best else self.curve[-1]

    @property
    def test(self) -> float | None:
        """Test score by the model's own type of inference; None if it was not measured."""
        if self.settings.get("inference") == "sampled" and "test" in self.sampled:
            return self.sampled["test"]
        return self.exact["test"][0] if "test" in self.exact else None


@dataclass(frozen=True)
class Scorer:
    """Scores settings on one data set (its name, its path or two tables), in this process or another one."""

    data: str | TableSpec
    split: str | None
    device: str = "auto"
    threads: int | None = None

    def score(
        self,
        settings: dict[str, Any],
        parts: Sequence[str] = ("val", "test"),
        on_epoch: Callable[[int, float], None] | None = None,
    ) -> Score:
        """Train once and score `parts`. `on_epoch(epoch, validation score)` may raise to end training early."""
        import torch

        from graphsage.inference.model import score_of
        from graphsage.training.progress import Event
        from graphsage.training.train import train

        if self.threads is not None:
            torch.set_num_threads(self.threads)
        graph, split = opened(self.data, self.split)
        curve: list[float] = []

        def watch(event: Event) -> None:
            if event.val_score is not None:
                curve.append(event.val_score)
                if on_epoch is not None:
                    on_epoch(event.epoch, event.val_score)

        began = time.monotonic()
        model = train(graph, split, device=self.device, on_event=watch, **settings)
        seconds = time.monotonic() - began
        metric = metric_of(settings)
        exact = model.answers(graph, split, parts, inference="exact") if parts else {}
        # Without a head each of these fits a probe, minutes for PPI's 121 labels: once is enough.
        again = model.head is not None and parts
        sampled = model.answers(graph, split, parts, inference="sampled") if again else {}
        second = METRICS["r2" if metric.of == "numbers" else "macro-f1"]
        both = {part: (score_of(metric, made), score_of(second, made)) for part, made in exact.items()}
        one = {part: score_of(metric, made) for part, made in sampled.items()}
        return Score(settings, both, one, tuple(curve), seconds)

    def __call__(self, settings: dict[str, Any], report: Callable[[int, float], None]) -> float:
        """Validation score, also reported after each epoch, without scoring test. For both, higher is better."""
        metric = metric_of(settings)
        parts = ("val",) if settings.get("task") == "unsupervised" else ()
        found = self.score(settings, parts, lambda epoch, score: report(epoch, metric.ascending(score)))
        return metric.ascending(found.val)

    def result(self, trial: Trial) -> Result:
        """The scores of chosen settings: test too if the split has test nodes."""
        found = self.score(dict(trial.settings), labeled_parts(self.data, self.split))
        return {"val": found.val, "test": found.test, "curve": list(found.curve), "train_seconds": found.train_seconds}


@lru_cache(maxsize=1)
def dataset(data: str | TableSpec) -> "Dataset":
    from graphsage.datasets.open import open_data
    from graphsage.datasets.tables import open_tables

    return open_tables(data) if isinstance(data, TableSpec) else open_data(data)


@lru_cache(maxsize=1)
def opened(data: str | TableSpec, split_name: str | None) -> tuple["Graph", "Split"]:
    """The graph with features, and the split they were fitted on: opened once for all runs that follow each other."""
    found = dataset(data)
    split = found.split(split_name)
    return found.with_features(split)[0], split


def labeled_parts(data: str | TableSpec, split_name: str | None) -> tuple[str, ...]:
    """Those of val and test that have labeled nodes. Without any in val there is nothing to choose settings by."""
    graph, split = opened(data, split_name)
    if graph.labels is None:
        raise DataError("settings are chosen by a score on validation nodes, and the data has no labels; give some")
    found = tuple(part for part in ("val", "test") if len(graph.labeled(split.nodes(part))))
    if "val" not in found:
        raise DataError(
            "settings are chosen by a score on validation nodes, and the split has no labeled one; use another "
            "split, such as random"
        )
    return found
