"""The claims ledger: what the paper says, what we measured, and whether it holds, by one rule for all claims."""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphsage.errors import DataError
from graphsage.evaluation.wilcoxon import signed_rank
from graphsage.experiments.data import COLUMNS
from graphsage.experiments.paper import BASELINES, MODELS, NAMES, ROWS, SETTINGS, WILCOXON, published
from graphsage.experiments.profile import TASKS
from graphsage.experiments.record import MEASURED, by_machine, short, usual
from graphsage.experiments.session import Inapplicable, Session
from graphsage.experiments.table1 import gains, judging, rows_in_part, stronger
from graphsage.experiments.trial_runners import PASSES

THRESHOLD = 0.05
RULE = (
    "One rule decides all claims. Size: our value is at least half of the paper's number (the lower one, if it gives "
    "two); if the paper gives a range, our value is also at most twice its upper end. Significance: a difference has "
    f"p at most {THRESHOLD} in Welch's t-test over the seeds, two-sided; for an average over settings the variances of "
    "its parts add up. A claim of no difference holds if p is larger. With one seed there is no p, and the size alone "
    "decides. Facts about data have no seeds and must agree within one point."
)
Records = Mapping[str, dict[str, Any]]
"""The results that there are, by experiment."""
Score = Mapping[str, Any]
"""Values over the seeds and their `mean`, as in a result."""
Scores = dict[tuple[str, str], dict[str, Score]]
"""By data and task, then by row."""


@dataclass(frozen=True)
class Estimate:
    """A value that is linear in means over seeds, or nearly so: `terms` are its weights and the values of the seeds."""

    value: float
    terms: tuple[tuple[float, tuple[float, ...]], ...]

    @property
    def p(self) -> float | None:
        """Of Welch's t-test that the value is zero; None with one seed."""
        from scipy.stats import t

        if not self.terms or min(len(values) for _, values in self.terms) < 2:
            return None
        parts = [(weight**2 * statistics.variance(values) / len(values), len(values)) for weight, values in self.terms]
        total = sum(part for part, _ in parts)
        if total == 0:
            return 1.0 if self.value == 0 else 0.0
        freedom = total**2 / sum(part**2 / (count - 1) for part, count in parts)
        return float(2 * t.sf(abs(self.value) / math.sqrt(total), freedom))

    @property
    def positive(self) -> bool:
        """Whether it is significantly above zero; with one seed, whether it is above zero."""
        return self.value > 0 and (self.p is None or self.p <= THRESHOLD)

    @property
    def p_text(self) -> str:
        return "one seed" if self.p is None else "p < 0.001" if self.p < 0.001 else f"p = {self.p:.2g}"


def difference(a: Score, b: Score, scale: float = 100.0) -> Estimate:
    """a minus b; scores in points."""
    return Estimate(scale * (a["mean"] - b["mean"]), ((scale, tuple(a["values"])), (-scale, tuple(b["values"]))))


def gain(a: Score, b: Score) -> Estimate:
    """Percent that a is above b, with the variance of the ratio to first order."""
    ratio = a["mean"] / b["mean"]
    weights = 100 / b["mean"], -100 * ratio / b["mean"]
    return Estimate(100 * (ratio - 1), ((weights[0], tuple(a["values"])), (weights[1], tuple(b["values"]))))


def log_ratio(a: Score, b: Score) -> Estimate:
    """Of two times, by their medians."""
    x, y = usual(a), usual(b)
    return Estimate(math.log(x / y), ((1 / x, tuple(a["values"])), (-1 / y, tuple(b["values"]))))


def average(estimates: Iterable[Estimate]) -> Estimate:
    found = list(estimates)
    terms = [(weight / len(found), values) for each in found for weight, values in each.terms]
    return Estimate(statistics.fmean(each.value for each in found), tuple(terms))


@dataclass(frozen=True)
class Verdict:
    """Our measurement; `holds` is None if the claim cannot be tested; `why` explains that, or a failure."""

    ours: str
    holds: bool | None
    why: str = ""
    pending: bool = False
    """It can be tested, but the results it needs are missing."""

    def __post_init__(self) -> None:
        assert self.holds or self.why, f"{self.ours} does not hold, and no reason is given"


def missing(*names: str) -> Verdict:
    return Verdict("–", None, f"needs {' and '.join(names)}", pending=True)


def decided(ours: str, *failures: str) -> Verdict:
    why = "; ".join(filter(None, failures))
    return Verdict(ours, not why, why)


@dataclass(frozen=True)
class Range:
    """The paper's number, or the ends of its range."""

    low: float
    high: float | None = None

    def failure(self, value: float, unit: str = "%") -> str:
        """Why a value is not of the paper's size; empty if it is."""
        if value < self.low / 2:
            return f"{value:.1f}{unit} is below {self.low / 2:.1f}{unit}"
        if self.high is not None and value > 2 * self.high:
            return f"{value:.1f}{unit} is above {2 * self.high:.1f}{unit}"
        return ""


