"""Table 1: every method on every data set, unsupervised and supervised, and the gain over features alone."""

from typing import Any

from graphsage.baselines.deepwalk import CONTEXTS
from graphsage.experiments.data import Source, facts, opened
from graphsage.experiments.paper import NAMES, table1
from graphsage.experiments.profile import AGGREGATORS, TASKS
from graphsage.experiments.record import spread
from graphsage.experiments.session import Session
from graphsage.experiments.trials import make_trial
from graphsage.training.sweep import Result, Swept, Trial, sweep

FORMS = ("paper", "reference")
SIMPLE = {"Random": "random", "Raw features": "features"}


def run(session: Session) -> dict[str, Any]:
    """Make what is missing, and write `table1.json` with all rows that are there."""
    session.trials.run(first_trials(session))  # all together, so that no process waits; what follows reads them
    rows: list[dict[str, Any]] = []
    made = {source.name: facts(opened(source)) for source in session.sources}
    earlier = fitting(session.earlier("table1"), session.profile.name, made)
    about = earlier["data"] | made
    for source in session.sources:
        rows += baselines(session, source)
        rows += graphsage_rows(session, source)
    body: dict[str, Any] = {"data": about, "rows": merged(earlier, rows), "gains": []}
    body["gains"] = gains(body["rows"])
    session.keep("table1", "Table 1: test micro F1 of every method; settings chosen on validation", body)
    return body


def first_trials(session: Session) -> list[Trial]:
    """Everything that does not depend on what validation chooses."""
    trials: list[Trial] = []
    for source in session.sources:
        cells = graphsage_cells(session, source)
        trials += [trial.with_settings(**point, seed=0) for (task, _, aggregator), trial in cells.items()
                   for point in session.grid(task, aggregator)]  # fmt: skip
        for kind in SIMPLE.values():
            trials += [make_trial(kind, kind, source, seed=seed) for seed in range(session.seeds)]
        if opened(source).one_graph and session.walks:
            base = walk_trial(session, source)
            trials += [base.with_settings(lr=lr, seed=0) for lr in session.profile.deepwalk_rates]
    return trials


def baselines(session: Session, source: Source) -> list[dict[str, Any]]:
    """Rows that learn from no graph, and DeepWalk. They are the same in both tasks, as in the paper."""
    seeds = range(session.seeds)
    data = opened(source)
    rows = []
    for name, kind in SIMPLE.items():
        rows.append(
            row(source, name, session.trials.run([make_trial(kind, kind, source, seed=seed) for seed in seeds]))
        )
    if not data.one_graph:
        refused = "several graphs: vectors of one mean nothing in another (Appendix D)"
        return rows + [row(source, name, [], why=refused) for name in ("DeepWalk", "DeepWalk + features")]
    if not session.walks:
        return rows
    rates = session.profile.deepwalk_rates
    base = walk_trial(session, source)
    at_seed_0 = session.trials.run([base.with_settings(lr=lr, seed=0) for lr in rates])
    for name in ("DeepWalk", "DeepWalk + features"):
        points = [{"lr": lr, "contexts": contexts, "val": result["rows"][f"{name} {contexts}"]["val"]}
                  for lr, result in zip(rates, at_seed_0, strict=True) for contexts in CONTEXTS]  # fmt: skip
        best = max(points, key=lambda point: point["val"])
        runs = session.trials.run([base.with_settings(lr=best["lr"], seed=seed) for seed in seeds])
        chosen = {**session.profile.deepwalk, "lr": best["lr"], "contexts": best["contexts"]}
        rows.append(row(source, name, [run["rows"][f"{name} {best['contexts']}"] for run in runs], chosen, points))
    return rows


def walk_trial(session: Session, source: Source) -> Trial:
    """DeepWalk on a data set, still without rate and seed. On the set of Figure 3 it also meets the noise of that."""
    noises = list(session.profile.noise_levels) if source == session.evolving else [0.0]
    return make_trial("deepwalk", "DeepWalk", source, **session.profile.deepwalk, noises=noises)


