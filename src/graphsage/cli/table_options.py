"""Options for two tables and the roles of their columns, generated from TableSpec."""

from collections.abc import Callable, Collection
from typing import Any

from graphsage.cli.setting_options import with_settings
from graphsage.tables.spec import FEATURES, ID, SOURCE, TARGET, TEXT_METHODS, UNKNOWN_NODES, TableSpec

PANELS = {
    "Your tables": ("edges", "nodes", "id", "source", "target", "unknown_nodes", "directed", "delimiter"),
    "Columns": ("label", "label_separator", "multilabel", "text_method", "text_dim", "text_model", *FEATURES),
    "Splits of tables": (
        "time",
        "edge_time",
        "time_order",
        "split_column",
        "train_until",
        "val_until",
        "fractions",
        "split_seed",
    ),
}
COLUMNS = ("id", "source", "target", "label", "time", "edge_time", "split_column", *FEATURES)


def with_tables(only: Collection[str] | None = None) -> Callable[[Any], Any]:
    """Options for the fields of TableSpec, or for `only` some of them."""
    panels = {panel: [name for name in names if only is None or name in only] for panel, names in PANELS.items()}
    return with_settings(
        TableSpec,
        panels,
        choices={"unknown_nodes": UNKNOWN_NODES, "text_method": TEXT_METHODS},
        defaults={
            "id": ", ".join(ID),
            "source": ", ".join(SOURCE),
            "target": ", ".join(TARGET),
            "delimiter": ",",
            "text_dim": "256; word2vec 300",
        },
        metavars={
            "nodes": "FILE",
            "edges": "FILE",
            "text_model": "PATH",
            "delimiter": "CHARACTER",
            "train_until": "TIME",
            "label_separator": "CHARACTER",
            "val_until": "TIME",
            **dict.fromkeys(COLUMNS, "COLUMN"),
            "vectors": "COLUMN|FILE",
        },
        repeated=FEATURES,
    )
