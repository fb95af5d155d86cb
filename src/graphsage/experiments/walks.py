"""DeepWalk's trials, and what validation chose among them.

A trial holds the scores of DeepWalk and of DeepWalk + features with both kinds of contexts, and where it was asked
to, also with features replaced by noise.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from graphsage.baselines.deepwalk import CONTEXTS
from graphsage.experiments.data import Source
from graphsage.experiments.session import Session
from graphsage.experiments.trials import make_trial
from graphsage.training.trials import Result, Swept, Trial

WALKS = ("DeepWalk", "DeepWalk + features")


def first_walks(session: Session, source: Source, noise: float = 0.0) -> list[Trial]:
    """Every rate with seed 0."""
    return [_needed(session, source, lr, 0, noise) for lr in session.profile.deepwalk_rates]


def chosen_walks(session: Session, source: Source, asked: Sequence[tuple[str, float]]) -> list[Trial]:
    """The rates that validation chose for what is asked, a method and a level of noise each, with every seed."""
    found = {each: walked(session, source, *each) for each in asked}
    return [_needed(session, source, made.chosen["lr"], seed, noise)
            for (_, noise), made in found.items() if made is not None for seed in range(session.seeds)]  # fmt: skip


def walked(session: Session, source: Source, name: str, noise: float = 0.0) -> Swept | None:
    """The sweep of one method as far as it was made."""
    found = {lr: _records(session, source, lr, noise) for lr in session.profile.deepwalk_rates}
    swept = {lr: records for lr, records in found.items() if 0 in records}
    if not swept:
        return None
    suffix = f" noise {noise}" if noise else ""

    def row(record: Mapping[str, Any], contexts: str) -> Result:
        own: Result = record["result"]["rows"][f"{name} {contexts}{suffix}"]
        return own

    points = [{"lr": lr, "contexts": contexts, "val": row(records[0], contexts)["val"]}
              for lr, records in swept.items() for contexts in CONTEXTS]  # fmt: skip
    chosen = {name: value for name, value in max(points, key=lambda point: point["val"]).items() if name != "val"}
    again = swept[chosen["lr"]]
    runs = {seed: row(record, chosen["contexts"]) for seed, record in again.items()}
    firsts = [records[0] for records in swept.values()]
    return Swept(chosen, points, runs, [*firsts, *(record for seed, record in again.items() if seed)])


def _needed(session: Session, source: Source, lr: float, seed: int, noise: float) -> Trial:
    """The trial that holds what is asked: one that was made, if there is one. On the set of Figure 3, features meet
    noise in the same trial as Table 1's."""
    noisy, plain = (trial.with_settings(seed=seed) for trial in _kinds(session, source, lr))
    if noise or session.trials.record(noisy) is not None:
        return noisy
    made = session.trials.record(plain) is not None
    return plain if made or source != session.evolving else noisy


def _records(session: Session, source: Source, lr: float, noise: float) -> dict[int, dict[str, Any]]:
    """By seed. Scores on true features are the same whether or not a trial has met noise as well."""
    noisy, plain = (session.trials.seeds(trial, session.seeds) for trial in _kinds(session, source, lr))
    return noisy if noise else dict(sorted((plain | noisy).items()))


def _kinds(session: Session, source: Source, lr: float) -> tuple[Trial, Trial]:
    """With the noise of Figure 3, and without."""
    noisy, plain = (make_trial("table1", "deepwalk", "DeepWalk", source, **session.profile.deepwalk,
                               noises=list(levels), lr=lr)
                    for levels in (session.profile.noise_levels, (0.0,)))  # fmt: skip
    return noisy, plain
