"""Figure 2B: F1 and time of GraphSAGE-mean against the size of the sampled neighborhood, S1 = S2."""

from typing import Any

from graphsage.experiments.data import facts, opened
from graphsage.experiments.record import spread
from graphsage.experiments.session import Session
from graphsage.experiments.trials import make_trial


def run(session: Session) -> dict[str, Any]:
    source = session.evolving
    settings = {"task": "supervised", "form": "paper", "aggregator": "mean", **session.profile.training["supervised"],
                "lr": 0.01}  # fmt: skip
    # Inference is sampled too, as in the paper: the size counts at test time as well.
    made = session.runs(
        {
            size: make_trial(
                "graphsage", f"S {size}", source, **settings | {"sample_sizes": (size, size)}, sampled=True
            )
            for size in session.profile.sample_sizes
        }
    )
    points = [
        {
            "sample_size": size,
            "test_micro_f1": spread(run["sampled_test"] for run in runs),
            "exact_test_micro_f1": spread(run["test"] for run in runs),
            "seconds": spread(run["train_seconds"] for run in runs),
        }
        for size, runs in made.items()
    ]
    body = {"data": {source.name: facts(opened(source))}, "settings": settings, "points": points}
    session.keep("figure2b", "Figure 2B: supervised GraphSAGE-mean by neighborhood sample size S1 = S2", body)
    return body
