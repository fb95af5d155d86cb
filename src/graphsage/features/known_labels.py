"""Labels that are known as features of the nodes that have them, so that neighbors can read them."""

import torch
from torch import Tensor


def label_width(num_classes: int) -> int:
    return num_classes + 1


def label_features(labels: Tensor | None, known: Tensor, num_nodes: int, num_classes: int) -> Tensor:
    """(N, 1 + C): for the nodes `known` (R,) a 1 and their classes, as ones; 0 for all others.

    `labels` are classes (N,) or 0/1 labels (N, L) of which a model knows the first C; others are no feature.
    """
    table = torch.zeros(num_nodes, label_width(num_classes), device=known.device)
    if labels is None or not len(known):
        return table
    table[known, 0] = 1.0
    own = labels[known]
    if labels.dim() == 2:
        table[known, 1:] = (own[:, :num_classes] == 1).float()
    else:
        small = own < num_classes
        table[known[small], 1 + own[small].long()] = 1.0
    return table
