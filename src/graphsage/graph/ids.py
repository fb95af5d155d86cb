"""The names nodes have outside: strings or integers, one for each row."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from graphsage.errors import GraphError

_DIGITS = 20  # characters of the longest 64-bit integer
IntArray = npt.NDArray[np.int64]


def node_key(id: str) -> int:
    """The number that stands for an id in random draws: the integer that it spells, or 64 bits of a hash.

    It depends on nothing but the id, so reordering or extending a graph changes no draw. An integer id and its text
    have the same key.
    """
    text = id.encode("utf-8", "surrogatepass")
    if text[:1] <= b"9" and len(text) <= _DIGITS and text.removeprefix(b"-").isdigit():
        number = int(text)
        if str(number) == id and -(1 << 63) <= number < 1 << 63:
            return number
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little", signed=True)


class NodeIds:
    """Outside ids of the rows of a graph. Strings are kept as UTF-8 bytes + offsets, so that they can be mapped."""

    def __init__(
        self,
        integers: npt.NDArray[np.int64] | None,
        text: npt.NDArray[np.uint8] | None = None,
        offsets: npt.NDArray[np.int64] | None = None,
    ) -> None:
        self._integers, self._text, self._offsets = integers, text, offsets

    @classmethod
    def of(cls, ids: "Iterable[str] | Iterable[int] | npt.NDArray[np.generic] | NodeIds") -> "NodeIds":
        """Ids from a list or array; all strings or all integers, no two alike."""
        if isinstance(ids, NodeIds):
            return ids
        if isinstance(ids, np.ndarray) and ids.dtype.kind in "iu":
            if ids.dtype == np.uint64 and len(ids) and ids.max() > np.iinfo(np.int64).max:
                raise GraphError(f"integer ids must fit in 64 signed bits; got {ids.max()}; pass them as strings")
            made = cls(np.ascontiguousarray(ids, dtype=np.int64))
            distinct = len(np.unique(ids))
        else:
            values = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
            made = cls._of_list(values)
            distinct = len(set(values))
        if distinct < len(made):
            made._refuse_duplicates()
        return made

    @classmethod
    def _of_list(cls, values: list[object]) -> "NodeIds":
        if all(isinstance(v, int | np.integer) and not isinstance(v, bool) for v in values):
            try:
                return cls(np.array(values, dtype=np.int64))
            except OverflowError:
                raise GraphError("integer ids must fit in 64 signed bits; pass larger ones as strings") from None
        for row, value in enumerate(values):
            if not isinstance(value, str):
                raise GraphError(f"ids must be all strings or all integers; row {row} is {value!r}")
        encoded = [str(v).encode("utf-8", "surrogatepass") for v in values]
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(e) for e in encoded], out=offsets[1:])
        return cls(None, np.frombuffer(b"".join(encoded), np.uint8), offsets)

    def _refuse_duplicates(self) -> None:
        seen: set[str | int] = set()
        for row, value in enumerate(self):
            if value in seen:
                raise GraphError(f"ids must differ; row {row} repeats {value!r}")
            seen.add(value)

    @property
    def are_integers(self) -> bool:
        return self._integers is not None

    def __len__(self) -> int:
        if self._integers is not None:
            return len(self._integers)
        assert self._offsets is not None
        return len(self._offsets) - 1

    def __getitem__(self, row: int) -> str | int:
        if self._integers is not None:
            return int(self._integers[row])
        assert self._offsets is not None
        assert self._text is not None
        if row < 0:
            row += len(self)
        return self._text[self._offsets[row] : self._offsets[row + 1]].tobytes().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str | int]:
        return (self[row] for row in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeIds) and len(self) == len(other) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def _row_of(self) -> dict[str | int, int]:
        return {value: row for row, value in enumerate(self)}

    def rows(self, ids: Iterable[str | int]) -> npt.NDArray[np.int64]:
        """The row of each outside id; an unknown one is an error that names it. Text digits find integer ids."""
        rows = []
        for value in ids:
            known: str | int = value
            if self.are_integers and isinstance(value, str):
                with suppress(ValueError):
                    known = int(value)
            row = self._row_of.get(known)
            if row is None:
                raise GraphError(
                    f"unknown node id {value!r}; the graph has {len(self)} nodes, the first is {self[0]!r}"
                    if len(self)
                    else f"unknown node id {value!r}; the graph has no nodes"
                )
            rows.append(row)
        return np.array(rows, np.int64)

    def followed_by(self, ids: Sequence[str] | Sequence[int]) -> "NodeIds":
        """These ids and then `ids`, for a graph that grew."""
        return NodeIds.of([*self, *ids])

    @cached_property
    def keys(self) -> IntArray:
        """`node_key` of each id, (N,)."""
        if self._integers is not None:
            return self._integers
        return np.fromiter((node_key(str(id)) for id in self), np.int64, len(self))

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """The arrays that hold the ids, by file name; `from_arrays` reads them back."""
        if self._integers is not None:
            return {"ids": self._integers}
        assert self._text is not None
        assert self._offsets is not None
        return {"ids_text": self._text, "ids_offsets": self._offsets}

    @property
    def is_whole(self) -> bool:
        """Whether the offsets end where the text does: arrays read back from files may be of different makes."""
        if self._offsets is None or self._text is None:
            return self._integers is not None
        return len(self._offsets) > 0 and int(self._offsets[0]) == 0 and int(self._offsets[-1]) == len(self._text)

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[np.generic]]) -> "NodeIds | None":
        if "ids" in arrays:
            return cls(arrays["ids"].view(np.int64))
        if "ids_text" in arrays and "ids_offsets" in arrays:
            return cls(None, arrays["ids_text"].view(np.uint8), arrays["ids_offsets"].view(np.int64))
        return None
