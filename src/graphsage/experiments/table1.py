"""Table 1: every method on every data set, unsupervised and supervised, and the gain over features alone.

Every row is built from all trials that exist for it, whichever command and machine made them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphsage.baselines.deepwalk import CONTEXTS
from graphsage.experiments.data import Source, data_facts, opened
from graphsage.experiments.paper import NAMES, PLUS_FEATURES, SIMPLE_ROWS, published
from graphsage.experiments.profile import AGGREGATORS, TASKS
from graphsage.experiments.record import spread
from graphsage.experiments.session import Session
from graphsage.experiments.trial_runners import FIVE_PASSES, TYPES, is_old, machine_of, make_trial
from graphsage.training.space import SIZES, UNSUPERVISED_RATES
from graphsage.training.trials import Swept, Trial, Unfinished, sweep, swept

Row = dict[str, Any]
Cell = tuple[str, str, str]
"""Task, form and aggregator."""
DEEPWALK = ("DeepWalk", "DeepWalk + features")
SCORES = {
    f"{name}_f1": score
    for name, score in (
        ("val_micro", "val"),
        ("test_micro", "test"),
        ("test_macro", "test_macro"),
        ("sampled_test_micro", "sampled_test"),
        ("tuned_val_micro", "tuned_val"),
        ("tuned_test_micro", "tuned_test"),
        ("tuned_test_macro", "tuned_test_macro"),
    )
}
"""Scores of a row, by their names in a trial's result. Those with `tuned` are of the tuned probe."""
NOTE = (
    "command: makes the whole table from nothing; hardware and versions: of the machine that assembled it. The "
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
    keys = [(source, cell) for source in session.sources for cell in session.cells()]
    deepwalk = [source for source in session.sources if session.makes("deepwalk") and opened(source).one_graph]
    trials = {key: graphsage_trial(session, *key) for key in keys}
    spaces = {key: session.space(key[1][0], key[1][2]) for key in keys}
    # All trials that no choice precedes are made together, the longest first: this keeps all workers busy.
    first = []
    if not session.chosen:
        first = [trial for source in deepwalk for trial in first_deepwalk(session, source)]
        first += [trials[key].with_settings(**point, seed=0) for key in keys for point in spaces[key].grid()]
    first += [
        make_trial("table1", type, type, source, seed=seed)
        for source in session.sources
        for type in SIMPLE_ROWS.values()
        if session.makes("yardsticks")
        for seed in range(session.seeds)
    ]
    session.trials.run(first)
    whole = {key: session.profile.space(key[1][0], key[1][2]) for key in keys}
    sweep(session.trials, trials, spaces, session.seeds, whole, chosen_only=session.chosen)
    session.trials.run(
        trial for source in deepwalk for trial in chosen_deepwalk(session, source, [(name, 0.0) for name in DEEPWALK])
    )


def all_rows(session: Session, source: Source) -> list[Row]:
    """Every row of a data set for which there is a trial. Baselines are the same in both tasks, as in the paper."""
    rows = [simple_row(session, source, name) for name in SIMPLE_ROWS]
    rows += [deepwalk_row(session, source, name, variant) for name in DEEPWALK for variant in ("", FIVE_PASSES)]
    for cell in ((task, form, name) for task in TASKS for form in session.profile.forms for name in AGGREGATORS):
        rows += graphsage_rows(session, source, cell)
    return [row for row in rows if row is not None]


def simple_row(session: Session, source: Source, name: str) -> Row | None:
    records = session.trials.seeds(make_trial("table1", SIMPLE_ROWS[name], SIMPLE_ROWS[name], source), session.seeds)
    if not records:
        return None
    made = row(source, name, "both", Swept({}, [], records, []))
    return made | {"command": command(session, made)}


def first_deepwalk(session: Session, source: Source, noise: float = 0.0) -> list[Trial]:
    """Every rate with seed 0."""
    return [_needed(session, source, lr, 0, noise) for lr in session.profile.deepwalk_rates]


def chosen_deepwalk(session: Session, source: Source, asked: Sequence[tuple[str, float]]) -> list[Trial]:
    """Every seed with the rate that validation chose, for each asked method and noise level."""
    found = {each: swept_deepwalk(session, source, *each) for each in asked}
    return [
        _needed(session, source, made.chosen["lr"], seed, noise)
        for (_, noise), made in found.items()
        if made is not None
        for seed in range(session.seeds)
    ]


def swept_deepwalk(session: Session, source: Source, name: str, noise: float = 0.0, variant: str = "") -> Swept | None:
    """The finished part of one method's sweep; None if no trial was made.

    As in `swept`, points are compared under one protocol version, the newest under which all of them were made.
    """
    suffix = variant + (f" noise {noise}" if noise else "")

    def of(record: Mapping[str, Any], contexts: str) -> Row:
        return {**record, "result": record["result"]["rows"][f"{name} {contexts}{suffix}"]}

    def under(version: int) -> dict[float, dict[int, dict[str, Any]]]:
        """Of each rate the newest records up to this version, by seed."""
        made = {lr: _records(session, source, lr, noise, version) for lr in session.profile.deepwalk_rates}
        seen = {
            lr: {n: each for n, each in records.items() if f"{name} {CONTEXTS[0]}{suffix}" in each["result"]["rows"]}
            for lr, records in made.items()
        }
        return {lr: records for lr, records in seen.items() if 0 in records}

    newest = TYPES["deepwalk"].version
    seen = under(newest)
    if not seen:
        return None
    compared = next((found for v in range(newest, 0, -1) if _whole(found := under(v), v, len(seen))), seen)
    points = [
        {"lr": lr, "contexts": contexts, "val": of(records[0], contexts)["result"]["val"]}
        for lr, records in compared.items()
        for contexts in CONTEXTS
    ]
    best = max(points, key=lambda point: point["val"])
    chosen = {name: best[name] for name in ("lr", "contexts")}
    runs = {seed: of(record, chosen["contexts"]) for seed, record in seen[chosen["lr"]].items()}
    return Swept(chosen, points, runs, [of(records[0], chosen["contexts"]) for records in compared.values()])


def _whole(made: Mapping[float, Mapping[int, Mapping[str, Any]]], version: int, rates: int) -> bool:
    """Whether seed 0 of all rates was made under this version."""
    return len(made) == rates and all(records[0]["version"] == version for records in made.values())


def _needed(session: Session, source: Source, lr: float, seed: int, noise: float) -> Trial:
    """The trial with these scores, preferring finished ones. On Figure 3's data it also scores features with noise."""
    noisy, plain = (trial.with_settings(seed=seed) for trial in _deepwalk_trials(session, source, lr))
    if noise or session.trials.store.get(noisy) is not None:
        return noisy
    made = session.trials.store.get(plain) is not None
    return plain if made or source != session.evolving else noisy


def _records(session: Session, source: Source, lr: float, noise: float, version: int) -> dict[int, dict[str, Any]]:
    """By seed, under the newest protocol up to `version`. Scores on true features are the same whether or not a trial
    has met noise as well."""
    noisy, plain = (
        session.trials.seeds(replace(trial, version=version), session.seeds)
        for trial in _deepwalk_trials(session, source, lr)
    )
    found = noisy if noise else {**plain, **noisy}
    newest = max((record["version"] for record in found.values()), default=0)
    return {seed: record for seed, record in sorted(found.items()) if record["version"] == newest}


def _deepwalk_trials(session: Session, source: Source, lr: float) -> tuple[Trial, Trial]:
    """With the noise of Figure 3, and without."""
    noisy, plain = (
        make_trial("table1", "deepwalk", "DeepWalk", source, **session.profile.deepwalk, noises=list(levels), lr=lr)
        for levels in (session.profile.noise_levels, (0.0,))
    )
    return noisy, plain


def deepwalk_row(session: Session, source: Source, name: str, variant: str) -> Row | None:
    label = f"{name},{variant}" if variant else name
    if reason := opened(source).apart:
        return None if variant else row(source, label, "both", None) | {"missing": reason}
    found = swept_deepwalk(session, source, name, variant=variant)
    if found is None:
        return None
    made = row(source, label, "both", found)
    made["settings"] = {**session.profile.deepwalk, **found.chosen}
    made["tried"] = tried(found.points, len(CONTEXTS) * len(session.profile.deepwalk_rates))
    without = [run["without_vector"] for run in found.results if "without_vector" in run]
    made |= {"without_vector": max(without)} if without else {}
    return made | {"command": command(session, made)}


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


def graphsage_rows(session: Session, source: Source, cell: Cell) -> list[Row]:
    """The row of a cell; if unsupervised, also with features joined to the embeddings."""
    task, form, aggregator = cell
    whole = session.profile.space(task, aggregator)
    found = swept(session.trials, graphsage_trial(session, source, cell), whole, session.seeds)
    if found is None:
        return []
    made = row(source, NAMES[aggregator], task, found)
    made |= {
        "form": form,
        "aggregator": aggregator,
        "steps": found.results[0]["steps"],
        "tried": tried(found.points, len(whole.grid())),
    }
    narrowed = [f"--only {task},{form},{aggregator}"]
    if len(made["tried"]["rates"]) < len({point["lr"] for point in whole.grid()}):
        narrowed.append(f"--rates {','.join(f'{rate:g}' for rate in made['tried']['rates'])}")
    if made["tried"].get("sizes") == list(SIZES.get(aggregator, ()))[:1]:
        narrowed.append("--small")
    made["command"] = command(session, made, *narrowed)
    if task == "unsupervised":
        made["reading"] = reading(found.chosen["lr"])
    if any("with_features" not in run for run in found.results):
        return [made]
    runs = {seed: {**record, "result": record["result"]["with_features"]} for seed, record in found.runs.items()}
    beside = row(source, NAMES[aggregator] + PLUS_FEATURES, task, Swept(found.chosen, [], runs, found.tried))
    return [made, beside | {name: made[name] for name in ("form", "command", "tried")}]


def tried(points: Sequence[Mapping[str, Any]], whole: int) -> Row:
    """The values of each setting that were tried, the number of points, and how many the whole grid has."""
    names = {"rates": "lr", "sizes": "hidden_dim", "contexts": "contexts"}
    values = {
        plural: list(dict.fromkeys(point[name] for point in points if name in point)) for plural, name in names.items()
    }
    return {plural: each for plural, each in values.items() if each} | {"points": len(points), "of": whole}


def reading(rate: float) -> str | None:
    """Which reading of the paper's unsupervised rates holds this rate."""
    return next((name for name, rates in UNSUPERVISED_RATES.items() if rate in rates), None)


def row(source: Source, name: str, task: str, found: Swept | None) -> Row:
    column = opened(source).column
    paper = {t: published(column, t, name) for t in (TASKS if task == "both" else (task,))}
    made: Row = {"data": source.name, "row": name, "task": task, "paper": paper, "settings": {}}
    if found is None:
        return made
    runs = found.results
    made |= {"settings": found.chosen, "seeds": list(found.runs)}
    for key, score in SCORES.items():
        if values := [float(run[score]) for run in runs if score in run]:
            made[key] = spread(values)
    made["seconds"] = spread(float(run.get("train_seconds") or run.get("seconds") or 0.0) for run in runs)
    made["made_on"] = made_on(found.records)
    return made | ({"swept": found.points} if found.points else {}) | old_protocol(found)


def old_protocol(found: Swept) -> Row:
    """Which trials of a score were made under an older version of their protocol; empty if none was."""
    parts = {"runs": found.runs.values(), "sweep": found.tried}
    old = [part for part, records in parts.items() if any(map(is_old, records))]
    return {"old_protocol": old} if old else {}


def command(session: Session, made: Row, *narrowed: str) -> str:
    """The command that makes this row from scratch, with as many seeds."""
    return session.command("table1", [made["data"]], *narrowed, seeds=max(made["seeds"]) + 1)


def made_on(records: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Machines and versions of torch that the trials of a row name, and how many trials each made."""
    counted = Counter((machine_of(record), record["versions"]["torch"]) for record in records)
    return [{"machine": where, "torch": torch, "trials": count} for (where, torch), count in counted.items()]


def _key(row: Row) -> tuple[str, ...]:
    return row["data"], row["task"], row.get("form", ""), row["row"]


def stronger(row: Row) -> dict[str, Any]:
    """The test micro F1 of a baseline, by the probe with the higher validation F1: the paper's or the tuned one."""
    found: dict[str, Any] = row["test_micro_f1"]
    if "tuned_val_micro_f1" in row and row["tuned_val_micro_f1"]["mean"] > row["val_micro_f1"]["mean"]:
        tuned = row["tuned_test_micro_f1"]["values"]
        # The tuned probe of fixed vectors has no seed: it gives the same score with each.
        found = spread(tuned * len(found["values"]) if len(tuned) == 1 else tuned)
    return found


def gains(rows: list[Row]) -> list[dict[str, Any]]:
    """Percent gain of the best GraphSAGE on validation over raw features (with their stronger probe, if supervised)."""
    raw = {r["data"]: r for r in rows if r["row"] == "Raw features"}
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for r in rows:
        if "aggregator" in r:
            groups.setdefault((r["data"], r["task"], r["form"]), []).append(r)
    found = []
    for (data, task, form), group in groups.items():
        if data not in raw:
            continue
        best = max(group, key=lambda r: r["val_micro_f1"]["mean"])
        base = stronger(raw[data]) if task == "supervised" else raw[data]["test_micro_f1"]
        gain = 100 * (best["test_micro_f1"]["mean"] / base["mean"] - 1)
        found.append({"data": data, "task": task, "form": form, "best": best["row"], "percent": round(gain, 2)})
    return found


def rows_in_part(
    table: dict[str, Any] | None, tasks: Sequence[str], names: Sequence[str], form: str = "paper"
) -> list[str]:
    """Rows of these tasks and names that were swept over less than the whole grid or have fewer seeds than others."""
    rows = [row for row in (table or {"rows": []})["rows"] if row.get("form", form) == form and "tried" in row]
    most = max((len(row["seeds"]) for row in rows), default=0)
    return [
        f"{row['data']} {row['task']} {row['row']} ({row['tried']['points']} of {row['tried']['of']} points, "
        f"{len(row['seeds'])} of {most} seeds)"
        for row in judging(rows, tasks, names)
        if row["tried"]["points"] < row["tried"]["of"] or len(row["seeds"]) < most
    ]


def judging(rows: Iterable[Row], tasks: Sequence[str], names: Sequence[str]) -> list[Row]:
    """The rows of these tasks and names; baselines count for every task."""
    return [row for row in rows if row["task"] in (*tasks, *(("both",) if tasks else ())) and row["row"] in names]
