"""The report of all results: an HTML page, and a page of the documentation."""

import base64
import html
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphsage.atomic import atomic_file
from graphsage.errors import DataError
from graphsage.evaluation.probe import PENALTIES
from graphsage.experiments.claims import FAILS, HOLDS, PENDING, UNTESTED
from graphsage.experiments.paper import MODELS, PLUS_FEATURES, ROWS, YARDSTICKS
from graphsage.experiments.profile import FORMS, TASKS
from graphsage.experiments.record import EXPERIMENTS, by_machine, read_result, short, usual
from graphsage.experiments.table1 import DEEPWALK
from graphsage.experiments.trial_runners import FIVE_PASSES

Record = dict[str, Any]
Records = Mapping[str, Record | None]


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


def protocol(cell: Record) -> str:
    """Whether a score was made under the current protocol of its trials."""
    old = cell.get("old_protocol", ())
    return "old protocol" if "runs" in old else "sweep by the old protocol" if old else "current"


def marked(cell: Record, text: str) -> str:
    return text if protocol(cell) == "current" else f"{text}, {protocol(cell)}"


EXTRA_ROWS = (
    *YARDSTICKS,
    *(f"{name},{FIVE_PASSES}" for name in DEEPWALK),
    *(f"{name}{PLUS_FEATURES}" for name in MODELS),
)
"""Rows that the paper does not have."""


def table1(record: Record) -> Section:
    tables = [_data(record)]
    for data in record["data"]:
        columns = _columns(record, data)
        names = [name for name in EXTRA_ROWS if any(_find(record, data, name, *column) for column in columns)]
        rows = [
            (name, *(_cell(record, data, name, *column) for column in columns), _paper(record, data, name))
            for name in (*ROWS, *names)
        ]
        gained = tuple(_gain(record, data, *column) for column in columns)
        head = (f"{data}: test micro F1 (macro)", *(f"{task}, {form} form" for task, form in columns), "the paper")
        tables.append(Table(head, [*rows, ("% gain over features", *gained, "")]))
    text = (
        "Test micro F1, with macro F1 in brackets. Settings are chosen on validation nodes, inference is exact. The "
        "paper's probe fits raw embeddings; features, alone or beside embeddings, are standardized first. Rows after "
        "GraphSAGE-pool are not in the paper. The gain of supervised models is over the stronger probe of the features."
    )
    return Section("Table 1", text, tuple(tables), "table1")


def _columns(record: Record, data: str) -> list[tuple[str, str]]:
    made = {(row["task"], row.get("form")) for row in record["rows"] if row["data"] == data}
    return [(task, form) for task in TASKS for form in FORMS if (task, form) in made]


def _data(record: Record) -> Table:
    """What each data set is, and how far its test nodes are from its validation and training nodes."""
    rows = []
    for data, about in record["data"].items():
        own = [row for row in record["rows"] if row["data"] == data and "aggregator" in row]
        means = [
            f"{statistics.fmean(row[f'{part}_micro_f1']['mean'] for row in own):.2f}" if own else "–"
            for part in ("val", "test")
        ]
        rare = f"{100 * about['rare_test_share']:.0f}%" if "rare_test_share" in about else "–"
        rows.append((data, about["note"], rare, *means))
    head = (
        "data",
        "what it is",
        "test nodes in classes with under 1% of the training nodes",
        "mean validation F1 of GraphSAGE",
        "mean test F1",
    )
    return Table(head, rows)


def probes(record: Record) -> Section:
    """Both probes of the rows that a probe scores."""
    rows = [
        (
            row["data"],
            row["row"],
            row.get("form", "–"),
            marked(row, value(row["test_micro_f1"])),
            value(row["tuned_test_micro_f1"]) if "tuned_test_micro_f1" in row else "not made",
        )
        for row in record["rows"]
        if "test_micro_f1" in row and row["task"] != "supervised" and row["row"] != "Random"
    ]
    text = (
        "Test micro F1. The paper's probe is scikit-learn's SGDClassifier with five passes. The tuned probe "
        "standardizes all columns on training nodes and fits logistic regression to convergence. Its penalty is chosen "
        f"on validation nodes from {', '.join(f'{penalty:g}' for penalty in PENALTIES)}."
    )
    return Section("Two probes", text, (Table(("data", "row", "form", "the paper's probe", "tuned probe"), rows),))


