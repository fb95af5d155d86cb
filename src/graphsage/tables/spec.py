"""The roles of the columns of two tables."""

import dataclasses
from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphsage.errors import ConfigError, DataError, one_of, setting
from graphsage.tables.messages import listed

if TYPE_CHECKING:  # it imports pyarrow, and `graphsage train --help` reads this module
    from graphsage.tables.source import Table

MERGED, BOTH = "merged", "both"
DIRECTIONS = (MERGED, "in", "out", BOTH)
"""How edges (from, to) are read. `both` makes two relations, in and out."""
UNKNOWN_NODES = ("error", "drop", "add")
LABEL_TYPES = ("class", "labels", "number")
TEXT_METHODS = ("tfidf", "word2vec", "vectors", "sentences")
ID = ("id", "node", "node_id", "name")
SOURCE, TARGET = ("source", "src", "from"), ("target", "dst", "to")
_NEEDS = {
    "label_separator": "label",
    "label_type": "label",
    "text_method": "text",
    "text_dim": "text",
    "text_model": "text",
}
EDGE_ROLES = ("edge_type", "edge_weight", "edge_time")
FEATURES = ("text", "numeric", "log_numeric", "categorical", "dates", "vectors")


@dataclass(frozen=True, kw_only=True)
class TableSpec:
    """Two tables and the roles of their columns. Columns that are not named are not used. `text` to `vectors` take
    names and patterns ('f*'); a pattern skips columns that have another role. From Python, a
    table may also be a data frame, an Arrow table or a dict of columns.

    Each field is an option of `graphsage train`: its docstring is the help text (cli/options.py).
    """

    edges: Any
    """Edge table, in the same formats as the node table."""
    nodes: Any = None
    """Node table: .csv, .tsv, .parquet, .feather, .arrow or .jsonl, also with .gz. Unset: the edges name the nodes."""
    id: str | None = None
    """Column of the node table with the ids."""
    source: str | None = None
    """Column of the edge table with the source ids."""
    target: str | None = None
    """Column of the edge table with the target ids."""
    label: str | None = None
    """Column of the classes, of sets of labels, or of numbers (several: with commas). A missing cell is unknown: not
    trained on and not scored."""
    label_separator: str = ";"
    """Character between the labels of a cell."""
    label_type: str | None = None
    """Read a label cell as one class, as a set of labels, or as a number to predict. Unset: number with the task
    regression, labels if most cells hold lists or separators, else class."""
    missing: tuple[str, ...] = ()
    """Word that means a missing cell, such as NA, in every column but ids. Empty cells always do. May be repeated."""
    text: tuple[str, ...] = ()
    """Column of text, or a pattern such as 'f*'. May be repeated, like all columns that become features."""
    text_method: str = "tfidf"
    """Turn text into features by tfidf, word2vec (trained here), vectors (pre-trained) or sentences."""
    text_dim: int | None = None
    """Width of the text vectors."""
    text_model: str | None = None
    """File of word vectors (vectors), or folder of a sentence-transformers model (sentences)."""
    numeric: tuple[str, ...] = ()
    """Column of numbers."""
    log_numeric: tuple[str, ...] = ()
    """Column of numbers with a heavy tail, of which logarithms are taken."""
    categorical: tuple[str, ...] = ()
    """Column of categories."""
    dates: tuple[str, ...] = ()
    """Column of ISO dates."""
    vectors: tuple[str, ...] = ()
    """Column of lists, or a .npy or sparse .npz file with one row per row of the node table."""
    time: str | None = None
    """Column with the time at which a node appeared."""
    edge_time: str | None = None
    """Column with the time at which an edge appeared."""
    edge_type: str | None = None
    """Column with the type of an edge. Each type is a relation, whose neighbors get weights of their own."""
    edge_weight: str | None = None
    """Column with the weight of an edge: a number from 0, which means that there is no edge."""
    time_order: tuple[str, ...] = ()
    """Values of the time columns from the oldest to the newest, if they are names."""
    split_column: str | None = None
    """Column that holds train, val or test. Nodes with an empty cell are in no part."""
    train_until: str | None = None
    """Last time of training, as written in the time column."""
    val_until: str | None = None
    """Last time of validation, as written in the time column."""
    fractions: tuple[float, ...] = (0.7, 0.1, 0.2)
    """Fractions of train, val and test in the splits random and time."""
    split_seed: int = 0
    """Seed of the split random."""
    unknown_nodes: str = "error"
    """Action on an edge to a node that the node table lacks: error, drop the edge, or add the node."""
    direction: str = "merged"
    """Which neighbors of a node it aggregates: those at both ends of its edges alike (merged), only nodes that point at
    it (in), only nodes that it points at (out), or in and out as two relations with weights of their own (both)."""
    delimiter: str | None = None
    """Field separator of CSV files."""
    directed: InitVar[bool | None] = None

    def __post_init__(self, directed: bool | None) -> None:
        from graphsage.tables.source import as_table

        if directed is not None:
            raise renamed_directed()
        for name in ("nodes", "edges"):
            given = getattr(self, name)
            if given is not None:
                table = str(given) if isinstance(given, str | Path) else as_table(given, name)
                object.__setattr__(self, name, table)
        for name in (*FEATURES, "time_order", "missing"):
            given = getattr(self, name)
            object.__setattr__(self, name, tuple(map(str, [given] if isinstance(given, str | Path) else given)))
        one_of("direction", self.direction, DIRECTIONS)
        one_of("unknown_nodes", self.unknown_nodes, UNKNOWN_NODES)
        one_of("label_type", self.label_type or LABEL_TYPES[0], LABEL_TYPES)
        one_of("text_method", self.text_method, TEXT_METHODS)
        if self.text_method in ("vectors", "sentences") and self.text_model is None and self.text:
            raise ConfigError(
                f"{setting('text_method', self.text_method)} needs {setting('text_model')}, "
                "the path of the vectors or the model"
            )
        if self.nodes is None and self.columns:
            raise ConfigError(
                f"a column is named ({self.columns[0]}), but there is no node table: give {setting('nodes')}"
            )
        if len(self.label_separator) != 1:
            raise ConfigError(f"{setting('label_separator')} must be one character; got {self.label_separator!r}")
        if len(set(self.time_order)) != len(self.time_order):
            raise ConfigError(f"{setting('time_order')} names a moment twice: {', '.join(self.time_order)}")
        if self.train_until is not None and self.time is None:
            raise ConfigError(
                f"{setting('train_until')} splits by time; give {setting('time')}, the column with each node's time"
            )
        if self.val_until is not None and self.train_until is None:
            raise ConfigError(f"{setting('val_until')} needs {setting('train_until')}: training ends before validation")
        for role, used in (*(("label", name) for name in self.label_columns), ("split column", self.split_column)):
            if used is not None and used in self.features:
                raise ConfigError(f"column {used!r} is the {role}; it cannot be a feature too")
        for name, of in _NEEDS.items():
            if getattr(self, name) != type(self).__dataclass_fields__[name].default and not getattr(self, of):
                raise ConfigError(f"{setting(name)} has no effect without {setting(of)}; name that column too")

    def without_effect(self) -> dict[str, str]:
        """Settings without effect, and what they apply to."""
        found: dict[str, str] = {}
        if self.text_method in ("tfidf", "word2vec"):
            found["text_model"] = f"to {setting('text_method', 'vectors')} or sentences"
        else:
            found["text_dim"] = f"to {setting('text_method', 'tfidf')} or word2vec"
        if self.time is None and self.edge_time is None:
            found["time_order"] = f"to {setting('time')} and {setting('edge_time')}"
        if self.nodes is None:
            found["unknown_nodes"] = f"to {setting('nodes')}, a node table"
        if not any(str(table).removesuffix(".gz").endswith((".csv", ".tsv")) for table in (self.nodes, self.edges)):
            found["delimiter"] = "to CSV files"
        return found

    @property
    def features(self) -> tuple[str, ...]:
        """Columns (or files, for vectors) that become features."""
        return tuple(name for _, name in self.features_by_role)

    @property
    def features_by_role(self) -> list[tuple[str, str]]:
        return [(role, name) for role in FEATURES for name in getattr(self, role)]

    @property
    def columns(self) -> tuple[str, ...]:
        """Everything of the node table that is named."""
        return (*self._single, *self.features)

    @property
    def _single(self) -> list[str]:
        single = (self.id, *self.label_columns, self.time, self.split_column)
        return [name for name in single if name is not None]

    @property
    def label_columns(self) -> tuple[str, ...]:
        """One column of classes or labels, or one or several of numbers."""
        if self.label is None or self.label_type != "number":
            return () if self.label is None else (self.label,)
        return tuple(dict.fromkeys(name.strip() for name in self.label.split(",")))

    @property
    def name(self) -> str:
        """The names of the tables."""
        return " + ".join(Path(str(table)).name for table in (self.nodes, self.edges) if table is not None)

    def for_nodes(self, nodes: "Table") -> "TableSpec":
        """The same with the id column named and patterns replaced by the columns of the node table that match."""
        id = guess(nodes, self.id, ID, "id")
        if id in self.features:
            raise ConfigError(f"column {id!r} of {nodes} is the id; it cannot be a feature too")
        named = {id, *self._single, *(name for name in self.features if name in nodes.names)}
        changes: dict[str, Any] = {role: matching(nodes, getattr(self, role), named) for role in FEATURES}
        return dataclasses.replace(self, id=id, **changes)

    def unused(self, nodes: "Table | None", edges: "Table", extra: Sequence[str] = ()) -> list[str]:
        """A sentence about the columns that have no role, if there are any."""
        used: dict[Table, tuple[str | None, ...]] = {edges: (*self.ends(edges), *self.edge_columns)}
        if nodes is not None:
            used = {nodes: (*self.columns, *extra)} | used
        left = {table: [name for name in table.names if name not in names] for table, names in used.items()}
        shown = [f"{table}: {listed(names)}" for table, names in left.items() if names]
        roles = [setting(role) for role in EDGE_ROLES if getattr(self, role) is None]
        hint = f" ({', '.join(roles)} read columns of edges)" if left[edges] and roles else ""
        return [f"columns that are not used: {'; '.join(shown)}{hint}"] if shown else []

    @property
    def edge_columns(self) -> tuple[str, ...]:
        """Columns of the edge table that are named, besides the ends."""
        return tuple(dict.fromkeys(name for role in EDGE_ROLES if (name := getattr(self, role)) is not None))

    def ends(self, edges: "Table") -> tuple[str, str]:
        """The names of the source and target columns."""
        source, target = guess(edges, self.source, SOURCE, "source"), guess(edges, self.target, TARGET, "target")
        if source == target:
            raise ConfigError(f"{edges}: source and target are the same column, {source!r}")
        return source, target

    def lasting(self) -> "TableSpec":
        """The same with absolute paths."""
        from graphsage.tables.source import IN_MEMORY

        changes: dict[str, Any] = {
            name: str(Path(path).absolute())
            for name in ("nodes", "edges", "text_model")
            if isinstance(path := getattr(self, name), str) and path != IN_MEMORY
        }
        changes["vectors"] = tuple(str(Path(v).absolute()) if is_vector_file(v) else v for v in self.vectors)
        return dataclasses.replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """Only what differs from the defaults; `from_dict` reads it back. Tables in memory are not saved."""
        from graphsage.tables.source import IN_MEMORY, Table

        found = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        changed = {f.name: found[f.name] for f in dataclasses.fields(self) if found[f.name] != f.default}
        return {name: IN_MEMORY if isinstance(value, Table) else value for name, value in changed.items()}

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "TableSpec":
        known = [field.name for field in dataclasses.fields(TableSpec)]
        if "directed" in values:
            raise renamed_directed()
        for name in values:
            if name not in known:
                raise ConfigError(f"there is no data setting {name!r}; settings are {', '.join(sorted(known))}")
        if values.get("edges") is None:
            raise ConfigError(f"a graph needs edges: give {setting('edges')}, the edge table")
        given: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}
        return TableSpec(**given)


