"""Options of `graphsage train` that say what the columns of two tables mean."""

from typing import Annotated, Any

import typer

from graphsage.errors import ConfigError

TABLES, COLUMNS, SPLITS = "Your tables", "Columns", "Splits of tables"


def _option(flag: str, help: str, panel: str, metavar: str | None = None, default: str | bool = False) -> Any:
    return typer.Option(flag, help=help, rich_help_panel=panel, metavar=metavar, show_default=default)


NodeTable = Annotated[
    str | None,
    _option("--nodes", "Node table: .csv, .tsv, .parquet, .feather, .arrow or .jsonl, also with .gz.", TABLES, "FILE"),
]
EdgeTable = Annotated[str | None, _option("--edges", "Edge table, in the same formats.", TABLES, "FILE")]
Id = Annotated[str | None, _option("--id", "Column of the nodes' ids.", TABLES, "COLUMN", "id, node, node_id, name")]
Source = Annotated[str | None, _option("--source", "Column of the edges.", TABLES, "COLUMN", "source, src, from")]
Target = Annotated[str | None, _option("--target", "Column of the edges.", TABLES, "COLUMN", "target, dst, to")]
Directed = Annotated[bool | None, _option("--directed", "Aggregate in-neighbors only.", TABLES)]
UnknownNodes = Annotated[
    str | None,
    _option("--unknown-nodes", "Edges to nodes that the node table lacks.", TABLES, "error|drop|add", "error"),
]
Delimiter = Annotated[str | None, _option("--delimiter", "Field separator of CSV files.", TABLES, "CHARACTER", ",")]
Label = Annotated[
    str | None, _option("--label", "Column of the classes; cells with ; or lists are many labels.", COLUMNS, "COLUMN")
]
Text = Annotated[
    list[str] | None,
    _option("--text", "Column of text, or a pattern such as 'f*'. May be repeated, as those below.", COLUMNS, "COLUMN"),
]
TextMethod = Annotated[
    str | None,
    _option(
        "--text-method", "tfidf, word2vec (trained here), vectors (pre-trained) or sentences.", COLUMNS, "NAME", "tfidf"
    ),
]
TextModel = Annotated[
    str | None,
    _option("--text-model", "File of word vectors, or folder of a sentence-transformers model.", COLUMNS, "PATH"),
]
TextDim = Annotated[
    int | None, _option("--text-dim", "Numbers that text becomes.", COLUMNS, default="256; word2vec 300")
]
Number = Annotated[list[str] | None, _option("--numeric", "Column of numbers.", COLUMNS, "COLUMN")]
LogNumber = Annotated[
    list[str] | None,
    _option("--log-numeric", "Column of numbers with a heavy tail, taken as logarithms.", COLUMNS, "COLUMN"),
]
Category = Annotated[list[str] | None, _option("--categorical", "Column of categories.", COLUMNS, "COLUMN")]
Day = Annotated[list[str] | None, _option("--date", "Column of ISO dates.", COLUMNS, "COLUMN")]
Vector = Annotated[
    list[str] | None,
    _option(
        "--vectors", "Column of lists, or a .npy or sparse .npz file with a row for each node.", COLUMNS, "COLUMN|FILE"
    ),
]
Time = Annotated[str | None, _option("--time", "Column that says when a node appeared.", SPLITS, "COLUMN")]
EdgeTime = Annotated[str | None, _option("--edge-time", "The same of the edges.", SPLITS, "COLUMN")]
TimeOrder = Annotated[
    str | None,
    _option("--time-order", "Values of the time columns from old to new, if they are names.", SPLITS, "A,B,..."),
]
TrainUntil = Annotated[str | None, _option("--train-until", "Last moment of training.", SPLITS, "TIME")]
ValUntil = Annotated[str | None, _option("--val-until", "Last moment of validation.", SPLITS, "TIME")]
SplitColumn = Annotated[str | None, _option("--split-column", "Column of train, val and test.", SPLITS, "COLUMN")]
Fractions = Annotated[str | None, _option("--fractions", "Shares of train, val and test.", SPLITS, "A,B,C",
                                          "0.7,0.1,0.2")]  # fmt: skip


def table_values(time_order: str | None, fractions: str | None, **flags: Any) -> dict[str, Any]:
    """Settings of the tables by TableSpec's names, only those that were given."""
    values = {name: tuple(v) if isinstance(v, list) else v for name, v in flags.items() if v is not None and v != []}
    if time_order is not None:
        values["time_order"] = tuple(part.strip() for part in time_order.split(","))
    if fractions is not None:
        try:
            values["fractions"] = tuple(float(part) for part in fractions.split(","))
        except ValueError:
            raise ConfigError(f"--fractions must be three numbers, such as 0.7,0.1,0.2; got {fractions!r}") from None
    return values
