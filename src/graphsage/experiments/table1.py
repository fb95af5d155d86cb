"""Table 1: every method on every data set, unsupervised and supervised, and the gain over features alone.

Every row is built from all trials that exist for it, whichever command and machine made them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphsage.baselines.deepwalk import CONTEXTS
from graphsage.experiments.data import Source, data_facts, opened
from graphsage.experiments.paper import NAMES, published
from graphsage.experiments.profile import AGGREGATORS, TASKS
from graphsage.experiments.record import spread
from graphsage.experiments.session import Session
from graphsage.experiments.trial_runners import machine_of, make_trial
from graphsage.training.space import SIZES, UNSUPERVISED_RATES
from graphsage.training.trials import Result, Swept, Trial, Unfinished, sweep, swept

WALKS = ("DeepWalk", "DeepWalk + features")


def first_walks(session: Session, source: Source, noise: float = 0.0) -> list[Trial]:
    """Every rate with seed 0."""
    return [_needed(session, source, lr, 0, noise) for lr in session.profile.deepwalk_rates]


def chosen_walks(session: Session, source: Source, asked: Sequence[tuple[str, float]]) -> list[Trial]:
    """Every seed with the rate that validation chose, for each asked method and noise level."""
    found = {each: walked(session, source, *each) for each in asked}
    return [
        _needed(session, source, made.chosen["lr"], seed, noise)
        for (_, noise), made in found.items()
        if made is not None
        for seed in range(session.seeds)
    ]


def walked(session: Session, source: Source, name: str, noise: float = 0.0) -> Swept | None:
    """The finished part of one method's sweep; None if no trial was made."""
    found = {lr: _records(session, source, lr, noise) for lr in session.profile.deepwalk_rates}
    swept = {lr: records for lr, records in found.items() if 0 in records}
    if not swept:
        return None
    suffix = f" noise {noise}" if noise else ""

    def row(record: Mapping[str, Any], contexts: str) -> Result:
        own: Result = record["result"]["rows"][f"{name} {contexts}{suffix}"]
        return own

    points = [
        {"lr": lr, "contexts": contexts, "val": row(records[0], contexts)["val"]}
        for lr, records in swept.items()
        for contexts in CONTEXTS
    ]
    chosen = {name: value for name, value in max(points, key=lambda point: point["val"]).items() if name != "val"}
    again = swept[chosen["lr"]]
    runs = {seed: row(record, chosen["contexts"]) for seed, record in again.items()}
    firsts = [records[0] for records in swept.values()]
    return Swept(chosen, points, runs, [*firsts, *(record for seed, record in again.items() if seed)])


def _needed(session: Session, source: Source, lr: float, seed: int, noise: float) -> Trial:
    """The trial that holds what is asked: one that was made, if there is one. On the set of Figure 3, features meet
    noise in the same trial as Table 1's."""
    noisy, plain = (trial.with_settings(seed=seed) for trial in _kinds(session, source, lr))
    if noise or session.trials.record(noisy) is not None:
        return noisy
    made = session.trials.record(plain) is not None
    return plain if made or source != session.evolving else noisy


def _records(session: Session, source: Source, lr: float, noise: float) -> dict[int, dict[str, Any]]:
    """By seed. Scores on true features are the same whether or not a trial has met noise as well."""
    noisy, plain = (session.trials.seeds(trial, session.seeds) for trial in _kinds(session, source, lr))
    return noisy if noise else dict(sorted((plain | noisy).items()))


def _kinds(session: Session, source: Source, lr: float) -> tuple[Trial, Trial]:
    """With the noise of Figure 3, and without."""
    noisy, plain = (
        make_trial("table1", "deepwalk", "DeepWalk", source, **session.profile.deepwalk, noises=list(levels), lr=lr)
        for levels in (session.profile.noise_levels, (0.0,))
    )
    return noisy, plain


SIMPLE = {"Random": "random", "Raw features": "features"}
Row = dict[str, Any]
Cell = tuple[str, str, str]
"""Task, form and aggregator."""