def sampled(record: Record) -> Section:
    found = {
        (row["data"], row["row"], row["form"]): marked(row, value(row["sampled_test_micro_f1"]))
        for row in record["rows"]
        if "sampled_test_micro_f1" in row
    }
    forms = [form for form in FORMS if any(key[2] == form for key in found)]
    names = dict.fromkeys((data, row) for data, row, _ in found)
    rows = [(*name, *(found.get((*name, form), "not made") for form in forms)) for name in names]
    text = "Supervised test micro F1 if inference samples neighbors, as training does and as the authors evaluate."
    return Section("Sampled inference", text, (Table(("data", "row", *(f"{form} form" for form in forms)), rows),))


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
        return "–" if name in EXTRA_ROWS else "not made"
    if "test_micro_f1" not in row:
        return "refused"
    return marked(row, f"{value(row['test_micro_f1'])} ({row['test_macro_f1']['mean']:.3f})")


def _paper(record: Record, data: str, name: str) -> str:
    cells: dict[str, float] = {}
    for row in record["rows"]:
        if (row["data"], row["row"]) == (data, name):
            cells |= {task: score for task, score in row["paper"].items() if score is not None}
    ordered = [f"{cells[task]:.3f}" for task in TASKS if task in cells]
    return " / ".join(dict.fromkeys(ordered)) or "–"


def _gain(record: Record, data: str, task: str, form: str) -> str:
    found = next((g for g in record["gains"] if (g["data"], g["task"], g["form"]) == (data, task, form)), None)
    return "" if found is None else f"{found['percent']:+.0f}% ({found['best'].removeprefix('GraphSAGE-')})"


def settings(record: Record) -> Section:
    rows = [
        (
            row["data"],
            row["row"],
            row["task"],
            row.get("form", "–"),
            ", ".join(f"{name} {chosen}" for name, chosen in row["settings"].items()),
            row.get("reading") or "–",
            f"{row['val_micro_f1']['mean']:.3f}",
            _tried(row),
            str(len(row["test_micro_f1"]["values"])),
            protocol(row),
            "; ".join(dict.fromkeys(f"{one['machine']}, torch {one['torch']}" for one in row["made_on"])) or "–",
        )
        for row in record["rows"]
        if row["settings"]
    ]
    head = (
        "data",
        "row",
        "task",
        "form",
        "chosen on validation",
        "reading of the unsupervised rates",
        "validation F1",
        "tried",
        "seeds",
        "protocol",
        "made on",
    )
    return Section("Settings", f"`{record['command']}`", (Table(head, rows),))


def _tried(row: Record) -> str:
    """How much of its grid a row was chosen from."""
    tried = row.get("tried")
    if tried is None:
        return "–"
    names = (("rates", "lr"), ("sizes", "hidden_dim"), ("contexts", "contexts"))
    lists = [f"{label} {', '.join(str(one) for one in tried[name])}" for name, label in names if name in tried]
    return f"{'; '.join(lists)} ({tried['points']} of {tried['of']} points)"


_OPPOSITE = {HOLDS: "fails", FAILS: "holds"}
_MARKS = {HOLDS: "✓ ", FAILS: "✗ ", UNTESTED: "– ", PENDING: "… "}
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
        (_MARKS[row["verdict"]] + row["claim"], row["paper"], row["ours"].partition(" (")[0] + _old(row))
        for row in (found[name] for name in HEADLINES if name in found)
    ]
    return Section("In short", "✓ holds, ✗ does not.", (Table(("claim", "the paper", "ours"), rows),))


def _old(row: Record) -> str:
    return ", old protocol" if row["old_protocol"] else ""


def claims(record: Record) -> Section:
    rows: list[tuple[str, ...]] = []
    for row in record["rows"]:
        trained = {name: profile for name, profile in row["profiles"].items() if name != "facts"}
        why = f"; {row['why']}" if row["why"] else ""
        if row.get("reference_form"):
            why += f"; in the reference form it {_OPPOSITE[row['verdict']]}: {row['reference_form']}"
        why += " (quick)" if "quick" in trained.values() else ""
        why += " (in part)" if row["in_part"] else ""
        quoted = f"“{row['quote']}” ({row['place']})"
        claim, ours = _MARKS[row["verdict"]] + row["claim"], row["ours"] + _old(row) + why
        rows.append((claim, quoted, row["paper"], row["compared"], ours))
    rows.sort(key=lambda row: "✗✓–…".index(row[0][0]))
    partly = dict.fromkeys(part for row in record["rows"] for part in row["in_part"])
    text = (
        f"✓ holds, ✗ does not, – cannot be tested here, … not made yet. {record['rule']} The paper's form decides. "
        "(quick): few steps and one learning rate. Old protocol: decided by trials that are to be made again."
    )
    if partly:
        text += f" (in part): decided also by results with a part of the sweep or the seeds: {', '.join(partly)}."
    return Section("Claims", text, (Table(("claim", "the paper", "its value", "compared", "ours"), rows),))


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
    text = f"Section 4.4. On the paper's Table 1 the test gives {right} of the {len(record['check'])} published pairs."
    text += "".join(
        f" Rows of the {form} form that were made in part: {', '.join(rows)}."
        for form, rows in record["in_part"].items()
        if rows
    )
    head = ("aggregators", "ours", "mean difference", "settings", "the paper")
    return Section("Signed-rank test", text, (Table(head, rows),))


