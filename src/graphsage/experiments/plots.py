"""The figures as pictures, drawn from the records of the experiments."""

import io
import itertools
from collections.abc import Callable, Mapping
from typing import Any

from graphsage.experiments.paper import ROWS
from graphsage.experiments.record import by_machine, short, usual

COLORS = {
    "Random": "#9a9a9a",
    "Raw features": "#5c5c5c",
    "DeepWalk": "#c98a1b",
    "DeepWalk + features": "#8c5a00",
    "GraphSAGE-GCN": "#4a90c2",
    "GraphSAGE-mean": "#1b7f5c",
    "GraphSAGE-LSTM": "#8a4fbf",
    "GraphSAGE-pool": "#c8372d",
}
INK, FAINT, GRID = "#222222", "#666666", "#e4e4e4"
MARKERS = {"mean": "o", "pool": "s"}
Record = Mapping[str, Any]


def pictures(records: Mapping[str, Record | None]) -> dict[str, bytes]:
    """A PNG for each figure that has a record."""
    drawn = {}
    for name, draw in DRAWN.items():
        record = records.get(name)
        figure = None if record is None else draw(record)
        if figure is not None:
            drawn[name] = _png(figure)
    return drawn


def table1(record: Record) -> Any:
    """A panel for each data set and task: ours as filled dots, the paper's as rings. None without a GraphSAGE row."""
    found = {(row["data"], row["task"]) for row in record["rows"] if "form" in row}
    if not found:
        return None
    names, tasks = sorted({data for data, _ in found}), sorted({task for _, task in found})
    figure, panels = _panels(len(tasks), len(names), 1.3 + 3.7 * len(names), 0.9 + 2.5 * len(tasks), sharey=True)
    for axes, (task, data) in zip(panels, itertools.product(tasks, names), strict=True):
        for place, name in enumerate(reversed(ROWS)):
            for row in _rows(record, data, task, name):
                ours = row["test_micro_f1"]
                filled = row.get("form", "paper") == "paper"
                shape: dict[str, Any] = {"fmt": "o", "markersize": 7} if filled else {"fmt": "D", "markersize": 5}
                axes.errorbar(ours["mean"], place, xerr=ours["std"] or None, color=COLORS[name], zorder=3, **shape)
                theirs = row["paper"].get(task)
                if theirs is not None:
                    axes.plot(theirs, place, "o", markersize=9, fillstyle="none", color=FAINT, zorder=2)
        stands_for = " (the paper: citation)" if data == "setmm" else ""
        axes.set_title(f"{data}, {task}{stands_for}", loc="left", fontsize=10, color=INK)
        axes.set_yticks(range(len(ROWS)), list(reversed(ROWS)), fontsize=8.5)
        axes.set_ylim(-0.6, len(ROWS) - 0.4)
        axes.set_xlim(-0.02, 1.03)
    forms = {row["form"] for row in record["rows"] if "form" in row}
    both = ", diamonds: reference form" if "reference" in forms else ""
    _finish(figure, record, "Table 1: test micro F1", f"dots: ours{both}; rings: the paper, on its own data")
    return figure


def figure2a(record: Record) -> Any:
    """A line of panels for each machine."""
    timed = by_machine(record)
    figure, panels = _panels(len(timed), 2, 10.5, 0.9 + 2.5 * len(timed))
    shown = [
        ("pass_seconds", "one pass over the walks (unsupervised), s"),
        ("embed_microseconds", "embedding one unseen node, µs"),
    ]
    for axes, ((machine, rows), (key, title)) in zip(panels, itertools.product(timed.items(), shown), strict=True):
        names, values = [row["row"] for row in rows], [usual(row[key]) for row in rows]
        axes.barh(range(len(names)), values, color=[COLORS[name] for name in names], height=0.62)
        axes.set_xscale("log")
        axes.set_xlim(min(values) / 2, max(values) * 4)
        _plain(axes.xaxis)
        axes.set_yticks(range(len(names)), names, fontsize=9)
        axes.invert_yaxis()
        for place, value in enumerate(values):
            axes.text(value * 1.12, place, short(value), va="center", fontsize=9, color=INK)
        axes.set_title(f"{machine}: {title}", loc="left", fontsize=10, color=INK)
    _finish(figure, record, "Figure 2A: time, log scale", next(iter(record["data"])))
    return figure


