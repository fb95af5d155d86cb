"""What the figures, the theory and the data say about the claims of the paper."""

import statistics
from typing import Any

from graphsage.experiments.evidence import Found, Records, at_least, averaged, chance_of, missing
from graphsage.experiments.record import by_machine


def _cells(record: dict[str, Any]) -> list[dict[str, Any]]:
    """What a figure consists of."""
    lines = record.get("lines", {}).values()
    timed = [row["pass_seconds"] for rows in by_machine(record).values() for row in rows] if "device" in record else []
    return [*record.get("points", ()), *(cell for line in lines for cell in line), *timed]


def points_in_part(name: str, record: dict[str, Any] | None) -> list[str]:
    """How much of a figure has fewer seeds than the rest of it, or was made with less than the whole grid of rates."""
    if name not in ("figure2a", "figure2b", "figure3", "depth", "pooling"):
        return []
    cells = _cells(record or {})
    seeds = [len(cell.get("test_micro_f1", cell)["values"]) for cell in cells]
    few = sum(count < max(seeds) for count in seeds)
    swept = [cell for cell in cells if "tried" in cell]
    short = sum(len(cell["tried"]) < cell["of"] for cell in swept)
    told = [f"{few} of {len(seeds)} points with fewer than {max(seeds)} seeds"] if few else []
    told += [f"{short} of {len(swept)} points with fewer than {swept[0]['of']} learning rates"] if short else []
    return [f"{name} ({', '.join(told)})"] if told else []


def pooling(records: Records) -> Found:
    record = records["pooling"]
    if record is None:
        return missing("pooling")
    scores: dict[str, dict[str, dict[str, Any]]] = {}
    for point in record["points"]:
        scores.setdefault(point["data"], {})[point["aggregator"]] = point["test_micro_f1"]
    pairs = {data: (pair["pool"], pair["meanpool"]) for data, pair in scores.items()}
    apart = {data: 100 * (most["mean"] - mean["mean"]) for data, (most, mean) in pairs.items()}
    chances = {data: chance_of(most["values"], mean["values"]) for data, (most, mean) in pairs.items()}
    differ = [f"{data} (p = {chance:.3f})" for data, chance in chances.items() if chance is not None and chance <= 0.05]
    differ += [f"{data} by 2 points" for data, chance in chances.items() if chance is None and abs(apart[data]) >= 2]
    why = f"they differ on {' and '.join(differ)}" if differ else ""
    return Found(f"max minus mean: {averaged(apart, ' points')}", not differ, why)


def _depths(records: Records, a: int, b: int) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """The points at depths a and b of each data set and aggregator."""
    found: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for point in (records["depth"] or {"points": []})["points"]:
        found.setdefault((point["data"], point["aggregator"]), {})[point["k"]] = point
    return {" ".join(key): (ks[a], ks[b]) for key, ks in found.items() if a in ks and b in ks}


def _gains(records: Records, a: int, b: int) -> dict[str, float]:
    """Percent of F1 that depth b gains over depth a."""
    pairs = _depths(records, a, b)
    f1 = {key: [point["test_micro_f1"]["mean"] for point in pair] for key, pair in pairs.items()}
    return {key: 100 * (more / less - 1) for key, (less, more) in f1.items() if less}


def second_layer(records: Records) -> Found:
    gains = _gains(records, 1, 2)
    return at_least(gains, 5.0, "depth")


def third_layer(records: Records) -> Found:
    gains = _gains(records, 2, 3)
    if not gains:
        return missing("depth")
    mean = statistics.fmean(gains.values())
    why = "" if -2 <= mean <= 5 else f"{mean:+.1f}% is outside of -2% to +5%"
    return Found(averaged(gains), not why, why)


def third_layer_time(records: Records) -> Found:
    pairs = _depths(records, 2, 3)
    if not pairs:
        return missing("depth")
    factors = {key: three["step_milliseconds"] / two["step_milliseconds"] for key, (two, three) in pairs.items()}
    added = max(three["sample_sizes"][-1] for _, three in pairs.values())
    mean = statistics.geometric_mean(factors.values())
    ours = f"{mean:.1f} x, geometric mean ({', '.join(f'{name} {value:.1f} x' for name, value in factors.items())})"
    bound = f"a third sample of {added} makes the work {1 + added} times as much at most"
    if 1 + added < 10:
        return Found(ours, None, bound)
    return Found(ours, 10 <= mean <= 100, "" if 10 <= mean <= 100 else f"outside of 10 to 100: {bound}")


def subsampling(records: Records) -> Found:
    points = (records["figure2b"] or {"points": []})["points"]
    if len(points) < 3:
        return missing("figure2b")
    largest = points[-1]
    best = largest["test_micro_f1"]["mean"]
    enough = next(point for point in points if point["test_micro_f1"]["mean"] >= best - 0.01)
    share = enough["step_milliseconds"] / largest["step_milliseconds"]
    ours = (f"S {enough['sample_size']}: F1 {enough['test_micro_f1']['mean']:.3f} in {share:.2f} of the time of "
            f"S {largest['sample_size']} ({best:.3f})")  # fmt: skip
    return Found(ours, share <= 0.5, "" if share <= 0.5 else "more than half of the time")


