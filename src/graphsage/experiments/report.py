"""The report of all results: an HTML page, and a page of the documentation."""

import base64
import html
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graphsage.atomic import atomic_file
from graphsage.errors import DataError
from graphsage.experiments.claims import FAILS, HOLDS, PENDING, UNTESTED
from graphsage.experiments.paper import ROWS
from graphsage.experiments.record import EXPERIMENTS, by_machine, read_result, short, usual
from graphsage.training.space import UNSUPERVISED_RATES

Record = dict[str, Any]


@dataclass(frozen=True)
class Table:
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Section:
    title: str
    text: str
    tables: tuple[Table, ...] = ()
    picture: str | None = None


def value(cell: Record) -> str:
    mean = f"{cell['mean']:.3f}"
    return f"{mean} ± {cell['std']:.3f}" if len(cell["values"]) > 1 else mean


def table1(record: Record) -> Section:
    tables = []
    for data in record["data"]:
        there = {(r["task"], r.get("form")) for r in record["rows"] if r["data"] == data}
        kinds = [
            (task, form)
            for task in ("unsupervised", "supervised")
            for form in ("paper", "reference")
            if (task, form) in there
        ]
        head = (f"{data}: test micro F1 (macro)", *(f"{task}, {form} form" for task, form in kinds), "the paper")
        rows = [
            (name, *(_cell(record, data, name, task, form) for task, form in kinds), _paper(record, data, name))
            for name in ROWS
        ]
        gained = tuple(_gain(record, data, task, form) for task, form in kinds)
        tables.append(Table(head, [*rows, ("% gain over features", *gained, "")]))
    notes = "; ".join(f"{data}: {about['note']}" for data, about in record["data"].items() if about["note"])
    first = f"Test micro F1, settings chosen on validation, exact inference. {notes}."
    text = " ".join(part for part in (first, readings(record), drifts(record)) if part)
    return Section("Table 1", text, (*tables, *_sampled(record)), "table1")


def _sampled(record: Record) -> list[Table]:
    """Supervised scores where inference samples neighbors, as training does and as the authors evaluate."""
    found = {
        (r["data"], r["row"], r["form"]): value(r["sampled_test_micro_f1"])
        for r in record["rows"]
        if "sampled_test_micro_f1" in r
    }
    forms = [form for form in ("paper", "reference") if any(key[2] == form for key in found)]
    names = list(dict.fromkeys((data, row) for data, row, _ in found))
    rows = [(*name, *(found.get((*name, form), "not made") for form in forms)) for name in names]
    head = ("sampled inference, supervised", "row", *(f"{form} form" for form in forms))
    return [Table(head, rows)] if rows else []


def readings(record: Record) -> str:
    """Which reading of the unsupervised learning rates won on validation, for every data set and aggregator."""
    won: dict[str, dict[str, list[str]]] = {}
    for row in record["rows"]:
        found = row.get("readings")
        if found is not None and found["won"] is not None:
            how = found["won"] if len(found["val"]) > 1 else f"only {found['won']} was tried"
            name = row["aggregator"] + (f" ({row['form']} form)" if row["form"] != "paper" else "")
            won.setdefault(row["data"], {}).setdefault(how, []).append(name)
    if not won:
        return ""
    told = "; ".join(
        f"{data}: " + ", ".join(f"{how} for {', '.join(names)}" for how, names in by.items())
        for data, by in won.items()
    )
    both = "; ".join(f"{name} {', '.join(f'{rate:g}' for rate in rates)}" for name, rates in UNSUPERVISED_RATES.items())
    return f"Of the two readings of the unsupervised learning rates ({both}), validation chose: {told}."


APART = 0.1  # F1: more than seeds or aggregators differ by


def drifts(record: Record) -> str:
    """Data sets on which a validation score says little about the test score: time has changed their nodes."""
    scores: dict[str, list[tuple[float, float]]] = {}
    for row in record["rows"]:
        if "aggregator" in row:
            scores.setdefault(row["data"], []).append((row["val_micro_f1"]["mean"], row["test_micro_f1"]["mean"]))
    told = []
    for data, pairs in scores.items():
        val, test = (statistics.fmean(part) for part in zip(*pairs, strict=True))
        if abs(val - test) > APART:
            told.append(
                f"On {data} GraphSAGE scores {val:.2f} on validation and {test:.2f} on test nodes, on average "
                "over its rows: the two differ in kind there, and what is best on validation need not be best "
                "on test."
            )
    return " ".join(told)


