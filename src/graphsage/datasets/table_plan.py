"""From the roles of columns to the recipes that make features of them."""

from pathlib import Path
from typing import Any

from graphsage.datasets.table_spec import TableSpec, is_vector_file
from graphsage.features import values
from graphsage.features.categorical import Categorical
from graphsage.features.dates import Dates
from graphsage.features.numeric import Numeric
from graphsage.features.pipeline import FeaturePlan, Step
from graphsage.features.ready import Ready
from graphsage.features.recipe import Column, Recipe
from graphsage.features.sentences import Sentences
from graphsage.features.text import TfidfSvd
from graphsage.features.word2vec import Word2Vec
from graphsage.features.word_vectors import WordVectors

_READ: dict[str, Any] = {
    "text": values.texts,
    "numeric": values.numbers,
    "categorical": values.categories,
    "dates": values.days,
    "vectors": values.vectors,
}


def read_feature(kind: str, column: Column, name: str) -> Column:
    """The column as its recipe wants it; a cell that cannot be read so is an error with its row."""
    found: Column = _READ[kind](column, name)
    return found


def feature_plan(spec: TableSpec) -> FeaturePlan | None:
    """None where no column becomes a feature."""
    steps = [Step(_text(spec), spec.text)] if spec.text else []
    steps += [Step(Numeric(), (name,)) for name in spec.numeric]
    steps += [Step(Numeric(log=True), (name,)) for name in spec.log_numeric]
    steps += [Step(Categorical(), (name,)) for name in spec.categorical]
    steps += [Step(Dates(), (name,)) for name in spec.dates]
    steps += [Step(Ready(), (Path(name).stem if is_vector_file(name) else name,)) for name in spec.vectors]
    return FeaturePlan(tuple(steps)) if steps else None


def _text(spec: TableSpec) -> Recipe:
    model = spec.text_model or ""
    if spec.text_method == "vectors":
        return WordVectors(path=model)
    if spec.text_method == "sentences":
        return Sentences(path=model)
    if spec.text_method == "word2vec":
        return Word2Vec() if spec.text_dim is None else Word2Vec(dim=spec.text_dim)
    return TfidfSvd() if spec.text_dim is None else TfidfSvd(dim=spec.text_dim)
