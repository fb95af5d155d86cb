"""One iteration of Algorithm 1 for some rows: aggregate (line 4), combine (line 5), normalize (line 7)."""

import torch
from torch import Tensor, nn

from graphsage.kernels.join import join
from graphsage.kernels.neighborhood import Neighborhood
from graphsage.kernels.product import frozen_linear
from graphsage.kernels.rows import frozen_rows
from graphsage.kernels.unit import frozen_relu_unit, relu_unit
from graphsage.model.aggregators import Aggregator

ROWS_AT_ONCE = 1 << 11  # rows of a whole graph finished at once: on a CPU they stay in cache from one pass to the next


class SageLayer(nn.Module):
    """combine 'joint':  W · concat(h_v, h_N), the paper's line 5.
    combine 'halves': concat(W_self h_v, W_neigh h_N), the released code: each half of the output sees one side.

    An aggregator that includes the node itself (Equation 2) has one W and no concatenation in either.
    """

    def __init__(self, in_dim: int, out_dim: int, aggregator: Aggregator, *, combine: str, activation: bool,
                 normalize: bool, bias: bool) -> None:  # fmt: skip
        super().__init__()
        self.aggregator, self.in_dim = aggregator, in_dim
        self.activation, self.normalize = activation, normalize
        self.halves = combine == "halves" and not aggregator.includes_self
        if self.halves:
            self.self_weight = nn.Linear(in_dim, out_dim - out_dim // 2, bias=bias)
            self.neighbor_weight = nn.Linear(aggregator.out_dim, out_dim // 2, bias=bias)
        else:
            width = aggregator.out_dim if aggregator.includes_self else in_dim + aggregator.out_dim
            self.weight = nn.Linear(width, out_dim, bias=bias)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)

    def forward(self, h: Tensor, neighborhood: Neighborhood, rows: Tensor | None = None) -> Tensor:
        """h (M, D), rows (R,) of it (None: the first ones) and their neighborhoods -> (R, D_out)."""
        if rows is None and self.aggregator.linear and neighborhood.start is not None:
            return self.transform(join(h, neighborhood, self.aggregator.includes_self))
        aggregated = self.aggregate(h, neighborhood, rows)
        if self.aggregator.includes_self:
            return self.transform(aggregated)
        own = h[: neighborhood.num_rows] if rows is None else frozen_rows(h, rows)
        if self._reuses(own, aggregated):
            return frozen_relu_unit(own, aggregated, self.weight.weight, self.activation, self.normalize)
        if own.shape[1] == self.in_dim or self.halves:
            return self.transform(torch.cat([own[:, : self.in_dim].to(aggregated.dtype), aggregated], dim=1))
        # Rows of the input, padded for a GPU: two products, each of factors that it likes.
        weight, bias = self.weight.weight, self.weight.bias
        h = torch.addmm(
            frozen_linear(own, weight[:, : self.in_dim]), aggregated, self._neighbor_weight.contiguous().t()
        )
        return relu_unit(h if bias is None else h + bias, self.activation, self.normalize)

    def aggregate(self, h: Tensor, neighborhood: Neighborhood, rows: Tensor | None = None) -> Tensor:
        """Line 4: h_N of each row, (R, aggregator.out_dim)."""
        if rows is None:
            rows = torch.arange(neighborhood.num_rows, device=h.device)
        parts = neighborhood.parts
        each = [
            self.aggregator(h, part, some)
            for part, some in zip(parts, torch.split(rows, [part.num_rows for part in parts]), strict=True)
        ]
        return each[0] if len(each) == 1 else torch.cat(each)

    def transform(self, x: Tensor) -> Tensor:
        """Lines 5 and 7 on concat(h_v, h_N), or on h_N alone where the aggregator includes the node."""
        if self._reuses(x):
            return frozen_relu_unit(x, None, self.weight.weight, self.activation, self.normalize)
        if self.halves:
            h_self, h_neighbors = x[:, : self.in_dim], x[:, self.in_dim :]
            h = torch.cat([self.self_weight(h_self), self.neighbor_weight(h_neighbors)], dim=1)
        elif x.shape[1] > self.weight.in_features or x.dtype != self.weight.weight.dtype:
            h = frozen_linear(x, self.weight.weight)
            h = h if self.weight.bias is None else h + self.weight.bias
        else:
            h = self.weight(x)
        return relu_unit(h, self.activation, self.normalize)

    def _reuses(self, own: Tensor, aggregated: Tensor | None = None) -> bool:
        """Whether a training step on a CPU can do with memory of the last one: `own` does not learn."""
        if self.halves or self.weight.bias is not None or own.requires_grad or not torch.is_grad_enabled():
            return False
        weight, parts = self.weight.weight, [own] if aggregated is None else [own, aggregated]
        same = all(part.dtype == weight.dtype and part.device.type == "cpu" for part in parts)
        return same and weight.requires_grad and sum(part.shape[1] for part in parts) == weight.shape[1]

    # A whole graph at once: what is done to single rows comes first, once a row, and reducing neighbors after it.

    @property
    def acts_on_rows(self) -> bool:
        """Whether that pays: an MLP before the aggregation, or weights that make rows narrower than they were."""
        if self._projects:
            return self._neighbor_weight.shape[0] < self.in_dim
        return self.aggregator.acts_on_rows

    @property
    def row_width(self) -> int:
        return self._neighbor_weight.shape[0] if self._projects else self.aggregator.out_dim

    def on_rows(self, h: Tensor, once: Tensor, out: Tensor) -> None:
        """Of h (M, D): write what neighbors will read into `once` (M, row_width), and what a row itself contributes
        into `out`."""
        self.for_neighbors(h, once)
        self.for_itself(h, out)

    def for_neighbors(self, h: Tensor, once: Tensor) -> None:
        """The aggregator's own transformation of rows or, as averaging commutes with it, W h."""
        if self._projects:
            torch.mm(h, self._neighbor_weight.t(), out=once)
        else:
            once.copy_(self.aggregator.on_rows(h))

    def for_itself(self, h: Tensor, out: Tensor) -> None:
        """W h of the part of W that is applied to the row itself, without its bias."""
        if self.aggregator.includes_self:
            return
        if self.halves:
            out[:, : self.self_weight.out_features] = h @ self.self_weight.weight.t()
        else:
            torch.mm(h, self.weight.weight[:, : self.in_dim].t(), out=out)

    def after_rows(self, once: Tensor, neighborhood: Neighborhood, rows: Tensor, out: Tensor) -> None:
        """Finish h^k of `rows` in `out`, from what `on_rows` made of every node."""
        aggregated = self.aggregator.reduce(once, neighborhood, rows)
        for part in _parts(out):
            self.finish(aggregated[part], out[part])

    def finish(self, aggregated: Tensor, out: Tensor) -> None:
        """Lines 5 and 7 in `out`, which holds what `for_itself` wrote, given what was reduced."""
        if not self._projects:
            aggregated = aggregated @ self._neighbor_weight.t()
        if self.halves:
            out[:, self.self_weight.out_features :] = aggregated
        elif self.aggregator.includes_self:
            out.copy_(aggregated)
        else:
            out += aggregated
        self._finish(out)

    def after_neighbors(self, own: Tensor, aggregated: Tensor, out: Tensor) -> None:
        """h^k in `out` from the rows' own vectors and h_N, where aggregating first moves no more bytes."""
        for part in _parts(out):
            self._multiply(own[part], aggregated[part], out[part])
            self._finish(out[part])

    def _multiply(self, own: Tensor, aggregated: Tensor, out: Tensor) -> None:
        if self.halves:
            size = self.self_weight.out_features
            out[:, :size], out[:, size:] = own @ self.self_weight.weight.t(), aggregated @ self._neighbor_weight.t()
        else:
            torch.mm(aggregated, self._neighbor_weight.t(), out=out)
            if not self.aggregator.includes_self:
                out.addmm_(own, self.weight.weight[:, : self.in_dim].t())

    def _finish(self, out: Tensor) -> None:
        if self.halves and self.self_weight.bias is not None:
            out += torch.cat([self.self_weight.bias, self.neighbor_weight.bias])
        elif not self.halves and self.weight.bias is not None:
            out += self.weight.bias
        out.copy_(relu_unit(out, self.activation, self.normalize))

    @property
    def _projects(self) -> bool:
        return self.aggregator.linear

    @property
    def _neighbor_weight(self) -> Tensor:
        """The part of W that is applied to h_N."""
        if self.halves:
            return self.neighbor_weight.weight
        return self.weight.weight if self.aggregator.includes_self else self.weight.weight[:, self.in_dim :]


def _parts(out: Tensor) -> list[slice]:
    step = len(out) if out.is_cuda else ROWS_AT_ONCE
    return [slice(start, start + step) for start in range(0, len(out), max(step, 1))]
