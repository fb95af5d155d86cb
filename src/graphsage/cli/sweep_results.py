"""What a sweep leaves behind: `trials.csv`, `sweep.json`, `sweep.png`, `best.toml`, and a table on stdout."""

import csv
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from graphsage.atomic import atomic_file
from graphsage.cli.output import print_columns, print_facts, print_json
from graphsage.cli.settings import write_run_file
from graphsage.cli.sweep_display import short, words

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

    from graphsage.training.search import Search
    from graphsage.training.trials import Result

SHOWN = 10
STATES = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed", "RUNNING": "running", "WAITING": "waiting"}


def write_results(search: "Search", study: "Study", runs: "list[Result]") -> dict[str, Any]:
    """Write all files for what has been tried so far and return what `sweep.json` holds."""
    from graphsage.cli.sweep_picture import draw_sweep
    from graphsage.experiments.record import hardware, spread, versions
    from graphsage.training.config import Config
    from graphsage.training.search import winner
    from graphsage.training.suggest import settings_of

    trials = [_row(search, trial) for trial in study.get_trials(deepcopy=False)]
    best = winner(study)
    record: dict[str, Any] = {
        "folder": str(search.folder), **search.about, "space": search.space.as_json(), "sampler": search.sampler,
        "pruner": search.pruner, "seed": search.seed, "hardware": hardware(), "versions": versions(),
        "counts": dict(Counter(trial["state"] for trial in trials)), "winner": None, "trials": trials,
    }  # fmt: skip
    if best is not None:
        settings = settings_of(search.space, best.params)
        record["winner"] = {"trial": best.number, "val_f1": best.value, "settings": trials[best.number]["settings"]}
        if runs:
            record["winner"] |= {"seeds": len(runs), "val_micro_f1": spread(run["val"] for run in runs)}
            if runs[0]["test"] is not None:
                record["winner"]["test_micro_f1"] = spread(run["test"] for run in runs)
        config = Config.from_dict({**settings, "seed": 0}).resolved()
        write_run_file(search.folder / "best.toml", config, search.about["data"], search.about["split"])
    with atomic_file(search.folder / "sweep.json") as temporary:
        temporary.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    _write_csv(search, trials)
    draw_sweep(search.folder / "sweep.png", record)
    return record


def report(record: dict[str, Any], as_json: bool) -> None:
    """The best trials, then the winner; or a JSON object."""
    files = [f"{record['folder']}/{name}" for name in ("trials.csv", "sweep.json", "sweep.png", "best.toml")
             if name != "best.toml" or record["winner"]]  # fmt: skip
    if as_json:
        print_json({name: record[name] for name in ("folder", "data", "split", "counts", "winner")} | {"files": files})
        return
    names = list(record["space"]["axes"])
    ranked = sorted((trial for trial in record["trials"] if trial["state"] == "complete"), key=lambda t: -t["val_f1"])
    rows = [["trial", "val F1", "epochs", "seconds", *names]]
    rows += [[str(trial["trial"]), f"{trial['val_f1']:.4f}", str(trial["epochs"]), f"{trial['seconds']:.1f}",
              *(short(trial["settings"].get(name, "")) for name in names)] for trial in ranked[:SHOWN]]  # fmt: skip
    print_columns(rows, right=range(len(rows[0])))
    counts = ", ".join(f"{count} {state}" for state, count in record["counts"].items())
    print(f"\n{min(SHOWN, len(ranked))} best of {len(record['trials'])} trials ({counts})")
    if record["winner"]:
        found = record["winner"]
        print_facts({
            "winner": f"trial {found['trial']}: {words(found['settings'])}",
            "val F1": _spread(found.get("val_micro_f1")) or f"{found['val_f1']:.4f}",
            "test F1": _spread(found.get("test_micro_f1")), "results": record["folder"],
            "next": f"graphsage train --config {record['folder']}/best.toml --out run",
        })  # fmt: skip


def _spread(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return ""
    many = len(cell["values"])
    return f"{cell['mean']:.4f}" + (f" ± {cell['std']:.4f} ({many} seeds)" if many > 1 else "")


def _row(search: "Search", trial: "FrozenTrial") -> dict[str, Any]:
    from graphsage.training.suggest import settings_of

    chosen = settings_of(search.space, trial.params)
    point = {name: list(chosen[name]) if isinstance(chosen[name], tuple) else chosen[name] for name in trial.params}
    curve = [value for _, value in sorted(trial.intermediate_values.items())]
    return {"trial": trial.number, "state": STATES[trial.state.name], "settings": point,
            "val_f1": trial.value if trial.state.name == "COMPLETE" else None, "epochs": len(curve), "curve": curve,
            "seconds": round(trial.duration.total_seconds(), 3) if trial.duration else None,
            "error": trial.user_attrs.get("error")}  # fmt: skip


def _write_csv(search: "Search", trials: list[dict[str, Any]]) -> None:
    names = list(search.space.axes)
    with (
        atomic_file(search.folder / "trials.csv") as temporary,
        temporary.open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.writer(file)
        writer.writerow(["trial", "state", "val_f1", "epochs", "seconds", *names, "error"])
        for trial in trials:
            cells = [trial[name] for name in ("trial", "state", "val_f1", "epochs", "seconds")]
            writer.writerow([*cells, *(trial["settings"].get(name) for name in names), trial["error"]])
