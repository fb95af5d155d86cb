"""Figure 3: F1 as features are replaced step by step with Gaussian noise, for GraphSAGE and the baselines."""

from pathlib import Path
from typing import Any

from graphsage.experiments.data import facts, opened
from graphsage.experiments.paper import NAMES
from graphsage.experiments.record import spread
from graphsage.experiments.session import Session
from graphsage.experiments.trials import make_trial
from graphsage.experiments.varied import fixed, rate
from graphsage.experiments.walks import WALKS, chosen_walks, first_walks, walked
from graphsage.training.trials import Trial, Unfinished


def run(session: Session) -> Path:
    source, profile = session.evolving, session.profile
    settings = fixed(session)
    plain = {level: make_trial("figure3", "features", f"noise {level} features", source, noise=level)
             for level in profile.noise_levels}  # fmt: skip
    lines = {"Raw features": [spread(run["test"] for run in runs) for runs in session.runs(plain).values()]}
    trials: dict[tuple[str, float], Trial] = {}
    for aggregator in profile.noise_aggregators:
        for level in profile.noise_levels:
            label, own = f"noise {level} {aggregator}", {**settings, "aggregator": aggregator, "noise": level}
            trials[NAMES[aggregator], level] = make_trial("figure3", "graphsage", label, source, **own)
    for (name, _), found in session.swept(trials).items():
        cell = spread(run["test"] for run in found.runs.values()) | rate(session, found)
        lines.setdefault(name, []).append(cell)
    if opened(source).one_graph:
        lines |= walk_lines(session)
    body = {"data": {source.name: facts(opened(source))}, "settings": settings, "levels": list(profile.noise_levels),
            "lines": lines}  # fmt: skip
    return session.keep("figure3", "Figure 3: test micro F1 by the share of feature columns replaced by noise", body)


def walk_lines(session: Session) -> dict[str, list[Any]]:
    """DeepWalk reads no features: one level for all. DeepWalk + features loses what the features lose."""
    source, levels = session.evolving, session.profile.noise_levels
    alone, beside = WALKS
    asked = [(alone, 0.0), *((beside, level) for level in levels)]
    if session.walks:
        session.attempt(lambda: session.trials.run(first_walks(session, source, max(levels))))
        session.attempt(lambda: session.trials.run(chosen_walks(session, source, asked)))
    found = [walked(session, source, *each) for each in asked]
    cells = [spread(run["test"] for run in each.runs.values()) | each.chosen for each in found if each is not None]
    if len(cells) == len(asked):
        return {alone: cells[:1] * len(levels), beside: cells[1:]}
    if session.walks:
        raise Unfinished(session.left[-1])
    return {}  # left to another piece
