"""A 2-D map of embeddings, as a picture or as one HTML file that works offline."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from graphsage.atomic import atomic_file
from graphsage.cli.output import shortened

if TYPE_CHECKING:
    from graphsage.evaluation.calibration import Bin
    from graphsage.evaluation.class_report import ClassScores

COLORS = ("#4269d0", "#efb118", "#ff725c", "#3ca951", "#a463f2", "#6cc5b0", "#9c6b4e", "#ff8ab7", "#1d3557", "#97bbf5")
REST, INK, FAINT = "#c9ccd1", "#22252a", "#6b7078"
DIRECT = 8  # classes that are also named in the picture; the legend names all that have a color
WORDS = 24  # letters of a class name that fit the legend
LEADER_POINTS = 22  # a label further from its class than this is joined to it by a line


def draw_map(path: Path, places: npt.NDArray[Any], classes: Sequence[str], *, title: str, subtitle: str) -> None:
    """Draw N points at `places` (N, 2); classes beyond the largest ones are gray."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    x, y = places.T
    named = np.array(classes)
    largest = Counter(classes).most_common(len(COLORS))
    colors = {name: COLORS[i] for i, (name, _) in enumerate(largest)}
    figure = Figure(figsize=(11.5, 7.2), dpi=160, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.03, 0.04, 0.68, 0.83))
    others = ~np.isin(named, list(colors))
    if others.any():
        axes.scatter(x[others], y[others], s=8, c=REST, linewidths=0)
    order = np.random.default_rng(0).permutation(np.flatnonzero(~others))  # so that no class hides another
    axes.scatter(x[order], y[order], s=10, c=[colors[name] for name in named[order]], linewidths=0, alpha=0.75)
    axes.set_axis_off()
    axes.margins(0.04)
    taken: list[Any] = []
    for i, (name, count) in enumerate(largest):
        axes.scatter([], [], s=38, c=colors[name], linewidths=0, label=f"{shortened(name, WORDS)} ({count:,})")
        if i < DIRECT:
            taken.append(_label(axes, places[named == name], shortened(name, WORDS), colors[name], taken))
    if others.any():
        rest = f"{len(set(named[others]))} smaller classes ({others.sum():,})"
        axes.scatter([], [], s=38, c=REST, linewidths=0, label=rest)
    figure.legend(
        loc="center left",
        bbox_to_anchor=(0.725, 0.455),
        frameon=False,
        fontsize=9.5,
        labelcolor=INK,
        handletextpad=0.3,
        labelspacing=0.8,
    )
    figure.text(0.035, 0.945, title, fontsize=17, fontweight="bold", color=INK)
    figure.text(0.035, 0.906, subtitle, fontsize=10.5, color=FAINT)
    with atomic_file(path) as temporary:
        figure.savefig(temporary, format="png")


BAR_CLASSES = 30  # in a picture of all classes: the largest ones


