"""Algorithms 1 and 2 for chosen nodes of a live graph: the same bits alone or in a batch.

All draws are keyed by node id, so a vector depends on the graph and the model, not on row numbers, generations or
what else is asked for.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from graphsage.errors import ConfigError, DataError
from graphsage.graph.graph import Graph
from graphsage.inference.model import Model
from graphsage.kernels.neighborhood import Minibatch, Neighborhood
from graphsage.kernels.random import Stream, derive
from graphsage.kernels.sample import children, sample_neighbors
from graphsage.live.blocks import Blocks, head_in_blocks, in_blocks, products_of
from graphsage.live.keys import Rows
from graphsage.live.reading import Reading, Target
from graphsage.model.encoder import Encoder
from graphsage.model.heads import ClassHead
from graphsage.sampling.minibatch import SamplingConfig, sample_minibatch

Compute = Callable[[], Tensor]


@dataclass(frozen=True, eq=False)
class LiveEncoder:
    """A model made ready for a live graph."""

    encoder: Encoder
    head: ClassHead | None
    sampling: SamplingConfig
    inference: str
    degrees: bool
    multilabel: bool
    seed: int
    products: str
    """What keeps a row's bits the same in any company; see `blocks.products_of`."""

    @staticmethod
    def of(model: Model, inference: str | None = None) -> "LiveEncoder":
        if model.encoder.identity is not None:
            raise DataError("this model learned a vector for each training node (identity_dim) and cannot embed new "
                            "ones; train with features or degree features")  # fmt: skip
        how = inference or model.inference
        if how not in ("exact", "sampled"):
            raise ConfigError(f"inference must be exact or sampled; got {how!r}")
        head = None if model.head is None else head_in_blocks(model.head)
        return LiveEncoder(in_blocks(model.encoder), head, model.sampling, how, model.degree_features,
                           model.multilabel, model.seed, products_of(model.encoder))  # fmt: skip

    def embed(self, targets: Sequence[Target]) -> Tensor:
        """z of `targets`, (B, dim)."""
        return self.read(targets)()

    @torch.no_grad()
    def read(self, targets: Sequence[Target]) -> Compute:
        """All that the graph has to say about `targets`. What is returned makes z of it, and the graph may change
        meanwhile."""
        run = self._exact if self.inference == "exact" else self._sampled
        apart = [[target] for target in targets] if self.products == "other" else [targets]
        parts = [run(Reading(some)) for some in apart if some]

        @torch.no_grad()
        def compute() -> Tensor:
            with Blocks() if self.products == "all" else nullcontext():
                made = [part() for part in parts]
            if len(made) == 1:
                return made[0]
            return torch.cat(made) if made else torch.zeros(0, self.encoder.config.dim)

        return compute

    @torch.no_grad()
    def probabilities(self, z: Tensor) -> Tensor | None:
        """(B, C), None for a model without classes."""
        if self.head is None:
            return None
        scores = self.head(z)
        return torch.sigmoid(scores) if self.multilabel else torch.softmax(scores, dim=1)

    def _exact(self, reading: Reading) -> Compute:
        """Algorithm 1, only for the places within K - 1 hops of the targets."""
        places = np.unique(reading.targets)
        levels = [(places, *reading.neighbors(places))]
        for _ in self.encoder.layers[1:]:
            places = np.unique(np.concatenate(levels[0][:2]))
            levels.insert(0, (places, *reading.neighbors(places)))
        places, around, _ = levels[0]
        inputs, index, rows = _distinct(*(reading.inputs(some, self.degrees) for some in (around, places)))
        tables, pointers, below = reading.tables(inputs, self.degrees), [(index, rows)], places
        for places, around, _ in levels[1:]:
            pointers.append((torch.from_numpy(np.searchsorted(below, around)),
                             torch.from_numpy(np.searchsorted(below, places))))  # fmt: skip
            below = places
        around_each = [
            (Neighborhood.ragged(index, torch.from_numpy(offsets), self._draws(reading, places, k)), rows)
            for k, ((index, rows), (places, _, offsets)) in enumerate(zip(pointers, levels, strict=True), 1)
        ]
        wanted = torch.from_numpy(np.searchsorted(below, reading.targets))

        def compute() -> Tensor:
            neighborhood, rows = around_each[0]
            h = self.encoder.first(tables, rows, neighborhood)
            for k, (neighborhood, rows) in enumerate(around_each[1:], 2):
                h = self.encoder.layer(k)(h, neighborhood, rows)
            return h[wanted]

        return compute

    def _draws(self, reading: Reading, places: Rows, k: int) -> Tensor:
        """Names of what an aggregator draws in iteration k; an average draws nothing, and gets any numbers."""
        if self.encoder.layer(k).aggregator.linear:
            return torch.from_numpy(places)
        return derive(Stream(self.seed, "exact").keys(reading.keys(places)), k)

    def _sampled(self, reading: Reading) -> Compute:
        """Algorithm 2 with the draws of `sampling.minibatch`, read through the overlay."""
        keys = Stream(self.seed, "inference").keys(reading.keys(reading.targets))
        batch = (self._redrawn if self.sampling.redraw else self._reused)(reading, keys)
        first = batch.neighborhoods[0]
        around = reading.inputs(_flat(first).numpy(), self.degrees)
        places, index, rows = _distinct(around, reading.inputs(batch.rows.numpy(), self.degrees))
        tables = reading.tables(places, self.degrees)
        minibatch = Minibatch(rows, (_pointing(first, index), *batch.neighborhoods[1:]))

        def compute() -> Tensor:
            z: Tensor = self.encoder(tables, minibatch)
            return z

        return compute

    def _redrawn(self, reading: Reading, keys: Tensor) -> Minibatch:
        """As `sample_minibatch` does it, reading only the lists that are drawn from."""
        rows, above = torch.from_numpy(reading.targets), list[Neighborhood]()
        for k in range(len(self.sampling.sample_sizes), 0, -1):
            size = self.sampling.sample_sizes[k - 1]
            draw = derive(keys, k)
            flat, offsets = reading.neighbors(rows.numpy())
            here = torch.arange(len(rows))
            index, present = sample_neighbors(torch.from_numpy(offsets), torch.from_numpy(flat), here, size, draw)
            index = torch.where(present[:, None], index, rows[:, None])
            if k == 1:
                return Minibatch(rows, (Neighborhood.dense(index, present, draw), *above))
            above.insert(0, Neighborhood.consecutive(len(rows), size, present, draw))
            keys = torch.cat([keys, children(draw, size)])
            rows = torch.cat([rows, index.flatten()])
        raise AssertionError("sample_sizes is not empty")

    def _reused(self, reading: Reading, keys: Tensor) -> Minibatch:
        """The released code's draws (`redraw=False`), on a copy of all lists within K hops."""
        places = np.unique(reading.targets)
        for _ in range(len(self.sampling.sample_sizes)):
            places = np.unique(np.concatenate([places, reading.neighbors(places)[0]]))
        flat, offsets = _local(places, *reading.neighbors(places))
        graph = Graph(torch.from_numpy(offsets), torch.from_numpy(flat))
        targets = torch.from_numpy(np.searchsorted(places, reading.targets))
        batch = sample_minibatch(graph, targets, self.sampling.sample_sizes, keys, redraw=False)
        first, rows = batch.neighborhoods[0], torch.from_numpy(places)
        return Minibatch(rows[batch.rows], (_pointing(first, rows[_flat(first)]), *batch.neighborhoods[1:]))