def figure2a(record: Record) -> Section:
    time_names = ("supervised_step_milliseconds", "pass_seconds", "embed_microseconds", "exact_embed_microseconds")
    factor_names = ("deepwalk_inference_factor", "deepwalk_exact_factor", "deepwalk_five_pass_factor")
    rows = [
        (
            machine,
            row["row"],
            *(short(usual(row[name])) if name in row else "–" for name in time_names),
            *(f"{row[name]:,.0f} x" if name in row else "–" for name in factor_names),
            protocol(row),
        )
        for machine, timed in by_machine(record).items()
        for row in timed
    ]
    head = (
        "on",
        "method",
        "supervised step of 512, ms",
        "pass over the walks, s",
        "unseen node, sampled, µs",
        "unseen node, exact, µs",
        "DeepWalk is slower by",
        "than exact inference by",
        "with five online passes by",
        "protocol",
    )
    text = (
        f"On {next(iter(record['data']))}, {record['timed_nodes']:,} of {record['unseen_nodes']:,} unseen nodes; "
        f"medians over the seeds ({'; '.join(map(timed_with, (record, *record.get('elsewhere', ()))))}). A pass is "
        "computed from timed steps. On a CPU, DeepWalk uses one thread, its fastest setting; the others use all. Under "
        "the old protocol DeepWalk's online step made five passes."
    )
    return Section("Figure 2A: time", text, (Table(head, rows),), "figure2a")


def timed_with(timed: Record) -> str:
    """One machine's cores and version of torch, and the number of seeds."""
    seeds = sorted({len(row["pass_seconds"]["values"]) for row in timed["rows"]})
    counts = f"{' or '.join(map(str, seeds))} seed{'s' if seeds[-1] > 1 else ''}"
    return f"{timed['device']}: {', '.join([*timed.get('made_with', ()), counts])}"


def rates(cells: Sequence[Record]) -> str:
    """The learning rates that validation chose from."""
    tried = list(dict.fromkeys(tuple(cell["tried"]) for cell in cells))
    if len(tried) != 1:
        return "learning rates chosen on validation from those that were tried for each point"
    words = ", ".join(f"{lr:g}" for lr in tried[0])
    return f"learning rate {words}" + (" throughout" if len(tried[0]) == 1 else ", by validation")


Column = tuple[str, Callable[[Record], str]]
F1: Column = ("test F1", lambda point: value(point["test_micro_f1"]))
RATE: Column = ("rate", lambda point: f"{point['lr']:g}")
STEP: Column = ("training step, ms", lambda point: f"{point['step_milliseconds']:,.1f}")
PROTOCOL: Column = ("protocol", protocol)


def named(name: str) -> Column:
    return name, lambda point: str(point[name])


def points(title: str, text: str, record: Record, columns: Sequence[Column], picture: str | None = None) -> Section:
    """A figure or ablation whose result is a list of points."""
    made = record["points"]
    text += f"; {rates(made)}"
    if "timed_on" in made[0]:
        text += f"; a step of 512 nodes timed on {' and '.join(dict.fromkeys(point['timed_on'] for point in made))}"
    table = Table(tuple(name for name, _ in columns), [tuple(show(point) for _, show in columns) for point in made])
    return Section(title, f"{text}.", (table,), picture)


def figure2b(record: Record) -> Section:
    size: Column = ("S1 = S2", lambda point: str(point["sample_size"]))
    inferred: Column = ("test F1, sampled inference", F1[1])
    exact: Column = ("exact inference", lambda point: value(point["exact_test_micro_f1"]))
    columns = (size, inferred, exact, RATE, STEP, PROTOCOL)
    return points("Figure 2B: size of the sample", "Supervised GraphSAGE-mean", record, columns, "figure2b")


