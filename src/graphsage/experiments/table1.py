"""Table 1: every method on every data set, unsupervised and supervised, and the gain over features alone."""

from pathlib import Path
from typing import Any

from graphsage.experiments.data import Source, facts, opened
from graphsage.experiments.profile import AGGREGATORS, TASKS
from graphsage.experiments.rows import SIMPLE, Cell, Row, all_rows, graphsage_trial
from graphsage.experiments.session import Session
from graphsage.experiments.trials import make_trial
from graphsage.experiments.walks import WALKS, chosen_walks, first_walks
from graphsage.training.trials import Trial, Unfinished, sweep

FORMS = ("paper", "reference")
NOTE = ("command: makes the whole table from nothing; hardware and versions: of the machine that put it together. The "
        "command of a row makes that row, and made_on names the machines of its trials.")  # fmt: skip


def run(session: Session) -> Path:
    """Make what is missing of the piece that the session names, and write `table1.json` with all rows that are there,
    also where the time is over before the piece is made."""
    session.attempt(lambda: make(session))
    body: dict[str, Any] = {
        "data": {source.name: facts(opened(source)) for source in session.sources},
        "rows": [row for source in session.sources for row in all_rows(session, source)],
    }
    body = session.joined("table1", body, "rows", _key)
    body["rows"].sort(key=_key)
    body["gains"] = gains(body["rows"])
    body["note"] = NOTE
    if not any("test_micro_f1" in row for row in body["rows"]):
        raise Unfinished(session.left[-1])
    return session.keep("table1", "Table 1: test micro F1 of every method; settings chosen on validation", body)


def make(session: Session) -> None:
    session.trials.run(first_trials(session))  # all together, so that no process waits; what follows reads them
    keys = [(source, cell) for source in session.sources for cell in cells(session)]
    sweep(
        session.trials,
        {(source, cell): graphsage_trial(session, source, cell) for source, cell in keys},
        {(source, cell): session.space(cell[0], cell[2]) for source, cell in keys},
        session.seeds,
        {(source, cell): session.profile.space(cell[0], cell[2]) for source, cell in keys},
    )
    true_features = [(name, 0.0) for name in WALKS]
    session.trials.run(trial for source in session.sources if walks(session, source)
                       for trial in chosen_walks(session, source, true_features))  # fmt: skip


def cells(session: Session) -> list[Cell]:
    """What `only` leaves of the table."""
    return [(task, form, aggregator)
            for task in session.wanted(TASKS, TASKS)
            for form in session.wanted(session.profile.forms, FORMS)
            for aggregator in session.wanted(AGGREGATORS, AGGREGATORS)]  # fmt: skip


def first_trials(session: Session) -> list[Trial]:
    """Everything that does not depend on what validation chooses; first what takes longest, on one thread."""
    trials = [trial for source in session.sources if walks(session, source) for trial in first_walks(session, source)]
    for source in session.sources:
        trials += [graphsage_trial(session, source, cell).with_settings(**point, seed=0)
                   for cell in cells(session) for point in session.space(cell[0], cell[2]).grid()]  # fmt: skip
        for kind in SIMPLE.values():
            trials += [make_trial("table1", kind, kind, source, seed=seed) for seed in range(session.seeds)]
    return trials


def walks(session: Session, source: Source) -> bool:
    return session.walks and opened(source).one_graph


def _key(row: Row) -> tuple[str, ...]:
    return row["data"], row["task"], row.get("form", ""), row["row"]


def gains(rows: list[Row]) -> list[dict[str, Any]]:
    """Percent gain over raw features of the GraphSAGE that is best on validation, for each data set, task and form."""
    raw = {r["data"]: r["test_micro_f1"]["mean"] for r in rows if r["row"] == "Raw features"}
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for r in rows:
        if "aggregator" in r:
            groups.setdefault((r["data"], r["task"], r["form"]), []).append(r)
    found = []
    for (data, task, form), group in groups.items():
        if not raw.get(data):
            continue
        best = max(group, key=lambda r: r["val_micro_f1"]["mean"])
        gain = 100 * (best["test_micro_f1"]["mean"] / raw[data] - 1)
        found.append({"data": data, "task": task, "form": form, "best": best["row"], "percent": round(gain, 2)})
    return found
