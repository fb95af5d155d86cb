"""What command-line tests share: a command's answer, and a small graph with a planted answer, three kinds of nodes."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from graphsage.graph.graph import Graph
from graphsage.graph.split import Split

N = 90
KINDS = ("algebra", "logic", "topology")
SMALL = ("--dim", "8", "--sample-sizes", "4,3", "--batch-size", "16", "--epochs", "2", "--device", "cpu")


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.out)
        return value

    @property
    def error(self) -> str:
        """The one sentence that a mistake ends with."""
        assert self.code == 2, self.err
        assert self.out == ""
        assert "Traceback" not in self.err
        last = self.err.rstrip("\n").splitlines()[-1]
        assert last.startswith("error: ")
        return last


Command = Callable[..., Answer]


def planted(seed: int = 0, *, multilabel: bool = False, features: bool = True) -> Graph:
    generator = torch.Generator().manual_seed(seed)
    kind = torch.arange(N) % len(KINDS)
    pairs = torch.randint(N, (N * 8, 2), generator=generator)
    edges = pairs[(kind[pairs[:, 0]] == kind[pairs[:, 1]]) | (torch.rand(len(pairs), generator=generator) < 0.1)]
    one_hot = torch.nn.functional.one_hot(kind)
    x = torch.cat([torch.randn(N, 4, generator=generator), one_hot + 0.3 * torch.randn(N, 3, generator=generator)], 1)
    return Graph.from_edges(
        edges,
        N,
        features=x if features else None,
        labels=one_hot if multilabel else kind,
        class_names=KINDS,
        ids=[f"node-{row}" for row in range(N)],
    )


def split(seed: int = 0) -> Split:
    return Split.random(N, (0.6, 0.2, 0.2), seed)
