"""A small graph with a planted answer as two CSV files, and the command line that trains on it."""

import csv
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

KINDS = ("games", "science", "web")
WORDS = {"games": "play score level", "science": "proof data theory", "web": "page link server"}
SMALL = (
    "--dim",
    "8",
    "--sample-sizes",
    "4,3",
    "--batch-size",
    "16",
    "--device",
    "cpu",
    "--epochs",
    "8",
    "--lr",
    "0.05",
)
COLUMNS = ("id", "section", "about", "size", "color", "day", "release")
ROLES = (
    "--label",
    "section",
    "--text",
    "about",
    "--text-dim",
    "6",
    "--log-numeric",
    "size",
    "--categorical",
    "color",
    "--dates",
    "day",
    "--time",
    "release",
    "--time-order",
    "old,new,newest",
    "--train-until",
    "old",
    "--val-until",
    "new",
)
N = 90


def node_rows(seed: int = 0) -> list[list[Any]]:
    draw = random.Random(seed)
    rows = []
    for i in range(N):
        kind = KINDS[i % 3]
        release = "old" if i < 60 else "new" if i < 75 else "newest"
        about, size = f"{draw.choice(WORDS[kind].split())} thing {i % 7}", draw.choice(["", 1, 10, 999])
        color, day = draw.choice(["red", "blue"]), f"2020-{i % 12 + 1:02}-01"
        rows.append([f"node-{i}", kind, about, size, color, day, release])
    return rows


def edge_rows(seed: int = 0) -> list[list[str]]:
    draw = random.Random(seed)
    pairs = [(draw.randrange(N), draw.randrange(N)) for _ in range(8 * N)]
    return [[f"node-{u}", f"node-{v}"] for u, v in pairs if u % 3 == v % 3 or draw.random() < 0.1]


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path
