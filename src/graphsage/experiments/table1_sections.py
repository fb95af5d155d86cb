"""Table 1 in the report: its scores beside the paper's, and the settings behind each row."""

import statistics

from graphsage.experiments.paper import ROWS
from graphsage.experiments.section import Record, Section, Table, value
from graphsage.training.space import UNSUPERVISED_RATES


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
    first = f"Test micro F1, settings chosen on validation, exact inference. {notes}."
    text = " ".join(part for part in (first, readings(record), drifts(record)) if part)
    return Section("Table 1", text, (*tables, *_sampled(record)), "table1")


def _sampled(record: Record) -> list[Table]:
    """Supervised scores where inference samples neighbors, as training does and as the authors evaluate."""
    found = {(r["data"], r["row"], r["form"]): value(r["sampled_test_micro_f1"]) for r in record["rows"]
             if "sampled_test_micro_f1" in r}  # fmt: skip
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
    told = "; ".join(f"{data}: " + ", ".join(f"{how} for {', '.join(names)}" for how, names in by.items())
                     for data, by in won.items())  # fmt: skip
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
            told.append(f"On {data} GraphSAGE scores {val:.2f} on validation and {test:.2f} on test nodes, on average "
                        "over its rows: the two differ in kind there, and what is best on validation need not be best "
                        "on test.")  # fmt: skip
    return " ".join(told)


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


def settings(record: Record) -> Section:
    rows = []
    for r in record["rows"]:
        if r["settings"]:
            chosen = ", ".join(f"{name} {v}" for name, v in r["settings"].items())
            rows.append((r["data"], r["row"], r["task"], r.get("form", "–"), chosen,
                         f"{r['val_micro_f1']['mean']:.3f}", _tried(r),
                         str(len(r["test_micro_f1"]["values"])), _machines(r)))  # fmt: skip
    head = ("data", "row", "task", "form", "chosen on validation", "validation F1", "tried", "seeds",
            "made on")  # fmt: skip
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