def _find(record: Record, data: str, name: str, task: str, form: str) -> Record | None:
    rows = (
        r
        for r in record["rows"]
        if (r["data"], r["row"]) == (data, name) and r["task"] in (task, "both") and r.get("form", form) == form
    )
    found: Record | None = next(rows, None)
    return found


def _cell(record: Record, data: str, name: str, task: str, form: str) -> str:
    row = _find(record, data, name, task, form)
    if row is None:
        return "not made"
    if "test_micro_f1" not in row:
        return "refused"
    return f"{value(row['test_micro_f1'])} ({row['test_macro_f1']['mean']:.3f})"


def _paper(record: Record, data: str, name: str) -> str:
    cells: dict[str, float] = {}
    for row in record["rows"]:
        if (row["data"], row["row"]) == (data, name):
            cells |= {task: score for task, score in row["paper"].items() if score is not None}
    if not cells:
        return "–"
    ordered = [f"{cells[task]:.3f}" for task in ("unsupervised", "supervised") if task in cells]
    return " / ".join(dict.fromkeys(ordered))


def _gain(record: Record, data: str, task: str, form: str) -> str:
    found = next((g for g in record["gains"] if (g["data"], g["task"], g["form"]) == (data, task, form)), None)
    return "" if found is None else f"{found['percent']:+.0f}% ({found['best'].removeprefix('GraphSAGE-')})"


def settings(record: Record) -> Section:
    rows = []
    for r in record["rows"]:
        if r["settings"]:
            chosen = ", ".join(f"{name} {v}" for name, v in r["settings"].items())
            rows.append(
                (
                    r["data"],
                    r["row"],
                    r["task"],
                    r.get("form", "–"),
                    chosen,
                    f"{r['val_micro_f1']['mean']:.3f}",
                    _tried(r),
                    str(len(r["test_micro_f1"]["values"])),
                    _machines(r),
                )
            )
    head = ("data", "row", "task", "form", "chosen on validation", "validation F1", "tried", "seeds", "made on")
    return Section("Settings", f"`{record['command']}`", (Table(head, rows),))


def _tried(row: Record) -> str:
    """A row of three rates is not one of six."""
    tried = row.get("tried")
    if tried is None:
        return "–"
    names = (("rates", "lr"), ("sizes", "hidden_dim"), ("contexts", "contexts"))
    lists = [f"{told} {', '.join(str(one) for one in tried[name])}" for name, told in names if name in tried]
    return f"{'; '.join(lists)} ({tried['points']} of {tried['of']} points)"


def _machines(row: Record) -> str:
    return "; ".join(dict.fromkeys(f"{one['machine']}, torch {one['torch']}" for one in row["made_on"])) or "–"


_TURNED = {HOLDS: "fails", FAILS: "holds"}
_MARKS = {HOLDS: "✓ ", FAILS: "✗ ", UNTESTED: "– ", PENDING: "… "}


def sections(records: Mapping[str, Record | None]) -> list[Section]:
    """Those whose record is there, the claims first."""
    made = []
    for name, write in (
        ("claims", in_short),
        ("claims", claims),
        ("table1", table1),
        ("wilcoxon", wilcoxon),
        ("figure2a", figure2a),
        ("figure2b", figure2b),
        ("depth", depth),
        ("pooling", pooling),
        ("figure3", figure3),
        ("rotation", rotation),
        ("theory", theory),
        ("facts", facts),
        ("table1", settings),
    ):
        record = records.get(name)
        if record is not None:
            section = write(record)
            said = f" The paper: {record['paper']}." if "paper" in record else ""
            made.append(replace(section, text=section.text + said + ("" if write is settings else spent(record))))
    return made


def spent(record: Record) -> str:
    """How long the trials of a result took, one after another."""
    time = record["time"]
    if not time["trials"]:
        return ""
    seconds = time["trial_seconds"]
    told = f"{seconds} seconds" if seconds < 100 else f"{seconds / 60:,.0f} minutes"
    return f" Made of {time['trials']} trials, {told} in all."


HEADLINES = (
    "gain over features",
    "gain over GCN",
    "outperforms the baselines",
    "unsupervised close to supervised",
    "K = 2 over K = 1",
    "sample size",
    "DeepWalk slower at test time",
    "clustering coefficients",
)
"""The most important claims."""


def in_short(record: Record) -> Section:
    found = {row["claim"]: row for row in record["rows"]}
    rows = [
        (_MARKS[row["verdict"]] + row["claim"], row["paper"], row["ours"].partition(" (")[0])
        for row in (found[name] for name in HEADLINES if name in found)
    ]
    return Section("In short", "✓ holds, ✗ does not.", (Table(("claim", "the paper", "ours"), rows),))


