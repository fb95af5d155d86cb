"""How one layer runs: the plain way for any aggregator, and a faster one for each of ours.

A strategy is chosen once for a run, by the exact type of the aggregator (`strategy_for`). Each returns what the layer
itself returns, in values and gradients: `tests/contracts/test_strategies.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from graphsage.execution.combine import combine, own_rows, transform
from graphsage.kernels.backend import on_triton
from graphsage.kernels.block_linear import BlockLinear
from graphsage.kernels.buffers import Buffers
from graphsage.kernels.gather import gather_mean, gather_relu_max
from graphsage.kernels.linear_without_input_grad import linear_without_input_grad, padded
from graphsage.kernels.lstm import lstm_over_rows, recur
from graphsage.kernels.neighborhood import (
    Consecutive,
    Dense,
    Hoods,
    Neighborhood,
    compact,
    concatenated,
    each_relation,
    joined_keys,
    joined_rows,
    over_relations,
    side_by_side,
    with_repeats,
)
from graphsage.kernels.pool import frozen_relu_max
from graphsage.kernels.rows import scaled_rows
from graphsage.kernels.self_and_mean import gather_self_and_mean, self_and_mean
from graphsage.kernels.sequences import CELLS, last_states, permutations, permuted
from graphsage.model.aggregators.base import Aggregator
from graphsage.model.aggregators.gcn import GCNAggregator
from graphsage.model.aggregators.lstm import LSTMAggregator
from graphsage.model.aggregators.mean import MeanAggregator
from graphsage.model.aggregators.pool import MeanPoolAggregator, PoolAggregator
from graphsage.model.encoder import Encoder
from graphsage.model.layer import BlockDiagonal, SageLayer


@dataclass(frozen=True, eq=False)
class LayerInput:
    """What a batch reads of the input tables. It depends on no weight, so it can be made ahead of the step.

    Most strategies: row i of `x` (M, D) holds the scaled features of nodes[i], and `hoods` index rows of `x`.
    `SelfAndMean`: row i of `x` (R, 2D) holds the features of nodes[i] and then the mean of its neighbors' features, in
    each relation. If the aggregator includes the node, it is one mean, (R, D). `hoods` hold node numbers, for identity
    vectors alone.
    `keys` (R,) are those of the rows of h^1, and `above` the neighborhoods of the layers above.
    """

    x: Tensor
    nodes: Tensor
    hoods: Hoods
    keys: Tensor
    above: tuple[Hoods, ...]


@dataclass(frozen=True, eq=False)
class Source:
    """The input tables (N, D_i), read side by side and scaled, and where to put what is read of them."""

    encoder: Encoder
    tables: Sequence[Tensor]
    buffers: Buffers
    out: Tensor | None = None
    """Used instead of a new buffer if it has the right shape and dtype."""

    @property
    def num_nodes(self) -> int:
        identity = self.encoder.identity
        return len(self.tables[0]) if self.tables or identity is None else identity.num_embeddings

    def buffer(self, rows: int, width: int, device: torch.device, padded_rows: bool) -> Tensor:
        """For layer 1's input. With `padded_rows`, training on a GPU gets rows zero-padded to 16 bytes, and in half
        precision if the tables are."""
        dtype, out, pads = torch.float32, self.out, False
        if padded_rows and self.encoder.training and device.type == "cuda" and self.encoder.identity is None:
            if all(table.dtype == torch.bfloat16 for table in self.tables):
                dtype = torch.bfloat16
            width, pads = padded(width, dtype), True
        if out is not None and out.shape == (rows, width) and out.dtype == dtype:
            return out
        if device.type == "cpu":
            return self.buffers.take(rows, width)
        return (torch.zeros if pads else torch.empty)(rows, width, dtype=dtype, device=device)


class Plain:
    """Calls the layer itself. Each distinct row of the input is read once."""

    padded_rows = False
    """Whether layer 1 takes zero-padded or half-precision rows, which make a GPU's products faster."""
    uses_keys = True
    """Whether the aggregator may draw random numbers."""

    def __init__(self, layer: SageLayer, cells: int = CELLS) -> None:
        self.layer, self.cells = layer, cells

    def read(self, source: Source, neighborhoods: Sequence[Hoods]) -> LayerInput:
        """The input of layer 1."""
        first = neighborhoods[0]
        if first[0].keys.is_cuda and all(isinstance(each, Dense) for each in each_relation(first)):
            nodes, hoods = with_repeats(first)  # fixed shapes, so that a step can be captured
        else:
            nodes, hoods = compact(first, source.num_nodes)
        encoder = source.encoder
        buffer = source.buffer(len(nodes), encoder.in_dim, nodes.device, self.padded_rows)
        x = scaled_rows(source.tables, nodes, encoder.shift, encoder.scale, buffer)
        return LayerInput(x, nodes, hoods, joined_keys(first), tuple(neighborhoods[1:]))

    def first(self, encoder: Encoder, data: LayerInput, buffers: Buffers) -> Tensor:
        """h^1 from what `read` returned."""
        return self.run(encoder.with_identity(data.x, data.nodes), data.hoods, buffers)

    def run(self, h: Tensor, hoods: Hoods, buffers: Buffers) -> Tensor:
        """h^k from h^{k-1}."""
        return concatenated([self.layer(h, hood) for hood in hoods])