def all_rows(session: Session, source: Source) -> list[Row]:
    """Every row of a data set for which there is a trial. Baselines are the same in both tasks, as in the paper."""
    rows = [simple_row(session, source, name) for name in SIMPLE]
    rows += [walk_row(session, source, name) for name in WALKS]
    rows += [graphsage_row(session, source, cell) for cell in every_cell(session)]
    return [row for row in rows if row is not None]


def every_cell(session: Session) -> list[Cell]:
    return [(task, form, aggregator) for task in TASKS for form in session.profile.forms for aggregator in AGGREGATORS]


def graphsage_trial(session: Session, source: Source, cell: Cell) -> Trial:
    """Of a cell, still without rate, width and seed."""
    task, form, aggregator = cell
    settings = {
        "task": task,
        "form": form,
        "aggregator": aggregator,
        **session.profile.training[task],
        "sampled": task == "supervised",
    }
    return make_trial("table1", "graphsage", " ".join(cell), source, **settings)


def graphsage_row(session: Session, source: Source, cell: Cell) -> Row | None:
    task, form, aggregator = cell
    whole = session.profile.space(task, aggregator)
    found = swept(session.trials, graphsage_trial(session, source, cell), whole, session.seeds)
    if found is None:
        return None
    made = row(source, NAMES[aggregator], task, found)
    runs = list(found.runs.values())
    made |= {
        "form": form,
        "aggregator": aggregator,
        "steps": runs[0]["steps"],
        "tried": tried(found.points, len(whole.grid())),
    }
    if "sampled_test" in runs[0]:
        made["sampled_test_micro_f1"] = spread(run["sampled_test"] for run in runs)
    if task == "unsupervised":
        made["readings"] = readings(found.points, found.chosen)
    narrowed = [f"--only {task},{form},{aggregator}"]
    if len(made["tried"]["rates"]) < len({point["lr"] for point in whole.grid()}):
        narrowed.append(f"--rates {','.join(f'{rate:g}' for rate in made['tried']['rates'])}")
    if made["tried"].get("sizes") == list(SIZES.get(aggregator, ()))[:1]:
        narrowed.append("--small")
    return made | {"command": command(session, made, *narrowed)}


def tried(points: Sequence[Mapping[str, Any]], whole: int) -> Row:
    """Which rates and sizes were swept, and how many points of the profile's grid these are."""
    told: Row = {"rates": list(dict.fromkeys(point["lr"] for point in points))}
    sizes = list(dict.fromkeys(point["hidden_dim"] for point in points if "hidden_dim" in point))
    return told | ({"sizes": sizes} if sizes else {}) | {"points": len(points), "of": whole}


def readings(points: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any]) -> Row:
    """The best validation score with each reading of the unsupervised rates that was tried, and which one won."""
    best_of: dict[str, float] = {}
    for point in points:
        for reading, rates in UNSUPERVISED_RATES.items():
            if point["lr"] in rates:
                best_of[reading] = max(point["val"], best_of.get(reading, 0.0))
    won = next((reading for reading, rates in UNSUPERVISED_RATES.items() if chosen["lr"] in rates), None)
    return {"won": won, "val": best_of}


def simple_row(session: Session, source: Source, name: str) -> Row | None:
    records = session.trials.seeds(make_trial("table1", SIMPLE[name], SIMPLE[name], source), session.seeds)
    if not records:
        return None
    runs = {seed: record["result"] for seed, record in records.items()}
    made = row(source, name, "both", Swept({}, [], runs, list(records.values())))
    return made | {"command": command(session, made)}


def walk_row(session: Session, source: Source, name: str) -> Row | None:
    if reason := opened(source).apart:
        return row(source, name, "both", None) | {"missing": reason}
    found = walked(session, source, name)
    if found is None:
        return None
    made = row(source, name, "both", found)
    made["settings"] = {**session.profile.deepwalk, **found.chosen}
    rates = list(dict.fromkeys(point["lr"] for point in found.points))
    made["tried"] = {
        "rates": rates,
        "contexts": list(CONTEXTS),
        "points": len(found.points),
        "of": len(CONTEXTS) * len(session.profile.deepwalk_rates),
    }
    return made | {"command": command(session, made)}


