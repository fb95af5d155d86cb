"""What no implementation can avoid: reading the rows once at gather speed, and the matrix products, alone."""

from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.contenders.serve import Task

B, S1, S2, H = 512, 25, 10, 256
EDGES, ROWS = 1 << 17, 1 << 12  # of a whole graph that are read or multiplied at once

Product = tuple[int, int, int, str]
"""(rows, inner, outer) and which products there are: f forward, w the weights' gradient, x the input's."""


def prepare(arrays: dict[str, Any], task: str) -> Task:
    """`gather`, `gather inference`, `products mean`, `products gcn`, `products pool`, `products lstm`, `products
    inference`."""
    torch.set_num_threads(2)
    features = torch.from_numpy(arrays["features"])
    kind, *words = task.split()
    if kind == "gather":
        return _gather_all(arrays) if words else _gather(features)
    if words[0] == "inference":
        return _multiply_all(features)
    classes = 41 if arrays["labels"].ndim == 1 else arrays["labels"].shape[1]
    tensors = [
        (torch.randn(r, i), torch.randn(i, o), torch.randn(r, o), which)
        for r, i, o, which in [*_products(words[0], features), (B, H, classes, "fwx")]
    ]

    def products() -> None:
        for x, w, g, which in tensors:
            if "f" in which:
                x @ w
            if "w" in which:
                g.t() @ x
            if "x" in which:
                g @ w.t()

    return products


def _products(aggregator: str, features: torch.Tensor) -> list[Product]:
    dim, rows = features.shape[1], B * (1 + S2)
    if aggregator in ("mean", "gcn"):
        width = 2 if aggregator == "mean" else 1
        return [(rows, dim * width, H, "fw"), (B, H * width, H, "fwx")]
    distinct = len(torch.unique(torch.randint(len(features), (rows * S1,))))
    inner = 512  # pool's width, and the four gates of an LSTM of 128
    out = 512 if aggregator == "pool" else 128
    above: list[Product] = [
        (rows, dim + out, H, "fw"),
        (rows, out, H, "x"),
        (B * S2, H, inner, "fwx"),
        (B, H + out, H, "fwx"),
    ]
    if aggregator == "pool":  # one neighbor a column has a gradient: no product is needed for the weights'
        return [(distinct, dim, inner, "f"), *above]
    hidden: list[Product] = [(rows, out, inner, "fwx")] * (S1 - 1) + [(B, out, inner, "fwx")] * (S2 - 1)
    return [(distinct, dim, inner, "fw"), *above, *hidden]


def _gather(features: torch.Tensor) -> Task:
    index = torch.randint(len(features), (B * (1 + S2), S1))
    return lambda: F.embedding_bag(index, features, mode="mean")


def _gather_all(arrays: dict[str, Any]) -> Task:
    """Every neighbor's row of 256 once for each of two layers, as floats in huge pages (NumPy asks for them)."""
    indptr, indices = torch.from_numpy(arrays["indptr"]), torch.from_numpy(arrays["indices"])
    table = torch.from_numpy(np.ones((len(indptr) - 1, H), dtype=np.float32))
    cuts = [*torch.searchsorted(indptr, torch.arange(0, len(indices), EDGES)).tolist(), len(indptr) - 1]

    def gather() -> None:
        for _ in range(2):
            for start, stop in pairwise(cuts):
                first, last = int(indptr[start]), int(indptr[stop])
                offsets = (indptr[start : stop + 1] - first).to(indices.dtype)
                F.embedding_bag(indices[first:last], table, offsets, mode="mean", include_last_offset=True)

    return gather


def _multiply_all(features: torch.Tensor) -> Task:
    """Both halves of W for every node, in both layers."""
    blocks = [(len(features), torch.randn(ROWS, width), torch.randn(width, 2 * H)) for width in (features.shape[1], H)]
    out = torch.empty(ROWS, 2 * H)

    def multiply() -> None:
        for count, x, w in blocks:
            for _ in range(-(-count // ROWS)):
                torch.mm(x, w, out=out)

    return multiply