def renamed_directed() -> ConfigError:
    """What to say of the setting that was replaced by `direction`."""
    return ConfigError(f"{setting('directed')} is now {setting('direction', 'in')}; write that instead")


def is_vector_file(name: str) -> bool:
    return name.endswith((".npy", ".npz"))


def guess(table: "Table", wanted: str | None, candidates: Sequence[str], what: str) -> str:
    """The column `wanted`, or the only one with an obvious name; case does not matter."""
    if wanted is not None:
        table.need([wanted])
        return wanted
    for candidate in candidates:
        found = [name for name in table.names if name.strip().lower() == candidate]
        if len(found) == 1:
            return found[0]
        if found:
            raise DataError(f"{table} has the columns {' and '.join(map(repr, found))}; say which is the {what}")
    raise DataError(
        f"{table} has no column called {' or '.join(candidates)}; say which is the {what} "
        f"(columns: {listed(table.names)})"
    )


def matching(table: "Table", wanted: Sequence[str], named: set[str]) -> tuple[str, ...]:
    """Column names as they are, and for a pattern the columns that match it and are not `named` for another role."""
    found: dict[str, None] = {}
    for name in wanted:
        if name in table.names or is_vector_file(name) or not any(sign in name for sign in "*?["):
            found[name] = None
            continue
        columns = [column for column in table.names if fnmatchcase(column, name) and column not in named]
        if not columns:
            raise DataError(f"{table} has no column that matches {name!r}; its columns are {listed(table.names)}")
        found |= dict.fromkeys(columns)
    return tuple(found)
