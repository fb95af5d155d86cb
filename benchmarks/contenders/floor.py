"""What no implementation can avoid: reading the rows once at gather speed, and the matrix products, alone."""

from typing import Any

import torch
import torch.nn.functional as F

from benchmarks.contenders.serve import Task, serve

B, S1, S2, H = 512, 25, 10, 256


def prepare(arrays: dict[str, Any], task: str) -> Task:
    """`gather`, `products mean`, `products gcn`, `products pool`, `products lstm`."""
    torch.set_num_threads(2)
    features = torch.from_numpy(arrays["features"])
    dim, rows = features.shape[1], B * (1 + S2)
    classes = 41 if arrays["labels"].ndim == 1 else arrays["labels"].shape[1]
    kind, *words = task.split()
    if kind == "gather":
        index = torch.randint(len(features), (rows, S1))
        return lambda: F.embedding_bag(index, features, mode="mean")
    what = words[0]
    pairs = []  # (rows, inner, outer, whether the input has a gradient)
    if what in ("mean", "gcn"):
        width = 2 if what == "mean" else 1
        pairs = [(rows, dim * width, H, False), (B, H * width, H, True)]
    else:
        inner = {"pool": 512, "lstm": 512}[what]  # an LSTM of 128 has four gates
        distinct = len(torch.unique(torch.randint(len(features), (rows * S1,))))
        out = 512 if what == "pool" else 128
        pairs = [
            (distinct, dim, inner, False),
            (rows, dim + out, H, True),
            (rows, H, inner, True),
            (B, H + out, H, True),
        ]
        if what == "lstm":  # the hidden state's products, step after step
            pairs += [(rows, 128, 512, True)] * S1 + [(B, 128, 512, True)] * S2
    pairs.append((B, H, classes, True))
    tensors = [(torch.randn(r, i), torch.randn(i, o), torch.randn(r, o), back) for r, i, o, back in pairs]

    def products() -> None:
        for x, w, g, back in tensors:
            x @ w
            g.t() @ x
            if back:
                g @ w.t()

    return products


if __name__ == "__main__":
    serve(prepare)
