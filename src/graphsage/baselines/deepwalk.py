"""DeepWalk as Appendix C describes it, with its online step for nodes that training did not see."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsage.baselines.skipgram import SkipGram
from graphsage.errors import ConfigError, DataError, at_least, one_of, setting
from graphsage.graph.graph import Graph
from graphsage.kernels.random import Stream, derive, permute, uniform
from graphsage.sampling.negatives import Negatives
from graphsage.sampling.walks import WalkPairs, walk_pairs

RATES = (0.2, 0.4, 0.8)
CONTEXTS = ("trained", "all")
_BLOCK = 1 << 18  # pairs drawn at once


@dataclass(frozen=True, kw_only=True)
class DeepWalkConfig:
    """Appendix C. The loss is averaged over a batch, hence rates this large."""

    dim: int = 256
    lr: float = 0.4
    passes: int = 5
    online_passes: int = 1
    """Passes of the online step: one, as in the released code. The paper states five for training only."""
    batch_size: int = 64
    num_walks: int = 50
    walk_length: int = 5
    num_negatives: int = 20
    contexts: str = "trained"
    """Possible contexts of a new node in the online step: nodes 'trained' before, or 'all'."""
    seed: int = 0

    def __post_init__(self) -> None:
        at_least(1, self, "dim", "passes", "online_passes", "batch_size", "num_walks", "num_negatives")
        at_least(2, self, "walk_length")
        at_least(0, self, "seed")
        if not 0 < self.lr < math.inf:
            raise ConfigError(f"{setting('lr')} must be above 0 and finite; got {self.lr}")
        one_of("contexts", self.contexts, CONTEXTS)


@dataclass(frozen=True, eq=False)
class DeepWalk:
    """One vector per node, and one for the node as a context. Nodes without a walk have zero vectors."""

    target: Tensor
    context: Tensor
    known: Tensor
    """(N,): nodes that were trained."""

    @property
    def embeddings(self) -> Tensor:
        """(N, dim), on the CPU; scaled to length 1, as Appendix D says that most do."""
        return torch.nn.functional.normalize(self.target, dim=1).cpu()


def train_deepwalk(graph: Graph, nodes: Tensor, config: DeepWalkConfig) -> DeepWalk:
    """Vectors of `nodes` from walks on `graph`, the training graph before the cap."""
    _check(graph, nodes)
    device = graph.indptr.device
    known = torch.zeros(graph.num_nodes, dtype=torch.bool, device=device)
    known[nodes.to(device)] = True
    target, context = _initial(range(graph.num_nodes), config, device)
    pairs = walk_pairs(graph, nodes.to(device), config.seed, config.num_walks, config.walk_length)
    model = SkipGram(target, context, config.lr)
    met = _descend(model, pairs, Negatives.of_degrees(graph.degrees), config, "deepwalk", config.passes)
    target[known & ~met] = 0.0
    return DeepWalk(target, context, known & met)


def embed_new(model: DeepWalk, graph: Graph, nodes: Tensor, config: DeepWalkConfig) -> DeepWalk:
    """The online step: vectors of the new `nodes` from walks on the full `graph` that start at them.

    `graph` has the nodes of the training graph in the same order, and may have more after them. What was trained before
    stays as it is, bit for bit. With contexts 'trained' every product in the loss is one of a new node with an old one,
    so the new vectors cannot drift; negatives then are old nodes too.
    """
    _check(graph, nodes)
    device = graph.indptr.device
    model = _grown(model, graph.num_nodes, config)
    if not attached(graph, model.known):
        raise DataError(_ROTATED)
    new = torch.zeros(graph.num_nodes, dtype=torch.bool, device=device)
    new[nodes.to(device)] = True
    if bool((new & model.known).any()):
        raise DataError("some of the new nodes were trained already; the online step is for nodes that were not there")
    target, context = model.target, model.context
    pairs = walk_pairs(graph, nodes.to(device), config.seed, config.num_walks, config.walk_length)
    allowed = model.known if config.contexts == "trained" else torch.ones_like(new)
    negatives = Negatives.of_degrees(torch.where(allowed, graph.degrees, 0))
    steps = SkipGram(target, context, config.lr, fresh=new)
    met = _descend(steps, pairs, negatives, config, "deepwalk new", config.online_passes, allowed)
    target[new & ~met] = 0.0
    return DeepWalk(target, context, model.known | (new & met))


_ROTATED = (
    "DeepWalk cannot be applied to graphs that are not joined to the one it was trained on: its vectors may be rotated "
    "by any orthogonal matrix without changing the loss, so those of one graph mean nothing in another (Appendix D)"
)


def attached(graph: Graph, known: Tensor) -> bool:
    """Whether any edge joins a node that is known with one that is not; without one, they are separate graphs."""
    known = known.to(graph.indptr.device)
    return bool(known.all()) or bool((known[graph.edge_rows] & ~known[graph.indices]).any())


def _grown(model: DeepWalk, num_nodes: int, config: DeepWalkConfig) -> DeepWalk:
    """The model with rows, not trained, for nodes that its training graph did not have."""
    before, dim = model.target.shape
    if num_nodes < before or dim != config.dim:
        raise DataError(
            f"the model has vectors of {dim} numbers for {before} nodes, and the online step asks for "
            f"{config.dim} numbers and {num_nodes} nodes; give the training graph, or what it grew into, "
            "and the same dim"
        )
    target, context = _initial(range(before, num_nodes), config, model.target.device)
    known = torch.nn.functional.pad(model.known, (0, num_nodes - before))
    return DeepWalk(torch.cat([model.target, target]), torch.cat([model.context, context]), known)


def _check(graph: Graph, nodes: Tensor) -> None:
    if len(nodes) and not 0 <= int(nodes.min()) <= int(nodes.max()) < graph.num_nodes:
        raise DataError(
            f"nodes must be rows of the graph, 0 to {graph.num_nodes - 1}; got {int(nodes.min())} to {int(nodes.max())}"
        )
    if graph.graph_number is not None and len(torch.unique(graph.graph_number)) > 1:
        raise DataError(_ROTATED)


def _initial(nodes: range, config: DeepWalkConfig, device: torch.device) -> tuple[Tensor, Tensor]:
    """As word2vec does it: small uniform targets, zero contexts. A row's numbers depend on seed and node alone."""
    keys = Stream(config.seed, "deepwalk init").keys(torch.arange(nodes.start, nodes.stop, device=device))
    target = torch.empty(len(nodes), config.dim, device=device)
    for start in range(0, len(nodes), 1 << 14):  # the 64-bit draws of all rows at once would be large
        rows = slice(start, start + (1 << 14))
        bits = derive(keys[rows, None], torch.arange(config.dim, device=device)[None])
        target[rows] = ((uniform(bits) - 0.5) / config.dim).float()
    return target, torch.zeros_like(target)


