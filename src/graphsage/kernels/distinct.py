"""The distinct values of a list of node numbers, ascending, and where each one of the list is among them."""

import torch
from torch import Tensor


def distinct(nodes: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """`torch.unique(nodes, return_inverse=True)`; by marking nodes instead of sorting where the graph is small."""
    if num_nodes > 16 * len(nodes):
        values, where = torch.unique(nodes, return_inverse=True)
        return values, where
    place = torch.zeros(num_nodes, dtype=torch.int64, device=nodes.device)
    place[nodes] = 1
    values = torch.nonzero(place).flatten()
    place[values] = torch.arange(len(values), device=nodes.device)
    return values, place[nodes]