def claims(record: Record) -> Section:
    rows: list[tuple[str, ...]] = []
    for row in record["rows"]:
        why = f"; {row['why']}" if row["why"] else ""
        trained = {name: profile for name, profile in row["profiles"].items() if name != "facts"}
        if row.get("reference_form"):
            why += f"; in the reference form it {_TURNED[row['verdict']]}: {row['reference_form']}"
        why += " (quick)" if "quick" in trained.values() else ""
        why += " (in part)" if row["in_part"] else ""
        said = f"“{row['quote']}” ({row['place']})"
        rows.append((_MARKS[row["verdict"]] + row["claim"], said, row["paper"], row["ours"] + why, row["rule"]))
    rows.sort(key=lambda row: "✗✓–…".index(row[0][0]))
    text = (
        "✓ holds, ✗ does not, – cannot be tested here, … not made yet. Judged by the paper's form; where the "
        "reference form decides otherwise, it is told. (quick): few steps and one learning rate."
    )
    partly = dict.fromkeys(part for row in record["rows"] for part in row["in_part"])
    if partly:
        text += f" (in part): judged also by what deserves a longer sweep or more seeds: {', '.join(partly)}."
    return Section("Claims", text, (Table(("claim", "the paper", "its value", "ours", "holds if"), rows),))


def wilcoxon(record: Record) -> Section:
    rows = [
        (
            f"{r['a']} and {r['b']}, {r['form']} form",
            f"T = {r['t']:g}, p = {r['p']:.2f}" if "p" in r else "–",
            f"{r['mean_difference']:+.3f}" if "p" in r else "–",
            str(len(r["settings"])),
            f"T = {r['paper_t']:g}, p = {r['paper_p']:.2f}",
        )
        for r in record["rows"]
    ]
    right = sum((c["t"], c["p"]) == (c["paper_t"], c["paper_p"]) for c in record["check"])
    text = f"Fed with the paper's own Table 1, the test returns {right} of the {len(record['check'])} published pairs."
    text += "".join(
        f" Judged in the {form} form also by rows that were made in part: {', '.join(rows)}."
        for form, rows in record["in_part"].items()
        if rows
    )
    head = ("aggregators", "ours", "mean difference", "settings", "the paper")
    return Section("Signed-rank test", text, (Table(head, rows),))


def figure2a(record: Record) -> Section:
    rows = []
    for machine, timed in by_machine(record).items():
        for r in timed:
            step, exact = (
                short(usual(r[name])) if name in r else "–"
                for name in ("supervised_step_milliseconds", "exact_embed_microseconds")
            )
            factors = [r[name] for name in ("deepwalk_inference_factor", "deepwalk_exact_factor") if name in r]
            rows.append(
                (
                    machine,
                    r["row"],
                    step,
                    short(usual(r["pass_seconds"])),
                    short(usual(r["embed_microseconds"])),
                    exact,
                    " and ".join(f"{factor:,.0f} x" for factor in factors) or "–",
                )
            )
    head = (
        "on",
        "method",
        "supervised step of 512, ms",
        "pass over the walks, s",
        "unseen node, sampled, µs",
        "unseen node, exact, µs",
        "DeepWalk is slower by, sampled and exact",
    )
    text = (
        f"On {next(iter(record['data']))}, {record['timed_nodes']:,} of {record['unseen_nodes']:,} unseen nodes; "
        f"medians over the seeds ({'; '.join(map(timed_with, (record, *record.get('elsewhere', ()))))}). A pass is "
        "computed from timed steps. Without a GPU DeepWalk runs on one thread, which is its fastest, the others on "
        "all."
    )
    return Section("Figure 2A: time", text, (Table(head, rows),), "figure2a")


def timed_with(timed: Record) -> str:
    """One machine's cores and version of torch, and the number of seeds."""
    seeds = sorted({len(row["pass_seconds"]["values"]) for row in timed["rows"]})
    counts = f"{' or '.join(map(str, seeds))} seed{'s' if seeds[-1] > 1 else ''}"
    return f"{timed['device']}: {', '.join([*timed.get('made_with', ()), counts])}"


def rates(cells: Sequence[Record]) -> str:
    """Which learning rates validation chose among."""
    tried = list(dict.fromkeys(tuple(cell["tried"]) for cell in cells))
    if len(tried) != 1:
        return "learning rates chosen on validation among those that were tried for each point"
    words = ", ".join(f"{lr:g}" for lr in tried[0])
    return f"learning rate {words}" + (" throughout" if len(tried[0]) == 1 else ", by validation")


def timed(points: Sequence[Record]) -> str:
    return f"a step of 512 nodes timed on {' and '.join(dict.fromkeys(point['timed_on'] for point in points))}"