def _descend(
    model: SkipGram,
    pairs: WalkPairs,
    negatives: Negatives,
    config: DeepWalkConfig,
    purpose: str,
    passes: int,
    allowed: Tensor | None = None,
) -> Tensor:
    """Every pair once in each pass, in an order of its own. Returns the nodes (N,) that are u in a pair."""
    step = 0
    met = torch.zeros(len(model.target), dtype=torch.bool, device=model.target.device)
    for number in range(passes):
        for u, v in _blocks(pairs, Stream(config.seed, f"{purpose} order", number).key, config.batch_size, allowed):
            places = torch.arange(step, step + len(u), device=u.device)
            slots = torch.arange(config.num_negatives, device=u.device)
            bits = derive(Stream(config.seed, f"{purpose} negatives").keys(places)[:, None], slots[None])
            model.steps(u, torch.cat([v, negatives.draw(bits)], dim=1))
            step += len(u)
            met[u.flatten()] = True
    return met


def _blocks(pairs: WalkPairs, key: int, batch_size: int, allowed: Tensor | None) -> Iterator[tuple[Tensor, Tensor]]:
    """All valid pairs, shuffled, as rows of `batch_size`: u and v, (R, B) each; the rest comes as one shorter row."""
    device = pairs.starts.device
    left = torch.empty(2, 0, dtype=torch.int64, device=device)
    for start in range(0, pairs.count, _BLOCK):
        numbers = torch.arange(start, min(start + _BLOCK, pairs.count), device=device)
        u, v, valid = pairs.pairs(permute(numbers, pairs.count, key))
        if allowed is not None:
            valid = valid & allowed[v]
        left = torch.cat([left, torch.stack([u[valid], v[valid]])], dim=1)
        rows = left.shape[1] // batch_size
        if rows:
            u, v = left[:, : rows * batch_size].reshape(2, rows, batch_size)
            yield u, v
            left = left[:, rows * batch_size :]
    if left.shape[1]:
        yield left[0][None], left[1][None]
