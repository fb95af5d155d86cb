"""The claims ledger: what the paper says, what we measured, and whether it holds, by a written rule."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphsage.errors import DataError
from graphsage.evaluation.wilcoxon import signed_rank
from graphsage.experiments.paper import NAMES, ROWS, SETTINGS, WILCOXON, published
from graphsage.experiments.profile import TASKS
from graphsage.experiments.record import MEASURED, by_machine, short, usual
from graphsage.experiments.session import Inapplicable, Session
from graphsage.experiments.table1 import gains, rows_in_part
from graphsage.experiments.trial_runners import PASSES

Records = Mapping[str, dict[str, Any] | None]
Cells = dict[tuple[str, str], dict[str, float]]
BASELINES = ROWS[:4]


@dataclass(frozen=True)
class Verdict:
    """Our measurement; `holds` is None if the claim cannot be tested; `why` explains that, or a failure."""

    ours: str
    holds: bool | None
    why: str = ""
    pending: bool = False
    """It can be tested, but the results it needs are missing."""

    def __post_init__(self) -> None:
        assert self.holds or self.why, f"{self.ours} does not hold, and nothing says why"


def missing(*names: str) -> Verdict:
    return Verdict("–", None, f"needs {' and '.join(names)}", pending=True)


def cells(records: Records, score: str = "test_micro_f1") -> Cells:
    """F1 in the paper's form by (data, task), then by row; baselines count in both tasks."""
    table = records["table1"]
    found: Cells = {}
    for row in [] if table is None else table["rows"]:
        if score in row and row.get("form", "paper") == "paper":
            for task in ("unsupervised", "supervised") if row["task"] == "both" else (row["task"],):
                found.setdefault((row["data"], task), {})[row["row"]] = row[score]["mean"]
    return {key: rows for key, rows in found.items() if any(name.startswith("GraphSAGE") for name in rows)}


def stopped(records: Records) -> str:
    """How long unsupervised training was: part of why its claims fail."""
    rows = (records["table1"] or {"rows": []})["rows"]
    steps = {row["steps"] for row in rows if row["task"] == "unsupervised" and "steps" in row}
    return f"unsupervised models had {' or '.join(f'{count:,}' for count in sorted(steps))} steps" if steps else ""


def ratios(table: Cells, a: str, b: str, task: str | None = None) -> dict[str, float]:
    """Percent that a is above b, for each setting where both are."""
    return {
        f"{data} {t}": 100 * (rows[a] / rows[b] - 1)
        for (data, t), rows in table.items()
        if a in rows and rows.get(b) and task in (None, t)
    }


def averaged(values: Mapping[str, float], unit: str = "%") -> str:
    mean = statistics.fmean(values.values())
    each = ", ".join(f"{name} {value:+.1f}{unit}" for name, value in values.items())
    return f"{mean:+.1f}{unit} on average ({each})"


def chance_of(a: Sequence[float], b: Sequence[float]) -> float | None:
    """p of Welch's t-test: the probability of such a difference if only the seeds differ; None for one seed."""
    from scipy.stats import ttest_ind

    if min(len(a), len(b)) < 2:
        return None
    if len({*a, *b}) == 1:
        return 1.0
    return float(ttest_ind(a, b, equal_var=False).pvalue)


def at_least(values: dict[str, float], bar: float, needs: str = "table1") -> Verdict:
    if not values:
        return missing(needs)
    mean = statistics.fmean(values.values())
    return Verdict(averaged(values), mean >= bar, "" if mean >= bar else f"{mean:+.1f}% is below {bar:+.1f}%")


def gain_over_features(records: Records) -> Verdict:
    rows = (records["table1"] or {"rows": []})["rows"]
    return at_least(
        {
            f"{gain['data']} {gain['task']}": gain["percent"]
            for gain in gains(rows)
            if (gain["task"], gain["form"]) == ("supervised", "paper")
        },
        25.5,
    )


def gain_over_gcn(records: Records) -> Verdict:
    return at_least(ratios(cells(records), "GraphSAGE-pool", "GraphSAGE-GCN"), 3.7)


def over_deepwalk(records: Records, task: str) -> Verdict:
    return at_least(ratios(cells(records), "GraphSAGE-pool", "DeepWalk + features", task), 5.0)