def sample_size(records: Records) -> Found:
    record = records["figure2b"]
    if record is None or len(record["points"]) < 3:
        return missing("figure2b")
    scores = [point["test_micro_f1"]["mean"] for point in record["points"]]
    sizes = [point["sample_size"] for point in record["points"]]
    first, last = scores[1] - scores[0], scores[-1] - scores[-2]
    ours = f"S {sizes[0]} to {sizes[1]}: {100 * first:+.1f} points; {sizes[-2]} to {sizes[-1]}: {100 * last:+.1f}"
    if first <= 0:
        return Found(ours, False, "more neighbors gain nothing to begin with")
    return Found(ours, last < first, "" if last < first else "the last step gains as much as the first")


def noise(records: Records) -> Found:
    record, table = records["figure3"], records["table1"]
    if record is None or table is None:
        return missing("figure3", "table1")
    at_noise = {name: line[-1]["mean"] for name, line in record["lines"].items()}
    if not {"GraphSAGE-pool", "GraphSAGE-GCN"} <= at_noise.keys():
        return missing("figure3 with pool and GCN")
    data = next(iter(record["data"]))
    chance = next(
        (r["test_micro_f1"]["mean"] for r in table["rows"] if (r["data"], r["row"]) == (data, "Random")), None
    )
    if chance is None:
        return missing(f"table1 with {data}")
    pool, gcn = at_noise["GraphSAGE-pool"], at_noise["GraphSAGE-GCN"]
    above = pool >= gcn + 0.01
    holds = pool >= chance + 0.05 and above
    ours = ", ".join(f"{name} {value:.3f}" for name, value in at_noise.items()) + f", random classifier {chance:.3f}"
    why = "" if holds else "pool is close to the random classifier" if above else "pool is not a point above GCN"
    return Found(ours, holds, why)


def rotation(records: Records) -> Found:
    record = records["rotation"]
    if record is None:
        return missing("rotation")
    same, other, aligned = (row["test_micro_f1"]["mean"] for row in record["rows"])
    holds = other <= same / 2 and aligned >= other + (same - other) / 2
    return Found(f"same run {same:.3f}, other run {other:.3f}, aligned {aligned:.3f}", holds,
                 "" if holds else "the two runs are closer, or alignment helps less")  # fmt: skip


def theorem(records: Records) -> Found:
    record = records["theory"]
    if record is None:
        return missing("theory")
    worst = max(row["largest_error"] for row in record["constructed"])
    small = worst < record["epsilon"]
    return Found(f"largest error {worst:.0e} on {len(record['constructed'])} graphs", small,
                 "" if small else f"not below {record['epsilon']:g}")  # fmt: skip


def learned(records: Records) -> Found:
    record = records["theory"]
    if record is None:
        return missing("theory")
    scores = {row["aggregator"]: row["r2_new_graphs"] for row in record["learned"]}
    each = ", ".join(f"{name} {cell['mean']:.2f}" for name, cell in scores.items())
    best = max(scores, key=lambda name: float(scores[name]["mean"]))
    if best != "pool":
        return Found(f"R2 on new graphs: {each}", False, f"{best} explains more")
    chances = {name: chance_of(scores["pool"]["values"], cell["values"]) for name, cell in scores.items()}
    close = [f"{name} (p = {chance:.2f})" for name, chance in chances.items()
             if name != "pool" and chance is not None and chance > 0.05]  # fmt: skip
    return Found(f"R2 on new graphs: {each}", not close, f"no more than {' and '.join(close)}" if close else "")


def _fact(records: Records, name: str, data: str) -> float | None:
    record = records["facts"]
    rows = [] if record is None else record["rows"]
    return next((float(row[name]) for row in rows if row["data"] == data), None)


def _near(share: float, paper: float, apart: float, digits: int = 0) -> Found:
    near = abs(share - paper) <= apart
    why = "" if near else f"more than {100 * apart:.0f} points from {paper:.0%}"
    return Found(f"{100 * share:.{digits}f}%", near, why)


def edges_back(records: Records) -> Found:
    share, other = (_fact(records, "edges_back", name) for name in ("citation", "setmm"))
    if records["facts"] is None:
        return missing("facts")
    if share is None:
        return Found("–" if other is None else f"{100 * other:.0f}% on the stand-in", None,
                     "the citation data is closed: a fact about it says nothing about another graph")  # fmt: skip
    return _near(share, 0.96, 0.05)


def reddit_edges_back(records: Records) -> Found:
    share = _fact(records, "edges_back", "reddit")
    if records["facts"] is None:
        return missing("facts")
    if share is None:
        return Found("–", None, "Reddit was not given (--data reddit=PATH)")
    return _near(share, 0.73, 0.05)


def empty_proteins(records: Records) -> Found:
    share = _fact(records, "nodes_without_features", "ppi")
    if records["facts"] is None:
        return missing("facts")
    if share is None:
        return Found("–", None, "PPI was not given (--data ppi=PATH)")
    return _near(share, 0.42, 0.02, digits=1)
