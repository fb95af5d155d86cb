"""What the columns of two tables mean: everything a person can say about them, checked once."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphsage.errors import ConfigError, one_of

UNKNOWN_NODES = ("error", "drop", "add")
TEXT_METHODS = ("tfidf", "word2vec", "vectors", "sentences")
ID = ("id", "node", "node_id", "name")
SOURCE, TARGET = ("source", "src", "from"), ("target", "dst", "to")
_FILES = ("nodes", "edges", "text_model")


@dataclass(frozen=True, kw_only=True)
class TableSpec:
    """Two files and the roles of their columns. Columns that are not named are not used."""

    edges: str
    nodes: str | None = None
    """Without a node table, the nodes are those that the edges name."""
    id: str | None = None
    source: str | None = None
    target: str | None = None
    """Column names; None takes the obvious one (id, node, node_id, name; source, src, from; target, dst, to)."""
    label: str | None = None
    label_separator: str = ";"
    multilabel: bool | None = None
    """Whether a node has many labels; None: if any cell is a list or contains the separator."""
    text: tuple[str, ...] = ()
    text_method: str = "tfidf"
    text_dim: int | None = None
    """None: 256 for tfidf, 300 for word2vec."""
    text_model: str | None = None
    """A file of word vectors (vectors), or the folder of a sentence-transformers model (sentences)."""
    numeric: tuple[str, ...] = ()
    log_numeric: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()
    """Columns of lists, or files (.npy, SciPy's sparse .npz) with a row for each row of the node table."""
    time: str | None = None
    edge_time: str | None = None
    time_order: tuple[str, ...] = ()
    """The values of the time columns from the oldest to the newest, where they are names."""
    split_column: str | None = None
    """A column that holds train, val or test; nodes with an empty cell are in no part."""
    train_until: str | None = None
    val_until: str | None = None
    """The last moments of training and of validation, as written in the time column; both are included."""
    fractions: tuple[float, ...] = (0.7, 0.1, 0.2)
    """Train, validation and test of the splits `random` and `time`."""
    split_seed: int = 0
    unknown_nodes: str = "error"
    """What to do with an edge whose end is not in the node table: error, drop the edge, or add the node."""
    directed: bool = False
    delimiter: str | None = None
    """Of CSV files; None: a comma, in .tsv files a tab."""

    def __post_init__(self) -> None:
        one_of("unknown_nodes", self.unknown_nodes, UNKNOWN_NODES)
        one_of("text_method", self.text_method, TEXT_METHODS)
        if self.text_method in ("vectors", "sentences") and self.text_model is None and self.text:
            raise ConfigError(f"text_method {self.text_method} needs text_model: where the vectors or the model are")
        if self.nodes is None and self.columns:
            raise ConfigError(f"a column is named ({self.columns[0]}), but there is no node table: set nodes")
        if len(self.label_separator) != 1:
            raise ConfigError(f"label_separator must be one character; got {self.label_separator!r}")
        if len(set(self.time_order)) != len(self.time_order):
            raise ConfigError(f"time_order names a moment twice: {', '.join(self.time_order)}")
        if self.train_until is not None and self.time is None:
            raise ConfigError("train_until splits by time: set time, the column with each node's moment")
        if self.val_until is not None and self.train_until is None:
            raise ConfigError("val_until needs train_until: training ends before validation")
        if self.label is not None and self.label in self.features:
            raise ConfigError(f"column {self.label!r} is the label; it cannot be a feature too")

    @property
    def features(self) -> tuple[str, ...]:
        """Columns (or files, for vectors) that become features."""
        return (*self.text, *self.numeric, *self.log_numeric, *self.categorical, *self.dates, *self.vectors)

    @property
    def columns(self) -> tuple[str, ...]:
        """Everything of the node table that is named."""
        named = (self.id, self.label, self.time, self.split_column)
        return (*(name for name in named if name is not None), *self.features)

    @property
    def name(self) -> str:
        """What people call the data: its files."""
        return " + ".join(Path(path).name for path in (self.nodes, self.edges) if path is not None)

    def lasting(self) -> "TableSpec":
        """The same with paths from the root, so that it can be opened from anywhere."""
        changes: dict[str, Any] = {
            name: str(Path(path).absolute()) for name in _FILES if (path := getattr(self, name)) is not None
        }
        changes["vectors"] = tuple(str(Path(v).absolute()) if is_vector_file(v) else v for v in self.vectors)
        return dataclasses.replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """Only what differs from the defaults; `from_dict` reads it back."""
        fields = dataclasses.fields(self)
        return {f.name: value for f in fields if (value := getattr(self, f.name)) != f.default}

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "TableSpec":
        known = [field.name for field in dataclasses.fields(TableSpec)]
        for name in values:
            if name not in known:
                raise ConfigError(f"there is no data setting {name!r}; settings are {', '.join(sorted(known))}")
        if values.get("edges") is None:
            raise ConfigError("a graph needs edges: give the edge table")
        given: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}
        return TableSpec(**given)


def is_vector_file(name: str) -> bool:
    return name.endswith((".npy", ".npz"))
