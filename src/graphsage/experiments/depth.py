"""Section 4.3: F1 and time for K = 1, 2 and 3."""

from typing import Any

from graphsage.experiments.data import facts, opened
from graphsage.experiments.record import spread
from graphsage.experiments.session import Session
from graphsage.experiments.trials import make_trial

AGGREGATORS = ("mean", "pool")


def run(session: Session) -> dict[str, Any]:
    settings = {"task": "supervised", "form": "paper", **session.profile.training["supervised"], "lr": 0.01}
    made = session.runs({
        (source.name, aggregator, sizes): make_trial(
            "graphsage", f"K {len(sizes)} {aggregator}", source,
            **settings | {"aggregator": aggregator, "sample_sizes": sizes},
        )
        for source in session.sources for aggregator in AGGREGATORS for sizes in session.profile.depths
    })  # fmt: skip
    points = [
        {
            "data": data, "aggregator": aggregator, "k": len(sizes), "sample_sizes": list(sizes),
            "test_micro_f1": spread(run["test"] for run in runs),
            "seconds": spread(run["train_seconds"] for run in runs),
        }
        for (data, aggregator, sizes), runs in made.items()
    ]  # fmt: skip
    body = {"data": {source.name: facts(opened(source)) for source in session.sources}, "settings": settings,
            "points": points}  # fmt: skip
    session.keep("depth", "Section 4.3: supervised GraphSAGE at depth K = 1, 2 and 3", body)
    return body