def beats_baselines(records: Records) -> Verdict:
    table = {key: rows for key, rows in cells(records).items() if any(name in rows for name in BASELINES)}
    if not table:
        return missing("table1")
    lost = []
    for (data, task), rows in table.items():
        worst = min((name for name in ROWS[4:] if name in rows), key=lambda name: rows[name])
        best = max((name for name in BASELINES if name in rows), key=lambda name: rows[name])
        if rows[worst] <= rows[best]:
            lost.append(f"{data} {task}: {worst} {rows[worst]:.3f}, {best} {rows[best]:.3f}")
    absent = [f"{data}: without {' and '.join(names)} ({why})" for data, (names, why) in not_compared(records).items()]
    told = f"in {len(table) - len(lost)} of {len(table)} settings"
    return Verdict("; ".join([told, *absent]), not lost, "; ".join(lost))


def not_compared(records: Records) -> dict[str, tuple[list[str], str]]:
    """Baselines that a data set has no score of, and why."""
    found = {}
    for data in dict.fromkeys(data for data, _ in cells(records)):
        own = {row["row"]: row for row in (records["table1"] or {})["rows"] if row["data"] == data}
        absent = [name for name in BASELINES if "test_micro_f1" not in own.get(name, {})]
        if absent:
            reasons = {own.get(name, {}).get("missing", "not made").partition(":")[0] for name in absent}
            found[data] = (absent, " or ".join(sorted(reasons)))
    return found


def unsupervised_share(records: Records) -> Verdict:
    table = cells(records)
    shares = {}
    for (data, task), rows in table.items():
        other = table.get((data, "supervised"))
        if task == "unsupervised" and other:
            both = [name for name in ROWS[4:] if name in rows and other.get(name)]
            if both:
                shares[data] = statistics.fmean(rows[name] / other[name] for name in both)
    if not shares:
        return missing("both tasks of table1")
    mean = statistics.fmean(shares.values())
    each = ", ".join(f"{name} {share:.2f}" for name, share in shares.items())
    return Verdict(f"{mean:.2f} on average ({each})", mean >= 0.85, "" if mean >= 0.85 else f"{mean:.3f} is below 0.85")


def macro_trend(records: Records) -> Verdict:
    from scipy.stats import spearmanr

    micro, macro = cells(records), cells(records, score="test_macro_f1")
    found = [
        float(spearmanr([rows[n] for n in rows], [macro[key][n] for n in rows]).statistic)
        for key, rows in micro.items()
        if len(set(rows.values())) > 2
    ]
    if not found:
        return missing("table1")
    mean = statistics.fmean(found)
    return Verdict(f"{mean:.2f} over {len(found)} settings", mean >= 0.7, "" if mean >= 0.7 else f"{mean:.2f} < 0.7")


def best_aggregators(records: Records) -> Verdict:
    full = {key: rows for key, rows in cells(records).items() if all(name in rows for name in ROWS[4:])}
    if not full:
        return missing("all four aggregators of table1")
    best = {
        key: [name.removeprefix("GraphSAGE-") for name in ROWS[4:] if rows[name] == max(rows[n] for n in ROWS[4:])]
        for key, rows in full.items()
    }
    won = sum("LSTM" in names or "pool" in names for names in best.values())
    each = ", ".join(f"{' '.join(key)}: {' and '.join(names)}" for key, names in best.items())
    return Verdict(
        f"{won} of {len(full)} ({each})", won > len(full) / 2, "" if won > len(full) / 2 else "not more than half"
    )


def _test(records: Records, a: str, b: str) -> dict[str, Any] | None:
    record = records["wilcoxon"]
    rows = [] if record is None else record["rows"]
    return next((row for row in rows if (row["a"], row["b"], row["form"]) == (a, b, "paper") and "p" in row), None)


FEWEST = 4  # settings: over three, p is above 0.05 even where one method is always better


def _too_few(settings: int) -> Verdict:
    return Verdict("–", None, f"the test cannot find a difference over {settings} settings; it needs {FEWEST}")


def _tests(records: Records, names: Sequence[str], other: str) -> tuple[dict[str, dict[str, Any]], str]:
    """The tests of aggregators against another one, and their values in words; none unless all were made."""
    rows = {name: row for name in names if (row := _test(records, name, other)) is not None}
    if len(rows) < len(names):
        return {}, ""
    return rows, ", ".join(f"{n}: T={r['t']:g}, p={r['p']:.2f}, {r['mean_difference']:+.3f}" for n, r in rows.items())


