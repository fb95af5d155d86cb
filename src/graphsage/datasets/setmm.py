"""The built-in data set: Metamath's set.mm, the dated citation graph of 27,222 theorems in 20 parts of mathematics.

A theorem cites the axioms, definitions and theorems that its proof uses; its class is the part of the book that it
stands in. The users' mathboxes are left out: there the part says who wrote a theorem, not what it is about.
"""

import io
import lzma
from collections.abc import Sequence
from datetime import date
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from graphsage.atomic import atomic_file
from graphsage.datasets.dataset import Dataset, text_plan
from graphsage.datasets.metamath import Assertion, parse_metamath
from graphsage.errors import DataError
from graphsage.graph.build import from_edges
from graphsage.graph.split import Split

NODES = "setmm_nodes.tsv.xz"
EDGES = "setmm_edges.npy.xz"
COLUMNS = ("id", "date", "part", "section", "comment", "formula")
_LEFT_OUT = "SUPPLEMENTARY MATERIAL (USER'S MATHBOXES)"
_MAX_BYTES = 1 << 28  # unpacked; set.mm itself has 41 MB
_EPOCH = date(1970, 1, 1).toordinal()


def load_setmm(folder: Path | None = None) -> Dataset:
    """The embedded data, or what `build_setmm` wrote into `folder`.

    Undirected; `time` is the day of contribution, counted from 1970-01-01. Splits: `random` (70/10/20, the default)
    and `date` (the oldest 70% train, the newest 20% test).
    """
    place: Traversable = files("graphsage.datasets") / "files" if folder is None else folder
    columns = _read_nodes(place / NODES)
    ids = columns["id"]
    names = tuple(dict.fromkeys(columns["part"]))  # in the order of the book
    number = {name: i for i, name in enumerate(names)}
    graph = from_edges(
        _read_edges(place / EDGES),
        len(ids),
        labels=np.array([number[name] for name in columns["part"]], np.int64),
        class_names=names,
        ids=ids,
        time=_days(columns["date"], place / NODES),
    )
    assert graph.time is not None
    return Dataset(
        "setmm",
        graph,
        {"random": Split.random(len(ids)), "date": Split.by_time(graph.time)},
        "random",
        columns={"comment": columns["comment"], "formula": columns["formula"]},
        plan=text_plan("comment", "formula"),
    )


def build_setmm(source: Path, out: Path) -> None:
    """Write the two files of the data set into the folder `out`, from the text of set.mm.

    Debian's package metamath-databases has it as /usr/share/metamath/databases/set.mm. Assertions without a date are
    left out, with the edges that touch them.
    """
    try:
        text = Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{source} cannot be read as a Metamath database ({error})") from error
    nodes = [a for a in parse_metamath(text) if a.day is not None and a.part and a.part != _LEFT_OUT]
    if not nodes:
        raise DataError(f"{source} holds no dated theorem below a #### heading; is it Metamath's set.mm?")
    _write(Path(out) / NODES, _node_table(nodes))
    buffer = io.BytesIO()
    np.save(buffer, _pack(_edges(nodes)))
    _write(Path(out) / EDGES, buffer.getvalue())


def _node_table(nodes: Sequence[Assertion]) -> bytes:
    lines = ["\t".join(COLUMNS)]
    for node in nodes:
        assert node.day is not None
        day = date.fromordinal(node.day + _EPOCH).isoformat()
        lines.append("\t".join((node.label, day, node.part, node.section, node.comment, node.formula)))
    return ("\n".join(lines) + "\n").encode()


def _edges(nodes: Sequence[Assertion]) -> npt.NDArray[np.int64]:
    """(citing, cited) rows, sorted, each pair once."""
    row_of = {node.label: row for row, node in enumerate(nodes)}
    pairs = {(row, row_of[label]) for row, node in enumerate(nodes) for label in node.cites if label in row_of}
    return np.array(sorted(pairs), np.int64).reshape(-1, 2)


def _pack(edges: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Sorted pairs (2, E) as differences: of citing rows, and of cited rows per citing row. These compress well."""
    citing, cited = edges.T
    steps = np.diff(edges.T, axis=1, prepend=0)
    first = np.diff(citing, prepend=-1) != 0
    steps[1, first] = cited[first]
    return steps.astype(np.int32)


def _unpack(steps: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    citing, total = np.cumsum(steps, axis=1, dtype=np.int64)
    first = np.diff(citing, prepend=-1) != 0
    before = (total - steps[1])[first]  # what each citing row must not count
    cited = total - before[np.cumsum(first) - 1] if len(total) else total
    return np.stack([citing, cited], axis=1)


def _read_nodes(path: Traversable) -> dict[str, list[str]]:
    header, *lines = _unpacked(path).decode("utf-8", "replace").removesuffix("\n").split("\n")
    if tuple(header.split("\t")) != COLUMNS or not lines:
        raise DataError(f"{path} must begin with the columns {', '.join(COLUMNS)}, and have rows; build it again")
    rows = [line.split("\t") for line in lines]
    for number, row in enumerate(rows):
        if len(row) != len(COLUMNS):
            raise DataError(f"{path} row {number} has {len(row)} columns, not {len(COLUMNS)}; build it again")
    return {name: list(column) for name, column in zip(COLUMNS, zip(*rows, strict=True), strict=True)}


def _read_edges(path: Traversable) -> npt.NDArray[np.int64]:
    try:
        steps = np.load(io.BytesIO(_unpacked(path)), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DataError(f"{path} does not hold a .npy array ({error}); build it again") from error
    if steps.dtype != np.int32 or steps.ndim != 2 or len(steps) != 2:
        raise DataError(f"{path} must hold int32 steps of shape (2, edges); got {steps.dtype} {steps.shape}")
    return _unpack(steps)


def _days(dates: Sequence[str], path: Traversable) -> npt.NDArray[np.int64]:
    try:
        return np.array([date.fromisoformat(day).toordinal() - _EPOCH for day in dates], np.int64)
    except ValueError as error:
        raise DataError(f"{path} has a date that is none ({error}); build it again") from error


def _write(path: Path, content: bytes) -> None:
    with atomic_file(path) as temporary:
        temporary.write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))


def _unpacked(path: Traversable) -> bytes:
    """The content of an .xz file, at most _MAX_BYTES of it."""
    try:
        unpacker = lzma.LZMADecompressor(memlimit=1 << 28)
        content = unpacker.decompress(path.read_bytes(), max_length=_MAX_BYTES)
    except FileNotFoundError:
        raise DataError(f"{path} does not exist; build it with `graphsage data build setmm`") from None
    except (lzma.LZMAError, OSError) as error:
        raise DataError(f"{path} cannot be unpacked ({error}); build it again") from error
    if not unpacker.eof:
        raise DataError(f"{path} is cut short or larger than {_MAX_BYTES} bytes; build it again")
    return content
