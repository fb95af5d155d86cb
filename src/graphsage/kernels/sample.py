"""Uniform neighbor sampling as arithmetic on a CSR: fixed size, static shapes, no Python loop over nodes."""

import torch
from torch import Tensor

from graphsage.kernels.backend import on_compiled, on_triton
from graphsage.kernels.compiled import bindings
from graphsage.kernels.random import GOLDEN, below_, derive, key_step, mix_

BLOCK_ROWS = 2048  # 64-bit draws of so few rows stay in cache


def sample_last_hop(
    indptr: Tensor, indices: Tensor, rows: Tensor, keys: Tensor, layer: int, size: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The last hop of a tree: `size` neighbors of each of `rows` (R,) under the draw that `keys` give `layer`.

    Returns the neighbors (R, size), which rows have any (R,), and the draws' keys (R,).
    """
    fast = _fast(indptr, indices, rows, keys, layer, size, grow=False)
    if fast is not None:
        index, _, present, draw = fast
        return index, present, draw
    draw = derive(keys, layer)
    index, present = sample_neighbors(indptr, indices, rows, size, draw)
    return index, present, draw


def sample_and_extend(
    indptr: Tensor, indices: Tensor, rows: Tensor, keys: Tensor, layer: int, size: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A hop that others follow. Returns (R + R * size,) rows and keys, those given first and then, row by row, their
    neighbors; which rows have any (R,); and the draws' keys (R,)."""
    fast = _fast(indptr, indices, rows, keys, layer, size, grow=True)
    if fast is not None:
        grown, grown_keys, present, draw = fast
        assert grown_keys is not None
        return grown, grown_keys, present, draw
    draw = derive(keys, layer)
    index, present = sample_neighbors(indptr, indices, rows, size, draw)
    return torch.cat([rows, index.flatten()]), torch.cat([keys, children(draw, size)]), present, draw


def _fast(
    indptr: Tensor, indices: Tensor, rows: Tensor, keys: Tensor, layer: int, size: int, *, grow: bool
) -> tuple[Tensor, Tensor | None, Tensor, Tensor] | None:
    """By Triton or in C; None where neither runs."""
    if on_triton(keys):
        from graphsage.kernels.triton import hop as triton

        return triton.hop(indptr, indices, rows, keys, key_step(layer), size, grow=grow)
    if indptr.dtype == torch.int64 and 1 <= size <= bindings.LARGEST_SAMPLE and on_compiled(indptr, keys):
        return bindings.hop(indptr, indices, rows, keys, key_step(layer), size, grow=grow)
    return None


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
    chosen, otherwise = _draws(degree, size, keys)
    for j in range(1, size):
        free = (chosen[:j] ^ chosen[j]).amin(dim=0).bool()  # no zero: four times as fast as (==).any
        torch.where(free, chosen[j], otherwise[j], out=chosen[j])
    return chosen.t().to(torch.int64, memory_format=torch.contiguous_format)


def _draws(degree: Tensor, size: int, keys: Tensor) -> tuple[Tensor, Tensor]:
    """Floyd's draws and what replaces one that was taken before, both (size, R): one slot of all rows lies together."""
    on_cpu, rows = degree.device.type == "cpu", len(degree)
    narrow = on_cpu and rows > 0 and int(degree.max()) < 1 << 15
    kind = torch.int16 if narrow else torch.int32
    chosen, otherwise = (torch.empty(size, rows, dtype=kind, device=keys.device) for _ in range(2))
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
    """Sampled neighbors (R, size) of `nodes` (R,), and which rows have any neighbor at all (R,).

    A node of degree 0 yields itself `size` times, a readable row that the mask then silences.
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