def significant_over_gcn(records: Records) -> Verdict:
    rows, told = _tests(records, ("mean", "lstm", "pool"), "gcn")
    if not rows:
        return missing("wilcoxon")
    few = min(len(row["settings"]) for row in rows.values())
    if few < FEWEST:
        return _too_few(few)
    unsure = [name for name, row in rows.items() if row["p"] > 0.05 or row["mean_difference"] <= 0]
    return Verdict(told, not unsure, f"not so for {', '.join(unsure)}, over {few} settings" if unsure else "")


def marginal_over_mean(records: Records) -> Verdict:
    rows, told = _tests(records, ("lstm", "pool"), "mean")
    if not rows:
        return missing("wilcoxon")
    worse = [name for name, row in rows.items() if row["mean_difference"] <= 0]
    return Verdict(told, not worse, f"{' and '.join(worse)} no better than mean on average" if worse else "")


def best_on_ppi(records: Records) -> Verdict:
    table = cells(records)
    if table and not any(data == "ppi" for data, _ in table):
        return Verdict("–", None, "PPI was not given (--data ppi=PATH)")
    rows = table.get(("ppi", "supervised"), {})
    if not all(name in rows for name in ROWS[4:]):
        return missing("all four aggregators of table1 on PPI, supervised")
    gcn, mean, lstm, pool = (rows[name] for name in ROWS[4:])
    holds = min(lstm, pool) > max(gcn, mean)
    ours = ", ".join(f"{name.removeprefix('GraphSAGE-')} {rows[name]:.3f}" for name in ROWS[4:])
    return Verdict(ours, holds, "" if holds else "mean or GCN is above one of the two")


def lstm_like_pool(records: Records) -> Verdict:
    row = _test(records, "lstm", "pool")
    if row is None:
        return missing("wilcoxon")
    if len(row["settings"]) < FEWEST:
        return _too_few(len(row["settings"]))
    alike = row["p"] > 0.05
    better = "LSTM" if row["mean_difference"] > 0 else "pool"
    return Verdict(
        f"T={row['t']:g}, p={row['p']:.2f} over {len(row['settings'])} settings",
        alike,
        "" if alike else f"{better} is better",
    )


def _cells(record: dict[str, Any]) -> list[dict[str, Any]]:
    """All points of a figure."""
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


def pooling(records: Records) -> Verdict:
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
    return Verdict(f"max minus mean: {averaged(apart, ' points')}", not differ, why)


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


def second_layer(records: Records) -> Verdict:
    gains = _gains(records, 1, 2)
    return at_least(gains, 5.0, "depth")


def third_layer(records: Records) -> Verdict:
    gains = _gains(records, 2, 3)
    if not gains:
        return missing("depth")
    mean = statistics.fmean(gains.values())
    why = "" if -2 <= mean <= 5 else f"{mean:+.1f}% is outside of -2% to +5%"
    return Verdict(averaged(gains), not why, why)


def third_layer_time(records: Records) -> Verdict:
    pairs = _depths(records, 2, 3)
    if not pairs:
        return missing("depth")
    factors = {key: three["step_milliseconds"] / two["step_milliseconds"] for key, (two, three) in pairs.items()}
    added = max(three["sample_sizes"][-1] for _, three in pairs.values())
    mean = statistics.geometric_mean(factors.values())
    ours = f"{mean:.1f} x, geometric mean ({', '.join(f'{name} {value:.1f} x' for name, value in factors.items())})"
    bound = f"a third sample of {added} makes the work {1 + added} times as much at most"
    if 1 + added < 10:
        return Verdict(ours, None, bound)
    return Verdict(ours, 10 <= mean <= 100, "" if 10 <= mean <= 100 else f"outside of 10 to 100: {bound}")


def subsampling(records: Records) -> Verdict:
    points = (records["figure2b"] or {"points": []})["points"]
    if len(points) < 3:
        return missing("figure2b")
    largest = points[-1]
    best = largest["test_micro_f1"]["mean"]
    enough = next(point for point in points if point["test_micro_f1"]["mean"] >= best - 0.01)
    share = enough["step_milliseconds"] / largest["step_milliseconds"]
    ours = (
        f"S {enough['sample_size']}: F1 {enough['test_micro_f1']['mean']:.3f} in {share:.2f} of the time of "
        f"S {largest['sample_size']} ({best:.3f})"
    )
    return Verdict(ours, share <= 0.5, "" if share <= 0.5 else "more than half of the time")


