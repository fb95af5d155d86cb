"""The picture of a sweep: validation F1 by trial, then by each setting that was searched."""

import math
from pathlib import Path
from typing import Any

from graphsage.atomic import atomic_file

BLUE, GRAY, RED, INK, FAINT, GRID = "#2f6db3", "#b5bac2", "#c8372d", "#22252a", "#6b7078", "#e8e8e8"
COLUMNS = 3


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
    shown = [trial for trial in record["trials"] if trial["curve"] or trial["val_f1"] is not None]
    best = (record["winner"] or {}).get("trial")
    _draw(places[0], [trial["trial"] for trial in shown], shown, best)
    places[0].set_xlabel("trial")
    places[0].xaxis.set_major_locator(MaxNLocator(integer=True))
    running: list[float] = []
    for trial in shown:
        running.append(max([*running[-1:], trial["val_f1"] if trial["val_f1"] is not None else -math.inf]))
    told = [(trial["trial"], value) for trial, value in zip(shown, running, strict=True) if value > -math.inf]
    if told:
        places[0].step(*zip(*told, strict=True), where="post", color=BLUE, linewidth=1.2, alpha=0.6)
    for axes, (name, axis) in zip(places[1:], axes_of.items(), strict=False):
        own = [trial for trial in shown if name in trial["settings"]]
        values = [trial["settings"][name] for trial in own]
        if isinstance(axis, dict):
            _draw(axes, values, own, best)
            if axis.get("log"):
                axes.set_xscale("log")
        else:
            _draw(axes, [axis.index(value) + _spread(trial["trial"]) for value, trial in zip(values, own, strict=True)],
                  own, best)  # fmt: skip
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
        places[row * columns].set_ylabel("validation micro F1", fontsize=9, color=FAINT)
    counts = ", ".join(f"{count} {state}" for state, count in record["counts"].items())
    figure.legend(*places[0].get_legend_handles_labels(), loc="outside lower left", ncols=3, frameon=False, fontsize=9)
    where = record["data"] if isinstance(record["data"], str) else "two tables"
    figure.suptitle(f"Sweep on {Path(where).name}: {counts}", x=0.01, ha="left", fontsize=12, color=INK,
                    fontweight="bold")  # fmt: skip
    with atomic_file(path) as temporary:
        figure.savefig(temporary, format="png", metadata={"Software": None})


def _draw(axes: Any, x: list[float], trials: list[dict[str, Any]], best: int | None) -> None:
    looks = {"finished": (BLUE, "o", 26), "given up (best F1 until then)": (GRAY, "x", 22), "winner": (RED, "*", 130)}
    points: dict[str, list[tuple[float, float]]] = {kind: [] for kind in looks}
    for place, trial in zip(x, trials, strict=True):
        done = trial["val_f1"] is not None
        kind = "winner" if trial["trial"] == best else "finished" if done else "given up (best F1 until then)"
        points[kind].append((place, trial["val_f1"] if done else max(trial["curve"])))
    for kind, (color, marker, size) in looks.items():
        if points[kind]:
            axes.scatter(*zip(*points[kind], strict=True), s=size, c=color, marker=marker, label=kind, linewidths=1.2,
                         zorder=3)  # fmt: skip


def _spread(number: int) -> float:
    """Trials with the same choice side by side, not on top of each other."""
    return ((number * 0.618034) % 1.0 - 0.5) * 0.5


def _word(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
