"""Who is seen in training: splits by mask, at random, by time or by graph, and the training graph they leave."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphsage.errors import DataError, setting, written
from graphsage.graph.graph import OF_EDGES, Graph
from graphsage.kernels.random import Stream

TRAIN, VAL, TEST, NONE = 0, 1, 2, 3
PARTS = {"train": TRAIN, "val": VAL, "test": TEST}
CUT_EDGE_BYTES = 20  # peak memory per stored edge of `training_graph`, measured
VALIDATION = 0.3  # of the nodes that are held out validate (section 4.1)


@dataclass(frozen=True, eq=False)
class Split:
    """One code per node: TRAIN, VAL, TEST or NONE (in no part). Edges after `cutoff` are not in the training graph."""

    codes: Tensor
    cutoff: int | None = None

    @classmethod
    def masks(cls, train: Any, val: Any = None, test: Any = None) -> "Split":
        """From boolean masks (N,); a node may be in one of them at most."""
        given = [None if m is None else _mask(m) for m in (train, val, test)]
        assert given[0] is not None
        codes = torch.full((len(given[0]),), NONE, dtype=torch.uint8)
        for code, mask in enumerate(given):
            if mask is None:
                continue
            if mask.shape != codes.shape:
                raise DataError(f"split masks must have the same length; got {len(mask)} and {len(codes)}")
            twice = torch.nonzero(mask & (codes != NONE))
            if len(twice):
                raise DataError(f"node {int(twice[0, 0])} is in two parts of the split; each belongs to one at most")
            codes[mask] = code
        return cls(codes)

    @classmethod
    def random(cls, num_nodes: int, fractions: Sequence[float] = (0.7, 0.1, 0.2), seed: int = 0) -> "Split":
        """Train, validation and test drawn at random from the seed."""
        sizes = _sizes(num_nodes, fractions)
        order = torch.argsort(Stream(seed, "split").keys(torch.arange(num_nodes)), stable=True)
        parts = torch.tensor([TRAIN, VAL, TEST], dtype=torch.uint8)
        codes = torch.empty(len(order), dtype=torch.uint8)
        codes[order] = torch.repeat_interleave(parts, torch.tensor(sizes))
        return cls(codes)

    @classmethod
    def by_time(cls, time: Tensor, fractions: Sequence[float] = (0.7, 0.1, 0.2)) -> "Split":
        """The oldest nodes train, the next validate, the newest test; nodes of one moment stay together."""
        time = torch.as_tensor(time)
        n = len(time)
        first, second, _ = _sizes(n, fractions)
        ordered = torch.sort(time).values
        train_end = int(ordered[max(first - 1, 0)])
        val_end = int(ordered[min(max(first + second - 1, 0), n - 1)])
        return cls.at_times(time, train_end, val_end)

    @classmethod
    def at_times(cls, time: Tensor, train_end: int, val_end: int) -> "Split":
        """Nodes up to `train_end` train, up to `val_end` validate, later ones test; both ends are included."""
        time = torch.as_tensor(time)
        codes = torch.full((len(time),), TEST, dtype=torch.uint8)
        codes[time <= val_end] = VAL
        codes[time <= train_end] = TRAIN
        return cls(codes, cutoff=train_end)

    @classmethod
    def by_graph(cls, graph_number: Tensor, val: Sequence[int], test: Sequence[int]) -> "Split":
        """Whole graphs validate and test; all others train."""
        graph_number = torch.as_tensor(graph_number)
        codes = torch.full((len(graph_number),), TRAIN, dtype=torch.uint8)
        for code, numbers in ((VAL, val), (TEST, test)):
            for number in numbers:
                rows = graph_number == number
                if not bool(rows.any()):
                    raise DataError(f"there is no graph {number}; graph numbers are {_some(graph_number)}")
                if code == TEST and bool((codes[rows] == VAL).any()):
                    raise DataError(f"graph {number} is in validation and in test; a graph belongs to one part")
                codes[rows] = code
        return cls(codes)

    def nodes(self, part: str) -> Tensor:
        """Rows of a part: 'train', 'val' or 'test' (or 'all')."""
        if part == "all":
            return torch.arange(len(self.codes))
        if part not in PARTS:
            raise DataError(f"a split has the parts train, val and test (or all); got {part!r}")
        return torch.nonzero(self.codes == PARTS[part]).flatten()

    def sizes(self) -> dict[str, int]:
        return {part: int((self.codes == code).sum()) for part, code in PARTS.items()}


def as_of(graph: Graph, time: int, shown: Callable[[int], str] = str) -> Graph:
    """The graph as it was known at `time`: only edges dated strictly before. Messages write times as `shown` does.

    Everything that is computed from edges must be computed after this: the cap, degrees, projections."""
    when = graph.edge_time
    if when is None:
        raise DataError(
            f"{setting('as_of')} needs edges with times, and this graph has none; give {setting('edge_time')} in "
            "training, and new edges with that column"
        )
    keep = when < time
    if len(when) and not bool(keep.any()):
        raise DataError(
            f"no edge is dated before {shown(time)}: the first has time {shown(int(when.min()))}; give a later "
            f"{setting('as_of')}"
        )
    return _before(graph, time)


def _before(graph: Graph, time: int) -> Graph:
    assert graph.edge_time is not None
    found = keep_edges(graph, graph.edge_rows, graph.edge_time < time)
    return found.with_relations(lambda relation: _before(relation, time))


def with_validation(split: Split, stream: Stream, share: float = VALIDATION) -> Split:
    """The split with `share` of its test nodes, drawn by `stream`, in validation instead."""
    test = split.nodes("test")
    order = torch.argsort(stream.keys(test), stable=True)
    codes = split.codes.clone()
    codes[test[order[: round(share * len(test))]]] = VAL
    return Split(codes, split.cutoff)


def training_graph(graph: Graph, split: Split) -> Graph:
    """The graph without its unseen nodes: every edge that touches one is cut, and every edge after the cutoff.

    Rows keep their numbers (unseen ones are isolated), so that features need no copy. Labels of unseen nodes are
    not read in training; they stay where they are.
    """
    if len(split.codes) != graph.num_nodes:
        raise DataError(f"the split has {len(split.codes)} nodes, the graph {graph.num_nodes}; they belong together")
    seen = split.codes.to(graph.indptr.device) == TRAIN
    if not bool(seen.any()):
        raise DataError("the split has no training nodes; check the split column, the fractions or the dates")
    rows = graph.edge_rows
    keep = seen[rows] & seen[graph.indices]
    if split.cutoff is not None and graph.edge_time is not None:
        keep &= graph.edge_time <= split.cutoff
    return keep_edges(graph, rows, keep).with_relations(lambda relation: training_graph(relation, split))


def without_test_nodes(graph: Graph, split: Split) -> Graph:
    """The graph without edges of test nodes, with the same row numbers; the same object if there are no test nodes."""
    test = split.codes.to(graph.indptr.device) == TEST
    rows = graph.edge_rows
    keep = ~(test[rows] | test[graph.indices])
    if bool(keep.all()):  # then no relation has such an edge
        return graph
    return keep_edges(graph, rows, keep).with_relations(lambda relation: without_test_nodes(relation, split))


def keep_edges(graph: Graph, rows: Tensor, keep: Tensor) -> Graph:
    """`graph` with only the stored edges where `keep` (E,) is True; `rows` (E,) is `graph.edge_rows`."""
    counts = torch.bincount(rows[keep], minlength=graph.num_nodes)
    indptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return graph.replace(indptr=indptr, indices=graph.indices[keep], **of_edges(graph, keep))


def of_edges(graph: Graph, keep: Tensor) -> dict[str, Tensor]:
    """The attributes of some stored edges, if there are any."""
    return {name: values[keep] for name in OF_EDGES if (values := getattr(graph, name)) is not None}


def _mask(values: Any) -> Tensor:
    tensor = torch.as_tensor(np.asarray(values))
    if tensor.dtype != torch.bool and not bool(((tensor == 0) | (tensor == 1)).all()):
        raise DataError(
            "split masks must be boolean, one entry for each node; got other numbers: are they row numbers?"
        )
    return tensor.bool()


def _sizes(n: int, fractions: Sequence[float]) -> tuple[int, int, int]:
    if len(fractions) != 3 or min(fractions) < 0 or abs(sum(fractions) - 1) > 1e-6:
        raise DataError(
            f"{setting('fractions')} must be three numbers (train, val, test) that add up to 1; "
            f"got {written(tuple(fractions))}"
        )
    first = round(n * fractions[0])
    second = min(round(n * fractions[1]), n - first)
    return first, second, n - first - second


def _some(values: Tensor) -> str:
    distinct = torch.unique(values).tolist()
    return ", ".join(map(str, distinct[:8])) + (", ..." if len(distinct) > 8 else "")
