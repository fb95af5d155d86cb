"""The loss functions of section 3.2."""

import torch
import torch.nn.functional as F
from torch import Tensor

from graphsage.kernels.softmax import softmax_cross_entropy


def unsupervised_loss(
    z_u: Tensor, z_v: Tensor, z_n: Tensor, valid: Tensor | None = None, total: Tensor | None = None
) -> Tensor:
    """Equation 1, averaged over the pairs that are `valid`. With `total`, the sum over these pairs divided by `total`.

        J(z_u) = -log σ(z_uᵀ z_v) - Q · E_{v_n ~ P_n} log σ(-z_uᵀ z_{v_n})

    `z_u` and `z_v` are (P, D). `z_n` is (Q, D) if the batch shares its negatives, else (P, Q, D).
    """
    positive = (z_u * z_v).sum(dim=1)  # z_uᵀ z_v: (P,)
    negative = z_u @ z_n.t() if z_n.dim() == 2 else torch.einsum("pd,pqd->pq", z_u, z_n)  # z_uᵀ z_{v_n}: (P, Q)
    # -log σ(x) = softplus(-x), which cannot overflow. Q times the mean over Q draws is their sum.
    each = F.softplus(-positive) + F.softplus(negative).sum(dim=1)  # J: (P,)
    if valid is None:
        return each.mean() if total is None else each.sum() / total
    return (each * valid).sum() / (valid.sum() if total is None else total).clamp_min(1)


def contrastive_loss(z_u: Tensor, z_v: Tensor, u: Tensor, v: Tensor, temperature: float) -> Tensor:
    """InfoNCE in both directions, averaged over the B pairs (u_i, v_i) of nodes, whose vectors are (B, D) each.

        J_i = -log( exp(s_ii) / Σ_j exp(s_ij) ),  s_ij = cos(z_u_i, z_v_j) / temperature

    for u_i among all v_j, and likewise for v_i among all u_j. A node is never a negative of itself: for u_i, those
    v_j of other pairs that are u_i or v_i are left out, and likewise for v_i.
    """
    s = F.normalize(z_u, dim=1) @ F.normalize(z_v, dim=1).t() / temperature  # (B, B)
    cross = u[:, None] == v[None]  # u_i is v_j
    others = ~torch.eye(len(u), dtype=torch.bool, device=u.device)
    from_u = s.masked_fill(others & (cross | (v[:, None] == v[None])), -torch.inf)
    from_v = s.masked_fill(others & (cross | (u[:, None] == u[None])), -torch.inf)
    each = (from_u.logsumexp(dim=1) + from_v.logsumexp(dim=0)) / 2 - s.diagonal()
    return each.mean()


def softmax_loss(scores: Tensor, classes: Tensor, weights: Tensor | None = None) -> Tensor:
    """Cross-entropy for one class per node, averaged over nodes: scores (B, C), classes (B,). Each node's term is
    multiplied by the weight of its class, (C,)."""
    if weights is None:
        return softmax_cross_entropy(scores, classes)
    return F.cross_entropy(scores, classes, weights, reduction="sum") / len(classes)


def sigmoid_loss(scores: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """Binary cross-entropy per label, averaged over nodes and labels: both (B, C). Weights (2, C) multiply the terms of
    absent and present labels."""
    each = None if weights is None else torch.where(labels == 1, weights[1], weights[0])
    return F.binary_cross_entropy_with_logits(scores, labels.to(scores.dtype), each)


def supervised_loss(scores: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """The task's own cross-entropy: sigmoid for many labels (B, C), softmax for one class (B,)."""
    return sigmoid_loss(scores, labels, weights) if labels.dim() == 2 else softmax_loss(scores, labels, weights)


REGRESSION_LOSSES = ("mse", "mae", "huber")


def regression_loss(values: Tensor, targets: Tensor, name: str) -> Tensor:
    """Squared, absolute or Huber's error of values and standardized targets (B, T), averaged over nodes and targets.
    Unknown targets (NaN) add nothing. Huber's error is e² / 2 up to one deviation and |e| - 1/2 beyond it."""
    error = torch.where(targets.isnan(), 0.0, values - targets.nan_to_num())
    if name == "mse":
        return error.square().mean()
    return error.abs().mean() if name == "mae" else F.huber_loss(error, torch.zeros_like(error))
