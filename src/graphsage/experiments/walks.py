"""DeepWalk's trials, and what validation chose among them.

A trial holds the scores of DeepWalk and of DeepWalk + features with both kinds of contexts, and where it was asked
to, also with features replaced by noise.
"""

from collections.abc import Sequence
from typing import Any

from graphsage.baselines.deepwalk import CONTEXTS
from graphsage.experiments.data import Source
from graphsage.experiments.session import Session
from graphsage.experiments.trials import make_trial
from graphsage.training.sweep import Swept, Trial, best

WALKS = ("DeepWalk", "DeepWalk + features")


def first_walks(session: Session, source: Source) -> list[Trial]:
    """Every rate with seed 0."""
    base = walk_trial(session, source)
    return [base.with_settings(lr=lr, seed=0) for lr in session.profile.deepwalk_rates]


def chosen_walks(session: Session, source: Source, asked: Sequence[tuple[str, float]]) -> list[Trial]:
    """The rates that validation chose for what is asked, a method and a level of noise each, with every seed."""
    found = [walked(session, source, *each) for each in asked]
    rates = dict.fromkeys(each.chosen["lr"] for each in found if each is not None)
    base = walk_trial(session, source)
    return [base.with_settings(lr=lr, seed=seed) for lr in rates for seed in range(session.seeds)]


def walked(session: Session, source: Source, name: str, noise: float = 0.0) -> Swept | None:
    """The sweep of one method as far as it was made. Scores on true features are the same whether or not a trial has
    met noise as well."""
    for trial in (walk_trial(session, source), _walk_trial(session, source)):
        made = _at_seed_0(session, trial)
        if made:
            break
    else:
        return None
    suffix = f" noise {noise}" if noise else ""
    points = [{"lr": lr, "contexts": contexts, "val": record["result"]["rows"][f"{name} {contexts}{suffix}"]["val"]}
              for lr, record in made.items() for contexts in CONTEXTS]  # fmt: skip
    chosen = best([(point["val"], {"lr": point["lr"], "contexts": point["contexts"]}) for point in points])
    again = session.trials.seeds(trial.with_settings(lr=chosen["lr"]), session.seeds)
    runs = {seed: record["result"]["rows"][f"{name} {chosen['contexts']}{suffix}"] for seed, record in again.items()}
    return Swept(chosen, points, runs, [*made.values(), *(record for seed, record in again.items() if seed)])


def walk_trial(session: Session, source: Source) -> Trial:
    """DeepWalk on a data set, still without rate and seed. On the set of Figure 3 it also meets the noise of that, and
    where an earlier piece has asked it to."""
    noisy = _walk_trial(session, source, session.profile.noise_levels)
    asked = source == session.evolving or bool(_at_seed_0(session, noisy))
    return noisy if asked else _walk_trial(session, source)


def _walk_trial(session: Session, source: Source, noises: Sequence[float] = (0.0,)) -> Trial:
    return make_trial("deepwalk", "DeepWalk", source, **session.profile.deepwalk, noises=list(noises))


def _at_seed_0(session: Session, trial: Trial) -> dict[float, dict[str, Any]]:
    """Records of the sweep by rate, as far as it was made."""
    rates = session.profile.deepwalk_rates
    records = {lr: session.trials.record(trial.with_settings(lr=lr, seed=0)) for lr in rates}
    return {lr: record for lr, record in records.items() if record is not None}