def each(estimates: Mapping[str, Estimate], unit: str) -> str:
    return ", ".join(f"{name} {estimate.value:+.1f}{unit}" for name, estimate in estimates.items())


def averaged(estimates: Mapping[str, Estimate], unit: str = "%") -> tuple[Estimate, str]:
    mean = average(estimates.values())
    return mean, f"{mean.value:+.1f}{unit} on average, {mean.p_text} ({each(estimates, unit)})"


def effect(estimates: Mapping[str, Estimate], paper: Range, needs: str = "table1") -> Verdict:
    """A gain: of the paper's size and significant."""
    if not estimates:
        return missing(needs)
    mean, ours = averaged(estimates)
    return decided(ours, paper.failure(mean.value) or ("" if mean.positive else "the seeds explain it"))


def no_effect(estimates: Mapping[str, Estimate], needs: str) -> Verdict:
    if not estimates:
        return missing(needs)
    mean, ours = averaged(estimates, " points")
    if mean.p is None:
        return Verdict(ours, None, "needs two seeds")
    return decided(ours, "" if mean.p > THRESHOLD else "the difference is significant")


def all_positive(estimates: Mapping[str, Estimate], needs: str) -> Verdict:
    """Differences that must each be significantly above zero."""
    if not estimates:
        return missing(needs)
    ours = ", ".join(f"{name} {found.value:+.1f} points, {found.p_text}" for name, found in estimates.items())
    lost = [name for name, found in estimates.items() if not found.positive]
    return decided(ours, f"not so for {', '.join(lost)}" if lost else "")


def scores(records: Records, score: str = "test_micro_f1") -> Scores:
    """F1 in the paper's form. Baselines count in both tasks, with their stronger probe against supervised models."""
    found: Scores = {}
    for row in records["table1"]["rows"]:
        if row["row"] in ROWS and score in row and row.get("form", "paper") == "paper":
            for task in TASKS if row["task"] == "both" else (row["task"],):
                better = task == "supervised" and row["row"] in BASELINES and score == "test_micro_f1"
                found.setdefault((row["data"], task), {})[row["row"]] = stronger(row) if better else row[score]
    return {key: rows for key, rows in found.items() if any(name in MODELS for name in rows)}


def compared_rows(records: Records, compare: Callable[[Score, Score], Estimate], a: str, b: str) -> dict[str, Estimate]:
    """Row a with row b in each setting that has both."""
    return {
        " ".join(key): compare(rows[a], rows[b]) for key, rows in scores(records).items() if a in rows and b in rows
    }


def gain_over_features(records: Records) -> Verdict:
    table = scores(records)
    best = {
        found["data"]: found["best"]
        for found in gains(records["table1"]["rows"])
        if (found["task"], found["form"]) == ("supervised", "paper")
    }
    cells = {data: table[data, "supervised"] for data in best}
    found = {f"{data} supervised": gain(own[best[data]], own["Raw features"]) for data, own in cells.items()}
    return effect(found, Range(51))


def over_deepwalk(records: Records, task: str, paper: Range) -> Verdict:
    found = compared_rows(records, gain, "GraphSAGE-pool", "DeepWalk + features")
    return effect({name: value for name, value in found.items() if name.endswith(f" {task}")}, paper)


def beats_baselines(records: Records) -> Verdict:
    table = {key: rows for key, rows in scores(records).items() if any(name in rows for name in BASELINES)}
    if not table:
        return missing("table1")
    lost = []
    for key, rows in table.items():
        pairs = [(difference(rows[a], rows[b]), a, b) for a in MODELS if a in rows for b in BASELINES if b in rows]
        close = [(found.value, a, b) for found, a, b in pairs if not found.positive]
        if close:
            _, a, b = min(close)
            lost.append(f"{' '.join(key)}: {a} {rows[a]['mean']:.3f}, {b} {rows[b]['mean']:.3f}")
    absent = [f"{data}: without {' and '.join(names)} ({why})" for data, (names, why) in not_compared(records).items()]
    return decided("; ".join([f"in {len(table) - len(lost)} of {len(table)} settings", *absent]), *lost)


def not_compared(records: Records) -> dict[str, tuple[list[str], str]]:
    """Baselines that a data set has no score of, and why."""
    found = {}
    for data in dict.fromkeys(data for data, _ in scores(records)):
        own = {row["row"]: row for row in records["table1"]["rows"] if row["data"] == data}
        absent = [name for name in BASELINES if "test_micro_f1" not in own.get(name, {})]
        if absent:
            reasons = {own.get(name, {}).get("missing", "not made").partition(":")[0] for name in absent}
            found[data] = (absent, " or ".join(sorted(reasons)))
    return found


PAPER_LOSS = -8.4  # percent; of the paper's Table 1, averaged over its aggregators and then over its data


