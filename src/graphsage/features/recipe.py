"""Recipes for features: a recipe is fitted on training rows, then applied to any rows."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from graphsage.errors import BundleError, ConfigError
from graphsage.tables.values import Column as Column

Columns = Mapping[str, Column]
Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Arrays = Mapping[str, npt.NDArray[Any]]
State = tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]
"""JSON values, one of them `kind`, and arrays."""
Settings = TypeVar("Settings")


class Fitted(Protocol):
    """A recipe with what it learned from the training rows. Immutable."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that `transform` reads."""

    @property
    def width(self) -> int: ...

    @property
    def kind(self) -> str:
        """For messages: 'number', 'text (TF-IDF)'."""

    def transform(self, columns: Columns) -> Floats:
        """Features (N, width) of any rows."""

    def state(self) -> State: ...


@dataclass(frozen=True)
class Saved:
    """A fitted recipe whose fields are its state. `saved` names it there."""

    saved: ClassVar[str]
    columns: tuple[str, ...]

    def state(self) -> State:
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return {"kind": self.saved, **values}, {}

    @classmethod
    def from_state(cls, config: Mapping[str, Any], arrays: Arrays) -> Self:
        """The fields from JSON values, checked by their types."""
        return cls(**{field.name: _read(config, field.name, field.type) for field in fields(cls)})


class Recipe(Protocol):
    """Settings; a frozen dataclass, so that its repr names what it does."""

    def fit(self, columns: Columns, rows: Rows) -> Fitted:
        """Learn from `rows` of all the columns given. Other rows are never read."""


def take(values: Column, rows: Rows) -> Column:
    """The chosen rows of a column."""
    return values[rows] if isinstance(values, np.ndarray) else [values[row] for row in rows.tolist()]


def read_field(config: Mapping[str, Any], name: str, kind: type | tuple[type, ...]) -> Any:
    """A value of a saved description, checked; a wrong one is a BundleError."""
    value = config.get(name)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise BundleError(f"the saved features' {name} is missing or damaged ({value!r}); train the model again")
    return value


def _read(config: Mapping[str, Any], name: str, kind: Any) -> Any:
    if kind == tuple[str, ...]:
        return read_words(config, name)
    return float(read_field(config, name, (int, float))) if kind is float else read_field(config, name, kind)


def read_settings(config: Mapping[str, Any], recipe: type[Settings]) -> Settings:
    """A recipe, which is a dataclass of numbers, from the `settings` of a saved description."""
    saved, known = read_field(config, "settings", dict), {field.name: field.type for field in fields(recipe)}  # type: ignore[arg-type]
    if set(saved) != set(known):
        raise BundleError(f"the saved features' settings must be {', '.join(known)}; train the model again")
    try:
        return recipe(**{name: _read(saved, name, kind) for name, kind in known.items()})
    except ConfigError as error:
        raise BundleError(f"the saved features' settings are wrong: {error}") from error


def read_words(config: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A list of different strings of a saved description."""
    words = read_field(config, name, list)
    if not all(isinstance(word, str) for word in words) or len(set(words)) != len(words):
        raise BundleError(f"the saved features' {name} must be different strings; train the model again")
    return tuple(words)


def read_array(arrays: Mapping[str, npt.NDArray[Any]], name: str, shape: tuple[int | None, ...]) -> Floats:
    """A float32 array of a saved state, checked; None in `shape` is any size."""
    if name not in arrays:
        raise BundleError(f"the saved features lack the array {name!r}; train the model again")
    array = np.asarray(arrays[name])
    fits = array.ndim == len(shape) and all(want in (None, got) for want, got in zip(shape, array.shape, strict=True))
    if not fits or array.dtype != np.float32:
        wanted = tuple("any" if size is None else size for size in shape)
        raise BundleError(f"the saved features' {name} must be float32 {wanted}; got {array.dtype} {array.shape}")
    if not np.isfinite(array).all():
        raise BundleError(f"the saved features' {name} hold NaN or infinity; train the model again")
    return array
