"""What the figures, the theory and the data say about the claims of the paper."""

import statistics
from dataclasses import replace
from typing import Any

from graphsage.experiments.evidence import Found, Records, at_least, missing, told
from graphsage.experiments.figure2a import PASSES

HEAVY = "our DeepWalk is lean, and LSTM and pool are heavy here"


def _timed(records: Records) -> dict[str, dict[str, Any]]:
    record = records["figure2a"]
    return {} if record is None else {row["row"]: row for row in record["rows"]}


def lstm_slower(records: Records) -> Found:
    rows = _timed(records)
    if not {"GraphSAGE-LSTM", "GraphSAGE-pool"} <= rows.keys():
        return missing("figure2a")
    lstm, pool = (rows[f"GraphSAGE-{n}"]["supervised_step_milliseconds"]["mean"] for n in ("LSTM", "pool"))
    ratio = lstm / pool
    return Found(f"{ratio:.1f} x ({lstm:.0f} and {pool:.0f} ms a step)", 1.5 <= ratio <= 4,
                 "" if 1.5 <= ratio <= 4 else "outside of 1.5 to 4")  # fmt: skip


def lstm_slowest(records: Records) -> Found:
    rows = {name: row["supervised_step_milliseconds"]["mean"] for name, row in _timed(records).items()
            if name.startswith("GraphSAGE")}  # fmt: skip
    if len(rows) < 2:
        return missing("figure2a")
    slowest = max(rows, key=lambda name: rows[name])
    apart = rows[slowest] / min(rows.values())
    each = ", ".join(f"{name.removeprefix('GraphSAGE-')} {value:.0f} ms" for name, value in rows.items())
    slower = "" if slowest == "GraphSAGE-LSTM" else f"{slowest} is slowest"
    far = "" if apart <= 10 else f"{slowest} takes {apart:.0f} times as long as the fastest"
    return Found(each, not slower and not far, "; ".join(filter(None, (slower, far))))


def deepwalk_inference(records: Records) -> Found:
    rows = _timed(records)
    if "DeepWalk" not in rows:
        return missing("figure2a on a single graph")
    factors = {name.removeprefix("GraphSAGE-"): (row["deepwalk_inference_factor"], row["deepwalk_exact_factor"])
               for name, row in rows.items() if name != "DeepWalk"}  # fmt: skip
    mean = statistics.geometric_mean(sampled for sampled, _ in factors.values())
    each, exactly = (", ".join(f"{name} {pair[kind]:.0f} x" for name, pair in factors.items()) for kind in (0, 1))
    ours = f"{mean:.0f} x, geometric mean ({each}; beside exact inference {exactly})"
    return Found(ours, mean >= 100, "" if mean >= 100 else HEAVY)


def deepwalk_training(records: Records) -> Found:
    rows = _timed(records)
    if "DeepWalk" not in rows:
        return missing("figure2a on a single graph")
    own = PASSES * rows["DeepWalk"]["pass_seconds"]["mean"]
    others = {name: row["pass_seconds"]["mean"] / own for name, row in rows.items() if name != "DeepWalk"}
    mean = statistics.geometric_mean(others.values())
    each = ", ".join(f"{name.removeprefix('GraphSAGE-')} {value:.1f} x" for name, value in others.items())
    why = f"more than 5: {HEAVY}" if mean > 5 else "less than 2" if mean < 2 else ""
    return Found(f"{mean:.1f} x, geometric mean ({each})", not why, why)


def _unswept(found: Found, record: dict[str, Any] | None) -> Found:
    """Where a claim fails, what was not swept for it belongs to the reason."""
    alone = {cell["lr"] for cell in _cells(record or {}) if len(cell.get("tried", ())) == 1}
    if found.holds is not False or not alone:
        return found
    settings = (record or {}).get("settings", {})
    steps = f" and {settings['steps']} steps" if "steps" in settings else ""
    told = ", ".join(f"{lr:g}" for lr in sorted(alone))
    return replace(found, why=f"{found.why}; learning rate {told}{steps}, not swept")


def _cells(record: dict[str, Any]) -> list[dict[str, Any]]:
    """What a figure or table consists of."""
    lines = record.get("lines", {}).values()
    return [*record.get("points", ()), *record.get("rows", ()), *(cell for line in lines for cell in line)]