def graphsage_cells(session: Session, source: Source) -> dict[tuple[str, str, str], Trial]:
    """A trial for each task, form and aggregator, still without rate, width and seed."""
    profile = session.profile
    cells = {}
    for task in session.wanted(TASKS, TASKS):
        for form in session.wanted(profile.forms, FORMS):
            for aggregator in session.wanted(AGGREGATORS, AGGREGATORS):
                settings = {"task": task, "form": form, "aggregator": aggregator, **profile.training[task],
                            "sampled": task == "supervised"}  # fmt: skip
                name = f"{task} {form} {aggregator}"
                cells[task, form, aggregator] = make_trial("graphsage", name, source, **settings)
    return cells


def graphsage_rows(session: Session, source: Source) -> list[dict[str, Any]]:
    cells = graphsage_cells(session, source)
    grids = {key: session.grid(key[0], key[2]) for key in cells}
    swept = sweep(session.trials, cells, grids, session.seeds)
    return [graphsage_row(source, *key, found) for key, found in swept.items()]


def graphsage_row(source: Source, task: str, form: str, aggregator: str, found: Swept) -> dict[str, Any]:
    made = row(source, NAMES[aggregator], found.runs, found.chosen, found.points, task=task)
    made |= {"form": form, "aggregator": aggregator, "steps": found.runs[0]["steps"]}
    if "sampled_test" in found.runs[0]:
        made["sampled_test_micro_f1"] = spread(run["sampled_test"] for run in found.runs)
    return made


def row(source: Source, name: str, runs: list[Result], chosen: dict[str, Any] | None = None,
        points: list[dict[str, Any]] | None = None, *, task: str = "both",
        why: str | None = None) -> dict[str, Any]:  # fmt: skip
    column = opened(source).column
    paper = {t: table1(column, t, name) for t in (TASKS if task == "both" else (task,))}
    made: dict[str, Any] = {"data": source.name, "row": name, "task": task, "paper": paper, "settings": chosen or {}}
    if not runs:
        return made | {"missing": why}
    for key, score in (("val_micro_f1", "val"), ("test_micro_f1", "test"), ("test_macro_f1", "test_macro")):
        made[key] = spread(float(run[score]) for run in runs)
    made["seconds"] = spread(run["train_seconds"] if "train_seconds" in run else run["seconds"] for run in runs)
    return made | ({"swept": points} if points else {})


def fitting(earlier: dict[str, Any] | None, profile: str, made: dict[str, Any]) -> dict[str, Any]:
    """What an earlier piece wrote, if it is a piece of the same table: the same profile, and the same data where it has
    the same name."""
    if earlier is None or earlier["profile"] != profile:
        return {"data": {}, "rows": []}
    other = {name for name in made if name in earlier["data"] and _sizes(earlier["data"][name]) != _sizes(made[name])}
    return {"data": {name: about for name, about in earlier["data"].items() if name not in other},
            "rows": [row for row in earlier["rows"] if row["data"] not in other]}  # fmt: skip


def _sizes(about: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in about.items() if name != "note"}


def merged(earlier: dict[str, Any], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of an earlier piece that this one did not make again, then these."""
    made = {_key(row) for row in rows}
    kept = [row for row in earlier["rows"] if _key(row) not in made]
    return sorted(kept + rows, key=_key)


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return row["data"], row["task"], row.get("form", ""), row["row"]


def gains(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Percent gain of the best GraphSAGE over raw features, for each data set, task and form."""
    raw = {r["data"]: r["test_micro_f1"]["mean"] for r in rows if r["row"] == "Raw features"}
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for r in rows:
        if "aggregator" in r:
            groups.setdefault((r["data"], r["task"], r["form"]), []).append(r)
    found = []
    for (data, task, form), group in groups.items():
        if not raw.get(data):
            continue
        best = max(group, key=lambda r: r["test_micro_f1"]["mean"])
        gain = 100 * (best["test_micro_f1"]["mean"] / raw[data] - 1)
        found.append({"data": data, "task": task, "form": form, "best": best["row"], "percent": round(gain, 1)})
    return found
