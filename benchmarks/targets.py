"""What the CPU benchmark must show: ratios of times measured in one run, each beside its target."""

from dataclasses import dataclass
from typing import Any

Found = dict[str, dict[str, Any]]
"""What a group measured, by "who: task"."""


@dataclass(frozen=True)
class Target:
    """`over` / `under` within one group. Without a limit the ratio is stated and not judged: it says how far any
    implementation could get."""

    group: str
    over: str
    under: str
    sense: str = ""
    limit: float | None = None
    compiled: float | None = None
    """The limit on a machine that has a C++ compiler, where that is another one."""

    @property
    def name(self) -> str:
        return f"{self.group}: {self.over} / {self.under}"


TARGETS = (
    Target("mean", "ours", "floor", "at most", 1.5, 1.35),
    Target("mean", "without a compiler", "floor", "at most", 1.5),
    Target("mean", "PyG", "ours", "at least", 5.0),
    Target("mean", "DGL", "ours", "at least", 4.5),
    Target("mean", "GraphBolt", "ours", "at least", 4.5),
    Target("mean, neighbors given", "best peer", "ours", "at least", 1.0),
    Target("mean", "our memory", "lowest memory of a peer", "at most", 1.0),
    Target("gcn", "ours", "floor", "at most", 1.5, 1.35),
    Target("gcn", "without a compiler", "floor", "at most", 1.5),
    Target("pool", "best peer", "ours", "at least", 2.0),
    Target("pool", "ours", "floor"),
    Target("pool", "best peer", "floor"),
    Target("lstm", "best peer", "ours", "at least", 4.0),
    Target("lstm", "ours", "floor"),
    Target("lstm", "best peer", "floor"),
    Target("inference", "DGL", "ours", "at least", 2.0),
    Target("inference", "ours", "floor"),
    Target("inference", "DGL", "floor"),
    Target("sampling", "best peer", "ours", "at least", 1.0),
    Target("walks", "best peer", "ours", "at least", 1.0),
    Target("build", "best peer", "ours", "at least", 1.0),
    Target("open a saved graph", "best peer", "ours", "at least", 1.0),
    Target("CSV to graph, PPI-shaped", "best peer", "ours", "at least", 1.0),
    Target("PPI-shaped", "best peer", "ours", "at least", 2.0),
)


def judge(results: dict[str, Found], compiler: bool) -> list[dict[str, Any]]:
    """Each target beside what was measured; a ratio with a side missing is left open."""
    rows = []
    for target in TARGETS:
        if target.group not in results:
            continue
        over, under = (quantity(results[target.group], name) for name in (target.over, target.under))
        ratio = over / under if over and under else None
        limit = target.compiled if compiler and target.compiled else target.limit
        met = None
        if ratio is not None and limit is not None:
            met = ratio <= limit if target.sense == "at most" else ratio >= limit
        told = f"{target.sense} {limit}" if limit is not None else "stated"
        rows.append({"ratio": target.name, "measured": ratio, "target": told, "met": met})
    return rows


def quantity(found: Found, name: str) -> float | None:
    """Seconds, or bytes where memory is asked for; None where it was not measured."""
    peers = {key: value for key, value in found.items() if key.startswith(("pyg: ", "dgl: "))}
    ours = {key: value for key, value in found.items() if key.startswith("ours: ")}
    if name == "our memory":
        return min(_known(ours, "peak_bytes"), default=None)
    if name == "lowest memory of a peer":
        return min(_known(peers, "peak_bytes"), default=None)
    if name == "floor":  # reading and products, one after the other
        parts = {key: value for key, value in found.items() if key.startswith("floor: ")}
        known = _known(parts, "seconds")
        return sum(known) if parts and len(known) == len(parts) else None
    bolt = {key for key in peers if "graphbolt" in key}
    chosen = {
        "ours": set(ours),
        "without a compiler": {key for key in found if key.startswith("plain: ")},
        "PyG": {key for key in peers if key.startswith("pyg: ")},
        "GraphBolt": bolt,
        "DGL": {key for key in peers if key.startswith("dgl: ")} - bolt,
        "best peer": set(peers),
    }[name]
    return min(_known({key: found[key] for key in chosen}, "seconds"), default=None)


def _known(entries: Found, what: str) -> list[float]:
    return [float(value[what]) for value in entries.values() if what in value]
