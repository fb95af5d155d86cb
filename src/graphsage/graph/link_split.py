"""Which links are learned, which choose the model and which test it, and the edges that a model may read for each.

A link is an edge of the graph or a row of a table of pairs. It leads from a source, which asks, to a target, which is
found among the candidates. The two directions of a pair of nodes are in one part; by time, the later one is in no part
if the other is known.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from graphsage.errors import ConfigError, DataError, one_of, setting
from graphsage.graph.graph import Graph
from graphsage.graph.split import PARTS, TEST, TRAIN, VAL, Split, keep_edges, training_graph, without_test_nodes
from graphsage.kernels.random import Stream, derive

LINK_SPLITS = ("edges", "nodes", "time")
FRACTIONS = (0.8, 0.1, 0.1)
FEWEST = 10  # links of which a tenth can be held out


@dataclass(frozen=True, eq=False)
class LinkPart:
    """Links to learn or to find, and what may be known meanwhile."""

    messages: Graph
    """The graph without the edges that are not known yet."""
    pairs: Tensor
    """Source and target of each link, (P, 2). If links have no direction, each end asks for the other."""
    known: Tensor
    """Links (K, 2) that are known already, so that they are no answer to a question; in both directions if links have
    none."""
    candidates: Tensor
    """The nodes that may be targets, ascending."""


@dataclass(frozen=True, eq=False)
class LinkSplit:
    train: LinkPart
    val: LinkPart
    test: LinkPart
    both_ways: bool
    """Whether links have no direction. Training has each of them once, the other parts in both directions."""
    skipped: int = 0
    """Links in no part: self pairs, links between new nodes or to them, and links whose reverse is known."""

    def part(self, name: str) -> LinkPart:
        parts = {"train": self.train, "val": self.val, "test": self.test}
        return parts[name]

    def summary(self) -> str:
        counts = {name: len(torch.unique(self.part(name).pairs.sort(dim=1).values, dim=0)) for name in PARTS}
        sizes = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        return f"{sizes} (both directions of a pair count once)" + (
            f"; {self.skipped:,} in no part" if self.skipped else ""
        )


def split_links(graph: Graph, how: str, split: Split, seed: int = 0, pairs: Tensor | None = None) -> LinkSplit:
    """Links by `how`:

    edges   a tenth of the pairs of nodes that are linked is held out at random for validation, another for the test
    nodes   the links of the new nodes of `split` to older ones; new nodes have no edges
    time    the newest tenth of the edges is the test, the tenth before it validation

    `pairs` (P, 2) are links from a table; without them the edges of the graph are the links.
    """
    one_of("link_split", how, LINK_SPLITS)
    if graph.relations:
        raise ConfigError(
            f"{setting('task', 'links')} hides edges of one relation, and this graph has {', '.join(graph.relations)}; "
            f"use {setting('direction', 'merged')}, in or out"
        )
    links = graph_links(graph) if pairs is None else torch.unique(pairs, dim=0)
    own = links[:, 0] == links[:, 1]
    links, loops = links[~own], int(own.sum())
    if len(links) < FEWEST:
        count = "1 link is" if len(links) == 1 else f"{len(links)} links are"
        raise DataError(f"{count} too few to learn from and to hold out some; {FEWEST} are needed")
    both_ways = pairs is None and not graph.directed
    _refuse_without_negatives(both(links, both_ways), torch.arange(graph.num_nodes))
    table = pairs is not None
    if how == "nodes":
        made = _by_nodes(graph, links, split, both_ways, loops, table)
    else:
        made = _by_links(graph, links, how, seed, both_ways, loops, table)
    for name in PARTS:
        if not len(made.part(name).pairs):
            lost = "; the reverses of older links, which give them away, are in no part" if how == "time" else ""
            raise DataError(
                f"the {name} part has no link ({made.summary()}{lost}); use another {setting('link_split')} or more "
                "links"
            )
    _refuse_without_negatives(made.train.known, made.train.candidates)
    return made


def graph_links(graph: Graph) -> Tensor:
    """The edges of a graph as (source, target), (E, 2); an undirected edge once, the lower row first."""
    pairs = stored_edges(graph)
    return pairs if graph.directed else pairs[pairs[:, 0] <= pairs[:, 1]]


def stored_edges(graph: Graph) -> Tensor:
    """Every entry of the neighbor lists as (source, target), (E, 2)."""
    pairs = torch.stack([graph.indices.long(), graph.edge_rows], dim=1)  # row v lists those that point at v
    return pairs.flip(1) if graph.direction == "out" else pairs


def known_links(graph: Graph) -> Tensor:
    """The edges of a graph without self pairs, (K, 2), in both directions if they have none."""
    links = both(graph_links(graph), not graph.directed)
    return links[links[:, 0] != links[:, 1]]


def both(pairs: Tensor, both_ways: bool) -> Tensor:
    """`pairs` and, if links have no direction, their reverses."""
    return torch.cat([pairs, pairs.flip(1)]) if both_ways else pairs


def _by_nodes(graph: Graph, links: Tensor, split: Split, both_ways: bool, loops: int, table: bool) -> LinkSplit:
    codes = split.codes.long()
    asked = both(links, both_ways)
    source, target = codes[asked[:, 0]], codes[asked[:, 1]]
    seen, older = training_graph(graph, split), _until_test(graph, split)
    among = links[(codes[links] == TRAIN).all(dim=1)]
    among_older = links[(codes[links] < TEST).all(dim=1)]
    if not table:  # an edge after the end of a part is not known
        among, among_older = _of_graph(seen, among, both_ways), _of_graph(older, among_older, both_ways)
    val = asked[(source == VAL) & (target == TRAIN)]
    test = asked[(source == TEST) & (target < TEST)]
    known = both(among, both_ways)
    return LinkSplit(
        LinkPart(seen, among, known, split.nodes("train")),
        LinkPart(seen, val, known, split.nodes("train")),
        LinkPart(older, test, both(among_older, both_ways), torch.nonzero(codes < TEST).flatten()),
        both_ways,
        loops + len(links) - len(among) - len(val) - len(test),
    )


def _until_test(graph: Graph, split: Split) -> Graph:
    """The graph without edges of test nodes and, if a cutoff separates them, without edges after the last validation
    node."""
    older = without_test_nodes(graph, split)
    if split.cutoff is None or graph.edge_time is None:
        return older
    held = split.codes == VAL
    end = split.cutoff
    if graph.time is not None and bool(held.any()):
        end = max(end, int(graph.time[held].max()))
    assert older.edge_time is not None
    return keep_edges(older, older.edge_rows, older.edge_time <= end)


def _by_links(graph: Graph, links: Tensor, how: str, seed: int, both_ways: bool, loops: int, table: bool) -> LinkSplit:
    n, everyone = graph.num_nodes, torch.arange(graph.num_nodes)
    stored = stored_edges(graph)
    if how == "time":
        if graph.edge_time is None or table:
            raise DataError(
                f"{setting('link_split', 'time')} needs edges with times, and "
                + ("a table of pairs has none" if table else "the graph has none")
                + f"; use {setting('link_split', 'edges')}"
            )
        times = graph.edge_time[_places(stored, links, n)]
        part = Split.by_time(times, FRACTIONS).codes.long()
        at = _places(links, stored if graph.directed else stored.sort(dim=1).values, n)
    else:
        part = _drawn(graph, links, seed)
        at = _places(links.sort(dim=1).values, stored.sort(dim=1).values, n)
    of_edge = torch.where(at >= 0, part[at], TRAIN)  # an edge that is no link is always known
    rows, skipped, parts = graph.edge_rows, loops, []
    for code in (VAL, TEST):
        known, asked = links[part < code], links[part == code]
        reverse = _places(known, asked.flip(1), n) >= 0  # an older edge in the other direction gives it away
        skipped += int(reverse.sum())
        asked = both(asked[~reverse], both_ways)
        parts.append(LinkPart(keep_edges(graph, rows, of_edge < code), asked, both(known, both_ways), everyone))
    val, test = parts
    return LinkSplit(LinkPart(val.messages, links[part == TRAIN], val.known, everyone), val, test, both_ways, skipped)


def _drawn(graph: Graph, links: Tensor, seed: int) -> Tensor:
    """The part of each link, drawn for its pair of nodes by their keys: the order of rows does not matter."""
    ends = graph.keys.cpu()[links].sort(dim=1).values
    draws = derive(Stream(seed, "links").keys(ends[:, 0]), ends[:, 1])
    pairs, rank = torch.unique(draws, return_inverse=True)
    train, val = (round(len(pairs) * sum(FRACTIONS[:count])) for count in (1, 2))
    part: Tensor = (rank >= train).long() + (rank >= val).long()
    return part


def _of_graph(graph: Graph, links: Tensor, both_ways: bool) -> Tensor:
    """Those of `links` that are edges of `graph`."""
    return links[_places(both(graph_links(graph), both_ways), links, graph.num_nodes) >= 0]


def _places(known: Tensor, asked: Tensor, n: int) -> Tensor:
    """The place of each asked pair among the known ones; -1 where it is none of them."""
    if not len(known):
        return torch.full_like(asked[:, 0], -1)
    codes, order = torch.sort(known[:, 0] * n + known[:, 1])
    wanted = asked[:, 0] * n + asked[:, 1]
    at = torch.searchsorted(codes, wanted).clamp_max(len(codes) - 1)
    found: Tensor = torch.where(codes[at] == wanted, order[at], -1)
    return found


def _refuse_without_negatives(known: Tensor, candidates: Tensor) -> None:
    """A source that is linked to all candidates has no wrong answer to learn from."""
    count = torch.bincount(known[:, 0])
    sources = torch.unique(known[:, 0])
    itself = torch.isin(sources, candidates).long()
    if bool((count[sources] + itself >= len(candidates)).all()):
        raise DataError(
            f"there are no possible negatives: every source is linked to all of the {len(candidates):,} "
            "candidates; hold out other links, or give a larger graph"
        )