def sample_size(records: Records) -> Verdict:
    record = records["figure2b"]
    if record is None or len(record["points"]) < 3:
        return missing("figure2b")
    scores = [point["test_micro_f1"]["mean"] for point in record["points"]]
    sizes = [point["sample_size"] for point in record["points"]]
    first, last = scores[1] - scores[0], scores[-1] - scores[-2]
    ours = f"S {sizes[0]} to {sizes[1]}: {100 * first:+.1f} points; {sizes[-2]} to {sizes[-1]}: {100 * last:+.1f}"
    if first <= 0:
        return Verdict(ours, False, "more neighbors gain nothing to begin with")
    return Verdict(ours, last < first, "" if last < first else "the last step gains as much as the first")


def noise(records: Records) -> Verdict:
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
    return Verdict(ours, holds, why)


def rotation(records: Records) -> Verdict:
    record = records["rotation"]
    if record is None:
        return missing("rotation")
    same, other, aligned = (row["test_micro_f1"]["mean"] for row in record["rows"])
    holds = other <= same / 2 and aligned >= other + (same - other) / 2
    return Verdict(
        f"same run {same:.3f}, other run {other:.3f}, aligned {aligned:.3f}",
        holds,
        "" if holds else "the two runs are closer, or alignment helps less",
    )


def theorem(records: Records) -> Verdict:
    record = records["theory"]
    if record is None:
        return missing("theory")
    worst = max(row["largest_error"] for row in record["constructed"])
    small = worst < record["epsilon"]
    return Verdict(
        f"largest error {worst:.0e} on {len(record['constructed'])} graphs",
        small,
        "" if small else f"not below {record['epsilon']:g}",
    )


def learned(records: Records) -> Verdict:
    record = records["theory"]
    if record is None:
        return missing("theory")
    scores = {row["aggregator"]: row["r2_new_graphs"] for row in record["learned"]}
    each = ", ".join(f"{name} {cell['mean']:.2f}" for name, cell in scores.items())
    best = max(scores, key=lambda name: float(scores[name]["mean"]))
    if best != "pool":
        return Verdict(f"R2 on new graphs: {each}", False, f"{best} explains more")
    chances = {name: chance_of(scores["pool"]["values"], cell["values"]) for name, cell in scores.items()}
    close = [
        f"{name} (p = {chance:.2f})"
        for name, chance in chances.items()
        if name != "pool" and chance is not None and chance > 0.05
    ]
    return Verdict(f"R2 on new graphs: {each}", not close, f"no more than {' and '.join(close)}" if close else "")


def _fact(records: Records, name: str, data: str) -> float | None:
    return next((float(row[name]) for row in (records["facts"] or {"rows": []})["rows"] if row["data"] == data), None)


def fact(records: Records, name: str, data: str, paper: float, apart: float, digits: int = 0) -> Verdict:
    """A number that the paper states about its own data: ours may be `apart` from it."""
    if records["facts"] is None:
        return missing("facts")
    share = _fact(records, name, data)
    if share is None:
        return Verdict(
            "–", None, f"{data.replace('ppi', 'PPI').replace('reddit', 'Reddit')} was not given (--data {data}=PATH)"
        )
    near = abs(share - paper) <= apart
    why = "" if near else f"more than {100 * apart:.0f} points from {paper:.0%}"
    return Verdict(f"{100 * share:.{digits}f}%", near, why)


def edges_back(records: Records) -> Verdict:
    if records["facts"] is not None and _fact(records, "edges_back", "citation") is None:
        other = _fact(records, "edges_back", "setmm")
        return Verdict(
            "–" if other is None else f"{100 * other:.0f}% on the stand-in",
            None,
            "the citation data is closed: a fact about it says nothing about another graph",
        )
    return fact(records, "edges_back", "citation", 0.96, 0.05)


def reddit_edges_back(records: Records) -> Verdict:
    return fact(records, "edges_back", "reddit", 0.73, 0.05)


def empty_proteins(records: Records) -> Verdict:
    return fact(records, "nodes_without_features", "ppi", 0.42, 0.02, digits=1)


Rows = dict[str, dict[str, Any]]
"""By the name of the method."""


@dataclass(frozen=True)
class _Timed:
    """The verdict of one machine's times; it holds if `why` is empty."""

    ratio: str
    each: str
    why: str = ""