class SelfAndMean(Plain):
    """Mean and GCN: concat(h_v, h_N) is made in one pass, and the scaler is applied after averaging."""

    uses_keys = False

    def __init__(self, layer: SageLayer, cells: int = CELLS) -> None:
        super().__init__(layer, cells)
        self.includes_self = layer.aggregator.includes_self
        self.padded_rows = isinstance(layer.weight, nn.Linear)  # a block-diagonal weight reads halves of a row

    def read(self, source: Source, neighborhoods: Sequence[Hoods]) -> LayerInput:
        first, encoder = neighborhoods[0], source.encoder
        rows, width = joined_rows(first), encoder.in_dim * (self.layer.num_relations + (not self.includes_self))
        buffer = source.buffer(len(rows), width, rows.device, self.padded_rows)
        x = gather_self_and_mean(source.tables, first, self.includes_self, encoder.shift, encoder.scale, buffer)
        identities = () if encoder.identity is None else first
        return LayerInput(x, rows, identities, joined_keys(first), tuple(neighborhoods[1:]))

    def first(self, encoder: Encoder, data: LayerInput, buffers: Buffers) -> Tensor:
        x = data.x
        if encoder.identity is not None:
            table, dim = encoder.identity.weight, encoder.in_dim
            learned = over_relations(data.hoods, lambda hood: self.layer.aggregator(table, hood))
            parts = [] if self.includes_self else [x[:, :dim], encoder.identity(data.nodes)]
            means, more = x[:, 0 if self.includes_self else dim :], table.shape[1]
            for r in range(self.layer.num_relations):
                parts += [means[:, r * dim : (r + 1) * dim], learned[:, r * more : (r + 1) * more]]
            x = side_by_side(parts)
        return transform(self.layer, x, data.keys, buffers)

    def run(self, h: Tensor, hoods: Hoods, buffers: Buffers) -> Tensor:
        hood = hoods[0]
        if len(hoods) == 1 and isinstance(hood, Consecutive) and hood.weight is None:
            x = self_and_mean(h, hood, self.includes_self, buffers)
            return transform(self.layer, x, hood.keys, buffers)
        aggregated = over_relations(hoods, lambda hood: self.layer.aggregator(h, hood))
        if self.includes_self:
            return transform(self.layer, aggregated, joined_keys(hoods), buffers)
        return combine(self.layer, own_rows(h, hoods, buffers), aggregated, joined_keys(hoods), buffers)


class MaxPool(Plain):
    """Pool: bias and ReLU are applied after the maximum, which gives the same result on fewer rows. Rows without a
    gradient need one matrix product in training instead of two."""

    padded_rows, uses_keys = True, False

    def run(self, h: Tensor, hoods: Hoods, buffers: Buffers) -> Tensor:
        aggregated = self.aggregated(h, hoods, buffers)
        return combine(self.layer, own_rows(h, hoods, buffers), aggregated, joined_keys(hoods), buffers)

    def aggregated(self, h: Tensor, hoods: Hoods, buffers: Buffers) -> Tensor:
        pool = self.layer.aggregator
        assert isinstance(pool, PoolAggregator)
        last = linear_layers(pool)[-1]
        frozen = torch.is_grad_enabled() and not h.requires_grad and len(linear_layers(pool)) == 1
        if frozen and h.device.type == "cpu" and h.dtype == last.weight.dtype:
            dense = [hood for hood in hoods if isinstance(hood, Dense)]
            if len(dense) == len(hoods):
                return concatenated(
                    [frozen_relu_max(h, last.weight, last.bias, d.index, d.present, buffers) for d in dense]
                )
        table = last_product(pool, h)
        return over_relations(hoods, lambda hood: gather_relu_max(table, hood, last.bias, buffers))


class MeanPool(MaxPool):
    """Mean pooling: as `MaxPool`, but bias and ReLU come before the mean."""

    def aggregated(self, h: Tensor, hoods: Hoods, buffers: Buffers) -> Tensor:
        pool = self.layer.aggregator
        assert isinstance(pool, PoolAggregator)
        table = torch.relu(last_product(pool, h) + linear_layers(pool)[-1].bias)
        return over_relations(hoods, lambda hood: gather_mean(table, hood, buffers))