def figure2b(record: Record) -> Section:
    rows = [
        (
            str(p["sample_size"]),
            value(p["test_micro_f1"]),
            value(p["exact_test_micro_f1"]),
            f"{p['lr']:g}",
            f"{p['step_milliseconds']:,.1f}",
        )
        for p in record["points"]
    ]
    head = ("S1 = S2", "test F1, sampled inference", "exact inference", "rate", "training step, ms")
    text = f"Supervised GraphSAGE-mean; {rates(record['points'])}; {timed(record['points'])}."
    return Section("Figure 2B: size of the sample", text, (Table(head, rows),), "figure2b")


def depth(record: Record) -> Section:
    rows = [
        (
            p["data"],
            p["aggregator"],
            str(p["k"]),
            str(tuple(p["sample_sizes"])),
            value(p["test_micro_f1"]),
            f"{p['lr']:g}",
            f"{p['step_milliseconds']:,.1f}",
        )
        for p in record["points"]
    ]
    head = ("data", "aggregator", "K", "samples", "test F1", "rate", "training step, ms")
    text = f"Supervised; {rates(record['points'])}; {timed(record['points'])}."
    return Section("Depth K", text, (Table(head, rows),), "depth")


def pooling(record: Record) -> Section:
    rows = [
        (r["data"], {"pool": "max", "meanpool": "mean"}[r["aggregator"]], value(r["test_micro_f1"]), f"{r['lr']:g}")
        for r in record["points"]
    ]
    text = f"Max and mean over the neighbors' transformed vectors (section 3.3), supervised; {rates(record['points'])}."
    return Section("Pooling", text, (Table(("data", "pooling", "test F1", "rate"), rows),))


def facts(record: Record) -> Section:
    rows = [
        (r["data"], f"{100 * r['edges_back']:.1f}%", f"{100 * r['nodes_without_features']:.1f}%")
        for r in record["rows"]
    ]
    text = "Of each graph as it is split here."
    head = ("data", "edges of unseen nodes that lead back to training nodes", "nodes without features")
    return Section("Facts about the data", text, (Table(head, rows),))


def figure3(record: Record) -> Section:
    rows = [(name, *(value(cell) for cell in line)) for name, line in record["lines"].items()]
    head = ("method", *(f"{100 * level:.0f}% noise" for level in record["levels"]))
    swept = [cell for line in record["lines"].values() for cell in line if "tried" in cell]
    text = (
        f"Supervised; {rates(swept)}; feature columns replaced by Gaussian noise. DeepWalk reads "
        "no features; its settings, too, are chosen on validation."
    )
    return Section("Figure 3: noise", text, (Table(head, rows),), "figure3")


def rotation(record: Record) -> Section:
    rows = [(r["row"], value(r["test_micro_f1"])) for r in record["rows"]]
    text = (
        "A probe fitted on the vectors of one DeepWalk run, asked about the same nodes' vectors of another run, "
        "before and after Procrustes alignment: why DeepWalk cannot cross graphs (Appendix D)."
    )
    return Section("Rotation", text, (Table(("vectors asked about", "test F1"), rows),))


def theory(record: Record) -> Section:
    built = [
        (r["graph"], str(r["nodes"]), str(r["colors"]), f"{r['mean_coefficient']:.3f}", f"{r['largest_error']:.0e}")
        for r in record["constructed"]
    ]
    learned = [(r["aggregator"], value(r["r2_same_graphs"]), value(r["r2_new_graphs"])) for r in record["learned"]]
    head = ("graph", "nodes", "colors", "mean coefficient", "largest error")
    text = (
        f"Theorem 1 constructed with the pooling aggregator (error below {record['epsilon']:.0e}), and clustering "
        "coefficients learned from random features (R², 1 is perfect)."
    )
    second = Table(("aggregator", "R² on training graphs, new features", "R² on new graphs"), learned)
    return Section("Clustering coefficients", text, (Table(head, built), second))


Records = Mapping[str, dict[str, Any] | None]


def read_records(folder: Path) -> dict[str, dict[str, Any] | None]:
    """The results in a folder; None for missing ones."""
    found: dict[str, dict[str, Any] | None] = {}
    for name in EXPERIMENTS:
        found[name] = read_result(folder / f"{name}.json")
    if not any(found.values()):
        raise DataError(f"{folder} holds no result; run `graphsage reproduce all --out {folder}` first")
    return found


