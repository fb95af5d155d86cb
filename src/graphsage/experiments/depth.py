"""Section 4.3: F1 and time for K = 1, 2 and 3."""

from typing import Any

from graphsage.experiments.data import facts, opened
from graphsage.experiments.record import spread
from graphsage.experiments.session import Session
from graphsage.experiments.trials import make_trial

AGGREGATORS = ("mean", "pool")


def run(session: Session) -> dict[str, Any]:
    points = []
    settings = {"task": "supervised", "form": "paper", **session.profile.training["supervised"], "lr": 0.01}
    for source in session.sources:
        for aggregator in AGGREGATORS:
            for sizes in session.profile.depths:
                changed = settings | {"aggregator": aggregator, "sample_sizes": sizes}
                trial = make_trial("graphsage", f"K {len(sizes)} {aggregator}", source, **changed)
                runs = session.trials.run([trial.with_settings(seed=seed) for seed in range(session.seeds)])
                points.append({
                    "data": source.name, "aggregator": aggregator, "k": len(sizes), "sample_sizes": list(sizes),
                    "test_micro_f1": spread(run["test"] for run in runs),
                    "seconds": spread(run["train_seconds"] for run in runs),
                })  # fmt: skip
    body = {"data": {source.name: facts(opened(source)) for source in session.sources}, "settings": settings,
            "points": points}  # fmt: skip
    session.keep("depth", "Section 4.3: supervised GraphSAGE at depth K = 1, 2 and 3", body)
    return body