def _on_every_machine(judge: Callable[[Rows], _Timed | None]) -> Callable[[Records], Verdict]:
    """A claim about times holds if it holds on all machines that were timed."""

    def find(records: Records) -> Verdict:
        record = records["figure2a"]
        if record is None:
            return missing("figure2a")
        judged = {machine: judge({row["row"]: row for row in rows}) for machine, rows in by_machine(record).items()}
        found = {machine: timed for machine, timed in judged.items() if timed is not None}
        if not found:
            return missing("figure2a on a single graph")
        if len(found) == 1:
            timed = next(iter(found.values()))
            return Verdict(f"{timed.ratio} ({timed.each})", not timed.why, timed.why)
        ratios = ", ".join(f"{timed.ratio} on {machine}" for machine, timed in found.items())
        each = "; ".join(f"{machine}: {timed.each}" for machine, timed in found.items())
        why = "; ".join(f"on {machine}: {timed.why}" for machine, timed in found.items() if timed.why)
        return Verdict(f"{ratios} ({each})", not why, why)

    return find


def _names(factors: dict[str, float]) -> str:
    return ", ".join(name.removeprefix("GraphSAGE-") for name in factors)


def _factors(factors: dict[str, float], digits: int = 0) -> str:
    return ", ".join(f"{name.removeprefix('GraphSAGE-')} {value:.{digits}f} x" for name, value in factors.items())


@_on_every_machine
def lstm_slower(rows: Rows) -> _Timed:
    lstm, pool = (usual(rows[f"GraphSAGE-{n}"]["supervised_step_milliseconds"]) for n in ("LSTM", "pool"))
    ratio = lstm / pool
    outside = "" if 1.5 <= ratio <= 4 else "outside of 1.5 to 4"
    return _Timed(f"{ratio:.1f} x", f"{short(lstm)} and {short(pool)} ms a step", outside)


@_on_every_machine
def lstm_slowest(all_rows: Rows) -> _Timed:
    rows = {
        name: usual(row["supervised_step_milliseconds"])
        for name, row in all_rows.items()
        if name.startswith("GraphSAGE")
    }
    slowest = max(rows, key=lambda name: rows[name])
    apart = rows[slowest] / min(rows.values())
    each = ", ".join(f"{name.removeprefix('GraphSAGE-')} {short(value)} ms" for name, value in rows.items())
    slower = "" if slowest == "GraphSAGE-LSTM" else f"{slowest} is slowest"
    far = "" if apart <= 10 else f"{slowest} takes {apart:.0f} times as long as the fastest"
    return _Timed(f"{apart:.0f} x from fastest to slowest", each, "; ".join(filter(None, (slower, far))))


@_on_every_machine
def deepwalk_inference(rows: Rows) -> _Timed | None:
    if "DeepWalk" not in rows:
        return None
    sampled, exact = (
        {name: row[factor] for name, row in rows.items() if name != "DeepWalk"}
        for factor in ("deepwalk_inference_factor", "deepwalk_exact_factor")
    )
    mean = statistics.geometric_mean(sampled.values())
    each = f"{_factors(sampled)}; beside exact inference {_factors(exact)}"
    below = {name: factor for name, factor in sampled.items() if factor < 100}
    return _Timed(f"{mean:.0f} x", each, "" if mean >= 100 else f"below 100 for {_names(below)}")


@_on_every_machine
def deepwalk_training(rows: Rows) -> _Timed | None:
    if "DeepWalk" not in rows:
        return None
    own = PASSES * usual(rows["DeepWalk"]["pass_seconds"])
    others = {name: usual(row["pass_seconds"]) / own for name, row in rows.items() if name != "DeepWalk"}
    mean = statistics.geometric_mean(others.values())
    above = {name: value for name, value in others.items() if value > 5}
    below = {name: value for name, value in others.items() if value < 2}
    why = f"more than 5 for {_names(above)}" if mean > 5 else f"less than 2 for {_names(below)}" if mean < 2 else ""
    return _Timed(f"{mean:.1f} x", f"{_factors(others, 1)}; by one pass each {PASSES * mean:.0f} x", why)


def wilcoxon(session: Session) -> Path:
    table = session.earlier("table1")
    if table is None:
        raise Inapplicable(f"there is no table1.json in {session.out}; run `graphsage reproduce table1` first")
    forms = sorted({row["form"] for row in table["rows"] if "form" in row})
    body = {
        "profile": table["profile"],
        "trials_on": table["trials_on"],
        "rows": [row for form in forms for row in compared(table["rows"], form)],
        "in_part": {form: rows_in_part(table, TASKS, ROWS[4:], form) for form in forms},
        "check": check(),
    }
    return session.keep("wilcoxon", "Section 4.4: signed-rank test between aggregators over data sets and tasks", body)


