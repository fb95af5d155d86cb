"""The objectives of section 3.2."""

import torch
import torch.nn.functional as F
from torch import Tensor

from graphsage.kernels.softmax import softmax_cross_entropy


def unsupervised_loss(z_u: Tensor, z_v: Tensor, z_n: Tensor, valid: Tensor | None = None,
                      total: Tensor | None = None) -> Tensor:  # fmt: skip
    """Equation 1, averaged over the P pairs (those where `valid`), or over `total` pairs of which these are a part.

    The paper's Q * E[...] over Q draws is a plain sum over them, so nothing is scaled. `z_n` is (Q, D), shared by the
    batch, or (P, Q, D), drawn for each pair. log(sigmoid(x)) is computed as -softplus(-x), which cannot overflow.
    """
    positive = (z_u * z_v).sum(dim=1)  # (P,)
    negative = z_u @ z_n.t() if z_n.dim() == 2 else torch.einsum("pd,pqd->pq", z_u, z_n)  # (P, Q)
    each = F.softplus(-positive) + F.softplus(negative).sum(dim=1)
    if valid is None:
        return each.mean()
    return (each * valid).sum() / (valid.sum() if total is None else total).clamp_min(1)


def softmax_loss(scores: Tensor, classes: Tensor) -> Tensor:
    """Cross-entropy for one class a node, averaged over nodes: scores (B, C), classes (B,)."""
    return softmax_cross_entropy(scores, classes)


def sigmoid_loss(scores: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy for each label on its own, averaged over nodes and labels: both (B, C)."""
    return F.binary_cross_entropy_with_logits(scores, labels.to(scores.dtype))


def supervised_loss(scores: Tensor, labels: Tensor) -> Tensor:
    """The task's own cross-entropy: sigmoid for many labels (B, C), softmax for one class (B,)."""
    return sigmoid_loss(scores, labels) if labels.dim() == 2 else softmax_loss(scores, labels)
