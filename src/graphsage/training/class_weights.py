"""How much each class weighs in the supervised loss, by its number of labeled training nodes."""

import torch
from torch import Tensor

RULES = {"equal": 0.0, "sqrt": 0.5, "balanced": 1.0}
"""The power p of w_c ~ n_c^-p."""


def class_weights(rule: str, labels: Tensor, num_classes: int) -> Tensor | None:
    """w_c = n_c^-p, scaled so that the mean weight of the nodes is 1; None if all weights are equal.

    `labels` are those of the labeled training nodes. Classes (n,) have weights (C,). With sets of labels (n, C), each
    label is a choice of its own between absent and present, with weights (2, C). "balanced" makes the weights of all
    classes add up to the same. Targets of a regression have no classes.
    """
    if labels.is_floating_point():
        return None
    if labels.dim() == 1:
        counts = torch.bincount(labels, minlength=num_classes)[:, None]  # one choice among C classes: (C, 1)
    else:
        present = labels.sum(dim=0, dtype=torch.int64)
        counts = torch.stack([len(labels) - present, present])  # C choices between two: (2, C)
    n, used = counts.double(), counts > 0
    equal = (counts == counts.max(dim=0).values) | ~used
    if RULES[rule] == 0 or bool(equal.all()):
        return None
    raw = n.clamp(min=1).pow(-RULES[rule])
    weights = raw * n.sum(dim=0) / (n * raw).sum(dim=0)
    weights = weights.where(used & ~equal.all(dim=0), 1.0).float()
    return weights[:, 0] if labels.dim() == 1 else weights
