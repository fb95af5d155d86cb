"""The paper's evaluation, or one table or figure of it, in one command or several: `graphsage reproduce`."""

import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from graphsage.errors import ConfigError
from graphsage.experiments import figures
from graphsage.experiments.claims import claims, wilcoxon
from graphsage.experiments.data import Source, parse_data
from graphsage.experiments.profile import FULL, Profile, profile_named
from graphsage.experiments.record import EXPERIMENTS, hardware, versions
from graphsage.experiments.report import write_report
from graphsage.experiments.session import ONLY, Inapplicable, Session
from graphsage.experiments.table1 import table1
from graphsage.experiments.trial_runners import Evaluate
from graphsage.training.train import choose_device
from graphsage.training.trials import Result, Runner, Trial, TrialStore, Unfinished

RUNS: dict[str, Callable[[Session], Path]] = {
    "table1": table1,
    "figure2a": figures.figure2a,
    "figure2b": figures.figure2b,
    "depth": figures.depth,
    "figure3": figures.figure3,
    "pooling": figures.pooling,
    "rotation": figures.rotation,
    "theory": figures.theory,
    "facts": figures.facts,
    "wilcoxon": wilcoxon,
    "claims": claims,
}
READERS = ("wilcoxon", "claims")
"""They read the results of other experiments, and no data."""
MORE = 3  # exit code: the time budget is spent, and trials are left


def reproduce(what: str, session: Session) -> list[Path]:
    """Run one experiment or `all`; return the files. Unfinished: the time budget ended, partial results are written."""
    written = []
    _check_folder(what, session)
    for name in names(what):
        try:
            written.append(RUNS[name](session))
        except Unfinished:
            session.trials.used.clear()  # session.left counts its trials; the next result has its own
        except Inapplicable as reason:
            if what != "all":
                raise
            print(f"{name} is left out: {reason}", file=sys.stderr, flush=True)
    if what == "all":
        written.append(write_report(session.out))
    if session.left:
        raise Unfinished(sum(session.left))
    return written


def _check_folder(what: str, session: Session) -> None:
    """A quick run must not replace the results of a full one in the same folder."""
    for name in names(what):
        found = None if name in READERS else session.earlier(name)
        if found is not None and found["profile"] == FULL.name != session.profile.name:
            raise ConfigError(
                f"{session.out / name}.json is of profile {FULL.name}, and this run is of profile "
                f"{session.profile.name}; choose another folder with --out, or delete it"
            )


def names(what: str) -> tuple[str, ...]:
    if what == "all":
        return EXPERIMENTS
    if what not in EXPERIMENTS:
        raise ConfigError(f"there is no experiment {what!r}; there are all, {', '.join(EXPERIMENTS)} and report")
    return (what,)


def open_session(
    data: Sequence[str], profile: str, out: Path, *, what: str = "all", only: str = "", rates: str = "", **options: Any
) -> Session:
    """A session from words of a command line."""
    sources = () if what in READERS and not data else parse_data(data)
    try:
        swept = [float(rate) for rate in rates.split(",") if rate]
    except ValueError:
        raise ConfigError(f"--rates takes numbers, such as 0.01,0.001; got {rates!r}") from None
    words = [word for word in only.split(",") if word]
    if what not in ("all", "table1") and (words or options.get("small")):
        raise ConfigError(f"--only and --small choose a piece of table1; {what} has no such pieces")
    for word in words:
        if word not in ONLY:
            raise ConfigError(f"--only takes {', '.join(ONLY)}; got {word!r}")
    return start(sources, profile_named(profile), out, only=words, rates=swept, **options)


def start(
    sources: tuple[Source, ...],
    profile: Profile,
    out: Path,
    *,
    seeds: int | None = None,
    jobs: int = 1,
    device: str = "auto",
    minutes: float | None = None,
    only: Sequence[str] = (),
    rates: Sequence[float] = (),
    small: bool = False,
    deepwalk: bool = True,
    chosen: bool = False,
    tf32: bool = False,
    on_done: Any = None,
) -> Session:
    """A session whose trials are in `OUT/trials/PROFILE`; after `minutes` no new trial is started."""
    if seeds is not None and seeds < 1:
        raise ConfigError(f"seeds must be at least 1; got {seeds}")
    if jobs < 1:
        raise ConfigError(f"jobs must be at least 1; got {jobs}")
    if minutes is not None and not 0 <= minutes < math.inf:
        raise ConfigError(f"--minutes must be a finite number, 0 or more; got {minutes}")
    if tf32 and choose_device(device).type != "cuda":
        raise ConfigError("--tf32 needs a GPU, and there is none here; leave it out")
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    about = {"hardware": hardware(device, tf32=tf32), "versions": versions()}
    store, evaluate = TrialStore(out / "trials" / profile.name), Evaluate(sources, device, tf32)
    trials = Runner(store, evaluate, jobs, deadline, on_done, about)
    return Session(
        sources, profile, out, trials, seeds or profile.seeds, frozenset(only), tuple(rates), small, deepwalk, chosen
    )


def report_trial(trial: Trial, result: Result, done: int, total: int) -> None:
    """One line on stderr for each trial that was made."""
    scores = [f"{name} {result[name]:.3f}" for name in ("val", "test") if isinstance(result.get(name), float)]
    words = [f"{done}/{total}", trial.label, *scores, f"{result['seconds']:.0f} s"]
    print("  ".join(words), file=sys.stderr, flush=True)
