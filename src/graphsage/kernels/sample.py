"""Uniform neighbor sampling as arithmetic on a CSR: fixed size, static shapes, no Python loop over nodes."""

import torch
from torch import Tensor

from graphsage.kernels.backend import on_compiled, on_triton
from graphsage.kernels.compiled import bindings
from graphsage.kernels.random import GOLDEN, below_, derive, key_step, mix_

BLOCK_ROWS = 2048  # 64-bit draws of so few rows stay in cache


Draws = tuple[Tensor, Tensor | None, Tensor, Tensor]


def sample_last_hop(
    indptr: Tensor, indices: Tensor, rows: Tensor, keys: Tensor, layer: int, size: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The last hop of a tree: `size` neighbors of each of `rows` (R,), drawn under the keys derived for `layer`.

    Returns the neighbors (R, size), which rows have any (R,), and the derived keys (R,).
    """
    index, _, present, draw = _sample_hop(indptr, indices, rows, keys, layer, size, extend=False)
    return index, present, draw


def sample_and_extend(
    indptr: Tensor, indices: Tensor, rows: Tensor, keys: Tensor, layer: int, size: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A hop that others follow. Returns (R + R * size,) rows and keys, those given first and then, row by row, their
    neighbors; which rows have any (R,); and the derived keys (R,)."""
    extended, extended_keys, present, draw = _sample_hop(indptr, indices, rows, keys, layer, size, extend=True)
    assert extended_keys is not None
    return extended, extended_keys, present, draw


def _sample_hop(
    indptr: Tensor, indices: Tensor, rows: Tensor, keys: Tensor, layer: int, size: int, *, extend: bool
) -> Draws:
    if on_triton(keys):
        from graphsage.kernels.triton import sample as triton

        return triton.sample_hop(indptr, indices, rows, keys, key_step(layer), size, extend=extend)
    if indptr.dtype == torch.int64 and 1 <= size <= bindings.LARGEST_SAMPLE and on_compiled(indptr, keys):
        return bindings.sample_hop(indptr, indices, rows, keys, key_step(layer), size, extend=extend)
    draw = derive(keys, layer)
    index, present = sample_neighbors(indptr, indices, rows, size, draw)
    if not extend:
        return index, None, present, draw
    slots = torch.arange(size, device=draw.device) + size  # the slots below `size` were used for the offsets
    below = derive(draw[:, None], slots).flatten()
    return torch.cat([rows, index.flatten()]), torch.cat([keys, below]), present, draw


def sample_offsets(degree: Tensor, size: int, keys: Tensor) -> Tensor:
    """`size` offsets below each degree: distinct where degree >= size, independent draws where it is smaller.

    degree (R,), keys (R,) -> (R, size). Distinct ones come from Floyd's method: step j draws below d - size + j + 1
    and takes d - size + j instead of a repeated draw, which makes every subset equally likely. The
    *order* within a row is not uniform: an aggregator that reads order must permute. Degree 0 yields zeros.
    """
    chosen, otherwise = _draws(degree, size, keys)
    for j in range(1, size):
        free = (chosen[:j] ^ chosen[j]).amin(dim=0).bool()  # no zero: four times as fast as (==).any
        torch.where(free, chosen[j], otherwise[j], out=chosen[j])
    return chosen.t().to(torch.int64, memory_format=torch.contiguous_format)


def _draws(degree: Tensor, size: int, keys: Tensor) -> tuple[Tensor, Tensor]:
    """Floyd's draws, and the offsets that replace repeated ones; both (size, R), so that a slot is contiguous."""
    on_cpu, rows = degree.device.type == "cpu", len(degree)
    narrow = on_cpu and rows > 0 and int(degree.max()) < 1 << 15
    dtype = torch.int16 if narrow else torch.int32
    chosen, otherwise = (torch.empty(size, rows, dtype=dtype, device=keys.device) for _ in range(2))
    slots = torch.arange(size, device=keys.device)[:, None]
    step = min(BLOCK_ROWS, rows) if on_cpu else rows
    draws, spares = (torch.empty(size * step, dtype=torch.int64, device=keys.device) for _ in range(2))
    for start in range(0, rows, max(step, 1)):
        d = degree[start : start + step]
        draw, last = (buffer[: size * len(d)].view(size, -1) for buffer in (draws, spares))
        enough = d >= size
        torch.add(keys[None, start : start + step], (slots + 1) * GOLDEN, out=draw)
        mix_(draw, last)
        torch.mul(slots, enough, out=last).add_(torch.where(enough, d - size, (d - 1).clamp_min(0)))
        below_(draw, last.add_(1))
        chosen[:, start : start + step] = draw
        otherwise[:, start : start + step] = torch.where(enough, last.sub_(1), draw, out=last)
    return chosen, otherwise


def sample_neighbors(indptr: Tensor, indices: Tensor, nodes: Tensor, size: int, keys: Tensor) -> tuple[Tensor, Tensor]:
    """Sampled neighbors (R, size) of `nodes` (R,), and which rows have any neighbor (R,).

    A node of degree 0 yields itself `size` times: a valid row, which the mask removes.
    """
    start = indptr[nodes]
    degree = indptr[nodes + 1] - start
    present = degree > 0
    if indices.numel() == 0:
        return nodes[:, None].expand(-1, size).contiguous(), present
    places = sample_offsets(degree, size, keys)  # row by row: a row's neighbors share cache lines
    places += torch.where(present, start, 0)[:, None]
    index = indices.index_select(0, places.view(-1)).view(places.shape)
    if places.device.type == "cpu" and bool(present.all()):
        return index.long(), present
    return torch.where(present[:, None], index, nodes[:, None]), present
