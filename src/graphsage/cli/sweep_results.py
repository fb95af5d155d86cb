"""The results of a sweep: `trials.csv`, `sweep.json`, `sweep.png`, `best.toml`, and a table on stdout."""

import csv
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphsage.atomic import atomic_file
from graphsage.cli.output import print_columns, print_facts, print_json, shortened
from graphsage.cli.runs import RunFolder
from graphsage.cli.settings import RUN_FILE, write_run_file
from graphsage.evaluation.metrics import METRICS, Metric

if TYPE_CHECKING:
    from graphsage.training.score import Scorer
    from graphsage.training.search import Search
    from graphsage.training.trials import Result

SHOWN = 10
RUN = "run"  # the winner's model, in the folder of the sweep
BLUE, GRAY, RED, INK, FAINT, GRID = "#2f6db3", "#b5bac2", "#c8372d", "#22252a", "#6b7078", "#e8e8e8"
COLUMNS = 3


def seeds_row(name: str, runs: "list[Result]") -> dict[str, Any]:
    """The scores of some settings over their seeds."""
    from graphsage.experiments.record import spread

    tested = runs[0]["test"] is not None
    val, test = spread(run["val"] for run in runs), spread(run["test"] for run in runs) if tested else None
    return {"name": name, "val": val, "test": test}


def yardstick_rows(scorer: "Scorer", metric: Metric) -> list[dict[str, Any]]:
    """Regressions without a graph and with neighbor means, by the same score; none for one that needs probabilities."""
    import numpy as np

    from graphsage.baselines.features import tuned_regressions
    from graphsage.baselines.ridge import regression_yardsticks
    from graphsage.experiments.record import spread
    from graphsage.training.score import opened

    graph, split = opened(scorer.data, scorer.split)
    assert graph.labels is not None
    scored: dict[str, dict[str, float]] = {}
    if metric.of == "numbers":
        for part in ("val", "test"):
            for name, row in regression_yardsticks(graph, split, part).items() if len(split.nodes(part)) else ():
                scored.setdefault(name, {})[part] = float(getattr(row.scores, metric.name))
    elif metric.name in ("micro-f1", "macro-f1", "accuracy"):
        rows = {part: graph.labeled(split.nodes(part)).numpy() for part in ("val", "test")}
        for name, decided in tuned_regressions(graph, split).items():
            scored[name] = {
                part: metric.score(graph.labels[own].numpy(), np.empty(0), decided[part])
                for part, own in rows.items()
                if len(own)
            }
    return [
        {"name": name, **{part: spread([found[part]]) if part in found else None for part in ("val", "test")}}
        for name, found in scored.items()
    ]


def ready_model(search: "Search", scorer: "Scorer", settings: Mapping[str, Any]) -> None:
    """Train the winner once more, as a run that the other commands read."""
    from graphsage.training.config import Config
    from graphsage.training.score import dataset
    from graphsage.training.train import train

    config, out, place = Config.from_dict({**settings, "seed": 0}).resolved(), search.folder / RUN, search.about["data"]
    folder = RunFolder(out, resume=False, overwrite=True)

    def begin() -> None:
        folder.begin(None, resumed=False)
        write_run_file(out / RUN_FILE, config, place, search.about["split"])

    about = ({"data": place} if isinstance(place, str) else {}) | {"split": search.about["split"]}
    train(dataset(scorer.data), scorer.split, config, out=out, device=scorer.device, on_begin=begin, about=about)


