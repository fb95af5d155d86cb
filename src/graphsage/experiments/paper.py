"""What the paper reports: Table 1, and the numbers of its text that ours are compared with."""

ROWS = (
    "Random",
    "Raw features",
    "DeepWalk",
    "DeepWalk + features",
    "GraphSAGE-GCN",
    "GraphSAGE-mean",
    "GraphSAGE-LSTM",
    "GraphSAGE-pool",
)
BASELINES, MODELS = ROWS[:4], ROWS[4:]
YARDSTICKS = ("Hop means", "GCN smoothing")
"""Ours: the features x with their means over one and two hops, and Equation 2 without weights, twice."""
SIMPLE_ROWS = {"Random": "random", "Raw features": "features", "Hop means": "hop means", "GCN smoothing": "smoothing"}
"""Rows without training, and the types of their trials."""
PLUS_FEATURES = " + features"
NAMES = {"gcn": "GraphSAGE-GCN", "mean": "GraphSAGE-mean", "lstm": "GraphSAGE-LSTM", "pool": "GraphSAGE-pool"}

_TABLE_1: dict[tuple[str, str], tuple[float | None, ...]] = {
    ("citation", "unsupervised"): (0.206, 0.575, 0.565, 0.701, 0.742, 0.778, 0.788, 0.798),
    ("citation", "supervised"): (0.206, 0.575, 0.565, 0.701, 0.772, 0.820, 0.832, 0.839),
    ("reddit", "unsupervised"): (0.043, 0.585, 0.324, 0.691, 0.908, 0.897, 0.907, 0.892),
    ("reddit", "supervised"): (0.042, 0.585, 0.324, 0.691, 0.930, 0.950, 0.954, 0.948),
    ("ppi", "unsupervised"): (0.396, 0.422, None, None, 0.465, 0.486, 0.482, 0.502),
    ("ppi", "supervised"): (0.396, 0.422, None, None, 0.500, 0.598, 0.612, 0.600),
}
"""Micro F1, in the order of ROWS; None where the paper has a dash."""

SETTINGS = tuple(_TABLE_1)
WILCOXON = {
    ("lstm", "gcn"): (1.0, 0.02),
    ("pool", "gcn"): (1.0, 0.02),
    ("mean", "gcn"): (1.0, 0.02),
    ("lstm", "mean"): (1.5, 0.03),
    ("pool", "mean"): (4.5, 0.10),
    ("lstm", "pool"): (10.0, 0.46),
}
"""Section 4.4: T and p of the signed-rank test over the six settings."""

FIGURES = {
    "figure2a": "DeepWalk 100-500 x slower at test time; GraphSAGE-LSTM slowest to train, about 2 x pool (4.3, 4.4)",
    "figure2b": "diminishing returns of larger samples, and a considerably longer runtime (4.3)",
    "depth": "K = 2 gains 10-15% over K = 1; K > 2 gains 0-5% at 10-100 x the time (4.3)",
    "figure3": "with random features pool keeps a modest F1, GCN does not (Appendix E)",
    "pooling": "max and mean pooling do not differ significantly (3.3)",
    "rotation": "embeddings of two DeepWalk runs are rotated against each other by an arbitrary matrix (Appendix D)",
    "theory": "clustering coefficients to any precision for K = 4 (Theorem 1); also from random features (Corollary 2)",
    "facts": "96% of the citation and 73% of the Reddit test edges lead back; 42% of the proteins have no features",
}
"""What the paper says where it gives no table."""


def published(column: str | None, task: str, row: str) -> float | None:
    """The cell of the paper's Table 1; None if it has none."""
    cells = _TABLE_1.get((column or "", task))
    return cells[ROWS.index(row)] if cells is not None and row in ROWS else None
