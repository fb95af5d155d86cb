"""The supervised objective over whole neighborhoods: a step embeds every node of some connected parts of the training
graph, each once per layer, and sums over the labeled ones (Algorithm 1 instead of Algorithm 2)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from graphsage.errors import ConfigError, setting
from graphsage.execution.fast_encoder import FastEncoder
from graphsage.execution.step import Examples
from graphsage.execution.strategies import LayerInput
from graphsage.graph.graph import Graph
from graphsage.kernels.neighborhood import Ragged, related, with_keys
from graphsage.kernels.random import Stream, derive
from graphsage.model.heads import ClassHead
from graphsage.training.batches import Epochs
from graphsage.training.config import Config
from graphsage.training.objectives.base import TrainingData
from graphsage.training.objectives.supervised import Labeled, Supervised


@dataclass(frozen=True)
class Batch:
    """The nodes of a step, ascending, and which of them are labeled training nodes; what their layers read."""

    nodes: Tensor
    labeled: Tensor
    inputs: LayerInput


class WholeGraphs(Supervised):
    """An epoch contains every batch once. Batches are the same in all epochs; their order and the dropout are not."""

    fixed_shapes = False

    def __init__(self, config: Config, encoder: FastEncoder, head: ClassHead, data: TrainingData) -> None:
        super().__init__(config, encoder, head, data)
        if data.ranks > 1:
            raise ConfigError(
                f"{setting('whole_batches')} trains in one process; leave out the workers, or sample neighbors"
            )
        self.parts = dealt(data.capped, self.nodes, config.whole_batches)
        self.batches: dict[int, Batch] = {}
        self.epochs = Epochs(len(self.parts), 1, config.seed)

    def choose_examples(self, step: int, count: int = 1) -> Examples:
        """The numbers of the batches, (count, 1), and their epochs."""
        numbers = self.epochs.examples(step, torch.device("cpu"), count)
        return numbers, torch.full_like(numbers, self.epochs.epoch_of(step))

    def gather(self, examples: Examples, out: Tensor | None = None) -> Labeled:
        number, epoch = (int(each) for each in examples)
        if number not in self.batches:
            self.batches[number] = self._batch(self.parts[number])
        batch = self.batches[number]
        keys = Stream(self.config.seed, "neighbors", epoch).keys(batch.nodes)
        by_layer = [derive(keys, k) for k in range(1, len(self.encoder.strategies) + 1)]
        inputs = replace(
            batch.inputs,
            keys=by_layer[0],
            hoods=tuple(with_keys(hood, by_layer[0]) for hood in batch.inputs.hoods),
            above=tuple(
                tuple(with_keys(hood, by_layer[k]) for hood in hoods)
                for k, hoods in enumerate(batch.inputs.above, start=1)
            ),
        )
        targets = batch.nodes[batch.labeled]
        return Labeled(inputs, keys[batch.labeled], self.labels[targets], None, batch.labeled)

    def rows_of(self, gathered: Labeled) -> None:
        return None  # they are kept for the next epoch

    def _batch(self, nodes: Tensor) -> Batch:
        graph = self.data.capped
        place = torch.full((graph.num_nodes,), -1, dtype=torch.int64, device=nodes.device)
        place[nodes] = torch.arange(len(nodes), device=nodes.device)
        whole = [
            Ragged(*lists.neighbors_of(nodes), nodes, nodes, lists.shares_of(nodes)) for lists in graph.by_relation
        ]
        first = related(whole)
        above = related([replace(each, index=place[each.index], rows=slice(0, len(nodes))) for each in whole])
        depth = len(self.encoder.strategies)
        fast = FastEncoder(self.encoder.encoder)  # its buffers outlive a step
        inputs = fast.read(self.data.tables, ((first,), *[(above,)] * (depth - 1)))
        return Batch(nodes, place[self.nodes][place[self.nodes] >= 0], inputs)


def dealt(graph: Graph, labeled: Tensor, count: int) -> Sequence[Tensor]:
    """The connected parts of `graph` that hold `labeled` nodes, dealt to at most `count` batches of nodes: the largest
    part first, each to the batch with the fewest nodes."""
    from scipy.sparse import csr_array  # 23 MB, for this setting alone
    from scipy.sparse.csgraph import connected_components

    indptr, indices = graph.indptr.cpu().numpy(), graph.indices.cpu().numpy()
    shape = (graph.num_nodes, graph.num_nodes)
    matrix = csr_array((np.ones(len(indices), np.int8), indices, indptr), shape=shape)
    _, part = connected_components(matrix, directed=True, connection="weak")
    sizes = np.bincount(part)
    wanted = np.unique(part[labeled.cpu().numpy()])
    batch_of, filled = np.full(len(sizes), -1), np.zeros(min(count, len(wanted)), np.int64)
    for number in wanted[np.argsort(-sizes[wanted], kind="stable")]:
        batch_of[number] = least = int(filled.argmin())
        filled[least] += sizes[number]
    of_node = batch_of[part]
    return [torch.from_numpy(np.flatnonzero(of_node == batch)).to(labeled.device) for batch in range(len(filled))]