def unsupervised_loss(records: Records) -> Verdict:
    table = scores(records)
    losses = {}
    for data, task in table:
        own, other = table[data, task], table.get((data, "supervised"), {})
        both = [name for name in MODELS if name in own and name in other]
        if task == "unsupervised" and both:
            losses[data] = average(gain(own[name], other[name]) for name in both)
    if not losses:
        return missing("both tasks of table1")
    mean, ours = averaged(losses)
    why = "" if mean.value >= 2 * PAPER_LOSS else f"{mean.value:.1f}% is more than twice the paper's {PAPER_LOSS}%"
    return decided(ours, why)


def macro_trend(records: Records) -> Verdict:
    from scipy.stats import spearmanr

    micro, macro = scores(records), scores(records, score="test_macro_f1")
    found = []
    for key, rows in micro.items():
        own = [(rows[name]["values"], macro[key][name]["values"]) for name in rows if name in macro[key]]
        seeds = min(len(values) for pair in own for values in pair)
        pairs = [([a[seed] for a, _ in own], [b[seed] for _, b in own]) for seed in range(seeds)]
        ranks = tuple(float(spearmanr(a, b).statistic) for a, b in pairs if len(set(a)) > 2)
        if ranks:
            found.append(Estimate(statistics.fmean(ranks), ((1.0, ranks),)))
    if not found:
        return missing("table1")
    mean = average(found)
    why = "" if mean.value >= 0.5 and mean.positive else f"{mean.value:.2f} is below 0.5 or the seeds explain it"
    return decided(f"{mean.value:.2f} over {len(found)} settings, {mean.p_text}", why)


def best_aggregators(records: Records) -> Verdict:
    full = {key: rows for key, rows in scores(records).items() if all(name in rows for name in MODELS)}
    if not full:
        return missing("all four aggregators of table1")
    best = {key: max(MODELS, key=lambda name: float(rows[name]["mean"])) for key, rows in full.items()}
    won = sum(
        best[key] in MODELS[2:] and all(difference(rows[best[key]], rows[name]).positive for name in MODELS[:2])
        for key, rows in full.items()
    )
    named = ", ".join(f"{' '.join(key)}: {name.removeprefix('GraphSAGE-')}" for key, name in best.items())
    bar = 5 / 6 / 2
    why = "" if won / len(full) >= bar else f"{won} of {len(full)} is less than half of the paper's 5 of 6"
    return decided(f"significantly in {won} of {len(full)} (best: {named})", why)


def over_rows(
    records: Records, names: Sequence[str], others: Sequence[str], data: str | None = None
) -> dict[str, Estimate]:
    """Points of each of `names` over each of `others`, averaged over the settings; empty unless all are there."""
    found = {}
    for a in names:
        for b in others:
            pairs = compared_rows(records, difference, NAMES[a], NAMES[b])
            own = [pair for key, pair in pairs.items() if data is None or key == data]
            if not own:
                return {}
            found[" over ".join(NAMES[name].removeprefix("GraphSAGE-") for name in (a, b))] = average(own)
    return found


def each_over(records: Records, names: Sequence[str], other: str) -> Verdict:
    return all_positive(over_rows(records, names, (other,)), f"{', '.join(names)} and {other} of table1")


def best_on_ppi(records: Records) -> Verdict:
    if not any(data == "ppi" for data, _ in scores(records)) and scores(records):
        return Verdict("–", None, "PPI was not given (--data ppi=PATH)")
    found = over_rows(records, ("lstm", "pool"), ("gcn", "mean"), "ppi supervised")
    return all_positive(found, "all four aggregators of table1 on PPI, supervised")


def lstm_like_pool(records: Records) -> Verdict:
    return no_effect(compared_rows(records, difference, "GraphSAGE-LSTM", "GraphSAGE-pool"), "LSTM and pool of table1")


def points_in_part(name: str, record: dict[str, Any]) -> list[str]:
    """How much of a figure has fewer seeds than the rest of it, or was made with less than the whole grid of rates."""
    if name not in ("figure2a", "figure2b", "figure3", "depth", "pooling"):
        return []
    cells = [*record.get("points", ()), *(cell for line in record.get("lines", {}).values() for cell in line)]
    if "device" in record:
        cells += [row["pass_seconds"] for rows in by_machine(record).values() for row in rows]
    seeds = [len(cell.get("test_micro_f1", cell)["values"]) for cell in cells]
    few = sum(count < max(seeds) for count in seeds)
    swept = [cell for cell in cells if "tried" in cell]
    partly = sum(len(cell["tried"]) < cell["of"] for cell in swept)
    found = [f"{few} of {len(seeds)} points with fewer than {max(seeds)} seeds"] if few else []
    found += [f"{partly} of {len(swept)} points with fewer than {swept[0]['of']} learning rates"] if partly else []
    return [f"{name} ({', '.join(found)})"] if found else []


