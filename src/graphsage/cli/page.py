"""A map as one HTML file that needs nothing else: pan, zoom, hover, search by name, hide classes."""

import json
from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.atomic import atomic_file
from graphsage.cli.picture import COLORS, REST


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
