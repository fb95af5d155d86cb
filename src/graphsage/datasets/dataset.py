"""A data set: a graph, its named splits, and the raw text from which features are still to be computed."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from graphsage.datasets import cache
from graphsage.errors import DataError
from graphsage.features.text import FittedText, TfidfSvd
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split

SETTINGS = TfidfSvd()


@dataclass(frozen=True, eq=False)
class Dataset:
    """`texts` are columns of N raw texts, for a graph whose features are to be computed from them; `titles` are what
    a person calls each node. `default_split` is one of `splits`, or `random` or `time`, which need not be stored."""

    name: str
    graph: Graph
    splits: dict[str, Split]
    default_split: str
    texts: dict[str, Sequence[str]] | None = None
    titles: Sequence[str] | None = None

    def __post_init__(self) -> None:
        n = self.graph.num_nodes
        columns = {**(self.texts or {}), **({} if self.titles is None else {"titles": self.titles})}
        for column, values in columns.items():
            if len(values) != n:
                raise DataError(f"{self.name}: {column} has {len(values)} rows, but the graph has {n} nodes")
        for name, split in self.splits.items():
            if len(split.codes) != n:
                raise DataError(f"{self.name}: split {name} has {len(split.codes)} rows, but the graph has {n} nodes")

    def split(self, name: str | None = None) -> Split:
        """A split by name, the default one for None.

        Any graph can be split at `random` (70/10/20, seed 0) and, where nodes have a time, by `time` (the oldest 70%
        train, the newest 20% test), unless a stored split has that name.
        """
        name = self.default_split if name is None else name
        if name in self.splits:
            return self.splits[name]
        if name == "random":
            return Split.random(self.graph.num_nodes)
        if name == "time" and self.graph.time is not None:
            return Split.by_time(self.graph.time)
        raise DataError(f"{self.name} has no split {name!r}; there are {', '.join(self.split_names)}")

    @property
    def split_names(self) -> tuple[str, ...]:
        """Every name that `split` accepts, stored ones first."""
        computed = ["random", *(["time"] if self.graph.time is not None else [])]
        return tuple(dict.fromkeys([*self.splits, *computed]))

    def with_features(self, split: Split) -> tuple[Graph, FittedText | None]:
        """The graph with features, and the text recipe fitted on the training nodes of `split` if there was text.

        A graph that has features of its own, or no text either, is returned unchanged. The result is kept in the
        user's cache folder, or in the folder that GRAPHSAGE_CACHE names.
        """
        if self.graph.features is not None or not self.texts:
            return self.graph, None
        fitted, features = cache.text_features(self.texts, split.nodes("train").numpy(), SETTINGS)
        return self.graph.replace(features=torch.from_numpy(features)), fitted
