"""The data a model was trained on, opened again from what the bundle says about it."""

from typing import Any

from graphsage.datasets.dataset import Dataset
from graphsage.datasets.open import open_data
from graphsage.datasets.tables import open_tables
from graphsage.errors import ConfigError
from graphsage.tables.spec import TableSpec


def table_spec(about: dict[str, Any]) -> TableSpec | None:
    """What the columns of the training tables mean; None if the model was not trained on tables."""
    tables = about.get("tables")
    return TableSpec.from_dict(tables) if isinstance(tables, dict) else None


def open_own(about: dict[str, Any]) -> Dataset:
    """The data set that `Model.about` names."""
    spec = table_spec(about)
    if spec is not None:
        return open_tables(spec)
    name = about.get("data")
    if not isinstance(name, str):
        raise ConfigError("the model does not say what it was trained on; give the graph")
    return open_data(name)