def row(source: Source, name: str, task: str, found: Swept | None) -> Row:
    column = opened(source).column
    paper = {t: published(column, t, name) for t in (TASKS if task == "both" else (task,))}
    made: Row = {"data": source.name, "row": name, "task": task, "paper": paper, "settings": {}}
    if found is None:
        return made
    runs = list(found.runs.values())
    made |= {"settings": found.chosen, "seeds": list(found.runs)}
    for key, score in (("val_micro_f1", "val"), ("test_micro_f1", "test"), ("test_macro_f1", "test_macro")):
        made[key] = spread(float(run[score]) for run in runs)
    made["seconds"] = spread(_seconds(run) for run in runs)
    made["made_on"] = made_on(found.records)
    return made | ({"swept": found.points} if found.points else {})


def command(session: Session, made: Row, *narrowed: str) -> str:
    """The command that makes this row from scratch, with as many seeds."""
    return session.command("table1", [made["data"]], *narrowed, seeds=max(made["seeds"]) + 1)


def _seconds(run: Result) -> float:
    return float(run["train_seconds"] if "train_seconds" in run else run["seconds"])


def made_on(records: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Machines and versions of torch that the trials of a row name, and how many trials each made."""
    counted = Counter((machine_of(record), record["versions"]["torch"]) for record in records)
    return [{"machine": where, "torch": torch, "trials": count} for (where, torch), count in counted.items()]


FORMS = ("paper", "reference")
NOTE = (
    "command: makes the whole table from nothing; hardware and versions: of the machine that put it together. The "
    "command of a row makes that row, and made_on names the machines of its trials."
)


def table1(session: Session) -> Path:
    """Make the missing trials that the session selects, and write `table1.json` with all rows that have a trial."""
    session.attempt(lambda: make(session))
    body: dict[str, Any] = {
        "data": data_facts(session.sources),
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
    session.trials.run(first_trials(session))  # all together, which keeps all workers busy; the sweep below reads them
    keys = [(source, cell) for source in session.sources for cell in cells(session)]
    sweep(
        session.trials,
        {(source, cell): graphsage_trial(session, source, cell) for source, cell in keys},
        {(source, cell): session.space(cell[0], cell[2]) for source, cell in keys},
        session.seeds,
        {(source, cell): session.profile.space(cell[0], cell[2]) for source, cell in keys},
    )
    true_features = [(name, 0.0) for name in WALKS]
    session.trials.run(
        trial
        for source in session.sources
        if walks(session, source)
        for trial in chosen_walks(session, source, true_features)
    )


def cells(session: Session) -> list[Cell]:
    """The cells that `only` selects."""
    return [
        (task, form, aggregator)
        for task in session.wanted(TASKS, TASKS)
        for form in session.wanted(session.profile.forms, FORMS)
        for aggregator in session.wanted(AGGREGATORS, AGGREGATORS)
    ]


def first_trials(session: Session) -> list[Trial]:
    """All trials that do not depend on a choice by validation, the longest ones first."""
    trials = [trial for source in session.sources if walks(session, source) for trial in first_walks(session, source)]
    for source in session.sources:
        trials += [
            graphsage_trial(session, source, cell).with_settings(**point, seed=0)
            for cell in cells(session)
            for point in session.space(cell[0], cell[2]).grid()
        ]
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


def rows_in_part(
    table: dict[str, Any] | None, tasks: Sequence[str], names: Sequence[str], form: str = "paper"
) -> list[str]:
    """Rows of these tasks and names that were swept over less than the whole grid or have fewer seeds than others."""
    rows = [row for row in (table or {"rows": []})["rows"] if row.get("form", form) == form and "tried" in row]
    most = max((len(row["seeds"]) for row in rows), default=0)
    asked = [row for row in rows if (row["task"] in tasks or (tasks and row["task"] == "both")) and row["row"] in names]
    return [
        f"{row['data']} {row['task']} {row['row']} ({row['tried']['points']} of {row['tried']['of']} points, "
        f"{len(row['seeds'])} of {most} seeds)"
        for row in asked
        if row["tried"]["points"] < row["tried"]["of"] or len(row["seeds"]) < most
    ]
