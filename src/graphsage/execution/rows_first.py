"""Fast form of model/layer.py, line 4, line 5 and line 7, over all nodes: each row is transformed once, then reduced.

This serves aggregators that reduce by a mean or a maximum. A mean commutes with W: rows are multiplied by W first if
that makes them narrower. Pool applies its perceptron before the maximum, as Equation 3 does. A sum or a maximum can be
taken over a part of the neighbors at a time (`partial`), for graphs larger than memory.
"""

import torch
from torch import Tensor, nn

from graphsage.execution.strategies import MaxPool, MeanPool, SelfAndMean, last_product, linear_layers, strategy_for
from graphsage.kernels.buffers import FRESH, Buffers
from graphsage.kernels.gather import gather_max, gather_mean, gather_sum
from graphsage.kernels.neighborhood import Ragged
from graphsage.kernels.relu_l2norm import relu_l2norm
from graphsage.model.aggregators.pool import PoolAggregator
from graphsage.model.layer import BlockDiagonal, SageLayer

ROWS_AT_ONCE = 1 << 11  # rows finished at once: on a CPU they stay in cache from one pass to the next


def rows_first(layer: SageLayer) -> "RowsFirst | None":
    """None for an aggregator that needs all neighbors of a row at once, or that is not one of ours, and for a layer of
    several relations."""
    known = layer.num_relations == 1 and type(strategy_for(layer)) in (SelfAndMean, MaxPool, MeanPool)
    return RowsFirst(layer) if known else None


class RowsFirst:
    def __init__(self, layer: SageLayer) -> None:
        self.layer, self.aggregator = layer, layer.aggregator
        self.projects = not isinstance(self.aggregator, PoolAggregator)
        self.partial = "max" if self.aggregator.reduction == "max" else "sum"
        self.width = self._neighbor_weight.shape[0] if self.projects else self.aggregator.out_dim
        """Width of the rows that `for_neighbors` writes."""

    @property
    def required(self) -> bool:
        """Whether rows must be transformed before the reduction."""
        return not self.projects

    @property
    def pays(self) -> bool:
        """Whether transforming first is required, or moves fewer bytes."""
        return self.required or self.width < self.layer.in_dim

    def for_neighbors(self, h: Tensor, out: Tensor) -> None:
        """h (M, D) -> `out` (M, width): what a row's neighbors read, pool's message or W_neighbor h."""
        if self.projects:
            torch.mm(h, self._neighbor_weight.t(), out=out)
            return
        assert isinstance(self.aggregator, PoolAggregator)
        out.copy_(last_product(self.aggregator, h)).add_(linear_layers(self.aggregator)[-1].bias).clamp_min_(0)

    def for_itself(self, h: Tensor, out: Tensor) -> None:
        """h (M, D) -> `out` (M, D_out): a row's own part of W · concat(h_v, h_N), without bias."""
        weight = self.layer.weight
        if self.aggregator.includes_self:
            return
        if isinstance(weight, BlockDiagonal):
            out[:, : weight.self_weight.out_features] = h @ weight.self_weight.weight.t()
        else:
            torch.mm(h, weight.weight[:, : self.layer.in_dim].t(), out=out)

    def reduce(self, table: Tensor, hood: Ragged, buffers: Buffers = FRESH) -> Tensor:
        """AGGREGATE over a table that `for_neighbors` filled, or over h itself. Without gradient."""
        if self.aggregator.includes_self:
            return gather_sum(table, hood, buffers).add_(table[hood.rows]).div_((hood.counts + 1)[:, None])
        return (gather_max if self.partial == "max" else gather_mean)(table, hood, buffers)

    def from_partial(self, combined: Tensor, counts: Tensor, own: Tensor | None) -> Tensor:
        """`reduce`, given the sum or maximum (R, width) over all neighbors, their counts (R,), and the nodes' own rows
        of the table, which are needed if the aggregator includes the node."""
        if self.aggregator.includes_self:
            assert own is not None
            return (combined + own) / (counts + 1)[:, None]
        return combined if self.partial == "max" else combined / counts.clamp(min=1)[:, None]

    def finish(self, aggregated: Tensor, out: Tensor, own: Tensor | None = None) -> None:
        """h^k in `out`, which holds what `for_itself` wrote, from what was reduced; with a skip connection also from
        h_v, `own`."""
        for rows in _parts(out):
            self._add(aggregated[rows], out[rows])
            self._activate(out[rows], None if own is None else own[rows])

    def combine(self, own: Tensor, aggregated: Tensor, out: Tensor) -> None:
        """h^k in `out` from h_v and h_N: lines 5 and 7 without rows that were transformed first."""
        for rows in _parts(out):
            self._multiply(own[rows], aggregated[rows], out[rows])
            self._activate(out[rows], own[rows])

    def _add(self, aggregated: Tensor, out: Tensor) -> None:
        weight = self.layer.weight
        if not self.projects:
            aggregated = aggregated @ self._neighbor_weight.t()
        if isinstance(weight, BlockDiagonal):
            out[:, weight.self_weight.out_features :] = aggregated
        elif self.aggregator.includes_self:
            out.copy_(aggregated)
        else:
            out += aggregated

    def _multiply(self, own: Tensor, aggregated: Tensor, out: Tensor) -> None:
        weight = self.layer.weight
        if isinstance(weight, BlockDiagonal):
            self.for_itself(own, out)
            out[:, weight.self_weight.out_features :] = aggregated @ self._neighbor_weight.t()
        else:
            torch.mm(aggregated, self._neighbor_weight.t(), out=out)
            if not self.aggregator.includes_self:
                out.addmm_(own, weight.weight[:, : self.layer.in_dim].t())

    def _activate(self, out: Tensor, own: Tensor | None) -> None:
        layer, weight = self.layer, self.layer.weight
        linears = [weight] if isinstance(weight, nn.Linear) else [weight.self_weight, weight.neighbor_weight]
        if linears[0].bias is not None:
            out += torch.cat([linear.bias for linear in linears])
        h = out if layer.norm is None else layer.norm(out)
        out.copy_(relu_l2norm(h, layer.activation, layer.normalize))
        if layer.skip is not None:
            assert own is not None
            out += layer.skip(own)

    @property
    def _neighbor_weight(self) -> Tensor:
        """The part of W that is applied to h_N."""
        weight = self.layer.weight
        if isinstance(weight, BlockDiagonal):
            return weight.neighbor_weight.weight
        return weight.weight if self.aggregator.includes_self else weight.weight[:, self.layer.in_dim :]


def _parts(out: Tensor) -> list[slice]:
    step = len(out) if out.is_cuda else ROWS_AT_ONCE
    return [slice(start, start + step) for start in range(0, len(out), max(step, 1))]