def figure2b(record: Record) -> Any:
    figure, panels = _panels(1, 2, 10, 3.4)
    sizes = [point["sample_size"] for point in record["points"]]
    shown = [("test_micro_f1", "test micro F1, sampled inference"), ("step_milliseconds", "training step, ms")]
    for axes, (key, title) in zip(panels, shown, strict=True):
        _line(axes, sizes, [point[key] for point in record["points"]], COLORS["GraphSAGE-mean"], "GraphSAGE-mean")
        axes.set_title(title, loc="left", fontsize=10, color=INK)
        axes.set_xlabel("S1 = S2", fontsize=9, color=FAINT)
        axes.set_xticks(sizes, [str(size) for size in sizes])
    _finish(
        figure, record, "Figure 2B: size of the sampled neighborhood", f"GraphSAGE-mean, {next(iter(record['data']))}"
    )
    return figure


def depth(record: Record) -> Any:
    figure, panels = _panels(1, 2, 12, 3.6)
    palette = ("#1b7f5c", "#c8372d", "#4a90c2", "#8a4fbf")
    data = list(dict.fromkeys(point["data"] for point in record["points"]))
    for axes, key, title in (
        (panels[0], "test_micro_f1", "test micro F1"),
        (panels[1], "step_milliseconds", "training step, ms (log scale)"),
    ):
        for number, name in enumerate(data):
            for aggregator, marker in MARKERS.items():
                points = [p for p in record["points"] if (p["data"], p["aggregator"]) == (name, aggregator)]
                if points:
                    ks, values = [p["k"] for p in points], [p[key] for p in points]
                    _line(axes, ks, values, palette[number % len(palette)], f"{name}, {aggregator}", marker)
        axes.set_title(title, loc="left", fontsize=10, color=INK)
        axes.set_xticks([1, 2, 3], ["K = 1", "K = 2", "K = 3"])
    panels[1].set_yscale("log")
    _plain(panels[1].yaxis)
    panels[1].legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    _finish(figure, record, "Depth K", "supervised")
    return figure


def figure3(record: Record) -> Any:
    figure, panels = _panels(1, 1, 7.6, 4.2)
    axes = panels[0]
    levels = record["levels"]
    for name, values in record["lines"].items():
        style = "o" if name.startswith("GraphSAGE") else "x"
        _line(axes, levels, values, COLORS[name], name, style)
    axes.set_xticks(levels, [f"{100 * level:.0f}%" for level in levels])
    axes.set_xlabel("share of feature columns replaced by noise", fontsize=9, color=FAINT)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8.5, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    _finish(
        figure,
        record,
        "Figure 3: features replaced by noise",
        f"test micro F1, supervised, {next(iter(record['data']))}",
    )
    return figure


DRAWN: dict[str, Callable[[Record], Any]] = {
    "table1": table1,
    "figure2a": figure2a,
    "figure2b": figure2b,
    "depth": depth,
    "figure3": figure3,
}


def _rows(record: Record, data: str, task: str, name: str) -> list[Any]:
    own = [row for row in record["rows"] if (row["data"], row["row"]) == (data, name)]
    return [row for row in own if row["task"] in (task, "both") and "test_micro_f1" in row]


def _panels(lines: int, columns: int, width: float, height: float, **options: Any) -> tuple[Any, list[Any]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=110, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    panels = list(figure.subplots(lines, columns, squeeze=False, **options).flat)
    for axes in panels:
        axes.grid(axis="both", color=GRID, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(length=0, labelsize=8.5, labelcolor=INK)
        for side in ("top", "right", "left", "bottom"):
            axes.spines[side].set_visible(False)
    return figure, panels


def _line(axes: Any, x: list[float], cells: list[Any], color: str, label: str, marker: str = "o") -> None:
    """Cells are scores over seeds, or times."""
    means = [cell["mean"] if isinstance(cell, dict) else cell for cell in cells]
    spreads = [cell["std"] if isinstance(cell, dict) else 0.0 for cell in cells]
    style = {"color": color, "marker": marker, "markersize": 5, "linewidth": 1.8, "label": label}
    axes.errorbar(x, means, yerr=spreads if any(spreads) else None, **style)


def _finish(figure: Any, record: Record, title: str, subtitle: str) -> None:
    subtitle += "; old protocol" if record.get("old_protocol") else ""
    figure.suptitle(f"{title}\n", x=0.01, ha="left", fontsize=13, fontweight="bold", color=INK)
    figure.text(0.012, 1.0 - 0.35 / figure.get_figheight(), subtitle, fontsize=9, color=FAINT, va="top")


def _plain(axis: Any) -> None:
    """Numbers of a logarithmic axis as people write them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0,) if high > 300 * low else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axis.set_minor_formatter(NullFormatter())


def _png(figure: Any) -> bytes:
    """In 256 colors, a third of the bytes. No date and no software version: the same record gives the same bytes."""
    from PIL import Image  # matplotlib needs it too

    drawn, buffer = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png")
    Image.open(drawn).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(buffer, "png", optimize=True)
    return buffer.getvalue()
