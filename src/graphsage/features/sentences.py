"""Text features by a sentence-transformers model in a local folder. Nothing is fitted or downloaded."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graphsage.errors import ConfigError, setting
from graphsage.features.recipe import Columns, Floats, Rows, Saved, take
from graphsage.tables import values

_INSTALL = "sentence features need sentence-transformers; install it with: pip install 'graphsage[sentences]'"


@dataclass(frozen=True, kw_only=True)
class Sentences:
    path: str
    """Folder of the model; the bundle remembers it, so it must still be there when new rows come."""

    def fit(self, columns: Columns, rows: Rows) -> "FittedSentences":
        first = [values.texts(take(column, rows[:1]), name)[0] for name, column in columns.items()]
        return FittedSentences(tuple(columns), self.path, _encode(self.path, first).shape[1] * len(columns))


@dataclass(frozen=True)
class FittedSentences(Saved):
    """Each column is encoded on its own; the results are concatenated."""

    saved = "sentences"
    path: str
    width: int

    @property
    def kind(self) -> str:
        return "text (sentence-transformers)"

    def transform(self, columns: Columns) -> Floats:
        return np.concatenate([_encode(self.path, values.texts(columns[n], n)) for n in self.columns], axis=1)


def _encode(path: str, texts: list[str]) -> Floats:
    if not Path(path).is_dir():
        raise ConfigError(
            f"{path} is not a folder; {setting('text_model')} must be the local folder of a sentence-transformers model"
        )
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise ConfigError(_INSTALL) from None
    model = SentenceTransformer(path, trust_remote_code=False, local_files_only=True)
    return np.asarray(model.encode(texts, show_progress_bar=False), dtype=np.float32)