def write_report(folder: Path) -> Path:
    """Write the pictures and `report.html`, which needs no other file."""
    from graphsage.experiments.plots import pictures

    records = read_records(folder)
    drawn = pictures(records)
    for name, png in drawn.items():
        with atomic_file(folder / f"{name}.png") as temporary:
            temporary.write_bytes(png)
    with atomic_file(folder / "report.html") as temporary:
        temporary.write_text(page(records, drawn), encoding="utf-8")
    return folder / "report.html"


def markdown(folder: Path, pictures: str, made: str) -> str:
    """The same as a page of the documentation; `pictures` is the path from that page to the folder, and `made` says how
    the page came about."""
    records = read_records(folder)
    parts = ["# Results: what holds of the paper", "", made, "", summary(records)]
    for section in sections(records):
        parts += ["", f"## {section.title}", "", section.text]
        if section.picture is not None:
            parts += ["", f"![{section.title}]({pictures}/{section.picture}.png)"]
        for table in section.tables:
            parts += ["", *_markdown_table(table)]
    return "\n".join(parts) + "\n"


def summary(records: Records) -> str:
    """One paragraph."""
    claims = records["claims"]
    made = f"{_profiles(records)}; {_machine(records)}."
    if claims is None:
        return made
    count = claims["counts"]
    later = f", {count[PENDING]} wait for experiments that have not been made" if count[PENDING] else ""
    return (
        f"Of {len(claims['rows'])} claims of the paper **{count[HOLDS]} hold** on our data, "
        f"**{count[FAILS]} do not**, {count[UNTESTED]} cannot be tested here{later}. {made}"
    )


def _profiles(records: Records) -> str:
    """The profile, or the results by profile if there are several."""
    by: dict[str, list[str]] = {}
    for name, record in records.items():
        if record is not None and name != "claims":
            by.setdefault(record["profile"], []).append(name)
    if len(by) < 2:
        return f"Profile `{next(iter(by), 'quick')}`"
    return "; ".join(f"profile `{profile}`: {', '.join(names)}" for profile, names in by.items()).capitalize()


def page(records: Records, drawn: Mapping[str, bytes]) -> str:
    body = [f"<h1>GraphSAGE: what holds of the paper</h1><p class=lead>{_bold(summary(records))}</p>"]
    for section in sections(records):
        body.append(f"<h2>{html.escape(section.title)}</h2><p>{_bold(section.text)}</p>")
        body.append(_picture(section, drawn))
        body += [_html_table(table) for table in section.tables]
    return _PAGE.replace("BODY", "\n".join(body))


def _machine(records: Records) -> str:
    found: dict[str, None] = {}
    for record in records.values():
        if record is not None:
            found |= dict.fromkeys(record["trials_on"])
    return "measured on: " + "; ".join(found)


def _picture(section: Section, drawn: Mapping[str, bytes]) -> str:
    if section.picture is None or section.picture not in drawn:
        return ""
    data = base64.b64encode(drawn[section.picture]).decode()
    return f'<img alt="{html.escape(section.title)}" src="data:image/png;base64,{data}">'


def _html_table(table: Table) -> str:
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in table.head)
    rows = []
    for row in table.rows:
        kind = next((name for name, mark in (("good", "✓ "), ("bad", "✗ ")) if row[0].startswith(mark)), "")
        rows.append(f"<tr class='{kind}'>" + "".join(f"<td>{_bold(cell)}</td>" for cell in row) + "</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _markdown_table(table: Table) -> list[str]:
    def line(cells: tuple[str, ...]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [line(table.head), line(("---",) * len(table.head)), *[line(row) for row in table.rows]]


def _bold(text: str) -> str:
    """Escaped, with **bold** and `code` as in the documentation."""
    parts = html.escape(text).split("**")
    bold = "".join(f"<b>{part}</b>" if number % 2 else part for number, part in enumerate(parts))
    pieces = bold.split("`")
    return "".join(f"<code>{piece}</code>" if number % 2 else piece for number, piece in enumerate(pieces))


_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>GraphSAGE reproduced</title>
<meta name="viewport" content="width=device-width">
<style>
body{font:15px/1.5 system-ui,sans-serif;color:#222;max-width:1080px;margin:32px auto;padding:0 20px}
h1{font-size:26px;margin-bottom:4px}h2{font-size:19px;margin:34px 0 4px}.lead{font-size:17px}
table{border-collapse:collapse;margin:12px 0;font-size:13.5px;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:4px 12px 4px 0;border-bottom:1px solid #e4e4e4;vertical-align:top}
th{color:#666;font-weight:600}.good td:first-child{color:#1b7f5c}.bad td:first-child{color:#c8372d}
img{max-width:100%;margin:8px 0}code{background:#f3f3f3;padding:0 3px}
</style>
BODY
</html>
"""
