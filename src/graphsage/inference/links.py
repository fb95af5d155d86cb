"""Scores of links by a trained model: of held-out ones, of given pairs, and of the best targets for a node.

A pair is scored as if its edge did not exist in either direction: the trees of both ends do not use it, and it does not
count for the popularity of the target. For a fixed model an edge therefore never changes its own score.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from scipy import sparse
from torch import Tensor

from graphsage.errors import ConfigError, DataError, setting
from graphsage.evaluation.link_scores import LinkScores, Questions, link_scores
from graphsage.evaluation.ranking import Scores
from graphsage.execution.fast_encoder import FastEncoder
from graphsage.graph.graph import Graph
from graphsage.graph.link_split import LinkPart, LinkSplit, known_links, split_links
from graphsage.graph.split import Split
from graphsage.inference.embed import GraphView, MemoryView, evaluating, order_matters, prepare
from graphsage.inference.fingerprint import checksum
from graphsage.inference.nearest import EXACT_UP_TO, PROBES, NearestIndex, best
from graphsage.inference.run_data import id_column
from graphsage.kernels.neighborhood import Hoods, Minibatch
from graphsage.kernels.random import Stream
from graphsage.kernels.rows import scaled_rows
from graphsage.model.links import HIDDEN, LinkHead
from graphsage.sampling.hidden import EdgePlaces
from graphsage.sampling.minibatch import Unweighted, sample_minibatch
from graphsage.tables.ids import read_edges
from graphsage.tables.messages import listed
from graphsage.tables.source import as_table
from graphsage.tables.spec import SOURCE, TARGET, guess

if TYPE_CHECKING:
    from graphsage.inference.model import Model

Array = npt.NDArray[Any]
TEST_SOURCES = 3000
K_OF_RECALL = 10
_CELLS = 1 << 24  # scores, or numbers of a hidden layer, in memory at once


def links_of(model: "Model", graph: Graph, split: Split) -> LinkSplit:
    """The links that the model was trained on and those that were held out; drawn again from its settings."""
    config = model.about["config"]
    return split_links(graph, config["link_split"], split, config["seed"], table_of(model, graph))


def table_of(model: "Model", graph: Graph) -> Tensor | None:
    """The table of links that the model was trained on, as rows of a graph; None if it learned the edges."""
    path = model.about.get("config", {}).get("pairs")
    if path is None:
        return None
    if not Path(path).is_file():
        raise DataError(f"{path} is gone, and the model was trained on its links; restore it or train again")
    if checksum(Path(path)) != model.about["pairs"]:
        raise DataError(f"{path} changed since the model was trained on its links; restore it or train again")
    return read_pairs(path, graph)


def known_to(model: "Model", graph: Graph) -> Tensor:
    """The links that are known when the model is used, (K, 2): those of its table, or the edges of the graph."""
    pairs = table_of(model, graph)
    return known_links(graph) if pairs is None else torch.unique(pairs[pairs[:, 0] != pairs[:, 1]], dim=0)


def head_of(model: "Model") -> LinkHead:
    if model.links is None:
        raise DataError(f"this model was not trained for links; train it with {setting('task', 'links')}")
    return model.links


@dataclass(frozen=True, eq=False)
class LinkVectors:
    """The vectors of all nodes as sources and as targets, in a graph whose edges may be read."""

    head: LinkHead
    u: Tensor
    v: Tensor
    links: Tensor
    """The number of known links to each node, (N,)."""

    @classmethod
    @torch.no_grad()
    def of(
        cls,
        model: "Model",
        messages: Graph,
        known: Tensor,
        inference: str | None = None,
        on_block: Callable[[int, int], None] | None = None,
    ) -> "LinkVectors":
        """`known` are the known links, (K, 2)."""
        head = head_of(model).eval()
        z = model.embed(messages, inference=inference, keep_features=False, on_block=on_block)
        u = z
        if head.tower is not None:
            here, _ = model._prepared(messages, False)
            tables, encoder = model._tables(here), model.encoder
            rows = torch.split(torch.arange(messages.num_nodes, device=model.device), 1 << 14)
            u = torch.cat([head.sources(scaled_rows(tables, r, encoder.shift, encoder.scale)).cpu() for r in rows])
        return cls(head, u, z, torch.bincount(known[:, 1].cpu(), minlength=messages.num_nodes))

    @torch.no_grad()
    def scores(self, sources: Array, candidates: Array) -> Array:
        """(Q, C) for rows of nodes."""
        device = self.head.scale.device
        v, links = self.v[candidates].to(device), self.links[candidates].to(device)
        wide = HIDDEN if self.head.decoder == "mlp" else 1
        parts = torch.split(torch.from_numpy(sources), max(1, _CELLS // (wide * max(len(candidates), 1))))
        made = [self.head(self.u[part].to(device), v, links).cpu() for part in parts]
        return np.concatenate([each.numpy() for each in made])

    def best(self, sources: Array, candidates: Array, excluded: sparse.csr_array, k: int) -> "Recommended":
        """The `k` best candidates of each source, without those `excluded` (Q, C). Above EXACT_UP_TO candidates an
        index finds them, unless the decoder is a network."""
        if len(candidates) > EXACT_UP_TO and self.head.decoder != "mlp":
            return self._approximate(sources, candidates, excluded, k)
        places, values = [], []
        step = max(1, _CELLS // max(len(candidates), 1))
        for start in range(0, len(sources), step):
            made = self.scores(sources[start : start + step], candidates)
            out = excluded[start : start + step].tocoo()
            made[out.coords] = -np.inf
            found = best(made, k)
            places.append(found[0])
            values.append(found[1])
        return _recommended(np.concatenate(places), np.concatenate(values), candidates)

    @torch.no_grad()
    def _approximate(self, sources: Array, candidates: Array, excluded: sparse.csr_array, k: int) -> "Recommended":
        index, longest = self._index(candidates)
        asked = self._queries(sources)
        length = np.linalg.norm(asked, axis=1, keepdims=True)
        unit = asked / np.maximum(length, 1e-30)
        places, values = [], []
        for row in range(len(sources)):
            own = excluded.indices[excluded.indptr[row] : excluded.indptr[row + 1]]
            found, cosines = index.search(unit[row : row + 1], k, frozenset(own.tolist()))
            short = k - found.shape[1]
            places.append(np.pad(found, ((0, 0), (0, short)), constant_values=-1))
            values.append(np.pad(cosines, ((0, 0), (0, short)), constant_values=-np.inf) * length[row] * longest)
        return _recommended(np.concatenate(places), np.concatenate(values), candidates, index.recall)

    def _index(self, candidates: Array) -> tuple[NearestIndex, float]:
        """Vectors of one length, so that the nearest ones have the largest products with a query; and this length."""
        rows = [self.v[candidates].numpy()]
        if self.head.popularity is not None:
            rows.append(np.log1p(self.links[candidates].numpy()[:, None]))
        table = np.concatenate(rows, axis=1).astype(np.float32)
        squares = np.square(table, dtype=np.float64).sum(axis=1)
        rest = np.sqrt(np.maximum(squares.max() - squares, 0))
        index = NearestIndex.build(np.concatenate([table, rest[:, None].astype(np.float32)], axis=1))
        probes = self._queries(np.unique(np.linspace(0, len(self.u) - 1, PROBES).astype(np.int64)))
        exact = replace(index, approximate=None)
        truth, found = (each.search(probes, K_OF_RECALL)[0] for each in (exact, index))
        return replace(index, recall=float((truth[:, :, None] == found[:, None, :]).any(axis=2).mean())), float(
            np.sqrt(squares.max())
        )

    def _queries(self, sources: Array) -> Array:
        rows = [self.head.queries(self.u[sources].to(self.head.scale.device)).detach().cpu().numpy()]
        if self.head.popularity is not None:
            rows.append(np.full((len(sources), 1), float(self.head.popularity.detach())))
        return np.concatenate([*rows, np.zeros((len(sources), 1))], axis=1).astype(np.float32)

    def among(self, asked: Questions) -> Scores:
        return lambda rows: self.scores(asked.sources[rows], asked.candidates)


@dataclass(frozen=True, eq=False)
class Recommended:
    """The best targets of each source: rows (Q, k), -1 where there is none, their scores, and the share of the true
    best ones that the search finds."""

    rows: Array
    scores: Array
    recall: float = 1.0


def _recommended(places: Array, scores: Array, candidates: Array, recall: float = 1.0) -> Recommended:
    return Recommended(np.where(places < 0, -1, candidates[places]), scores, recall)


def recommend(
    model: "Model",
    graph: Graph,
    nodes: Tensor,
    k: int = 10,
    *,
    candidates: Tensor | None = None,
    inference: str | None = None,
    on_block: Callable[[int, int], None] | None = None,
) -> Recommended:
    """The `k` targets (of `candidates`, by default all nodes) that each of `nodes` is most likely linked to. Known
    links and the node itself are left out."""
    if k < 1:
        raise ConfigError(f"{setting('k')} must be at least 1; got {k}")
    known = known_to(model, graph)
    vectors = LinkVectors.of(model, graph, known, inference, on_block)
    targets = torch.arange(graph.num_nodes) if candidates is None else candidates
    asked = Questions.of(LinkPart(graph, torch.stack([nodes, nodes], dim=1), known, targets))
    found = vectors.best(asked.sources, asked.candidates, sparse.csr_array(asked.known + asked.partners), k)
    place = np.searchsorted(asked.sources, nodes.numpy())
    return Recommended(found.rows[place], found.scores[place], found.recall)


def read_pairs(pairs: Any, graph: Graph, name: str = "pairs") -> Tensor:
    """Rows (P, 2) of a table (a path, or as in `open_tables`) with the columns source and target."""
    table = as_table(pairs, name)
    try:
        ends = guess(table, None, SOURCE, "source"), guess(table, None, TARGET, "target")
    except DataError:
        raise DataError(
            f"{table} needs the columns source and target (or src and dst, from and to); its columns are "
            f"{listed(table.names)}"
        ) from None
    known = pa.array(np.arange(graph.num_nodes)) if graph.ids is None else id_column(graph)
    found = read_edges(table, ends, known, lacking="the graph does not have", row="pair")
    if not len(found.pairs):
        raise DataError(f"{table} has no row; give at least one pair")
    return torch.from_numpy(found.pairs)


def score_links(
    model: "Model", graph: Graph, part: LinkPart, asked: Questions, inference: str | None = None, **options: Any
) -> LinkScores:
    """How well the model finds the links of `part`. `graph` has the features that it reads."""
    messages = part.messages.replace(features=graph.features)
    return link_scores(asked, LinkVectors.of(model, messages, part.known, inference, **options).among(asked))


def evaluate_links(
    model: "Model",
    graph: Graph,
    split: Split,
    part: str = "test",
    *,
    yardsticks: bool = True,
    inference: str | None = None,
    on_block: Callable[[int, int], None] | None = None,
) -> dict[str, LinkScores]:
    """The scores of the model for held-out links of at most TEST_SOURCES sources, and those of the yardsticks."""
    if part not in ("val", "test"):
        raise ConfigError(f"held-out links are in the parts val and test; got {part!r}")
    chosen = links_of(model, graph, split).part(part)
    asked = Questions.of(chosen, TEST_SOURCES, model.seed)
    found = {"model": score_links(model, graph, chosen, asked, inference, on_block=on_block)}
    if yardsticks:
        features = None if graph.features is None else graph.features.numpy()
        for name, scores in asked.yardsticks(chosen, features).items():
            found[name] = link_scores(asked, scores)
    return found


@dataclass(frozen=True, eq=False)
class WithoutEdge(Unweighted):
    """A view of a graph in which nodes a and b are not joined."""

    view: GraphView
    a: int
    b: int

    @property
    def num_nodes(self) -> int:
        return self.view.num_nodes

    @property
    def by_relation(self) -> "tuple[WithoutEdge, ...]":
        return (self,)

    def neighbors_of(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        index, offsets = self.view.neighbors_of(nodes)
        owner = torch.repeat_interleave(nodes, offsets[1:] - offsets[:-1])
        keep = ~(((owner == self.a) & (index == self.b)) | ((owner == self.b) & (index == self.a)))
        before = torch.cat([offsets.new_zeros(1), keep.cumsum(0)])
        return index[keep], before[offsets]

    def csr_of(self, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        index, offsets = self.neighbors_of(nodes)
        return offsets, index, torch.arange(len(nodes), device=nodes.device)

    def draw_keys(self, nodes: Tensor) -> Tensor:
        return self.view.draw_keys(nodes)

    def inputs_of(self, batch: Minibatch) -> tuple[Sequence[Tensor], tuple[Hoods, ...]]:
        return self.view.inputs_of(batch)

    def tables_of(self, nodes: Tensor) -> tuple[Sequence[Tensor], Tensor]:
        return self.view.tables_of(nodes)


@dataclass(frozen=True, eq=False)
class PairScorer:
    """Scores single pairs of nodes of a graph, each as if it were not linked."""

    model: "Model"
    graph: Graph
    inference: str | None = None

    @property
    def _how(self) -> str:
        return self.inference or self.model.inference

    @cached_property
    def _view(self) -> MemoryView:
        here, capped = self.model._prepared(self.graph, order_matters(self.model.encoder, self._how))
        return MemoryView(capped, self.model._tables(here))

    @cached_property
    def _places(self) -> EdgePlaces:
        return EdgePlaces.of(self._view.graph)

    @cached_property
    def _known(self) -> Tensor:
        """Known links, (K, 2)."""
        return known_to(self.model, self.graph)

    @cached_property
    def _counts(self) -> Tensor:
        return torch.bincount(self._known[:, 1], minlength=self.graph.num_nodes)

    @torch.no_grad()
    def score(self, source: int, target: int) -> float:
        model, head, view = self.model, head_of(self.model).eval(), self._view
        pair = torch.tensor([source, target], device=model.device)
        nodes = pair if head.tower is None else pair[1:]
        with evaluating(model.encoder):
            z = self._hidden(nodes, pair)
        links = torch.zeros((), dtype=torch.int64)
        if head.popularity is not None:
            links = self._counts[target] - (self._known == torch.tensor([source, target])).all(dim=1).sum()
        u = z[:1]
        if head.tower is not None:
            u = head.sources(scaled_rows(view.tables, pair[:1], model.encoder.shift, model.encoder.scale))
        return float(head.paired(u, z[-1:], links[None].to(model.device)))

    def _hidden(self, nodes: Tensor, pair: Tensor) -> Tensor:
        """z of `nodes`, in whose trees the edge of `pair` does not occur."""
        model, view, fast = self.model, self._view, FastEncoder(self.model.encoder)
        if self._how == "exact":
            without = WithoutEdge(view, *pair.tolist())
            return prepare(fast, without, nodes, None, model.seed)()
        keys = Stream(model.seed, "inference").keys(view.draw_keys(nodes))
        hidden = self._places.hidden(pair.expand(len(nodes), 2))
        batch = sample_minibatch(view, nodes, model.sampling.sample_sizes, keys, hidden=hidden)
        return fast(*view.inputs_of(batch))


def score_pairs(
    model: "Model",
    graph: Graph,
    pairs: Tensor,
    inference: str | None = None,
    on_block: Callable[[int, int], None] | None = None,
) -> Tensor:
    """Scores (P,) of pairs of rows (P, 2), source and target, in their order."""
    same = torch.nonzero(pairs[:, 0] == pairs[:, 1]).flatten()
    if len(same):
        row = int(same[0])
        raise DataError(
            f"pair {row + 1} joins {graph.id_of(int(pairs[row, 0]))!r} with itself, which is no link; leave it out"
        )
    scorer = PairScorer(model, graph, inference)
    made = []
    for number, (source, target) in enumerate(pairs.tolist(), start=1):
        made.append(scorer.score(source, target))
        if on_block is not None:
            on_block(number, len(pairs))
    return torch.tensor(made, dtype=torch.float32)
