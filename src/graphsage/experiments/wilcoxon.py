"""Section 4.4: the signed-rank test over the settings of Table 1, ours beside the paper's."""

from pathlib import Path
from typing import Any

from graphsage.evaluation.wilcoxon import signed_rank
from graphsage.experiments.evidence import rows_in_part
from graphsage.experiments.paper import NAMES, ROWS, SETTINGS, WILCOXON, table1
from graphsage.experiments.profile import TASKS
from graphsage.experiments.session import Inapplicable, Session


def run(session: Session) -> Path:
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
        row = {"form": form, "a": a, "b": b, "settings": [" ".join(key) for key in both], "paper_t": paper_t,
               "paper_p": paper_p}  # fmt: skip
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
        pairs = [(table1(*setting, NAMES[a]), table1(*setting, NAMES[b])) for setting in SETTINGS]
        t, p = signed_rank([x or 0.0 for x, _ in pairs], [y or 0.0 for _, y in pairs])
        made.append({"a": a, "b": b, "t": t, "p": round(p, 2), "paper_t": paper_t, "paper_p": paper_p})
    return made