def pooling(records: Records) -> Verdict:
    found: dict[str, dict[str, Score]] = {}
    for point in records["pooling"]["points"]:
        found.setdefault(point["data"], {})[point["aggregator"]] = point["test_micro_f1"]
    pairs = {data: difference(pair["pool"], pair["meanpool"]) for data, pair in found.items() if len(pair) == 2}
    return no_effect(pairs, "pooling")


def depths(records: Records, a: int, b: int) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """The points at depths a and b of each data set and aggregator."""
    found: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for point in records["depth"]["points"]:
        found.setdefault((point["data"], point["aggregator"]), {})[point["k"]] = point
    return {" ".join(key): (ks[a], ks[b]) for key, ks in found.items() if a in ks and b in ks}


def depth_gains(records: Records, a: int, b: int) -> dict[str, Estimate]:
    """Percent of F1 that depth b gains over depth a."""
    pairs = depths(records, a, b)
    return {key: gain(more["test_micro_f1"], less["test_micro_f1"]) for key, (less, more) in pairs.items()}


def second_layer(records: Records) -> Verdict:
    return effect(depth_gains(records, 1, 2), Range(10, 15), "depth")


def third_layer(records: Records) -> Verdict:
    """The paper's range begins at no gain: significance is not claimed."""
    found = depth_gains(records, 2, 3)
    if not found:
        return missing("depth")
    mean, ours = averaged(found)
    return decided(ours, Range(0, 5).failure(mean.value))


def third_layer_time(records: Records) -> Verdict:
    pairs = depths(records, 2, 3)
    if not pairs:
        return missing("depth")
    factors = {key: three["step_milliseconds"] / two["step_milliseconds"] for key, (two, three) in pairs.items()}
    mean = statistics.geometric_mean(factors.values())
    return decided(f"{mean:.1f} x, geometric mean ({named_factors(factors, 1)})", Range(10, 100).failure(mean, " x"))


def figure2b_points(records: Records) -> list[dict[str, Any]]:
    points: list[dict[str, Any]] = records["figure2b"]["points"]
    return points if len(points) > 2 else []


def subsampling(records: Records) -> Verdict:
    points = figure2b_points(records)
    if not points:
        return missing("figure2b")
    largest = points[-1]
    best = largest["test_micro_f1"]
    enough = next(point for point in points if not difference(best, point["test_micro_f1"]).positive)
    share = enough["step_milliseconds"] / largest["step_milliseconds"]
    size, f1 = enough["sample_size"], enough["test_micro_f1"]["mean"]
    ours = f"S {size}: F1 {f1:.3f} in {share:.2f} of the time of S {largest['sample_size']} ({best['mean']:.3f})"
    return decided(ours, "" if share <= 0.5 else "more than half of the time")


def sample_size(records: Records) -> Verdict:
    points = figure2b_points(records)
    if not points:
        return missing("figure2b")
    f1, sizes = [point["test_micro_f1"] for point in points], [point["sample_size"] for point in points]
    first, last = difference(f1[1], f1[0]), difference(f1[-1], f1[-2])
    smaller = Estimate(first.value - last.value, (*first.terms, *((-weight, values) for weight, values in last.terms)))
    ours = (
        f"S {sizes[0]} to {sizes[1]}: {first.value:+.1f} points, {first.p_text}; "
        f"{sizes[-2]} to {sizes[-1]}: {last.value:+.1f}; first minus last {smaller.value:+.1f}, {smaller.p_text}"
    )
    return decided(
        ours,
        "" if first.positive else "the first step gains nothing that is significant",
        "" if smaller.positive else "the last step gains no less",
    )


def noise(records: Records) -> Verdict:
    record, table = records["figure3"], records["table1"]
    lines = {name: line[-1] for name, line in record["lines"].items()}
    if not {"GraphSAGE-pool", "GraphSAGE-GCN"} <= lines.keys():
        return missing("figure3 with pool and GCN")
    data = next(iter(record["data"]))
    chance = [row["test_micro_f1"] for row in table["rows"] if (row["data"], row["row"]) == (data, "Random")]
    if not chance:
        return missing(f"table1 with {data}")
    others = {"the random classifier": chance[0], "GCN": lines["GraphSAGE-GCN"]}
    found = {f"pool over {name}": difference(lines["GraphSAGE-pool"], other) for name, other in others.items()}
    verdict = all_positive(found, "figure3")
    f1 = ", ".join(f"{name} {cell['mean']:.3f}" for name, cell in (*lines.items(), ("random classifier", chance[0])))
    return Verdict(f"{verdict.ours} ({f1})", verdict.holds, verdict.why)


