"""Section 3.3: max pooling beside mean pooling, which the paper found to be no different."""

from typing import Any

from graphsage.experiments.record import spread
from graphsage.experiments.session import Session
from graphsage.experiments.trials import make_trial


def run(session: Session) -> dict[str, Any]:
    settings = {"task": "supervised", "form": "paper", **session.profile.training["supervised"], "lr": 0.01}
    made = session.runs({
        (source.name, aggregator): make_trial("graphsage", aggregator, source, **settings, aggregator=aggregator)
        for source in session.sources for aggregator in ("pool", "meanpool")
    })  # fmt: skip
    rows = [{"data": data, "aggregator": aggregator, "test_micro_f1": spread(run["test"] for run in runs)}
            for (data, aggregator), runs in made.items()]  # fmt: skip
    body = {"settings": settings, "rows": rows}
    session.keep("pooling", "Section 3.3: max pooling and mean pooling, supervised", body)
    return body
