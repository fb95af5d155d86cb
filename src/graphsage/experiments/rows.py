"""Rows of Table 1, put together from all trials that there are, whichever pieces made them and wherever."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from graphsage.baselines.deepwalk import CONTEXTS
from graphsage.experiments.data import Source, opened
from graphsage.experiments.paper import NAMES, table1
from graphsage.experiments.profile import AGGREGATORS, TASKS
from graphsage.experiments.record import machine_of, spread
from graphsage.experiments.session import Session
from graphsage.experiments.trials import make_trial
from graphsage.experiments.walks import WALKS, walked
from graphsage.training.space import SIZES, UNSUPERVISED_RATES
from graphsage.training.trials import Result, Swept, Trial, swept

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
    settings = {"task": task, "form": form, "aggregator": aggregator, **session.profile.training[task],
                "sampled": task == "supervised"}  # fmt: skip
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
    made["tried"] = {"rates": rates, "contexts": list(CONTEXTS), "points": len(found.points),
                     "of": len(CONTEXTS) * len(session.profile.deepwalk_rates)}  # fmt: skip
    return made | {"command": command(session, made)}


def row(source: Source, name: str, task: str, found: Swept | None) -> Row:
    column = opened(source).column
    paper = {t: table1(column, t, name) for t in (TASKS if task == "both" else (task,))}
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
    """What makes this row from nothing, with as many seeds as it has."""
    return session.command("table1", [made["data"]], *narrowed, seeds=max(made["seeds"]) + 1)


def _seconds(run: Result) -> float:
    return float(run["train_seconds"] if "train_seconds" in run else run["seconds"])


def made_on(records: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Machines and versions of torch that the trials of a row name, and how many trials each made."""
    counted = Counter((machine_of(record), record["versions"]["torch"]) for record in records)
    return [{"machine": where, "torch": torch, "trials": count} for (where, torch), count in counted.items()]