def rotation(records: Records) -> Verdict:
    same, other, aligned = (row["test_micro_f1"] for row in records["rotation"]["rows"])
    lost, regained = difference(same, other), difference(aligned, other)
    ours = f"same run {same['mean']:.3f}, other run {other['mean']:.3f}, aligned {aligned['mean']:.3f}"
    return decided(
        f"{ours}, {lost.p_text}",
        "" if lost.positive and other["mean"] <= same["mean"] / 2 else "another run loses less than half",
        "" if regained.positive and regained.value >= lost.value / 2 else "alignment regains less than half",
    )


def theorem(records: Records) -> Verdict:
    record = records["theory"]
    worst = max(row["largest_error"] for row in record["constructed"])
    ours = f"largest error {worst:.0e} on {len(record['constructed'])} graphs"
    return decided(ours, "" if worst < record["epsilon"] else f"not below {record['epsilon']:g}")


def learned(records: Records) -> Verdict:
    r2 = {row["aggregator"]: row["r2_new_graphs"] for row in records["theory"]["learned"]}
    others = (name for name in r2 if name != "pool")
    return all_positive({f"pool over {name}": difference(r2["pool"], r2[name]) for name in others}, "theory")


def fact(records: Records, name: str, data: str, paper: float, title: str) -> Verdict:
    """A number that the paper states about its own data."""
    rows = records["facts"]["rows"]
    share = next((100 * float(row[name]) for row in rows if row["data"] == data), None)
    if share is not None:
        return decided(f"{share:.1f}%", "" if abs(share - paper) <= 1 else f"more than a point from {paper:.0f}%")
    stand_in = next((row for row in rows if COLUMNS.get(row["data"]) == data), None)
    if stand_in is None:
        return Verdict("–", None, f"{title} was not given (--data {data}=PATH)")
    ours = f"{100 * stand_in[name]:.0f}% on the stand-in {stand_in['data']}"
    return Verdict(ours, None, f"{title} is closed, and another graph says nothing about it")


Timed = dict[str, dict[str, Any]]
"""Times by the name of the method."""


def on_every_machine(judge: Callable[[Timed], Verdict | None]) -> Callable[[Records], Verdict]:
    """A claim about times holds if it holds on all machines that were timed."""

    def find(records: Records) -> Verdict:
        machines = by_machine(records["figure2a"])
        judged = {machine: judge({row["row"]: row for row in rows}) for machine, rows in machines.items()}
        found = {machine: verdict for machine, verdict in judged.items() if verdict is not None}
        if not found:
            return missing("figure2a on a single graph")
        if len(found) == 1:
            return next(iter(found.values()))
        parts = {machine: verdict.ours.partition(" (") for machine, verdict in found.items()}
        ratios = ", ".join(f"{first} on {machine}" for machine, (first, _, _) in parts.items())
        details = "; ".join(f"{machine}: {rest.removesuffix(')')}" for machine, (_, _, rest) in parts.items())
        failures = [f"on {machine}: {verdict.why}" for machine, verdict in found.items() if verdict.why]
        return decided(f"{ratios} ({details})", *failures)

    return find


def named_factors(factors: Mapping[str, float], digits: int = 0) -> str:
    return ", ".join(f"{name.removeprefix('GraphSAGE-')} {value:.{digits}f} x" for name, value in factors.items())


def time_factor(pairs: Mapping[str, Estimate], paper: Range, details: str = "") -> Verdict:
    """The geometric mean of time ratios."""
    mean = average(pairs.values())
    factors = named_factors({name: math.exp(pair.value) for name, pair in pairs.items()}, 1)
    why = paper.failure(math.exp(mean.value), " x") or ("" if mean.positive else "the difference is not significant")
    return decided(f"{math.exp(mean.value):.1f} x ({factors}{details})", why)


@on_every_machine
def lstm_slower(rows: Timed) -> Verdict:
    lstm, pool = (rows[f"GraphSAGE-{n}"]["supervised_step_milliseconds"] for n in ("LSTM", "pool"))
    return time_factor(
        {"LSTM": log_ratio(lstm, pool)}, Range(2, 2), f"; {short(usual(lstm))} and {short(usual(pool))} ms"
    )


@on_every_machine
def lstm_slowest(rows: Timed) -> Verdict:
    steps = {name: rows[name]["supervised_step_milliseconds"] for name in MODELS if name in rows}
    lstm = steps["GraphSAGE-LSTM"]
    apart = max(map(usual, steps.values())) / min(map(usual, steps.values()))
    named = ", ".join(f"{name.removeprefix('GraphSAGE-')} {short(usual(step))} ms" for name, step in steps.items())
    faster = [name for name, step in steps.items() if step is not lstm and not log_ratio(lstm, step).positive]
    return decided(
        f"{apart:.0f} x from fastest to slowest ({named})",
        f"LSTM is not slower than {' and '.join(faster)}" if faster else "",
        "" if apart <= 10 else f"the slowest takes {apart:.0f} times as long as the fastest",
    )


