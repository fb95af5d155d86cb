"""The parts of the report: a title, a sentence, a picture and tables, from the records of the experiments."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphsage.experiments.claims import FAILS, HOLDS, PENDING, UNTESTED
from graphsage.experiments.paper import ROWS

Record = dict[str, Any]
_MARKS = {HOLDS: "✓ ", FAILS: "✗ ", UNTESTED: "– ", PENDING: "… "}


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


def sections(records: Mapping[str, Record | None]) -> list[Section]:
    """Those whose record is there, the claims first."""
    made = []
    for name, write in (("claims", claims), ("table1", table1), ("wilcoxon", wilcoxon), ("figure2a", figure2a),
                        ("figure2b", figure2b), ("depth", depth), ("figure3", figure3), ("rotation", rotation),
                        ("theory", theory), ("table1", settings)):  # fmt: skip
        record = records.get(name)
        if record is not None:
            made.append(write(record))
    return made


def value(cell: Record) -> str:
    mean = f"{cell['mean']:.3f}"
    return f"{mean} ± {cell['std']:.3f}" if len(cell["values"]) > 1 else mean


def claims(record: Record) -> Section:
    rows: list[tuple[str, ...]] = []
    for row in record["rows"]:
        why = f"; {row['why']}" if row["why"] else ""
        said = f"“{row['quote']}” ({row['place']})"
        rows.append((_MARKS[row["verdict"]] + row["claim"], said, row["paper"], row["ours"] + why, row["rule"]))
    rows.sort(key=lambda row: "✗✓–…".index(row[0][0]))
    text = "✓ holds, ✗ does not, – cannot be tested here, … not made yet. The rules were written before the numbers."
    return Section("Claims", text, (Table(("claim", "the paper", "its value", "ours", "holds if"), rows),))


def table1(record: Record) -> Section:
    tables = []
    for data in record["data"]:
        there = {(r["task"], r.get("form")) for r in record["rows"] if r["data"] == data}
        kinds = [(task, form) for task in ("unsupervised", "supervised") for form in ("paper", "reference")
                 if (task, form) in there]  # fmt: skip
        head = (f"{data}: test micro F1 (macro)", *(f"{task}, {form} form" for task, form in kinds), "the paper")
        rows = [(name, *(_cell(record, data, name, task, form) for task, form in kinds), _paper(record, data, name))
                for name in ROWS]  # fmt: skip
        gained = tuple(_gain(record, data, task, form) for task, form in kinds)
        tables.append(Table(head, [*rows, ("% gain over features", *gained, "")]))
    notes = "; ".join(f"{data}: {about['note']}" for data, about in record["data"].items() if about["note"])
    text = f"Test micro F1, settings chosen on validation, exact inference. {notes}."
    return Section("Table 1", text, tuple(tables), "table1")


def _find(record: Record, data: str, name: str, task: str, form: str) -> Record | None:
    rows = (r for r in record["rows"] if (r["data"], r["row"]) == (data, name) and r["task"] in (task, "both")
            and r.get("form", form) == form)  # fmt: skip
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


def wilcoxon(record: Record) -> Section:
    rows = [(f"{r['a']} and {r['b']}, {r['form']} form", f"T = {r['t']:g}, p = {r['p']:.2f}" if "p" in r else "–",
             f"{r['mean_difference']:+.3f}" if "p" in r else "–", str(len(r["settings"])),
             f"T = {r['paper_t']:g}, p = {r['paper_p']:.2f}") for r in record["rows"]]  # fmt: skip
    right = sum((c["t"], c["p"]) == (c["paper_t"], c["paper_p"]) for c in record["check"])
    text = f"Fed with the paper's own Table 1, the test returns {right} of the {len(record['check'])} published pairs."
    head = ("aggregators", "ours", "mean difference", "settings", "the paper")
    return Section("Signed-rank test", text, (Table(head, rows),))


def figure2a(record: Record) -> Section:
    rows = []
    for r in record["rows"]:
        step = r.get("supervised_step_milliseconds")
        exact, factor = r.get("exact_embed_microseconds"), r.get("deepwalk_inference_factor")
        rows.append((r["row"], f"{step['mean']:.1f}" if step else "–", f"{r['pass_seconds']['mean']:,.0f}",
                     f"{r['embed_microseconds']['mean']:,.0f}", f"{exact['mean']:,.0f}" if exact else "–",
                     f"{factor:,.0f} x" if factor else "–"))  # fmt: skip
    head = ("method", "supervised step of 512, ms", "pass over the walks, s", "unseen node, sampled, µs",
            "unseen node, exact, µs", "DeepWalk is slower by")  # fmt: skip
    text = (f"On {next(iter(record['data']))}, {record['device']}, {record['timed_nodes']:,} of "
            f"{record['unseen_nodes']:,} unseen nodes. A pass is computed from timed steps.")  # fmt: skip
    return Section("Figure 2A: time", text, (Table(head, rows),), "figure2a")


def figure2b(record: Record) -> Section:
    rows = [(str(p["sample_size"]), value(p["test_micro_f1"]), value(p["exact_test_micro_f1"]),
             f"{p['seconds']['mean']:.1f}") for p in record["points"]]  # fmt: skip
    head = ("S1 = S2", "test F1, sampled inference", "exact inference", "training, s")
    return Section("Figure 2B: size of the sample", "Supervised GraphSAGE-mean.", (Table(head, rows),), "figure2b")


def depth(record: Record) -> Section:
    rows = [(p["data"], p["aggregator"], str(p["k"]), str(tuple(p["sample_sizes"])), value(p["test_micro_f1"]),
             f"{p['seconds']['mean']:.1f}") for p in record["points"]]  # fmt: skip
    head = ("data", "aggregator", "K", "samples", "test F1", "training, s")
    return Section("Depth K", "Supervised.", (Table(head, rows),), "depth")


def figure3(record: Record) -> Section:
    rows = [(name, *(value(cell) for cell in line)) for name, line in record["lines"].items()]
    head = ("method", *(f"{100 * level:.0f}% noise" for level in record["levels"]))
    text = "Supervised; feature columns replaced by Gaussian noise. DeepWalk reads no features."
    return Section("Figure 3: noise", text, (Table(head, rows),), "figure3")


def rotation(record: Record) -> Section:
    rows = [(r["row"], value(r["test_micro_f1"])) for r in record["rows"]]
    text = ("A probe fitted on the vectors of one DeepWalk run, asked about the same nodes' vectors of another run, "
            "before and after Procrustes alignment: why DeepWalk cannot cross graphs (Appendix D).")  # fmt: skip
    return Section("Rotation", text, (Table(("vectors asked about", "test F1"), rows),))


def theory(record: Record) -> Section:
    built = [(r["graph"], str(r["nodes"]), str(r["colors"]), f"{r['mean_coefficient']:.3f}",
              f"{r['largest_error']:.0e}") for r in record["constructed"]]  # fmt: skip
    learned = [(r["aggregator"], value(r["r2_same_graphs"]), value(r["r2_new_graphs"])) for r in record["learned"]]
    head = ("graph", "nodes", "colors", "mean coefficient", "largest error")
    text = (f"Theorem 1 constructed with the pooling aggregator (error below {record['epsilon']:.0e}), and clustering "
            "coefficients learned from random features (R², 1 is perfect).")  # fmt: skip
    second = Table(("aggregator", "R² on training graphs, new features", "R² on new graphs"), learned)
    return Section("Clustering coefficients", text, (Table(head, built), second))


def settings(record: Record) -> Section:
    rows = []
    for r in record["rows"]:
        if r["settings"]:
            chosen = ", ".join(f"{name} {v}" for name, v in r["settings"].items())
            rows.append((r["data"], r["row"], r["task"], r.get("form", "–"), chosen, f"{r['seconds']['mean']:.0f}"))
    head = ("data", "row", "task", "form", "chosen on validation", "training, s")
    return Section("Settings", f"`{record['command']}`", (Table(head, rows),))