def compared(rows: list[dict[str, Any]], form: str) -> list[dict[str, Any]]:
    """One test for each pair of the paper, over the (data, task) settings where both aggregators were scored."""
    scores: dict[str, dict[tuple[str, str], float]] = {}
    for row in rows:
        if row.get("form") == form:
            scores.setdefault(row["aggregator"], {})[row["data"], row["task"]] = row["test_micro_f1"]["mean"]
    made = []
    for (a, b), (paper_t, paper_p) in WILCOXON.items():
        both = sorted(scores.get(a, {}).keys() & scores.get(b, {}).keys())
        row = {
            "form": form,
            "a": a,
            "b": b,
            "settings": [" ".join(key) for key in both],
            "paper_t": paper_t,
            "paper_p": paper_p,
        }
        ours, theirs = [scores[a][key] for key in both], [scores[b][key] for key in both]
        if any(x != y for x, y in zip(ours, theirs, strict=True)):
            t, p = signed_rank(ours, theirs)
            mean = sum(x - y for x, y in zip(ours, theirs, strict=True)) / len(both)
            row |= {"t": t, "p": round(p, 4), "mean_difference": round(mean, 4)}
        made.append(row)
    return made


def check() -> list[dict[str, Any]]:
    """The test fed with the paper's own Table 1: it must return the published pairs."""
    made = []
    for (a, b), (paper_t, paper_p) in WILCOXON.items():
        pairs = [(published(*setting, NAMES[a]), published(*setting, NAMES[b])) for setting in SETTINGS]
        t, p = signed_rank([x or 0.0 for x, _ in pairs], [y or 0.0 for _, y in pairs])
        made.append({"a": a, "b": b, "t": t, "p": round(p, 2), "paper_t": paper_t, "paper_p": paper_p})
    return made


HOLDS, FAILS, UNTESTED, PENDING = "holds", "fails", "cannot be tested here", "not made yet"
VERDICTS = (HOLDS, FAILS, UNTESTED, PENDING)


@dataclass(frozen=True)
class Claim:
    """`find` returns our measurement and whether it meets the rule, or why it cannot be tested."""

    name: str
    quote: str
    place: str
    paper: str
    rule: str
    find: Callable[[Records], Verdict]
    tasks: tuple[str, ...] = ()
    """Of Table 1, where it is judged by that: some of its rows may have been made in part."""
    rows: tuple[str, ...] = ROWS


