"""Cross-entropy and its gradient, one program a row."""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _cross_entropy(scores, classes, losses, grad, by, DIM: tl.constexpr, LANES: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, LANES)
    inside = column < DIM
    s = tl.load(scores + r * DIM + column, mask=inside, other=float("-inf"))
    truth = column == tl.load(classes + r)
    top = tl.max(s, axis=0)
    e = tl.exp(s - top)
    total = tl.sum(e, axis=0)
    tl.store(losses + r, tl.log(total) + top - tl.sum(tl.where(truth, s, 0.0), axis=0))
    tl.store(grad + r * DIM + column, (e / total - tl.where(truth, 1.0, 0.0)) * by, mask=inside)


def cross_entropy(scores: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
    """Each row's loss, and the gradient of their mean."""
    losses, grad = scores.new_empty(len(scores)), torch.empty_like(scores)
    lanes = triton.next_power_of_2(scores.shape[1])
    _cross_entropy[(len(scores),)](
        scores,
        classes,
        losses,
        grad,
        1.0 / len(scores),
        DIM=scores.shape[1],
        LANES=lanes,
        num_warps=max(1, min(8, lanes // 128)),
    )
    return losses, grad