@on_every_machine
def deepwalk_inference(rows: Timed) -> Verdict | None:
    if "DeepWalk" not in rows:
        return None
    others = {name: row for name, row in rows.items() if name != "DeepWalk"}
    own = rows["DeepWalk"]["embed_microseconds"]
    exact = {name: row["deepwalk_exact_factor"] for name, row in others.items()}
    key = "deepwalk_five_pass_factor"
    five = {name: row[key] for name, row in others.items() if key in row}
    details = f"; over exact inference {named_factors(exact)}"
    details += f"; with five online passes {named_factors(five)}" if five else ""
    pairs = {name: log_ratio(own, row["embed_microseconds"]) for name, row in others.items()}
    return time_factor(pairs, Range(100, 500), details)


@on_every_machine
def deepwalk_training(rows: Timed) -> Verdict | None:
    if "DeepWalk" not in rows:
        return None
    one = rows["DeepWalk"]["pass_seconds"]
    own = {"mean": PASSES * one["mean"], "values": [PASSES * value for value in one["values"]]}
    pairs = {name: log_ratio(row["pass_seconds"], own) for name, row in rows.items() if name != "DeepWalk"}
    return time_factor(pairs, Range(2, 5))


def wilcoxon(session: Session) -> Path:
    table = session.earlier("table1")
    if table is None:
        raise Inapplicable(f"there is no table1.json in {session.out}; run `graphsage reproduce table1` first")
    forms = sorted({row["form"] for row in table["rows"] if "form" in row})
    body = {
        "profile": table["profile"],
        "trials_on": table["trials_on"],
        "rows": [row for form in forms for row in compared(table["rows"], form)],
        "in_part": {form: rows_in_part(table, TASKS, MODELS, form) for form in forms},
        "old_protocol": table["old_protocol"],
        "check": check(),
    }
    return session.keep("wilcoxon", "Section 4.4: signed-rank test between aggregators over data sets and tasks", body)


def compared(rows: list[dict[str, Any]], form: str) -> list[dict[str, Any]]:
    """One test for each pair of the paper, over the (data, task) settings where both aggregators were scored."""
    scores: dict[str, dict[tuple[str, str], float]] = {}
    for row in rows:
        if "aggregator" in row and row["form"] == form:
            scores.setdefault(row["aggregator"], {})[row["data"], row["task"]] = row["test_micro_f1"]["mean"]
    made = []
    for (a, b), (paper_t, paper_p) in WILCOXON.items():
        both = sorted(scores.get(a, {}).keys() & scores.get(b, {}).keys())
        settings = [" ".join(key) for key in both]
        row = {"form": form, "a": a, "b": b, "settings": settings, "paper_t": paper_t, "paper_p": paper_p}
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
    compared: str
    """The values that the rule is applied to."""
    find: Callable[[Records], Verdict]
    tasks: tuple[str, ...] = ()
    """Of Table 1, if its rows decide: some of them may have been made in part or under an older protocol."""
    rows: tuple[str, ...] = ROWS
    needs: tuple[str, ...] = ("table1",)
    """The results that it is judged by."""


