"""Scores of links by a trained model: of held-out ones, of given pairs, and of the best targets for a node.

A pair is scored as if its edge did not exist in either direction: the trees of both ends do not use it, and it does not
count for the popularity of the target. For a fixed model an edge therefore never changes its own score.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from graphsage.errors import ConfigError, DataError, setting
from graphsage.evaluation.link_scores import LinkScores, Questions, link_scores
from graphsage.evaluation.ranking import Scores
from graphsage.execution.fast_encoder import FastEncoder
from graphsage.graph.graph import Graph
from graphsage.graph.link_split import LinkPart, LinkSplit, both, graph_links, split_links
from graphsage.graph.split import Split
from graphsage.inference.embed import MemoryView, evaluating, order_matters, prepare
from graphsage.kernels.neighborhood import Hoods, Minibatch
from graphsage.kernels.random import Stream
from graphsage.kernels.rows import scaled_rows
from graphsage.model.links import HIDDEN, LinkHead
from graphsage.sampling.hidden import EdgePlaces
from graphsage.sampling.minibatch import sample_minibatch

if TYPE_CHECKING:
    from graphsage.inference.model import Model

Array = npt.NDArray[Any]
TEST_SOURCES = 3000
_CELLS = 1 << 24  # scores, or numbers of a hidden layer, in memory at once


def links_of(model: "Model", graph: Graph, split: Split) -> LinkSplit:
    """The links that the model was trained on and those that were held out; drawn again from its settings."""
    config = model.about["config"]
    return split_links(graph, config["link_split"], split, config["seed"])


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

    def among(self, asked: Questions) -> Scores:
        return lambda rows: self.scores(asked.sources[rows], asked.candidates)


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
class WithoutEdge(MemoryView):
    """A graph in which nodes a and b are not joined; the arrays are those of the whole graph."""

    a: int = -1
    b: int = -1

    def neighbors_of(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        index, offsets = self.graph.neighbors_of(nodes)
        counts = offsets[1:] - offsets[:-1]
        owner = torch.repeat_interleave(nodes, counts)
        keep = ~(((owner == self.a) & (index == self.b)) | ((owner == self.b) & (index == self.a)))
        if bool(keep.all()):
            return index, offsets
        before = torch.cat([offsets.new_zeros(1), keep.cumsum(0)])
        return index[keep], before[offsets]


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
        """The number of known links to each node, self pairs left out."""
        links = both(graph_links(self.graph), not self.graph.directed)
        return torch.bincount(links[links[:, 0] != links[:, 1], 1], minlength=self.graph.num_nodes)

    @torch.no_grad()
    def score(self, source: int, target: int) -> float:
        model, head, view = self.model, head_of(self.model).eval(), self._view
        pair = torch.tensor([source, target], device=model.device)
        nodes = pair if head.tower is None else pair[1:]
        with evaluating(model.encoder):
            z = self._hidden(nodes, pair)
        links = self._known[target] - int(bool((self.graph.neighbors(target) == source).any()))
        u = z[:1]
        if head.tower is not None:
            u = head.sources(scaled_rows(view.tables, pair[:1], model.encoder.shift, model.encoder.scale))
        return float(head.paired(u, z[-1:], links[None].to(model.device)))

    def _hidden(self, nodes: Tensor, pair: Tensor) -> Tensor:
        """z of `nodes`, in whose trees the edge of `pair` does not occur."""
        model, view, fast = self.model, self._view, FastEncoder(self.model.encoder)
        if self._how == "exact":
            without = WithoutEdge(view.graph, view.tables, *pair.tolist())
            return prepare(fast, without, nodes, None, model.seed)()
        keys = Stream(model.seed, "inference").keys(view.draw_keys(nodes))
        hidden = self._places.hidden(pair.expand(len(nodes), 2))
        batch = sample_minibatch(view, nodes, model.sampling.sample_sizes, keys, hidden=hidden)
        inputs: tuple[Sequence[Tensor], tuple[Hoods, ...]] = view.inputs_of(Minibatch(batch.neighborhoods))
        return fast(*inputs)


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
