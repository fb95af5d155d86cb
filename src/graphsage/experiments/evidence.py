"""What Table 1 and the signed-rank test say about the claims of the paper."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphsage.experiments.paper import ROWS
from graphsage.experiments.table1 import gains

Records = Mapping[str, dict[str, Any] | None]
Cells = dict[tuple[str, str], dict[str, float]]
BASELINES = ROWS[:4]


@dataclass(frozen=True)
class Found:
    """What we have; `holds` is None where the claim cannot be tested, and `why` says why, or why it fails."""

    ours: str
    holds: bool | None
    why: str = ""
    pending: bool = False
    """It can be tested, but what it needs has not been made."""

    def __post_init__(self) -> None:
        assert self.holds or self.why, f"{self.ours} does not hold, and nothing says why"


def missing(*names: str) -> Found:
    return Found("–", None, f"needs {' and '.join(names)}", pending=True)


def cells(records: Records, score: str = "test_micro_f1") -> Cells:
    """F1 in the paper's form by (data, task), then by row; baselines stand in both tasks."""
    table = records["table1"]
    found: Cells = {}
    for row in [] if table is None else table["rows"]:
        if score in row and row.get("form", "paper") == "paper":
            for task in ("unsupervised", "supervised") if row["task"] == "both" else (row["task"],):
                found.setdefault((row["data"], task), {})[row["row"]] = row[score]["mean"]
    return {key: rows for key, rows in found.items() if any(name.startswith("GraphSAGE") for name in rows)}


def rows_in_part(
    table: dict[str, Any] | None, tasks: Sequence[str], names: Sequence[str], form: str = "paper"
) -> list[str]:
    """Rows of these tasks and names that were swept over less than the whole grid or have fewer seeds than others."""
    rows = [row for row in (table or {"rows": []})["rows"] if row.get("form", form) == form and "tried" in row]
    most = max((len(row["seeds"]) for row in rows), default=0)
    asked = [row for row in rows if (row["task"] in tasks or (tasks and row["task"] == "both")) and row["row"] in names]
    return [f"{row['data']} {row['task']} {row['row']} ({row['tried']['points']} of {row['tried']['of']} points, "
            f"{len(row['seeds'])} of {most} seeds)" for row in asked
            if row["tried"]["points"] < row["tried"]["of"] or len(row["seeds"]) < most]  # fmt: skip


def stopped(records: Records) -> str:
    """How long unsupervised training was: part of why its claims fail."""
    rows = (records["table1"] or {"rows": []})["rows"]
    steps = {row["steps"] for row in rows if row["task"] == "unsupervised" and "steps" in row}
    return f"unsupervised models had {' or '.join(f'{count:,}' for count in sorted(steps))} steps" if steps else ""


def ratios(table: Cells, a: str, b: str, task: str | None = None) -> dict[str, float]:
    """Percent that a is above b, for each setting where both are."""
    return {f"{data} {t}": 100 * (rows[a] / rows[b] - 1) for (data, t), rows in table.items()
            if a in rows and rows.get(b) and task in (None, t)}  # fmt: skip


def averaged(values: Mapping[str, float], unit: str = "%") -> str:
    mean = statistics.fmean(values.values())
    each = ", ".join(f"{name} {value:+.1f}{unit}" for name, value in values.items())
    return f"{mean:+.1f}{unit} on average ({each})"


def chance_of(a: Sequence[float], b: Sequence[float]) -> float | None:
    """p of Welch's t-test: how likely two means so far apart are where the seeds alone differ; None for one seed."""
    from scipy.stats import ttest_ind

    if min(len(a), len(b)) < 2:
        return None
    if len({*a, *b}) == 1:
        return 1.0
    return float(ttest_ind(a, b, equal_var=False).pvalue)


def at_least(values: dict[str, float], bar: float, needs: str = "table1") -> Found:
    if not values:
        return missing(needs)
    mean = statistics.fmean(values.values())
    return Found(averaged(values), mean >= bar, "" if mean >= bar else f"{mean:+.1f}% is below {bar:+.1f}%")


def gain_over_features(records: Records) -> Found:
    rows = (records["table1"] or {"rows": []})["rows"]
    return at_least({f"{gain['data']} {gain['task']}": gain["percent"] for gain in gains(rows)
                     if (gain["task"], gain["form"]) == ("supervised", "paper")}, 25.5)  # fmt: skip


def gain_over_gcn(records: Records) -> Found:
    return at_least(ratios(cells(records), "GraphSAGE-pool", "GraphSAGE-GCN"), 3.7)


def over_deepwalk(records: Records, task: str) -> Found:
    return at_least(ratios(cells(records), "GraphSAGE-pool", "DeepWalk + features", task), 5.0)