CLAIMS = (
    Claim(
        "gain over features",
        "improves classification F1-scores by an average of 51%",
        "1",
        "+51%",
        "supervised: the best aggregator on validation over raw features by the stronger probe",
        gain_over_features,
        ("supervised",),
        ("Raw features", *MODELS),
    ),
    Claim(
        "gain over GCN",
        "significant gains (7.4% on average)",
        "1",
        "+7.4% (pool over GCN, six settings)",
        "pool over GCN in all settings",
        lambda records: effect(compared_rows(records, gain, "GraphSAGE-pool", "GraphSAGE-GCN"), Range(7.4)),
        TASKS,
        ("GraphSAGE-pool", "GraphSAGE-GCN"),
    ),
    Claim(
        "outperforms the baselines",
        "outperforms all the baselines by a significant margin",
        "4.1",
        "everywhere",
        "every GraphSAGE row over every baseline in every setting",
        beats_baselines,
        TASKS,
    ),
    Claim(
        "gain over DeepWalk + features, unsupervised",
        "by 13.8% on the citation data and 29.1% on the Reddit data",
        "4.1",
        "+13.8% / +29.1%",
        "unsupervised: pool over DeepWalk + features, both by the paper's probe",
        lambda records: over_deepwalk(records, "unsupervised", Range(13.8)),
        ("unsupervised",),
        ("GraphSAGE-pool", "DeepWalk + features"),
    ),
    Claim(
        "gain over DeepWalk + features, supervised",
        "the supervised version provides a gain of 19.7% and 37.2%",
        "4.1",
        "+19.7% / +37.2%",
        "supervised: pool over DeepWalk + features by the stronger probe",
        lambda records: over_deepwalk(records, "supervised", Range(19.7)),
        ("supervised",),
        ("GraphSAGE-pool", "DeepWalk + features"),
    ),
    Claim(
        "unsupervised close to supervised",
        "reasonably competitive with the fully supervised version",
        "4.1",
        f"{PAPER_LOSS}% on average (computed from Table 1)",
        "unsupervised over supervised for each aggregator: a loss of at most twice the paper's",
        unsupervised_loss,
        TASKS,
        MODELS,
    ),
    Claim(
        "same trends for macro F1",
        "Analogous trends hold for macro-averaged scores",
        "Table 1",
        "–",
        "rank correlation of micro and macro F1 over the methods of a setting; 1 is the same order",
        macro_trend,
        TASKS,
    ),
    Claim(
        "LSTM and pool are best",
        "LSTM- and pool-based aggregators performed the best",
        "4.4",
        "5 of 6 settings",
        "settings in which LSTM or pool is significantly above mean and GCN",
        best_aggregators,
        TASKS,
        MODELS,
    ),
    Claim(
        "gains over GCN are significant",
        "T=1.0, p=0.02 for all three",
        "4.4",
        "p = 0.02 (signed-rank test over six settings)",
        "mean, LSTM and pool, each over GCN in all settings",
        lambda records: each_over(records, ("mean", "lstm", "pool"), "gcn"),
        TASKS,
        MODELS,
    ),
    Claim(
        "LSTM and pool over mean",
        "gains of the LSTM and pool approaches over the mean-based aggregator are more marginal",
        "4.4",
        "p = 0.03 (LSTM), p = 0.10 (pool)",
        "LSTM and pool, each over mean in all settings",
        lambda records: each_over(records, ("lstm", "pool"), "mean"),
        TASKS,
        ("GraphSAGE-mean", "GraphSAGE-LSTM", "GraphSAGE-pool"),
    ),
    Claim(
        "LSTM and pool on PPI",
        "LSTM- and pooling-based aggregators providing substantial gains over the mean- and GCN-based aggregators",
        "4.2",
        "0.612 and 0.600 over 0.598 and 0.500",
        "supervised on PPI: each over mean and GCN",
        best_on_ppi,
        ("supervised",),
        MODELS,
    ),
    Claim(
        "LSTM and pool do not differ",
        "no significant difference between the LSTM and pool approaches",
        "4.4",
        "p = 0.46 (signed-rank test over six settings)",
        "LSTM minus pool in all settings: no difference",
        lstm_like_pool,
        TASKS,
        ("GraphSAGE-LSTM", "GraphSAGE-pool"),
    ),
    Claim(
        "LSTM slower than pool",
        "significantly slower than GraphSAGE-pool (by a factor of 2)",
        "4.4",
        "2 x",
        "time of a supervised step, on every machine that was timed",
        lstm_slower,
        needs=("figure2a",),
    ),
    Claim(
        "max and mean pooling",
        "no significant difference between max- and mean-pooling",
        "3.3",
        "–",
        "max minus mean on all data sets: no difference",
        pooling,
        needs=("pooling",),
    ),
    Claim(
        "K = 2 over K = 1",
        "a consistent boost in accuracy of around 10-15%, on average",
        "4.3",
        "+10-15%",
        "K = 2 over K = 1, mean and pool on all data sets",
        second_layer,
        needs=("depth",),
    ),
    Claim(
        "K = 3 over K = 2",
        "marginal returns in performance (0-5%)",
        "4.3",
        "0-5%",
        "K = 3 over K = 2, mean and pool on all data sets; significance is not claimed",
        third_layer,
        needs=("depth",),
    ),
    Claim(
        "time of K = 3",
        "increasing the runtime by a prohibitively large factor of 10-100x",
        "4.3",
        "10-100 x",
        "time of a step with K = 3 over K = 2; a third sample of 10 makes at most 11 times the work",
        third_layer_time,
        needs=("depth",),
    ),
    Claim(
        "sample size",
        "diminishing returns for sampling large neighborhoods",
        "4.3",
        "–",
        "the first step of S gains F1, and the last step gains less than the first",
        sample_size,
        needs=("figure2b",),
    ),
    Claim(
        "sub-sampling",
        "maintain strong predictive accuracy, while significantly improving the runtime",
        "4.3",
        "–",
        "the smallest sample that is not significantly below the largest: at most half of its time",
        subsampling,
        needs=("figure2b",),
    ),
    Claim(
        "DeepWalk slower at test time",
        "makes DeepWalk 100-500x slower at test time",
        "4.3",
        "100-500 x",
        "one online pass over the aggregators' sampled inference, on every machine",
        deepwalk_inference,
        needs=("figure2a",),
    ),
    Claim(
        "DeepWalk faster in training",
        "it is 2-5X faster at training",
        "C",
        "2-5 x",
        "the aggregators' one pass over the walks over DeepWalk's five, on every machine",
        deepwalk_training,
        needs=("figure2a",),
    ),
    Claim(
        "comparable training times",
        "comparable (with GraphSAGE-LSTM being the slowest)",
        "4.3",
        "LSTM slowest",
        "supervised steps on every machine: LSTM is the slowest, at most 10 times the fastest",
        lstm_slowest,
        needs=("figure2a",),
    ),
    Claim(
        "random features",
        "maintaining modest performance ... even with completely random feature inputs",
        "E",
        "pool yes, GCN no",
        "on noise alone: pool over the random classifier and over GCN",
        noise,
        needs=("figure3", "table1"),
    ),
    Claim(
        "rotation",
        "embeddings can be rotated by an arbitrary orthogonal matrix",
        "D",
        "–",
        "a probe loses half of its F1 on another run, and alignment regains half of the loss",
        rotation,
        needs=("rotation",),
    ),
    Claim(
        "clustering coefficients",
        "capable of approximating clustering coefficients to an arbitrary degree",
        "5",
        "Theorem 1",
        "error of the constructed network on every graph, below 1e-6",
        theorem,
        needs=("theory",),
    ),
    Claim(
        "clustering coefficients are learned",
        "provides insight into why GraphSAGE-pool outperforms",
        "5",
        "–",
        "R² on new graphs, trained on random features: pool over mean and over GCN, in points",
        learned,
        needs=("theory",),
    ),
    Claim(
        "citation edges back in time",
        "96% of the 2005 citation links connect back to the 2000-2004 data",
        "D",
        "96%",
        "the same share of the citation data",
        lambda records: fact(records, "edges_back", "citation", 96, "the citation data"),
        needs=("facts",),
    ),
    Claim(
        "Reddit edges back in time",
        "only 73% of edges in the Reddit test set connect back to the train data",
        "D",
        "73%",
        "the same share of Reddit",
        lambda records: fact(records, "edges_back", "reddit", 73, "Reddit"),
        needs=("facts",),
    ),
    Claim(
        "proteins without features",
        "42% of nodes have no non-zero feature values",
        "B",
        "42%",
        "the same share of PPI",
        lambda records: fact(records, "nodes_without_features", "ppi", 42, "PPI"),
        needs=("facts",),
    ),
)


