"""Figure 3: F1 as features are replaced step by step with Gaussian noise, for GraphSAGE and the baselines."""

from typing import Any

from graphsage.experiments.data import facts, opened
from graphsage.experiments.paper import NAMES
from graphsage.experiments.record import spread
from graphsage.experiments.rows import walk_trial
from graphsage.experiments.session import Session
from graphsage.experiments.trials import make_trial
from graphsage.experiments.varied import fixed, rate
from graphsage.training.sweep import Trial


def run(session: Session) -> dict[str, Any]:
    source, profile = session.evolving, session.profile
    settings = fixed(session)
    plain = {level: make_trial("features", f"noise {level} features", source, noise=level)
             for level in profile.noise_levels}  # fmt: skip
    lines = {"Raw features": [spread(run["test"] for run in runs) for runs in session.runs(plain).values()]}
    trials: dict[tuple[str, float], Trial] = {}
    for aggregator in profile.noise_aggregators:
        for level in profile.noise_levels:
            label, own = f"noise {level} {aggregator}", {**settings, "aggregator": aggregator, "noise": level}
            trials[NAMES[aggregator], level] = make_trial("graphsage", label, source, **own)
    for (name, _), found in session.swept(trials).items():
        cell = spread(run["test"] for run in found.runs.values()) | rate(found)
        lines.setdefault(name, []).append(cell)
    if opened(source).one_graph:
        lines |= walked(session)
    body = {"data": {source.name: facts(opened(source))}, "settings": settings, "levels": list(profile.noise_levels),
            "lines": lines}  # fmt: skip
    session.keep("figure3", "Figure 3: test micro F1 by the share of feature columns replaced by noise", body)
    return body


def walked(session: Session) -> dict[str, list[Any]]:
    """DeepWalk reads no features: one level for all. DeepWalk + features loses what the features lose."""
    profile = session.profile
    noises = list(profile.noise_levels)
    trial = walk_trial(session, session.evolving).with_settings(lr=max(profile.deepwalk_rates))
    runs = session.runs({"DeepWalk": trial})["DeepWalk"]

    def tests(name: str) -> Any:
        best = max(("trained", "all"), key=lambda c: runs[0]["rows"][name.format(c)]["val"])
        return spread(run["rows"][name.format(best)]["test"] for run in runs)

    alone = tests("DeepWalk {}")
    suffixes = [f" noise {level}" if level else "" for level in noises]
    beside = [tests("DeepWalk + features {}" + suffix) for suffix in suffixes]
    return {"DeepWalk": [alone] * len(noises), "DeepWalk + features": beside}