def depth(record: Record) -> Section:
    layers: Column = ("K", lambda point: str(point["k"]))
    samples: Column = ("samples", lambda point: str(tuple(point["sample_sizes"])))
    columns = (named("data"), named("aggregator"), layers, samples, F1, RATE, STEP, PROTOCOL)
    return points("Depth K", "Supervised", record, columns, "depth")


def pooling(record: Record) -> Section:
    kind: Column = ("pooling", lambda point: {"pool": "max", "meanpool": "mean"}[point["aggregator"]])
    text = "Max and mean over the neighbors' transformed vectors (section 3.3), supervised"
    return points("Pooling", text, record, (named("data"), kind, F1, RATE, PROTOCOL))


def facts(record: Record) -> Section:
    rows = [
        (r["data"], f"{100 * r['edges_back']:.1f}%", f"{100 * r['nodes_without_features']:.1f}%")
        for r in record["rows"]
    ]
    head = ("data", "edges of unseen nodes that lead back to training nodes", "nodes without features")
    return Section("Facts about the data", "Of each graph as it is split here.", (Table(head, rows),))


def figure3(record: Record) -> Section:
    rows = [(name, *(marked(cell, value(cell)) for cell in line)) for name, line in record["lines"].items()]
    head = ("method", *(f"{100 * level:.0f}% noise" for level in record["levels"]))
    swept = [cell for line in record["lines"].values() for cell in line if "tried" in cell]
    text = (
        f"Supervised; {rates(swept)}; feature columns replaced by Gaussian noise. DeepWalk reads no features. Its "
        "settings are also chosen on validation."
    )
    return Section("Figure 3: noise", text, (Table(head, rows),), "figure3")


def rotation(record: Record) -> Section:
    rows = [(r["row"], value(r["test_micro_f1"])) for r in record["rows"]]
    text = (
        "A probe is fitted on one DeepWalk run and scores the same nodes' vectors of another run, before and after "
        "Procrustes alignment. This is why DeepWalk cannot cross graphs (Appendix D)."
    )
    return Section("Rotation", text, (Table(("vectors scored", "test F1"), rows),))


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


def trials(records: Records) -> Section:
    """What each result was made of."""
    rows = [
        (
            name,
            record["profile"],
            str(record["time"]["trials"]),
            f"{record['time']['trial_seconds'] / 60:,.0f}",
            ", ".join(f"{count} {type}" for type, count in record["old_protocol"].items()) or "–",
            "; ".join(dict.fromkeys(record["trials_on"])),
            record.get("paper", "–"),
        )
        for name, record in records.items()
        if record is not None and name not in ("wilcoxon", "claims")
    ]
    head = ("result", "profile", "trials", "minutes in all", "trials of the old protocol", "made on", "the paper")
    return Section("Trials", "What each result was made of, and what the paper says.", (Table(head, rows),))


SECTIONS: tuple[tuple[str, Callable[[Record], Section]], ...] = (
    ("claims", in_short),
    ("claims", claims),
    ("table1", table1),
    ("table1", probes),
    ("table1", sampled),
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
)


def sections(records: Records) -> list[Section]:
    """One for each record, the claims first."""
    return [*(write(record) for name, write in SECTIONS if (record := records.get(name)) is not None), trials(records)]


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
    """The report as Markdown. `pictures` is the path from the page to the folder; `made` is its first paragraph."""
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
    if claims is None:
        return "The claims have not been judged; run `graphsage reproduce claims`."
    count = claims["counts"]
    later = f", {count[PENDING]} wait for experiments that have not been made" if count[PENDING] else ""
    old = sum(bool(row["old_protocol"]) for row in claims["rows"])
    marked = f" {old} verdicts rest on trials of an old protocol." if old else ""
    return (
        f"Of {len(claims['rows'])} claims of the paper **{count[HOLDS]} hold** on our data, "
        f"**{count[FAILS]} do not**, {count[UNTESTED]} cannot be tested here{later}.{marked}"
    )


def page(records: Records, drawn: Mapping[str, bytes]) -> str:
    body = [f"<h1>GraphSAGE: what holds of the paper</h1><p class=lead>{_bold(summary(records))}</p>"]
    for section in sections(records):
        body.append(f"<h2>{html.escape(section.title)}</h2><p>{_bold(section.text)}</p>")
        body.append(_picture(section, drawn))
        body += [_html_table(table) for table in section.tables]
    return _PAGE.replace("BODY", "\n".join(body))


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