def claims(session: Session) -> Path:
    found = {name: session.earlier(name) for name in MEASURED}
    records = {name: record for name, record in found.items() if record is not None}
    if not records:
        raise DataError(f"there is no result in {session.out}; run `graphsage reproduce table1` or another first")
    rows = [judged(claim, records) for claim in CLAIMS]
    body = {
        "profile": " and ".join(sorted({record["profile"] for record in records.values()})),
        "rule": RULE,
        "rows": rows,
        "counts": {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in VERDICTS},
        "trials_on": [machine for record in records.values() for machine in record["trials_on"]],
    }
    return session.keep("claims", "What the paper claims, and what of it holds on our data", body)


def judged(claim: Claim, records: Records) -> dict[str, Any]:
    """A row of the ledger, with the profile of every result that it was judged by."""
    read = {name: records[name] for name in claim.needs if name in records}
    found = claim.find(records) if len(read) == len(claim.needs) else missing(*claim.needs)
    unknown = PENDING if found.pending else UNTESTED
    verdict = unknown if found.holds is None else HOLDS if found.holds else FAILS
    return {
        "claim": claim.name,
        **{name: getattr(claim, name) for name in ("quote", "place", "paper", "compared")},
        "ours": found.ours,
        "verdict": verdict,
        "why": found.why,
        "reference_form": in_reference_form(claim, records, verdict),
        "profiles": {name: record.get("profile") for name, record in read.items()},
        "in_part": rows_in_part(records.get("table1"), claim.tasks, claim.rows)
        + [part for name, record in read.items() for part in points_in_part(name, record)],
        "old_protocol": [name for name, record in read.items() if judged_by_old(name, record, claim)],
    }


def judged_by_old(name: str, record: dict[str, Any], claim: Claim) -> bool:
    """Whether a result holds trials of an older protocol among those that decide this claim."""
    if name != "table1" or not claim.tasks:
        return bool(record.get("old_protocol"))
    rows = [row for row in record["rows"] if row.get("form", "paper") == "paper"]
    return any("old_protocol" in row for row in judging(rows, claim.tasks, claim.rows))


def in_reference_form(claim: Claim, records: Records, verdict: str) -> str:
    """The measurement in the reference form, if Table 1 has the same rows there and the verdict differs."""
    if verdict not in (HOLDS, FAILS) or not claim.tasks:
        return ""
    # The rows of the reference form as if they were of the paper's; those of no form stay.
    rows = [row for row in records["table1"]["rows"] if row.get("form") != "paper"]
    named = [{**row, "form": "paper"} if "form" in row else row for row in rows]
    taken = {**records, "table1": {**records["table1"], "rows": named}}
    ours, other = ({key: rows.keys() for key, rows in scores(each).items()} for each in (records, taken))
    found = claim.find(taken)
    return found.ours if ours == other and found.holds is (verdict == FAILS) else ""
