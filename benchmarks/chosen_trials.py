"""The trials that `graphsage reproduce all --chosen` lacks, of all experiments in one pool.

    python -m benchmarks.chosen_trials --data setmm --data ppi=PPI --data debian=DEBIAN --seeds 5 --jobs 13 --minutes 8

`reproduce` finishes one experiment after another, and most of a pool is idle while the last trials of each one end.
This command collects the missing trials of all of them, cheapest first by their times under the older protocol, so that
a short time on a GPU completes many rows. Timed trials are left to `reproduce`, which makes them alone. Afterwards
`graphsage reproduce all --minutes 0` with the same data and seeds rebuilds the results from all finished trials.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from graphsage.experiments.reproduce import RUNS, open_session, report_trial
from graphsage.experiments.session import EXPERIMENT_TYPES, Inapplicable
from graphsage.experiments.trial_runners import TYPES
from graphsage.training.trials import Result, Runner, Trial, TrialKey, TrialStore, Unfinished


@dataclass
class Collector(Runner):
    """Makes no trial, and keeps those that the store lacks."""

    missing: dict[TrialKey, Trial] = field(default_factory=dict)

    def run(self, trials: Iterable[Trial], *, alone: bool = False) -> list[Result]:
        asked = list(trials)
        lacking = {trial.key: trial for trial in asked if self.store.get(trial) is None}
        if not alone:
            self.missing.update(lacking)
        if lacking:
            raise Unfinished(len(lacking))
        return [record["result"] for trial in asked if (record := self.record(trial)) is not None]


def missing_trials(data: list[str], profile: str, out: Path, seeds: int | None, device: str) -> list[Trial]:
    """Of all experiments, cheapest first. A trial whose time is not known comes last."""
    store = TrialStore(out / "trials" / profile)
    with TemporaryDirectory() as elsewhere:  # results that lack trials are not for OUT
        session = open_session(data, profile, Path(elsewhere), seeds=seeds, device=device, chosen=True)
        collector = Collector(store, session.trials.evaluate, about=session.trials.about)
        session = replace(session, trials=collector)
        for name in EXPERIMENT_TYPES:
            try:
                RUNS[name](session)
            except Unfinished:
                continue
            except Inapplicable as reason:
                print(f"{name} is left out: {reason}", file=sys.stderr)
    return sorted(collector.missing.values(), key=lambda trial: seconds(store, trial))


def seconds(store: TrialStore, trial: Trial) -> float:
    """Of the same trial under an older protocol, else of the longest one with its label."""
    newest = store.newest(trial)
    alike = [record for record in store.records(trial.experiment) if record["label"] == trial.label]
    times = [float(record["result"].get("seconds", 0.0)) for record in ([newest] if newest else alike)]
    return max(times, default=float("inf"))


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", action="append", required=True, metavar="NAME[=PATH]")
    options.add_argument("--profile", default="full")
    options.add_argument("--seeds", type=int)
    options.add_argument("--out", type=Path, default=Path("results"))
    options.add_argument("--jobs", type=int, default=1, help="trials at once")
    options.add_argument("--minutes", type=float, help="no trial is started that would end later")
    options.add_argument("--device", default="auto")
    options.add_argument("--labels", nargs="+", default=[""], help="only labels that contain one of these words")
    options.add_argument("--cpu-only", action=argparse.BooleanOptionalAction, help="only, or no, types without a GPU")
    options.add_argument("--list", action="store_true", help="count them and make none")
    asked = options.parse_args()
    found = [
        trial
        for trial in missing_trials(asked.data, asked.profile, asked.out, asked.seeds, asked.device)
        if any(word in trial.label for word in asked.labels) and asked.cpu_only in (None, TYPES[trial.type].cpu_only)
    ]
    store = TrialStore(asked.out / "trials" / asked.profile)
    spent = sum(each for trial in found if (each := seconds(store, trial)) < float("inf"))
    print(f"{len(found)} trials are missing, {spent:.0f} s under the older protocol", file=sys.stderr)
    if asked.list:
        for (experiment, label), count in Counter((trial.experiment, trial.label) for trial in found).items():
            print(f"{experiment:10} {count:4}  {label}")
        return 0
    session = open_session(
        asked.data,
        asked.profile,
        asked.out,
        seeds=asked.seeds,
        jobs=asked.jobs,
        device=asked.device,
        minutes=asked.minutes,
        on_done=report_trial,
    )
    try:
        session.trials.run(found)
    except Unfinished as more:
        print(more, file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