def draw_quality(
    path: Path,
    classes: "Sequence[ClassScores]",
    reliability: "Sequence[Bin] | None",
    error: float | None,
    *,
    title: str,
) -> None:
    """Precision, recall and F1 of each class, the largest at the top. With probabilities also the share of decisions
    that are right, by their probability."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = sorted(classes, key=lambda each: -each.support)[:BAR_CLASSES]
    height = max(3.6, 1.5 + 0.26 * len(shown))
    figure = Figure(figsize=(7.5 if reliability is None else 12.0, height), dpi=140, facecolor="white")
    FigureCanvasAgg(figure)
    figure.set_layout_engine("constrained")
    panels = figure.subplots(1, 1 if reliability is None else 2, squeeze=False)[0]
    axes, rows = panels[0], range(len(shown))
    axes.hlines(rows, 0, [each.f1 for each in shown], color=REST, linewidth=5, zorder=1)
    looks = (("precision", COLORS[0], "<"), ("recall", COLORS[2], ">"), ("f1", INK, "o"))
    for name, color, marker in looks:
        label = "F1" if name == "f1" else name
        axes.scatter([getattr(each, name) for each in shown], rows, c=color, marker=marker, s=24, label=label, zorder=2)
    axes.set_yticks(rows, [f"{shortened(each.name, WORDS)} ({each.support:,})" for each in shown], fontsize=8.5)
    axes.invert_yaxis()
    axes.set_xlim(-0.02, 1.02)
    left_out = len(classes) - len(shown)
    axes.set_xlabel("score" + (f"; {left_out} smaller classes are not shown" if left_out else ""))
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, fontsize=9)
    if reliability is not None and error is not None:
        _draw_reliability(panels[1], reliability, error)
    for panel in panels:
        panel.grid(color="#e8e8e8", linewidth=0.8)
        panel.set_axisbelow(True)
        panel.tick_params(length=0, labelcolor=INK)
        panel.spines[["top", "right", "left", "bottom"]].set_visible(False)
    figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold", color=INK)
    with atomic_file(path) as temporary:
        figure.savefig(temporary, format="png", metadata={"Software": None})


def _draw_reliability(axes: Any, reliability: "Sequence[Bin]", error: float) -> None:
    """A point for each interval of probability, its area by the number of decisions; the diagonal is perfect."""
    total = sum(each.count for each in reliability)
    axes.plot([0, 1], [0, 1], color=FAINT, linewidth=1, linestyle="--", label="perfectly calibrated")
    p, right = [each.probability for each in reliability], [each.right for each in reliability]
    axes.plot(p, right, color=COLORS[0], linewidth=1)
    axes.scatter(p, right, s=[20 + 500 * each.count / total for each in reliability], c=COLORS[0], alpha=0.6, zorder=3)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_aspect("equal")
    axes.set_xlabel("probability that the model gives")
    axes.set_ylabel("share that is right")
    axes.set_title(f"calibration error (ECE) {error:.3f}; area: number of decisions", fontsize=9.5, color=INK)
    axes.legend(loc="upper left", frameon=False, fontsize=9)


def _label(axes: Any, places: npt.NDArray[Any], name: str, color: str, taken: Sequence[Any]) -> Any:
    """Write the name at the class's median, or as near to it as the labels in `taken` leave room; return its box."""
    from matplotlib.patheffects import withStroke

    anchor = np.median(places, axis=0)
    text = axes.annotate(
        name,
        anchor,
        xytext=(0, 0),
        textcoords="offset points",
        ha="center",
        va="center",
        fontsize=9.5,
        fontweight="bold",
        color=_darker(color),
        path_effects=[withStroke(linewidth=3.5, foreground="white")],
        zorder=5,
    )
    renderer = axes.figure.canvas.get_renderer()
    inside = axes.get_window_extent(renderer)
    for offset in _spiral():
        text.set_position(offset)
        box = text.get_window_extent(renderer).padded(4)
        if inside.x0 <= box.x0 and box.x1 <= inside.x1 and not any(box.overlaps(other) for other in taken):
            break
    if np.hypot(*offset) > LEADER_POINTS:
        line = {"arrowstyle": "-", "color": _darker(color), "linewidth": 0.9, "shrinkB": 0}
        axes.annotate("", anchor, xytext=offset, textcoords="offset points", zorder=4, arrowprops=line)
    return box


def _spiral() -> Iterator[tuple[float, float]]:
    """Offsets in points, nearest first, wider than they are high as words are."""
    for radius in range(0, 200, 9):
        for angle in np.linspace(0, 2 * np.pi, 16, endpoint=False):
            yield 1.8 * radius * float(np.cos(angle)), radius * float(np.sin(angle))


def _darker(color: str) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb

    return tuple(0.55 * channel for channel in to_rgb(color))


def write_page(
    path: Path, places: npt.NDArray[Any], classes: Sequence[str], ids: Sequence[str], *, title: str, subtitle: str
) -> None:
    """places (N, 2), one class and one id a point. The largest classes have a color of their own."""
    low, high = places.min(axis=0), places.max(axis=0)
    scaled = (places - low) / np.maximum(high - low, 1e-12).max()
    largest = [name for name, _ in Counter(classes).most_common(len(COLORS))]
    number = {name: i for i, name in enumerate(largest)}
    content = {
        "title": title,
        "subtitle": subtitle,
        "classes": [*largest, "other classes"],
        "colors": [*COLORS[: len(largest)], REST],
        "x": [round(float(v), 5) for v in scaled[:, 0]],
        "y": [round(float(v), 5) for v in scaled[:, 1]],
        "class": [number.get(name, len(largest)) for name in classes],
        "name": list(classes),
        "id": list(ids),
    }
    # "</" would end the script element that holds the data, whatever a node is called.
    data = json.dumps(content, ensure_ascii=False).replace("</", "<\\/").replace("<!--", "<\\!--")
    template = files("graphsage.cli").joinpath("page.html").read_text(encoding="utf-8")
    with atomic_file(path) as temporary:
        temporary.write_text(template.replace("/*DATA*/null", data), encoding="utf-8")
