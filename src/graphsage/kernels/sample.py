"""Uniform neighbor sampling as arithmetic on a CSR: fixed size, static shapes, no Python loop over nodes."""

import torch
from torch import Tensor

from graphsage.kernels.backend import on_triton
from graphsage.kernels.random import below, derive, key_step


def hop(indptr: Tensor, indices: Tensor, rows: Tensor, keys: Tensor, layer: int,
        size: int) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The last hop of a tree: `size` neighbors of each of `rows` (R,) under the draw that `keys` give `layer`.

    Returns the neighbors (R, size), which rows have any (R,), and the draws' keys (R,).
    """
    if on_triton(keys):
        from graphsage.kernels.triton import hop as fast

        index, _, present, draw = fast.hop(indptr, indices, rows, keys, key_step(layer), size, grow=False)
        return index, present, draw
    draw = derive(keys, layer)
    index, present = sample_neighbors(indptr, indices, rows, size, draw)
    return index, present, draw


def grow(indptr: Tensor, indices: Tensor, rows: Tensor, keys: Tensor, layer: int,
         size: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """A hop that others follow. Returns (R + R * size,) rows and keys, those given first and then, row by row, their
    neighbors; which rows have any (R,); and the draws' keys (R,)."""
    if on_triton(keys):
        from graphsage.kernels.triton import hop as fast

        grown, grown_keys, present, draw = fast.hop(indptr, indices, rows, keys, key_step(layer), size, grow=True)
        assert grown_keys is not None
        return grown, grown_keys, present, draw
    draw = derive(keys, layer)
    index, present = sample_neighbors(indptr, indices, rows, size, draw)
    return torch.cat([rows, index.flatten()]), torch.cat([keys, children(draw, size)]), present, draw


def children(draw: Tensor, size: int) -> Tensor:
    """Keys of the `size` nodes drawn under each of `draw` (R,), flat."""
    slots = torch.arange(size, device=draw.device)
    return derive(draw[:, None], slots + size).flatten()  # `slots` themselves were spent on the offsets


def sample_offsets(degree: Tensor, size: int, keys: Tensor) -> Tensor:
    """`size` offsets below each degree: distinct where degree >= size, independent draws where it is smaller.

    degree (R,), keys (R,) -> (R, size). Distinct ones come from Floyd's method: step j draws below d - size + j + 1
    and takes d - size + j instead when the draw was taken before, which makes every subset equally likely. The
    *order* within a row is not uniform: an aggregator that reads order must permute. Degree 0 yields zeros.
    """
    return _offsets(degree, size, keys).t()


def _offsets(degree: Tensor, size: int, keys: Tensor) -> Tensor:
    """The same, (size, R) int32: one slot of all rows lies together."""
    slots = torch.arange(size, device=keys.device)[:, None]
    enough = degree >= size
    last = torch.where(enough, degree - size + slots, (degree - 1).clamp_min(0))
    chosen = below(derive(keys[None], slots), last + 1).int()
    last = last.int()
    few = ~enough
    for j in range(1, size):
        free = (chosen[:j] ^ chosen[j]).amin(dim=0).bool()  # no zero: four times as fast as (==).any
        torch.where(free | few, chosen[j], last[j], out=chosen[j])
    return chosen


def sample_neighbors(indptr: Tensor, indices: Tensor, nodes: Tensor, size: int, keys: Tensor) -> tuple[Tensor, Tensor]:
    """Sampled neighbors (R, size) of `nodes` (R,), and which rows have any neighbor at all (R,).

    A node of degree 0 yields itself `size` times, a readable row that the mask then silences.
    """
    start = indptr[nodes]
    degree = indptr[nodes + 1] - start
    present = degree > 0
    if indices.numel() == 0:
        return nodes[:, None].expand(-1, size).contiguous(), present
    places = torch.where(present, start, 0) + _offsets(degree, size, keys)
    index = indices.take(places)
    index = torch.where(present, index, nodes.to(index.dtype))
    return index.t().long().contiguous(), present
