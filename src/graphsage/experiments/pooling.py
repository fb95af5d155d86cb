"""Section 3.3: max pooling beside mean pooling, which the paper found to be no different."""

from typing import Any

from graphsage.experiments.record import spread
from graphsage.experiments.session import Session
from graphsage.experiments.trials import make_trial


def run(session: Session) -> dict[str, Any]:
    settings = {"task": "supervised", "form": "paper", **session.profile.training["supervised"], "lr": 0.01}
    rows = []
    for source in session.sources:
        for aggregator in ("pool", "meanpool"):
            trial = make_trial("graphsage", f"pooling {aggregator}", source, **settings, aggregator=aggregator)
            runs = session.trials.run([trial.with_settings(seed=seed) for seed in range(session.seeds)])
            rows.append({"data": source.name, "aggregator": aggregator,
                         "test_micro_f1": spread(run["test"] for run in runs)})  # fmt: skip
    body = {"settings": settings, "rows": rows}
    session.keep("pooling", "Section 3.3: max pooling and mean pooling, supervised", body)
    return body