CLAIMS = (
    Claim(
        "gain over features",
        "improves classification F1-scores by an average of 51%",
        "1",
        "+51%",
        "supervised, the best aggregator on validation, averaged over data sets: at least half of it",
        gain_over_features,
        ("supervised",),
    ),
    Claim(
        "gain over GCN",
        "significant gains (7.4% on average)",
        "1",
        "+7.4% (pool over GCN, six settings)",
        "pool over GCN averaged over settings: at least half of it",
        gain_over_gcn,
        TASKS,
        ("GraphSAGE-pool", "GraphSAGE-GCN"),
    ),
    Claim(
        "outperforms the baselines",
        "outperforms all the baselines by a significant margin",
        "4.1",
        "everywhere",
        "every GraphSAGE row above every baseline, in every setting",
        beats_baselines,
        TASKS,
    ),
    Claim(
        "gain over DeepWalk + features, unsupervised",
        "by 13.8% on the citation data and 29.1% on the Reddit data",
        "4.1",
        "+13.8% / +29.1%",
        "pool above DeepWalk + features by at least 5%, averaged",
        lambda r: over_deepwalk(r, "unsupervised"),
        ("unsupervised",),
        ("GraphSAGE-pool",),
    ),
    Claim(
        "gain over DeepWalk + features, supervised",
        "the supervised version provides a gain of 19.7% and 37.2%",
        "4.1",
        "+19.7% / +37.2%",
        "pool above DeepWalk + features by at least 5%, averaged",
        lambda r: over_deepwalk(r, "supervised"),
        ("supervised",),
        ("GraphSAGE-pool",),
    ),
    Claim(
        "unsupervised close to supervised",
        "reasonably competitive with the fully supervised version",
        "4.1",
        "0.92 of the supervised F1, averaged",
        "at least 0.85 of it, averaged",
        unsupervised_share,
        TASKS,
    ),
    Claim(
        "same trends for macro F1",
        "Analogous trends hold for macro-averaged scores",
        "Table 1",
        "–",
        "rank correlation of micro and macro F1 over the methods of a setting: at least 0.7, averaged",
        macro_trend,
        TASKS,
    ),
    Claim(
        "LSTM and pool are best",
        "LSTM- and pool-based aggregators performed the best",
        "4.4",
        "5 of 6 settings",
        "one of the two is best in more than half of the settings",
        best_aggregators,
        TASKS,
    ),
    Claim(
        "gains over GCN are significant",
        "T=1.0, p=0.02 for all three",
        "4.4",
        "p = 0.02",
        "p at most 0.05 for mean, LSTM and pool over GCN, each better on average",
        significant_over_gcn,
        TASKS,
    ),
    Claim(
        "LSTM and pool over mean",
        "gains of the LSTM and pool approaches over the mean-based aggregator are more marginal",
        "4.4",
        "p = 0.03 (LSTM), p = 0.10 (pool)",
        "each better than mean on average",
        marginal_over_mean,
        TASKS,
        ("GraphSAGE-mean", "GraphSAGE-LSTM", "GraphSAGE-pool"),
    ),
    Claim(
        "LSTM and pool on PPI",
        "LSTM- and pooling-based aggregators providing substantial gains over the mean- and GCN-based aggregators",
        "4.2",
        "0.612 and 0.600 over 0.598 and 0.500",
        "supervised on PPI, both above mean and GCN",
        best_on_ppi,
        ("supervised",),
        ROWS[4:],
    ),
    Claim(
        "LSTM and pool do not differ",
        "no significant difference between the LSTM and pool approaches",
        "4.4",
        "T = 10.0, p = 0.46",
        "p above 0.05 over at least 4 settings",
        lstm_like_pool,
        TASKS,
        ("GraphSAGE-LSTM", "GraphSAGE-pool"),
    ),
    Claim(
        "LSTM slower than pool",
        "significantly slower than GraphSAGE-pool (by a factor of 2)",
        "4.4",
        "2 x",
        "a supervised step takes 1.5 to 4 times as long, on every machine that was timed",
        lstm_slower,
    ),
    Claim(
        "max and mean pooling",
        "no significant difference between max- and mean-pooling",
        "3.3",
        "–",
        "on no data set a difference that the seeds do not explain (Welch's t-test, p at most 0.05; with one seed 2 "
        "points)",
        pooling,
    ),
    Claim(
        "K = 2 over K = 1",
        "a consistent boost in accuracy of around 10-15%, on average",
        "4.3",
        "+10-15%",
        "at least +5% on average",
        second_layer,
    ),
    Claim(
        "K = 3 over K = 2", "marginal returns in performance (0-5%)", "4.3", "0-5%", "between -2% and +5%", third_layer
    ),
    Claim(
        "time of K = 3",
        "increasing the runtime by a prohibitively large factor of 10-100x",
        "4.3",
        "10-100 x",
        "training takes 10 to 100 times as long as with K = 2",
        third_layer_time,
    ),
    Claim(
        "sample size",
        "diminishing returns for sampling large neighborhoods",
        "4.3",
        "–",
        "the first step of S gains F1, and the last one gains less",
        sample_size,
    ),
    Claim(
        "sub-sampling",
        "maintain strong predictive accuracy, while significantly improving the runtime",
        "4.3",
        "–",
        "a size of the sample within a point of the largest one's F1 takes at most half of its time",
        subsampling,
    ),
    Claim(
        "DeepWalk slower at test time",
        "makes DeepWalk 100-500x slower at test time",
        "4.3",
        "100-500 x",
        "at least 100 times as long as the aggregators' sampled inference (geometric mean), on every machine",
        deepwalk_inference,
    ),
    Claim(
        "DeepWalk faster in training",
        "it is 2-5X faster at training",
        "C",
        "2-5 x",
        "five passes over the walks take a half to a fifth of the aggregators' one pass (geometric mean), on every "
        "machine",
        deepwalk_training,
    ),
    Claim(
        "comparable training times",
        "comparable (with GraphSAGE-LSTM being the slowest)",
        "4.3",
        "LSTM slowest",
        "LSTM has the slowest supervised step, at most 10 times as long as the fastest, on every machine",
        lstm_slowest,
    ),
    Claim(
        "random features",
        "maintaining modest performance ... even with completely random feature inputs",
        "E",
        "pool yes, GCN no",
        "on noise alone, pool above the random classifier by 5 points and above GCN by one",
        noise,
    ),
    Claim(
        "rotation",
        "embeddings can be rotated by an arbitrary orthogonal matrix",
        "D",
        "–",
        "a probe loses half of its F1 on another run, and alignment brings most of it back",
        rotation,
    ),
    Claim(
        "clustering coefficients",
        "capable of approximating clustering coefficients to an arbitrary degree",
        "5",
        "Theorem 1",
        "the constructed network is within epsilon on every graph",
        theorem,
    ),
    Claim(
        "clustering coefficients are learned",
        "provides insight into why GraphSAGE-pool outperforms",
        "5",
        "–",
        "trained on random features, pool explains more variance on new graphs than mean and GCN, by more than the "
        "seeds explain (Welch's t-test, p at most 0.05)",
        learned,
    ),
    Claim(
        "citation edges back in time",
        "96% of the 2005 citation links connect back to the 2000-2004 data",
        "D",
        "96%",
        "within 5 points on the citation data",
        edges_back,
    ),
    Claim(
        "Reddit edges back in time",
        "only 73% of edges in the Reddit test set connect back to the train data",
        "D",
        "73%",
        "within 5 points on Reddit",
        reddit_edges_back,
    ),
    Claim(
        "proteins without features",
        "42% of nodes have no non-zero feature values",
        "B",
        "42%",
        "within 2 points on PPI",
        empty_proteins,
    ),
)


