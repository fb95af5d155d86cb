"""A data set: a graph, its named splits, and the columns from which features are still to be computed."""

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from graphsage.datasets import cache
from graphsage.errors import DataError
from graphsage.features.pipeline import FeaturePlan, FittedFeatures, Step
from graphsage.features.recipe import Column
from graphsage.features.text import TfidfSvd
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split
from graphsage.tables.messages import Place


def text_plan(*columns: str) -> FeaturePlan:
    """The default way of text: TF-IDF and a truncated SVD over all columns together."""
    return FeaturePlan((Step(TfidfSvd(), columns),))


LINK_SPLIT = "links"
"""The name of the split of nodes if links and no nodes are held out."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """`columns` become features by `plan` if the graph has none. `default_split` may also be `random` or `time`."""

    name: str
    graph: Graph
    splits: dict[str, Split]
    default_split: str
    columns: dict[str, Column] = field(default_factory=dict)
    plan: FeaturePlan | None = None
    dropped_edges: int = 0
    """Edges that were left out because one of their ends is not a node."""
    about: dict[str, Any] = field(default_factory=dict)
    """How to open it again; a model that is trained on it remembers this."""
    place: Place | None = None
    """The table that the columns come from, for messages."""
    fitted: FittedFeatures | None = None
    """What the graph's features were made by, where they were made from columns."""
    _made: list[tuple[Split, Graph, FittedFeatures]] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        n = self.graph.num_nodes
        for column, values in self.columns.items():
            if len(values) != n:
                raise DataError(f"{self.name}: {column} has {len(values)} rows, but the graph has {n} nodes")
        for name, split in self.splits.items():
            if len(split.codes) != n:
                raise DataError(f"{self.name}: split {name} has {len(split.codes)} rows, but the graph has {n} nodes")

    def split(self, name: str | None = None) -> Split:
        """A split by name, the default one for None.

        Any graph can be split at `random` (70/10/20, seed 0) and, if nodes have a time, by `time` (the oldest 70%
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

    def with_all_nodes(self) -> "Dataset":
        """With the split LINK_SPLIT, in which every node is known, as its default."""
        if LINK_SPLIT in self.splits:
            return self
        everyone = Split(torch.zeros(self.graph.num_nodes, dtype=torch.uint8))
        return replace(self, splits={**self.splits, LINK_SPLIT: everyone}, default_split=LINK_SPLIT)

    def with_features(self, split: Split) -> tuple[Graph, FittedFeatures | None]:
        """The graph with features, and the plan fitted on the training nodes of `split` if there was one.

        A graph that has features of its own, or no plan either, is returned unchanged. What takes long is kept in the
        user's cache folder, or in the folder that GRAPHSAGE_CACHE names.
        """
        if self.graph.features is not None or self.plan is None:
            return self.graph, self.fitted
        if not self._made or self._made[0][0] is not split:
            fitted, features = self._fit(self.plan, split)
            self._made[:] = [(split, self.graph.replace(features=torch.from_numpy(features)), fitted)]
        return self._made[0][1:]

    def _fit(self, plan: FeaturePlan, split: Split) -> tuple[FittedFeatures, Any]:
        with nullcontext() if self.place is None else self.place.naming():
            return plan.fit(self.columns, split.nodes("train").numpy(), cache.fit_one)
