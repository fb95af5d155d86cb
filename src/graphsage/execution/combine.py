"""Fast form of model/layer.py from line 5 on: W · concat(h_v, h_N), ReLU, normalization, dropout, skip connection.

No gradient is computed for frozen rows.
"""

import torch
from torch import Tensor, nn

from graphsage.kernels.buffers import Buffers
from graphsage.kernels.dropout import dropout
from graphsage.kernels.linear_without_input_grad import linear_without_input_grad
from graphsage.kernels.neighborhood import Hoods, joined_rows
from graphsage.kernels.relu_l2norm import linear_relu_l2norm, relu_l2norm
from graphsage.kernels.rows import frozen_rows
from graphsage.model.layer import SageLayer


def own_rows(h: Tensor, hoods: Hoods, buffers: Buffers) -> Tensor:
    """h_v of all rows of `hoods`."""
    first, last = hoods[0].rows, hoods[-1].rows
    if isinstance(first, slice) and isinstance(last, slice):
        return h[first.start : last.stop]
    rows = joined_rows(hoods)
    frozen = not h.requires_grad and torch.is_grad_enabled() and h.device.type == "cpu"
    return frozen_rows(h, rows, buffers) if frozen else h[rows]


def combine(layer: SageLayer, own: Tensor, aggregated: Tensor, keys: Tensor, buffers: Buffers) -> Tensor:
    """h^k from h_v and h_N. `own` may be zero-padded or in half precision; then it has no gradient. `keys` draw the
    dropout."""
    weight = layer.weight
    if isinstance(weight, nn.Linear) and layer.norm is None and _frozen_on_cpu(weight, own, aggregated):
        h = linear_relu_l2norm(own, aggregated, weight.weight, layer.activation, layer.normalize, buffers)
        return _drop_and_skip(layer, h, own, keys, buffers)
    if own.shape[1] == layer.in_dim or not isinstance(weight, nn.Linear):
        x = torch.cat([own[:, : layer.in_dim].to(aggregated.dtype), aggregated], dim=1)
        return transform(layer, x, keys, buffers)
    # Zero-padded rows: two products with aligned factors instead of one with an unaligned one.
    own_weight, neighbor_weight = weight.weight[:, : layer.in_dim], weight.weight[:, layer.in_dim :]
    h = torch.addmm(linear_without_input_grad(own, own_weight), aggregated, neighbor_weight.contiguous().t())
    return _finish(layer, h if weight.bias is None else h + weight.bias, own, keys, buffers)


def transform(layer: SageLayer, x: Tensor, keys: Tensor, buffers: Buffers) -> Tensor:
    """h^k from concat(h_v, h_N), or from h_N alone if the aggregator includes the node."""
    weight = layer.weight
    if not isinstance(weight, nn.Linear):
        h: Tensor = weight(x)
    elif layer.norm is None and _frozen_on_cpu(weight, x):
        h = linear_relu_l2norm(x, None, weight.weight, layer.activation, layer.normalize, buffers)
        return _drop_and_skip(layer, h, x, keys, buffers)
    elif x.shape[1] > weight.in_features or x.dtype != weight.weight.dtype:  # zero-padded or half-precision rows
        h = linear_without_input_grad(x, weight.weight)
        h = h if weight.bias is None else h + weight.bias
    else:
        h = weight(x)
    return _finish(layer, h, x, keys, buffers)


def _finish(layer: SageLayer, h: Tensor, own: Tensor, keys: Tensor, buffers: Buffers) -> Tensor:
    """h^k from W · concat(h_v, h_N). `own` begins with the columns of h_v."""
    h = h if layer.norm is None else layer.norm(h)
    return _drop_and_skip(layer, relu_l2norm(h, layer.activation, layer.normalize, buffers), own, keys, buffers)


def _drop_and_skip(layer: SageLayer, h: Tensor, own: Tensor, keys: Tensor, buffers: Buffers) -> Tensor:
    if layer.drops:
        h = dropout(h, layer.dropout, keys, layer.counter, buffers)
    return h if layer.skip is None else h + layer.skip(own[:, : layer.in_dim].to(h.dtype))


def _frozen_on_cpu(weight: nn.Linear, own: Tensor, *aggregated: Tensor) -> bool:
    """Whether only the weight (and h_N) learn, on a CPU: then products write into buffers."""
    if weight.bias is not None or own.requires_grad or not torch.is_grad_enabled():
        return False
    parts = (own, *aggregated)
    fits = all(part.dtype == weight.weight.dtype and part.device.type == "cpu" for part in parts)
    return fits and weight.weight.requires_grad and sum(part.shape[1] for part in parts) == weight.in_features
