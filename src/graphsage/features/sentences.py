"""Texts through a sentence-transformers model that lies in a local folder. Nothing is fitted and nothing downloaded."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.errors import ConfigError
from graphsage.features.recipe import Columns, Floats, Rows, State, read_field, read_words, take
from graphsage.tables import values

_INSTALL = "sentence features need sentence-transformers; install it with: pip install 'graphsage[sentences]'"


@dataclass(frozen=True, kw_only=True)
class Sentences:
    path: str
    """Folder of the model; the bundle remembers it, so it must still be there when new rows come."""

    def fit(self, columns: Columns, rows: Rows) -> "FittedSentences":
        first = [values.texts(take(column, rows[:1]), name)[0] for name, column in columns.items()]
        return FittedSentences(self.path, tuple(columns), _encode(self.path, first).shape[1] * len(columns))


@dataclass(frozen=True)
class FittedSentences:
    """Each column is encoded by itself; the results lie side by side."""

    path: str
    columns: tuple[str, ...]
    width: int

    @property
    def kind(self) -> str:
        return "text (sentence-transformers)"

    def transform(self, columns: Columns) -> Floats:
        return np.concatenate([_encode(self.path, values.texts(columns[n], n)) for n in self.columns], axis=1)

    def state(self) -> State:
        return {"kind": "sentences", "path": self.path, "columns": list(self.columns), "width": self.width}, {}

    @staticmethod
    def from_state(config: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> "FittedSentences":
        return FittedSentences(
            read_field(config, "path", str), read_words(config, "columns"), read_field(config, "width", int)
        )


def _encode(path: str, texts: list[str]) -> Floats:
    if not Path(path).is_dir():
        raise ConfigError(
            f"{path} is not a folder; text_model must be the local folder of a sentence-transformers model"
        )
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise ConfigError(_INSTALL) from None
    model = SentenceTransformer(path, trust_remote_code=False, local_files_only=True)
    return np.asarray(model.encode(texts, show_progress_bar=False), dtype=np.float32)