def _flat(neighborhood: Neighborhood) -> Tensor:
    """What all parts of a neighborhood point at, one after the other."""
    return torch.cat([part.index.flatten() for part in neighborhood.parts])


def _pointing(neighborhood: Neighborhood, flat: Tensor) -> Neighborhood:
    """The same neighborhood pointing at `flat`."""
    parts = neighborhood.parts
    some = torch.split(flat, [part.index.numel() for part in parts])
    made = [part.with_index(index.view(part.index.shape)) for part, index in zip(parts, some, strict=True)]
    return Neighborhood.stacked(made)


def _distinct(*places: Rows) -> tuple[Rows, Tensor, Tensor]:
    """All different places, and where in them those of each array are."""
    together = np.concatenate(places)
    found, where = np.unique(together, return_inverse=True)
    first, second = np.split(where, [len(places[0])])
    return found, torch.from_numpy(first), torch.from_numpy(second)


def _local(places: Rows, flat: Rows, offsets: Rows) -> tuple[Rows, Rows]:
    """The lists of `places` with their places in it; neighbors further away are left out."""
    where = np.minimum(np.searchsorted(places, flat), len(places) - 1)
    inside = places[where] == flat
    counts = np.concatenate([[0], np.cumsum(inside)])
    return where[inside], counts[offsets]
