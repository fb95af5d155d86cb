"""Section 4.3: F1 and time for K = 1, 2 and 3."""

from pathlib import Path

from graphsage.experiments.session import Session
from graphsage.experiments.varied import Variant, fixed, timed

AGGREGATORS = ("mean", "pool")


def run(session: Session) -> Path:
    variants = [
        Variant(f"K {len(sizes)} {aggregator}",
                {"aggregator": aggregator, "k": len(sizes), "sample_sizes": list(sizes)},
                {"aggregator": aggregator, "sample_sizes": sizes})
        for aggregator in AGGREGATORS for sizes in session.profile.depths
    ]  # fmt: skip
    body = timed(session, "depth", session.sources, variants, fixed(session))
    body = session.joined("depth", body, "points", lambda point: (point["data"], point["aggregator"], point["k"]))
    return session.keep("depth", "Section 4.3: supervised GraphSAGE at depth K = 1, 2 and 3", body)
