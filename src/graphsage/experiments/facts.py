"""Facts about the data that the paper states of its own: where test edges lead, and how many nodes have no features."""

from pathlib import Path

from graphsage.experiments.data import Named, facts, opened
from graphsage.experiments.session import Session
from graphsage.graph.split import TRAIN


def run(session: Session) -> Path:
    body = {
        "data": {source.name: facts(opened(source)) for source in session.sources},
        "rows": [{"data": source.name, **measured(opened(source))} for source in session.sources],
    }
    body = session.joined("facts", body, "rows", lambda row: str(row["data"]))
    return session.keep("facts", "Appendices B and D: edges back to training nodes, nodes without features", body)


def measured(data: Named) -> dict[str, float]:
    """Of the edges at unseen nodes, the share that lead to training nodes; the share of nodes with features all 0."""
    graph = data.graph
    seen = data.split.codes == TRAIN
    from_unseen = ~seen[graph.edge_rows]
    back = seen[graph.indices.long()] & from_unseen
    # An edge between two unseen nodes is stored twice, one that leads back only once at its unseen end.
    inner = int((from_unseen & ~back).sum()) / (1 if graph.directed else 2)
    share = int(back.sum()) / max(int(back.sum()) + inner, 1)
    empty = 0.0 if graph.features is None else float((graph.features == 0).all(dim=1).double().mean())
    return {"edges_back": round(share, 4), "nodes_without_features": round(empty, 4)}
