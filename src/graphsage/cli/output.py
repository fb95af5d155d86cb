"""What commands print: data on stdout, progress and remarks on stderr."""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from graphsage.evaluation.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.progress import Progress

    from graphsage.datasets.dataset import Dataset
    from graphsage.graph.split import Split
    from graphsage.training.progress import Event

HEARTBEAT_SECONDS = 30.0  # without a terminal, a long epoch says this often that it is alive


def say(text: str) -> None:
    """Print a message to stderr."""
    print(text, file=sys.stderr, flush=True)


def print_json(value: Mapping[str, Any]) -> None:
    """One JSON object on stdout."""
    print(json.dumps(value, ensure_ascii=False, allow_nan=False))


def print_facts(facts: Mapping[str, Any]) -> None:
    """`name  value`, one line a fact, on stdout. Empty ones are left out."""
    shown = {name: value for name, value in facts.items() if value is not None and value != ""}
    width = max(map(len, shown), default=0)
    for name, value in shown.items():
        print(f"{name:<{width}}   {value}")


def print_columns(rows: Sequence[Sequence[str]], indent: str = "", right: Sequence[int] = ()) -> None:
    """Rows of words as aligned columns on stdout; the columns numbered in `right` are flush right."""
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))] if rows else []
    for row in rows:
        cells = [
            word.rjust(width) if c in right else word.ljust(width)
            for c, (word, width) in enumerate(zip(row, widths, strict=True))
        ]
        print((indent + "   ".join(cells)).rstrip())


def shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def data_summary(data: "Dataset", split_name: str, split: "Split") -> str:
    """The data and the split of its nodes, a line each."""
    graph = data.graph
    parts = [f"{graph.num_nodes:,} nodes", f"{graph.num_edges:,} edges", described_features(data)]
    if graph.labels is not None:
        parts.append(f"{graph.num_classes} {graph.labels_are}")
    return "\n".join([f"data    {data.name}: {', '.join(parts)}", *split_line(split_name, split)])


def split_line(name: str, split: "Split") -> list[str]:
    """Nothing where links are held out and no nodes."""
    from graphsage.datasets.dataset import LINK_SPLIT

    if name == LINK_SPLIT:
        return []
    sizes = ", ".join(f"{part} {size:,}" for part, size in split.sizes().items())
    return [f"split   {name}: {sizes}"]


def described_features(data: "Dataset") -> str:
    if data.graph.features is not None:
        return f"{data.graph.num_features} features"
    if data.plan is not None:
        return f"features from {', '.join(data.plan.columns)}"
    return "no features"


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner on a terminal, nothing otherwise."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


@contextmanager
def block_progress(what: str) -> Iterator["Callable[[int, int], None]"]:
    """A bar on a terminal for `on_block(done, total)`; nothing otherwise."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    progress = _progress("{task.description}")
    with progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def row_progress() -> Iterator["Callable[[str, int, int | None], None]"]:
    """A live line on a terminal for `report(what, rows, of)`, a bar where `of` is known; nothing otherwise."""
    if not sys.stderr.isatty():
        yield lambda what, rows, of: None
        return
    progress = _progress("{task.description}", "{task.completed:,} rows")
    with progress:
        task = progress.add_task("reading", total=None)
        yield lambda what, rows, of: progress.update(task, description=what, completed=rows, total=of)


class TrainingDisplay:
    """Shows training events: a live line with a bar on a terminal, and a line for each epoch everywhere."""

    def __init__(self, *, shown: bool = True) -> None:
        self.live: Progress | None = None
        self.shown = shown
        self.last = time.monotonic()
        self.last_score = ""

    def __enter__(self) -> "TrainingDisplay":
        if self.shown and sys.stderr.isatty():
            self.live = _progress(
                "{task.description}", "loss {task.fields[loss]}", "{task.fields[score]}", "{task.fields[speed]} seeds/s"
            )
            self.task = self.live.add_task("preparing", total=None, loss="-", score="", speed="-")
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()

    def __call__(self, event: "Event") -> None:
        if event.kind == "epoch":
            self._line(epoch_line(event))
            if event.hint is not None:
                self._line(f"hint: {event.hint}")
        elif self.live is None and time.monotonic() - self.last > HEARTBEAT_SECONDS:
            self._line(step_line(event))
        if self.live is None:
            return
        if event.val_score is not None:
            self.last_score = val_score(event)
        self.live.update(
            self.task,
            description=f"epoch {event.epoch}/{event.epochs}",
            completed=event.step,
            total=event.steps,
            loss=f"{event.loss:.4f}",
            score=self.last_score,
            speed=f"{event.seeds_per_second:,.0f}",
        )

    def _line(self, text: str) -> None:
        self.last = time.monotonic()
        if self.live is None:
            say(text)
        else:
            self.live.console.print(text, highlight=False)


def epoch_line(event: "Event") -> str:
    score = "" if event.val_score is None else f"   {val_score(event)}"
    speed = f"{event.seeds_per_second:,.0f} seeds/s   {event.seconds:.1f} s"
    return f"{_epoch(event)}   loss {event.loss:.4f}{score}   {speed}"


def val_score(event: "Event") -> str:
    if event.val_score is None:
        return ""
    metric = METRICS[event.metric]
    return f"val {metric.title} {metric.shown(event.val_score)}"


def step_line(event: "Event") -> str:
    done = f"step {event.step:,}/{event.steps:,}"
    return f"{_epoch(event)}   {done}   loss {event.loss:.4f}   {event.seconds:.0f} s, {event.seconds_left:.0f} s left"


def _epoch(event: "Event") -> str:
    return f"epoch {event.epoch:>{len(str(event.epochs))}}/{event.epochs}"


def _progress(*texts: str) -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    first, *rest = [TextColumn(text) for text in texts]
    return Progress(
        first,
        BarColumn(bar_width=24),
        *rest,
        TimeRemainingColumn(compact=True),
        console=Console(stderr=True),
        transient=True,
    )