def write_results(
    search: "Search", finished: "Sequence[Result]", runs: "list[Result]", beside: list[dict[str, Any]]
) -> dict[str, Any]:
    """Write all files for the finished trials and return what `sweep.json` holds."""
    from graphsage.experiments.record import hardware, spread, versions
    from graphsage.training.config import Config
    from graphsage.training.search import settings_of

    metric = METRICS[record_metric(search)]
    trials = [
        {
            "trial": result["number"],
            "state": result["state"],
            "settings": result["point"],
            "val_score": None if result["val"] is None else metric.ascending(result["val"]),
            "epochs": len(result["curve"]),
            "curve": [metric.ascending(score) for score in result["curve"]],
            "seconds": result["seconds"],
            "error": result["error"],
        }
        for result in finished
    ]
    complete = [trial for trial in trials if trial["state"] == "complete"]
    record: dict[str, Any] = {
        "folder": str(search.folder),
        **search.about,
        "space": search.space.as_json(),
        "sampler": search.sampler,
        "pruner": search.pruner,
        "seed": search.seed,
        "metric": metric.name,
        "hardware": hardware(),
        "versions": versions(),
        "counts": dict(Counter(trial["state"] for trial in trials)),
        "winner": None,
        "beside": beside,
        "trials": trials,
    }
    if complete:
        best = max(complete, key=lambda trial: metric.ascending(trial["val_score"]))
        record["winner"] = {name: best[name] for name in ("trial", "val_score", "settings")}
        if runs:
            record["winner"] |= {"seeds": len(runs), "val": spread(run["val"] for run in runs)}
            if runs[0]["test"] is not None:
                record["winner"]["test"] = spread(run["test"] for run in runs)
        config = Config.from_dict({**settings_of(search, best["settings"]), "seed": 0}).resolved()
        write_run_file(search.folder / "best.toml", config, search.about["data"], search.about["split"])
    with atomic_file(search.folder / "sweep.json") as temporary:
        temporary.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    _write_csv(search, trials)
    draw_sweep(search.folder / "sweep.png", record)
    return record


def report(record: dict[str, Any], as_json: bool) -> None:
    """The best trials, then the winner; or a JSON object."""
    files = [
        f"{record['folder']}/{name}"
        for name in ("trials.csv", "sweep.json", "sweep.png", "best.toml")
        if name != "best.toml" or record["winner"]
    ]
    if as_json:
        shown = ("folder", "data", "split", "counts", "winner", "beside")
        print_json({name: record[name] for name in shown} | {"files": files})
        return
    names = list(record["space"]["axes"])
    metric = METRICS[record["metric"]]
    ranked = [trial for trial in record["trials"] if trial["state"] == "complete"]
    ranked.sort(key=lambda trial: -metric.ascending(trial["val_score"]))
    rows = [["trial", f"val {metric.title}", "epochs", "seconds", *names]]
    rows += [
        [
            str(trial["trial"]),
            metric.shown(trial["val_score"]),
            str(trial["epochs"]),
            f"{trial['seconds']:.1f}",
            *(short(trial["settings"].get(name, "")) for name in names),
        ]
        for trial in ranked[:SHOWN]
    ]
    print_columns(rows, right=range(len(rows[0])))
    counts = ", ".join(f"{count} {state}" for state, count in record["counts"].items())
    print(f"\n{min(SHOWN, len(ranked))} best of {len(record['trials'])} trials ({counts})")
    if record["winner"]:
        found = record["winner"]
        if record["beside"]:
            print()
            ours = {"name": "winner", "val": found["val"], "test": found.get("test")}
            lines = [
                [row["name"], *(_spread(row[part], metric) for part in ("val", "test"))]
                for row in (ours, *record["beside"])
            ]
            print_columns([[metric.title, "val", "test"], *lines], right=(1, 2))
            print()
        print_facts(
            {
                "winner": f"trial {found['trial']}: {words(found['settings'])}",
                f"val {metric.title}": _spread(found.get("val"), metric) or metric.shown(found["val_score"]),
                f"test {metric.title}": _spread(found.get("test"), metric),
                "results": record["folder"],
                "model": f"{record['folder']}/{RUN}" if record["beside"] else None,
                "next": f"graphsage train --config {record['folder']}/best.toml --out run",
            }
        )


def _spread(cell: dict[str, Any] | None, metric: Metric) -> str:
    if cell is None:
        return ""
    many = len(cell["values"])
    return metric.shown(cell["mean"]) + (f" ± {metric.shown(cell['std'])} ({many} seeds)" if many > 1 else "")


