"""Columns of a node table larger than memory, written to the files of a graph folder a batch at a time."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphsage.datasets.table_cells import cells
from graphsage.datasets.table_splits import WORDS
from graphsage.errors import DataError
from graphsage.features import values
from graphsage.graph.external.row_file import Array, RowFile, RowWriter
from graphsage.graph.split import TRAIN

Given = ParamSpec("Given")
Made = TypeVar("Made")


class ColumnFile(Protocol):
    """Takes batches of a column in order, `start` rows after the first; `finish` completes the file."""

    def add(self, array: Any, start: int) -> None: ...

    def finish(self) -> None: ...

    def close(self) -> None:
        """Give up, where `finish` was not reached."""


class IdFile:
    """The ids: `ids.npy`, or `ids_text.npy` and `ids_offsets.npy` for strings."""

    def __init__(self, folder: Path, kind: Any) -> None:
        self.integers = bool(pa.types.is_integer(kind))
        self._end = 0
        if self.integers:
            self._files = [RowWriter(folder / "ids.npy", np.int64)]
        else:
            self._files = [
                RowWriter(folder / "ids_text.npy", np.uint8),
                RowWriter(folder / "ids_offsets.npy", np.int64),
            ]
            self._files[1].write(np.zeros(1, np.int64))

    def add(self, array: Any, start: int) -> None:
        if self.integers:
            self._files[0].write(array.to_numpy(zero_copy_only=False))
            return
        lengths = pc.binary_length(array).to_numpy(zero_copy_only=False).astype(np.int64)
        ends = self._end + np.cumsum(lengths)
        self._files[0].write(np.frombuffer("".join(array.to_pylist()).encode("utf-8"), np.uint8))
        self._files[1].write(ends)
        self._end = int(ends[-1]) if len(ends) else self._end

    def finish(self) -> None:
        for file in self._files:
            file.finish()

    def close(self) -> None:
        for file in self._files:
            file.close()


class VectorFile:
    """`features.npy` from columns of vectors and `.npy` files side by side."""

    def __init__(self, folder: Path, columns: tuple[str, ...], kind: str, place: str) -> None:
        self.columns, self.place, self.kind, self._path = columns, place, np.dtype(kind), folder / "features.npy"
        self._files = {name: RowFile(Path(name)) for name in columns if name.endswith(".npy")}
        self.widths: dict[str, int] = {}
        self._writer: RowWriter | None = None
        self._rows = 0

    def add(self, batch: dict[str, Any], start: int) -> None:
        count = len(next(iter(batch.values())))
        parts = [self._part(name, batch, start, count) for name in self.columns]
        joined = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        if self._writer is None:
            self._writer = RowWriter(self._path, self.kind, joined.shape[1:])
        with np.errstate(over="ignore"):
            stored = joined.astype(self.kind, copy=False)
        if self.kind == np.float16 and not np.isfinite(stored).all():
            row = start + int(np.flatnonzero(~np.isfinite(stored).all(axis=1))[0]) + 1
            raise DataError(f"{self.place} row {row} has a feature beyond float16; keep float32, or scale it")
        self._writer.write(stored)
        self._rows = start + count

    def _part(self, name: str, batch: dict[str, Any], start: int, count: int) -> Array:
        if name in self._files:
            file = self._files[name]
            if start + count > len(file):
                raise DataError(f"{name} has {len(file)} rows, but {self.place} has more; they must match")
            found, place = file.read(start, start + count), name
        else:
            found, place = matrix(batch[name]), self.place
        width = self.widths.get(name)
        if isinstance(found, np.ndarray) and found.ndim == 2 and width not in (None, found.shape[1]):
            raise DataError(
                f"{place} column {name!r} row {start + 1} has {found.shape[1]} numbers; {width} were expected"
            )
        part = counted(place, start, values.vectors, found, name, width)
        self.widths[name] = part.shape[1]
        return part

    def finish(self) -> None:
        for name, file in self._files.items():
            if len(file) != self._rows:
                raise DataError(f"{name} has {len(file)} rows, but {self.place} has {self._rows}; they must match")
        if self._writer is not None:
            self._writer.finish()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class ClassFile:
    """`labels.npy` of a column with one class a node; classes are numbered when all are known."""

    def __init__(self, folder: Path, name: str, place: str, separator: str) -> None:
        self.name, self.place, self.separator, self._folder = name, place, separator, folder
        self._codes: dict[str, int] = {"": 0}
        self._draft = RowWriter(folder / ".labels.npy", np.int64)

    def add(self, array: Any, start: int) -> None:
        if pa.types.is_nested(array.type):
            raise self._many(start)
        found = pc.dictionary_encode(array, null_encoding="encode")
        words = counted(self.place, start, values.categories, cells(found.dictionary), self.name)
        if any(self.separator in word for word in words):
            raise self._many(start)
        codes = np.array([self._codes.setdefault(word.strip(), len(self._codes)) for word in words], np.int64)
        self._draft.write(codes[found.indices.to_numpy(zero_copy_only=False)])

    def finish(self) -> None:
        self._draft.finish()
        if len(self._codes) == 1:
            raise DataError(f"{self.place} column {self.name!r} has no label in any row; choose another label, or none")
        classes = self.class_names
        number = {word: place for place, word in enumerate(classes)} | {"": -1}
        table = np.array([number[word] for word in self._codes], np.int64)
        draft = RowFile(self._folder / ".labels.npy")
        with RowWriter(self._folder / "labels.npy", np.int64) as file:
            for start in range(0, len(draft), 1 << 20):
                file.write(table[draft.read(start, min(start + (1 << 20), len(draft)))])
        draft.path.unlink()

    def close(self) -> None:
        self._draft.close()

    @property
    def class_names(self) -> list[str]:
        return sorted(self._codes.keys() - {""})

    def _many(self, start: int) -> DataError:
        return DataError(f"{self.place} column {self.name!r} has many labels in a cell after row {start}; graphs "
                         "larger than memory have one class a node")  # fmt: skip


class SplitFile:
    """`split-given.npy` of a column that says train, val or test."""

    def __init__(self, folder: Path, name: str, place: str) -> None:
        self.name, self.place, self.trains = name, place, False
        self._file = RowWriter(folder / "split-given.npy", np.uint8)

    def add(self, array: Any, start: int) -> None:
        found = pc.dictionary_encode(array, null_encoding="encode")
        codes = []
        for place, value in enumerate(found.dictionary.to_pylist()):
            word = "" if value is None or value != value else str(value).strip().lower()
            if word not in WORDS:
                row = start + pc.index(found.indices, place).as_py() + 1
                raise DataError(f"{self.place} column {self.name!r} row {row} is {values.shown(value)}; a split column "
                                "holds train, val and test")  # fmt: skip
            codes.append(WORDS[word])
        self.trains |= TRAIN in codes
        self._file.write(np.array(codes, np.uint8)[found.indices.to_numpy(zero_copy_only=False)])

    def finish(self) -> None:
        self._file.finish()
        if not self.trains:
            raise DataError(f"{self.place} column {self.name!r} puts no row into train")

    def close(self) -> None:
        self._file.close()


def matrix(array: Any) -> Any:
    """Lists of one length as a matrix without touching single cells; anything else as plain values."""
    kind = array.type
    if (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and array.null_count == 0 and len(array):
        lengths = pc.list_value_length(array)
        width = lengths[0].as_py()
        flat = array.flatten()
        number = pa.types.is_floating(flat.type) or pa.types.is_integer(flat.type)
        if width and number and flat.null_count == 0 and pc.all(pc.equal(lengths, width)).as_py():
            return flat.to_numpy(zero_copy_only=False).reshape(len(array), width)
    return cells(array)


def counted(place: str, start: int, make: Callable[Given, Made], *given: Given.args, **named: Given.kwargs) -> Made:
    """What `make` returns; an error about a row of a batch gets the file's name, and the row's number in the file."""
    try:
        return make(*given, **named)
    except DataError as error:
        moved = re.sub(r"\brow (\d+)", lambda found: f"row {int(found[1]) + start}", str(error), count=1)
        raise DataError(f"{place} {moved}") from error
