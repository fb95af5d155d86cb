"""Columns of a table -> x_v: a plan of recipes, fitted on the training rows, saved with the model, used on new rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphsage.errors import BundleError, DataError
from graphsage.features.columns import FittedCategorical, FittedDates, FittedNumeric, FittedReady
from graphsage.features.recipe import Arrays, Columns, Fitted, Floats, Recipe, Rows, State, read_field
from graphsage.features.sentences import FittedSentences
from graphsage.features.text import FittedText
from graphsage.features.word_vectors import FittedWord2Vec, FittedWordVectors

_FITTED: dict[str, Callable[[Mapping[str, Any], Arrays], Fitted]] = {
    "categorical": FittedCategorical.from_state,
    "dates": FittedDates.from_state,
    "numeric": FittedNumeric.from_state,
    "ready": FittedReady.from_state,
    "sentences": FittedSentences.from_state,
    "tfidf-svd": FittedText.from_state,
    "word-vectors": FittedWordVectors.from_state,
    "word2vec": FittedWord2Vec.from_state,
}

FitOne = Callable[[Recipe, Columns, Rows], tuple[Fitted, Floats]]
"""Fits a recipe on rows and returns it with the features of all rows, possibly from a cache."""


def restore(config: Any, arrays: Arrays) -> Fitted:
    """One fitted recipe from its state."""
    kind = config.get("kind") if isinstance(config, Mapping) else None
    if not isinstance(kind, str) or kind not in _FITTED:
        raise BundleError(f"there are no features of kind {kind!r}; the model is damaged or from a later version")
    return _FITTED[kind](config, arrays)


def fit_one(recipe: Recipe, columns: Columns, rows: Rows) -> tuple[Fitted, Floats]:
    fitted = recipe.fit(columns, rows)
    return fitted, fitted.transform(columns)


@dataclass(frozen=True)
class Step:
    recipe: Recipe
    columns: tuple[str, ...]


@dataclass(frozen=True)
class FeaturePlan:
    """Which columns become features, and how."""

    steps: tuple[Step, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for step in self.steps for name in step.columns))

    def fit(self, columns: Columns, rows: Rows, fit_one: FitOne = fit_one) -> tuple["FittedFeatures", Floats]:
        """The plan fitted on `rows`, and the features (N, D) of all rows."""
        if len(rows) == 0:
            raise DataError("features need at least one training row; got none")
        _check(columns, self.columns)
        made = [fit_one(step.recipe, {n: columns[n] for n in step.columns}, rows) for step in self.steps]
        return FittedFeatures(tuple(fitted for fitted, _ in made)), _concatenated([features for _, features in made])


@dataclass(frozen=True)
class FittedFeatures:
    """Fitted recipes. Their features are concatenated in this order."""

    steps: tuple[Fitted, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that `transform` needs."""
        return tuple(dict.fromkeys(name for step in self.steps for name in step.columns))

    @property
    def width(self) -> int:
        return sum(step.width for step in self.steps)

    def transform(self, columns: Columns) -> Floats:
        """Features (N, width) float32 of any rows; other columns are ignored."""
        _check(columns, self.columns)
        return _concatenated([step.transform({n: columns[n] for n in step.columns}) for step in self.steps])

    def describe(self) -> list[dict[str, Any]]:
        """What the columns became: `columns`, `kind` and `width`, in the order of the features."""
        return [{"columns": list(step.columns), "kind": step.kind, "width": step.width} for step in self.steps]

    def state(self) -> State:
        """Everything learned, as JSON values and arrays, without pickle."""
        states = [step.state() for step in self.steps]
        arrays = {f"{i}.{name}": array for i, (_, held) in enumerate(states) for name, array in held.items()}
        return {"kind": "features", "steps": [config for config, _ in states]}, arrays

    @staticmethod
    def from_state(config: Any, arrays: Arrays) -> "FittedFeatures":
        """Rebuild from `state`; anything missing or inconsistent is a BundleError that names it."""
        if not isinstance(config, Mapping) or config.get("kind") != "features":
            raise BundleError("the saved features' description must be of kind 'features'; train the model again")
        steps = []
        for i, saved in enumerate(read_field(config, "steps", list)):
            prefix = f"{i}."
            steps.append(restore(saved, {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}))
        return FittedFeatures(tuple(steps))


def _check(columns: Columns, needed: Sequence[str]) -> None:
    missing = [name for name in needed if name not in columns]
    if missing:
        raise DataError(
            f"the features need the {'columns' if len(missing) > 1 else 'column'} {', '.join(map(repr, missing))}; "
            f"there are {', '.join(map(repr, columns)) or 'none'}"
        )
    lengths = {name: len(columns[name]) for name in needed}
    if len(set(lengths.values())) > 1:
        raise DataError(f"columns must have the same number of rows; got {lengths}")


def _concatenated(parts: Sequence[Floats]) -> Floats:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