def claims(session: Session) -> Path:
    records = {name: session.earlier(name) for name in MEASURED}
    if not any(records.values()):
        raise DataError(f"there is no result in {session.out}; run `graphsage reproduce table1` or another first")
    rows = [judged(claim, records) for claim in CLAIMS]
    profiles = sorted({record["profile"] for record in records.values() if record is not None})
    body = {
        "profile": " and ".join(profiles),
        "rows": rows,
        "counts": {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in VERDICTS},
        "trials_on": [one for made in records.values() if made for one in made["trials_on"]],
    }
    return session.keep("claims", "What the paper claims, and what of it holds on our data", body)


class _Noted(dict[str, dict[str, Any] | None]):
    """Records that know which of them were read."""

    def __init__(self, records: Records) -> None:
        super().__init__(records)
        self.read: dict[str, None] = {}

    def __getitem__(self, name: str) -> dict[str, Any] | None:
        self.read[name] = None
        return super().__getitem__(name)


def judged(claim: Claim, records: Records) -> dict[str, Any]:
    """A row of the ledger, with the profile of every result that it was judged by."""
    noted = _Noted(records)
    found = claim.find(noted)
    profiles = {name: (records[name] or {}).get("profile") for name in noted.read if records[name] is not None}
    unknown = PENDING if found.pending else UNTESTED
    verdict = unknown if found.holds is None else HOLDS if found.holds else FAILS
    short = stopped(records) if verdict == FAILS and "unsupervised" in claim.tasks else ""
    why = "; ".join(filter(None, (found.why, short)))
    other = in_reference_form(claim, records, verdict)
    drawn = [told for name in noted.read for told in points_in_part(name, records[name])]
    return {
        "claim": claim.name,
        "quote": claim.quote,
        "place": claim.place,
        "paper": claim.paper,
        "rule": claim.rule,
        "ours": found.ours,
        "verdict": verdict,
        "why": why,
        "reference_form": other,
        "profiles": profiles,
        "in_part": rows_in_part(records["table1"], claim.tasks, claim.rows) + drawn,
    }


def in_reference_form(claim: Claim, records: Records, verdict: str) -> str:
    """The measurement in the reference form, if Table 1 has the same rows there and the verdict differs."""
    taken = {**records, "table1": _as_papers(records["table1"]), "wilcoxon": _as_papers(records["wilcoxon"])}
    ours, other = ({key: rows.keys() for key, rows in cells(each).items()} for each in (records, taken))
    found = claim.find(taken)
    return found.ours if ours == other and (found.holds, verdict) in ((False, HOLDS), (True, FAILS)) else ""


def _as_papers(record: dict[str, Any] | None) -> dict[str, Any] | None:
    """The rows of the reference form as if they were of the paper's; those of no form stay."""
    if record is None:
        return None
    rows = [row for row in record["rows"] if row.get("form") != "paper"]
    return {**record, "rows": [{**row, "form": "paper"} if "form" in row else row for row in rows]}
