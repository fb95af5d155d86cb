"""Features for a graph that has none: the degree, smoothly and by order of magnitude."""

import torch
from torch import Tensor

from graphsage.errors import DataError

BINS = 16


def degree_features(degrees: Tensor) -> Tensor:
    """Degrees (N,) -> (N, 1 + BINS) float32.

    Column 0 is log(1 + degree). Column 1 + b is 1 where floor(log2(1 + degree)) = b: b = 0 for isolated nodes, 1 for
    degrees 1 and 2, 2 for degrees 3 to 6, and so on; the last bin holds every degree from 2^15 - 1 on. Nothing is
    fitted, so a node of a later graph gets what a training node of the same degree got.
    """
    if degrees.dim() != 1 or degrees.is_floating_point():
        raise DataError(f"degrees must be a vector of integers; got shape {tuple(degrees.shape)} of {degrees.dtype}")
    if bool((degrees < 0).any()):
        row = int(torch.nonzero(degrees < 0)[0, 0])
        raise DataError(f"degrees must be 0 or more; node {row} has {int(degrees[row])}")
    powers = 2 ** torch.arange(1, BINS, device=degrees.device)  # compared as integers: log2 would round
    bins = torch.bucketize(degrees.long() + 1, powers, right=True)
    one_hot = torch.nn.functional.one_hot(bins, BINS)
    return torch.cat([torch.log1p(degrees.double())[:, None], one_hot], dim=1).float()