class PoolModules(MaxPool):
    """Pool by calling the aggregator itself, for an encoder whose linear modules were exchanged."""

    def aggregated(self, h: Tensor, hoods: Hoods, buffers: Buffers) -> Tensor:
        return over_relations(hoods, lambda hood: self.layer.aggregator(h, hood))


class LstmOverRows(Plain):
    """LSTM: each row's contribution to the gates is computed once, however often it is drawn."""

    padded_rows = True

    def run(self, h: Tensor, hoods: Hoods, buffers: Buffers) -> Tensor:
        aggregated = over_relations(hoods, lambda hood: self._last_states(h, hood, buffers))
        return combine(self.layer, own_rows(h, hoods, buffers), aggregated, joined_keys(hoods), buffers)

    def _last_states(self, h: Tensor, hood: Neighborhood, buffers: Buffers) -> Tensor:
        aggregator = self.layer.aggregator
        assert isinstance(aggregator, LSTMAggregator)
        lstm = aggregator.lstm
        weight, recurrent, *biases = lstm.parameters()
        single = lstm.num_layers == 1
        if single and isinstance(hood, Consecutive) and on_triton(h):
            plain = h.shape[1] == weight.shape[1] and h.dtype == weight.dtype
            gates = h @ weight.t() if plain else linear_without_input_grad(h, weight)
            last = recur(gates, recurrent, biases[0] + biases[1], permutations(hood.keys, hood.size), hood.start)
            return last * hood.present[:, None]
        h = h[:, : lstm.input_size].to(weight.dtype)
        order = permuted(hood)
        if single and isinstance(order, Dense) and torch.is_grad_enabled() and h.device.type == "cpu":
            last = lstm_over_rows(h, weight, recurrent, biases[0] + biases[1], order.index, buffers)
            return last * hood.present[:, None]
        return last_states(lstm, h, order, self.cells)


STRATEGIES: dict[type[Aggregator], type[Plain]] = {
    MeanAggregator: SelfAndMean,
    GCNAggregator: SelfAndMean,
    PoolAggregator: MaxPool,
    MeanPoolAggregator: MeanPool,
    LSTMAggregator: LstmOverRows,
}


def strategy_for(layer: SageLayer, cells: int = CELLS, *, modules_only: bool = False) -> Plain:
    """By the exact types of the layer, its aggregator and their modules: a changed one gets `Plain`, which calls it. So
    does a layer whose aggregator includes the node and whose skip connection needs the node's own row."""
    alone = layer.skip is not None and layer.aggregator.includes_self
    strategy = STRATEGIES.get(type(layer.aggregator), Plain) if _as_built(layer) and not alone else Plain
    return (PoolModules if modules_only and issubclass(strategy, MaxPool) else strategy)(layer, cells)


def _as_built(layer: SageLayer) -> bool:
    """Whether all modules of a layer are those of its `__init__`, without hooks; a user may have exchanged some."""
    weight, aggregator = layer.weight, layer.aggregator
    linear: list[nn.Module] = [*weight.children()] if type(weight) is BlockDiagonal else [weight]
    if isinstance(aggregator, PoolAggregator):
        modules = [*aggregator.mlp] if type(aggregator.mlp) is nn.Sequential else []
        if not modules or len(modules) % 2 or {type(each) for each in modules[1::2]} != {nn.ReLU}:
            return False
        linear += modules[::2]
    if isinstance(aggregator, LSTMAggregator):
        lstm = aggregator.lstm
        if type(lstm) is not nn.LSTM or lstm.bidirectional or lstm.proj_size or not (lstm.bias and lstm.batch_first):
            return False
    linear += [layer.skip] if layer.skip is not None and type(layer.skip) is not nn.Identity else []
    hooked = any(each._forward_hooks or each._forward_pre_hooks for each in layer.modules())
    known_norm = layer.norm is None or type(layer.norm) is nn.LayerNorm
    return (
        type(layer) is SageLayer
        and known_norm
        and {type(each) for each in linear} <= {nn.Linear, BlockLinear}
        and not hooked
    )


def linear_layers(pool: PoolAggregator) -> list[nn.Linear]:
    return [module for module in pool.mlp if isinstance(module, nn.Linear)]


def last_product(pool: PoolAggregator, h: Tensor) -> Tensor:
    """`pool.message` without its last bias and ReLU. Rows of the input may be zero-padded, and have no gradient."""
    *hidden, last = linear_layers(pool)
    for linear in hidden:
        h = torch.relu(_product(h, linear.weight) + linear.bias)
    return _product(h, last.weight)


def _product(h: Tensor, weight: Tensor) -> Tensor:
    plain = h.shape[1] == weight.shape[1] and h.dtype == weight.dtype
    return h @ weight.t() if plain else linear_without_input_grad(h, weight, h.dtype)
