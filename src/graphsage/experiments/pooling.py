"""Section 3.3: max pooling beside mean pooling, which the paper found to be no different."""

from pathlib import Path

from graphsage.experiments.session import Session
from graphsage.experiments.varied import Variant, fixed, varied


def run(session: Session) -> Path:
    variants = [Variant(name, {"aggregator": name}, {"aggregator": name}) for name in ("pool", "meanpool")]
    body = varied(session, "pooling", session.sources, variants, fixed(session))
    body = session.joined("pooling", body, "points", lambda point: (point["data"], point["aggregator"]))
    return session.keep("pooling", "Section 3.3: max pooling and mean pooling, supervised", body)