def thin(name: str, record: dict[str, Any] | None) -> list[str]:
    """How much of a figure has fewer seeds than the rest of it."""
    cells = [cell.get("test_micro_f1", cell) for cell in _cells(record or {})]
    seeds = [len(cell["values"]) for cell in cells if "values" in cell]
    few = sum(count < max(seeds) for count in seeds)
    if name not in ("figure2b", "figure3", "depth", "pooling") or not few:
        return []
    return [f"{name} ({few} of {len(seeds)} points with fewer than {max(seeds)} seeds)"]


def pooling(records: Records) -> Found:
    record = records["pooling"]
    if record is None:
        return missing("pooling")
    scores: dict[str, dict[str, float]] = {}
    for row in record["rows"]:
        scores.setdefault(row["data"], {})[row["aggregator"]] = 100 * row["test_micro_f1"]["mean"]
    apart = {data: pair["pool"] - pair["meanpool"] for data, pair in scores.items()}
    differ = [data for data, value in apart.items() if abs(value) >= 2]
    why = f"they differ on {' and '.join(differ)}" if differ else ""
    return _unswept(Found(f"max minus mean: {told(apart, ' points')}", not differ, why), record)


def _depths(records: Records, a: int, b: int, name: str) -> dict[str, float]:
    record = records["depth"]
    found: dict[tuple[str, str], dict[int, float]] = {}
    for point in [] if record is None else record["points"]:
        found.setdefault((point["data"], point["aggregator"]), {})[point["k"]] = point[name]["mean"]
    return {" ".join(key): ks[b] / ks[a] for key, ks in found.items() if ks.get(a) and b in ks}


def second_layer(records: Records) -> Found:
    gains = {k: 100 * (v - 1) for k, v in _depths(records, 1, 2, "test_micro_f1").items()}
    return _unswept(at_least(gains, 5.0, "depth"), records["depth"])


def third_layer(records: Records) -> Found:
    gains = {k: 100 * (v - 1) for k, v in _depths(records, 2, 3, "test_micro_f1").items()}
    if not gains:
        return missing("depth")
    mean = statistics.fmean(gains.values())
    why = "" if -2 <= mean <= 5 else f"{mean:+.1f}% is outside of -2% to +5%"
    return _unswept(Found(told(gains), not why, why), records["depth"])


def third_layer_time(records: Records) -> Found:
    factors = _depths(records, 2, 3, "seconds")
    if not factors:
        return missing("depth")
    mean = statistics.geometric_mean(factors.values())
    each = ", ".join(f"{name} {value:.1f} x" for name, value in factors.items())
    why = "" if 10 <= mean <= 100 else "outside of 10 to 100: the added sample is 10 (quick: 5)"
    return Found(f"{mean:.1f} x, geometric mean ({each})", not why, why)


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
    return _unswept(Found(ours, holds, why), record)


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
    return Found(f"largest error {worst:.0e} on {len(record['constructed'])} graphs", worst < record["epsilon"])


def learned(records: Records) -> Found:
    record = records["theory"]
    if record is None:
        return missing("theory")
    scores = {row["aggregator"]: row["r2_new_graphs"]["mean"] for row in record["learned"]}
    best = max(scores, key=lambda name: scores[name])
    each = ", ".join(f"{name} {value:.2f}" for name, value in scores.items())
    return Found(f"R2 on new graphs: {each}", best == "pool", "" if best == "pool" else f"{best} explains more")


def _fact(records: Records, name: str, *data: str) -> float | None:
    record = records["facts"]
    rows = [] if record is None else record["rows"]
    return next((float(row[name]) for row in rows if row["data"] in data), None)


def edges_back(records: Records) -> Found:
    share, other = (_fact(records, "edges_back", name) for name in ("citation", "setmm"))
    if records["facts"] is None:
        return missing("facts")
    if share is None:
        return Found("–" if other is None else f"{100 * other:.0f}% on the stand-in", None,
                     "the citation data is closed: a fact about it says nothing about another graph")  # fmt: skip
    return Found(f"{100 * share:.0f}%", abs(share - 0.96) <= 0.05)


def reddit_edges_back(records: Records) -> Found:
    share = _fact(records, "edges_back", "reddit")
    if records["facts"] is None:
        return missing("facts")
    if share is None:
        return Found("–", None, "Reddit was not given (--data reddit=PATH)")
    return Found(f"{100 * share:.0f}%", abs(share - 0.73) <= 0.05)


def empty_proteins(records: Records) -> Found:
    share = _fact(records, "nodes_without_features", "ppi")
    if records["facts"] is None:
        return missing("facts")
    if share is None:
        return Found("–", None, "PPI was not given (--data ppi=PATH)")
    return Found(f"{100 * share:.1f}%", abs(share - 0.42) <= 0.02)