def beats_baselines(records: Records) -> Found:
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
    return Found("; ".join([told, *absent]), not lost, "; ".join(lost))


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


def unsupervised_share(records: Records) -> Found:
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
    return Found(f"{mean:.2f} on average ({each})", mean >= 0.85, "" if mean >= 0.85 else f"{mean:.3f} is below 0.85")


def macro_trend(records: Records) -> Found:
    from scipy.stats import spearmanr

    micro, macro = cells(records), cells(records, score="test_macro_f1")
    found = [float(spearmanr([rows[n] for n in rows], [macro[key][n] for n in rows]).statistic)
             for key, rows in micro.items() if len(set(rows.values())) > 2]  # fmt: skip
    if not found:
        return missing("table1")
    mean = statistics.fmean(found)
    return Found(f"{mean:.2f} over {len(found)} settings", mean >= 0.7, "" if mean >= 0.7 else f"{mean:.2f} < 0.7")


def best_aggregators(records: Records) -> Found:
    full = {key: rows for key, rows in cells(records).items() if all(name in rows for name in ROWS[4:])}
    if not full:
        return missing("all four aggregators of table1")
    best = {key: [name.removeprefix("GraphSAGE-") for name in ROWS[4:] if rows[name] == max(rows[n] for n in ROWS[4:])]
            for key, rows in full.items()}  # fmt: skip
    won = sum("LSTM" in names or "pool" in names for names in best.values())
    each = ", ".join(f"{' '.join(key)}: {' and '.join(names)}" for key, names in best.items())
    return Found(
        f"{won} of {len(full)} ({each})", won > len(full) / 2, "" if won > len(full) / 2 else "not more than half"
    )


def _test(records: Records, a: str, b: str) -> dict[str, Any] | None:
    record = records["wilcoxon"]
    rows = [] if record is None else record["rows"]
    return next((row for row in rows if (row["a"], row["b"], row["form"]) == (a, b, "paper") and "p" in row), None)


FEWEST = 4  # settings: over three, p is above 0.05 even where one method is always better


def _too_few(settings: int) -> Found:
    return Found("–", None, f"the test cannot find a difference over {settings} settings; it needs {FEWEST}")


def significant_over_gcn(records: Records) -> Found:
    rows = {name: _test(records, name, "gcn") for name in ("mean", "lstm", "pool")}
    made = {name: row for name, row in rows.items() if row is not None}
    if len(made) < 3:
        return missing("wilcoxon")
    few = min(len(row["settings"]) for row in made.values())
    if few < FEWEST:
        return _too_few(few)
    told = ", ".join(f"{n}: T={r['t']:g}, p={r['p']:.2f}, {r['mean_difference']:+.3f}" for n, r in made.items())
    unsure = [name for name, row in made.items() if row["p"] > 0.05 or row["mean_difference"] <= 0]
    return Found(told, not unsure, f"not so for {', '.join(unsure)}, over {few} settings" if unsure else "")


def marginal_over_mean(records: Records) -> Found:
    rows = {name: _test(records, name, "mean") for name in ("lstm", "pool")}
    made = {name: row for name, row in rows.items() if row is not None}
    if len(made) < 2:
        return missing("wilcoxon")
    told = ", ".join(f"{n}: T={r['t']:g}, p={r['p']:.2f}, {r['mean_difference']:+.3f}" for n, r in made.items())
    worse = [name for name, row in made.items() if row["mean_difference"] <= 0]
    return Found(told, not worse, f"{' and '.join(worse)} no better than mean on average" if worse else "")


def best_on_ppi(records: Records) -> Found:
    table = cells(records)
    if table and not any(data == "ppi" for data, _ in table):
        return Found("–", None, "PPI was not given (--data ppi=PATH)")
    rows = table.get(("ppi", "supervised"), {})
    if not all(name in rows for name in ROWS[4:]):
        return missing("all four aggregators of table1 on PPI, supervised")
    gcn, mean, lstm, pool = (rows[name] for name in ROWS[4:])
    holds = min(lstm, pool) > max(gcn, mean)
    ours = ", ".join(f"{name.removeprefix('GraphSAGE-')} {rows[name]:.3f}" for name in ROWS[4:])
    return Found(ours, holds, "" if holds else "mean or GCN is above one of the two")


def lstm_like_pool(records: Records) -> Found:
    row = _test(records, "lstm", "pool")
    if row is None:
        return missing("wilcoxon")
    if len(row["settings"]) < FEWEST:
        return _too_few(len(row["settings"]))
    alike = row["p"] > 0.05
    better = "LSTM" if row["mean_difference"] > 0 else "pool"
    return Found(f"T={row['t']:g}, p={row['p']:.2f} over {len(row['settings'])} settings", alike,
                 "" if alike else f"{better} is better")  # fmt: skip