def _write_csv(search: "Search", trials: list[dict[str, Any]]) -> None:
    names = list(search.space.axes)
    with (
        atomic_file(search.folder / "trials.csv") as temporary,
        temporary.open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.writer(file)
        writer.writerow(["trial", "state", "val_score", "epochs", "seconds", *names, "error"])
        for trial in trials:
            cells = [trial[name] for name in ("trial", "state", "val_score", "epochs", "seconds")]
            writer.writerow([*cells, *(trial["settings"].get(name) for name in names), trial["error"]])


def record_metric(search: "Search") -> str:
    """The name of the score that a search compares."""
    from graphsage.training.score import metric_of

    return metric_of(search.space.fixed).name


def outcome(result: "Result", metric: Metric) -> str:
    """How a trial ended, in a few words."""
    if result["state"] == "complete":
        return f"val {metric.title} {metric.shown(metric.ascending(result['val']))}"
    if result["state"] == "pruned":
        return f"{metric.shown(metric.ascending(max(result['curve'])))}, given up after {len(result['curve'])}"
    return f"failed: {shortened(result['error'], 80)}"


def words(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {short(value)}" for name, value in point.items())


def short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def draw_sweep(path: Path, record: dict[str, Any]) -> None:
    """Panels of `sweep.json`'s trials: finished ones, those that were given up, and the winner."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    axes_of = record["space"]["axes"]
    panels = 1 + len(axes_of)
    lines = math.ceil(panels / COLUMNS)
    columns = min(panels, COLUMNS)
    figure = Figure(figsize=(1.0 + 3.7 * columns, 1.1 + 2.6 * lines), dpi=120, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    places = list(figure.subplots(lines, columns, squeeze=False, sharey=True).flat)
    for axes in places[panels:]:
        axes.set_axis_off()
    shown = [trial for trial in record["trials"] if trial["curve"] or trial["val_score"] is not None]
    metric = METRICS[record["metric"]]
    best = (record["winner"] or {}).get("trial")
    _draw(places[0], [trial["trial"] for trial in shown], shown, best, metric)
    places[0].set_xlabel("trial")
    places[0].xaxis.set_major_locator(MaxNLocator(integer=True))
    running: list[float] = []
    for trial in shown:
        score = trial["val_score"]
        running.append(max([*running[-1:], -math.inf if score is None else metric.ascending(score)]))
    best_so_far = [
        (trial["trial"], metric.ascending(value))
        for trial, value in zip(shown, running, strict=True)
        if value > -math.inf
    ]
    if best_so_far:
        places[0].step(*zip(*best_so_far, strict=True), where="post", color=BLUE, linewidth=1.2, alpha=0.6)
    for axes, (name, axis) in zip(places[1:], axes_of.items(), strict=False):
        own = [trial for trial in shown if name in trial["settings"]]
        values = [trial["settings"][name] for trial in own]
        if isinstance(axis, dict):
            _draw(axes, values, own, best, metric)
            if axis.get("log"):
                axes.set_xscale("log")
        else:
            _draw(
                axes,
                [axis.index(value) + _beside(trial["trial"]) for value, trial in zip(values, own, strict=True)],
                own,
                best,
                metric,
            )
            axes.set_xticks(range(len(axis)), [_word(value) for value in axis])
            axes.set_xlim(-0.6, len(axis) - 0.4)
        axes.set_xlabel(name)
    for axes in places[:panels]:
        axes.grid(color=GRID, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(which="both", length=0, labelsize=8.5, labelcolor=INK)
        axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
        axes.xaxis.label.set(color=INK, fontsize=9.5)
    for row in range(lines):
        places[row * columns].set_ylabel(f"validation {metric.title}", fontsize=9, color=FAINT)
    counts = ", ".join(f"{count} {state}" for state, count in record["counts"].items())
    figure.legend(*places[0].get_legend_handles_labels(), loc="outside lower left", ncols=3, frameon=False, fontsize=9)
    where = record["data"] if isinstance(record["data"], str) else "two tables"
    figure.suptitle(
        f"Sweep on {Path(where).name}: {counts}", x=0.01, ha="left", fontsize=12, color=INK, fontweight="bold"
    )
    with atomic_file(path) as temporary:
        figure.savefig(temporary, format="png", metadata={"Software": None})


def _draw(axes: Any, x: list[float], trials: list[dict[str, Any]], best: int | None, metric: Metric) -> None:
    looks = {"finished": (BLUE, "o", 26), "given up (best until then)": (GRAY, "x", 22), "winner": (RED, "*", 130)}
    points: dict[str, list[tuple[float, float]]] = {kind: [] for kind in looks}
    for place, trial in zip(x, trials, strict=True):
        done = trial["val_score"] is not None
        kind = "winner" if trial["trial"] == best else "finished" if done else "given up (best until then)"
        points[kind].append((place, trial["val_score"] if done else max(trial["curve"], key=metric.ascending)))
    for kind, (color, marker, size) in looks.items():
        if points[kind]:
            axes.scatter(
                *zip(*points[kind], strict=True), s=size, c=color, marker=marker, label=kind, linewidths=1.2, zorder=3
            )


def _beside(number: int) -> float:
    """Trials with the same choice side by side, not on top of each other."""
    return ((number * 0.618034) % 1.0 - 0.5) * 0.5


def _word(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
