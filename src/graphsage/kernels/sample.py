"""Uniform neighbor sampling as arithmetic on a CSR: fixed size, static shapes, no Python loop over nodes."""

import torch
from torch import Tensor

from graphsage.kernels.random import below, derive


def sample_offsets(degree: Tensor, size: int, keys: Tensor) -> Tensor:
    """`size` offsets below each degree: distinct where degree >= size, independent draws where it is smaller.

    degree (R,), keys (R,) -> (R, size). Distinct ones come from Floyd's method: step j draws below d - size + j + 1
    and takes d - size + j instead when the draw was taken before, which makes every subset equally likely. The
    *order* within a row is not uniform: an aggregator that reads order must permute. Degree 0 yields zeros.
    """
    enough = degree >= size
    bits = derive(keys[None], torch.arange(size, device=keys.device)[:, None])  # (size, R): rows contiguous
    chosen = torch.empty_like(bits)
    for j in range(size):
        last = torch.where(enough, degree - size + j, (degree - 1).clamp_min(0))
        draw = below(bits[j], last + 1)
        if j:
            taken = (chosen[:j] == draw).any(dim=0) & enough
            draw = torch.where(taken, last, draw)
        chosen[j] = draw
    return chosen.t()


def sample_neighbors(indptr: Tensor, indices: Tensor, nodes: Tensor, size: int, keys: Tensor) -> tuple[Tensor, Tensor]:
    """Sampled neighbors (R, size) of `nodes` (R,), and which rows have any neighbor at all (R,).

    A node of degree 0 yields itself `size` times, a readable row that the mask then silences.
    """
    start = indptr[nodes]
    degree = indptr[nodes + 1] - start
    present = degree > 0
    if indices.numel() == 0:
        return nodes[:, None].expand(-1, size).contiguous(), present
    places = start[:, None] + sample_offsets(degree, size, keys)
    places = torch.where(present[:, None], places, 0)
    index = torch.where(present[:, None], indices[places].long(), nodes[:, None])
    return index.contiguous(), present
