"""The paper's evaluation, or one table or figure of it, in one command or several.

python -m graphsage.experiments.reproduce all --data ppi=PATH --data setmm --data debian=PATH --profile quick
`graphsage reproduce` is the same command; this one needs no more than torch, NumPy, SciPy, scikit-learn and pyarrow.
"""

import argparse
import importlib.util
import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from graphsage.errors import ConfigError, GraphSageError
from graphsage.experiments import figures
from graphsage.experiments.claims import claims, wilcoxon
from graphsage.experiments.data import Source, parse_data
from graphsage.experiments.profile import AGGREGATORS, FULL, TASKS, Profile, profile_named
from graphsage.experiments.record import EXPERIMENTS, hardware, versions
from graphsage.experiments.report import write_report
from graphsage.experiments.session import Inapplicable, Session
from graphsage.experiments.table1 import FORMS, table1
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
ONLY = (*TASKS, *FORMS, *AGGREGATORS)
MORE = 3  # exit code: the time budget is spent, and trials are left


def reproduce(what: str, session: Session) -> list[Path]:
    """Make one experiment or `all`; each is written as soon as it is there, and where the time of the sitting is over,
    as far as it is there: then Unfinished is raised at the end. `all` ends with the report, where matplotlib is there
    to draw its pictures. Returns the files written."""
    written = []
    _check_folder(what, session)
    for name in names(what):
        try:
            written.append(RUNS[name](session))
        except Unfinished:
            session.trials.used.clear()  # session.left knows of it; the next result has trials of its own
        except Inapplicable as reason:
            if what != "all":
                raise
            print(f"{name} is left out: {reason}", file=sys.stderr, flush=True)
    if what == "all" and importlib.util.find_spec("matplotlib") is not None:
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
    walks: bool = True,
    tf32: bool = False,
    on_done: Any = None,
) -> Session:
    """A session whose trials are in `OUT/trials/PROFILE`; after `minutes` no new trial is started."""
    if seeds is not None and seeds < 1:
        raise ConfigError(f"seeds must be at least 1; got {seeds}")
    if jobs < 1:
        raise ConfigError(f"jobs must be at least 1; got {jobs}")
    if minutes is not None and not 0 <= minutes < math.inf:
        raise ConfigError(f"--minutes must be a number from 0 on; got {minutes}")
    if tf32 and choose_device(device).type != "cuda":
        raise ConfigError("--tf32 is for a GPU, and there is none to use here; leave it out")
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    trials = Runner(
        TrialStore(out / "trials" / profile.name),
        Evaluate(sources, device, tf32),
        jobs,
        deadline,
        on_done,
        {"hardware": hardware(device, tf32=tf32), "versions": versions()},
    )
    return Session(sources, profile, out, trials, seeds or profile.seeds, frozenset(only), tuple(rates), small, walks)


def tell(trial: Trial, result: Result, done: int, total: int) -> None:
    """One line for each trial that was made."""
    scores = [f"{name} {result[name]:.3f}" for name in ("val", "test") if isinstance(result.get(name), float)]
    words = [f"{done}/{total}", trial.label, *scores, f"{result['seconds']:.0f} s"]
    print("  ".join(words), file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["all", *EXPERIMENTS, "report"])
    parser.add_argument("--data", action="append", default=[], metavar="NAME[=PATH]")
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", default="auto")
    parser.add_argument(
        "--minutes", type=float, help="time budget: skips trials expected to exceed it; exit code 3 if trials are left"
    )
    parser.add_argument("--only", default="", help="tasks, forms and aggregators of table1, such as supervised,mean")
    parser.add_argument("--rates", default="", help="make only these of the profile's learning rates")
    parser.add_argument("--small", action="store_true", help="make only the small models of pool and LSTM")
    parser.add_argument("--no-deepwalk", action="store_true", help="make no DeepWalk trials (table1, figure3)")
    parser.add_argument("--tf32", action="store_true", help="multiply in TF32 on a GPU")
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args(arguments)
    try:
        if options.what == "report":
            print(write_report(options.out))
            return 0
        session = open_session(
            options.data,
            options.profile,
            options.out,
            what=options.what,
            only=options.only,
            seeds=options.seeds,
            jobs=options.jobs,
            device=options.device,
            minutes=options.minutes,
            rates=options.rates,
            small=options.small,
            walks=not options.no_deepwalk,
            tf32=options.tf32,
            on_done=tell,
        )
        reproduce(options.what, session)
    except Unfinished as more:
        print(more, file=sys.stderr)
        return MORE
    except GraphSageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
