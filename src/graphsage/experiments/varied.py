"""Supervised GraphSAGE in the paper's form with one thing varied: Figures 2B and 3, depth and pooling.

The learning rate of every point is chosen on validation, as in Table 1: what suits one depth or aggregator may ruin
another. All else is fixed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphsage.experiments.data import Source, facts, opened
from graphsage.experiments.record import spread
from graphsage.experiments.session import Session
from graphsage.experiments.trials import make_trial
from graphsage.training.trials import Swept, Trial

SCORES = {"test_micro_f1": "test"}
"""What a point says, and what a trial calls it."""


@dataclass(frozen=True)
class Variant:
    """`told` is what a point says of it, `settings` what differs from the fixed ones."""

    label: str
    told: Mapping[str, Any]
    settings: Mapping[str, Any]


def fixed(session: Session, **more: Any) -> dict[str, Any]:
    """The settings that all points share."""
    return {"task": "supervised", "form": "paper", **session.profile.training["supervised"], **more}


def varied(session: Session, name: str, sources: Sequence[Source], variants: Sequence[Variant],
           settings: Mapping[str, Any], scores: Mapping[str, str] = SCORES) -> dict[str, Any]:  # fmt: skip
    """A body whose `points` say what each variant reached on each data set."""
    made = session.swept(_trials(name, "graphsage", sources, variants, settings))
    points = [{"data": data, **variants[number].told, **rate(session, found),
               **{told: spread(run[score] for run in found.runs.values()) for told, score in scores.items()}}
              for (data, number), found in made.items()]  # fmt: skip
    about = {source.name: facts(opened(source)) for source in sources}
    return {"data": about, "settings": dict(settings), "points": points}


def timed(session: Session, name: str, sources: Sequence[Source], variants: Sequence[Variant],
          settings: Mapping[str, Any], scores: Mapping[str, str] = SCORES) -> dict[str, Any]:  # fmt: skip
    """The same, where each point also has the time of its training step, all taken on one machine."""
    body = varied(session, name, sources, variants, settings, scores)
    few = {**settings, "steps": session.profile.timed_steps}
    named = [replace(variant, label=f"time {variant.label}") for variant in variants]
    machine, steps = session.timed(_trials(name, "timed step", sources, named, few))
    for point, step in zip(body["points"], steps.values(), strict=True):
        point |= {"step_milliseconds": round(step["step_milliseconds"], 3), "timed_on": machine}
    return body


def _trials(experiment: str, type: str, sources: Sequence[Source], variants: Sequence[Variant],
            settings: Mapping[str, Any]) -> dict[tuple[str, int], Trial]:  # fmt: skip
    return {(source.name, number): make_trial(experiment, type, variant.label, source,
                                                **{**settings, **variant.settings})
            for source in sources for number, variant in enumerate(variants)}  # fmt: skip


def rate(session: Session, found: Swept) -> dict[str, Any]:
    """The learning rate that validation chose, those it chose among, and how many there are."""
    return {"lr": found.chosen["lr"], "tried": [point["lr"] for point in found.points],
            "of": len(session.profile.space("supervised", "mean").grid())}  # fmt: skip
