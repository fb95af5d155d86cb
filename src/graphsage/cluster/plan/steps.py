"""Training steps and inference on graphs that are made for measuring, set up as `graphsage train` does."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from graphsage.execution.adam import Adam
from graphsage.execution.step import EagerStep
from graphsage.graph.graph import Graph
from graphsage.inference.embed import embed_exact
from graphsage.model.encoder import Encoder
from graphsage.model.heads import ClassHead
from graphsage.training.config import Config
from graphsage.training.objectives import make_objective
from graphsage.training.objectives.base import TrainingData

CLASSES = 50


def random_graph(nodes: int, degree: int, dim: int, dtype: torch.dtype = torch.float32) -> Graph:
    """Every node hears from `degree` others, drawn uniformly."""
    generator = torch.Generator().manual_seed(0)
    indptr = torch.arange(nodes + 1) * degree
    indices = torch.randint(nodes, (nodes * degree,), generator=generator, dtype=torch.int32)
    features = torch.empty(nodes, dim, dtype=dtype)
    for start in range(0, nodes, 1 << 16):  # never a second copy in another type
        part = features[start : start + (1 << 16)]
        part.copy_(torch.randn(part.shape, generator=generator))
    labels = torch.randint(CLASSES, (nodes,), generator=generator)
    return Graph(indptr, indices, features=features, labels=labels, directed=True)


@dataclass
class TrainingSteps:
    """One run before its first step; `run` makes the next one."""

    graph: Graph
    config: Config
    encoder: Encoder = field(init=False)
    step: EagerStep = field(init=False)
    done: int = 0

    @classmethod
    def made(cls, nodes: int, degree: int, dim: int, classes: int, config: Config) -> "TrainingSteps":
        return cls(random_graph(nodes, degree, dim), config)

    def __post_init__(self) -> None:
        config, features = self.config.resolved(), self.graph.features
        assert features is not None
        torch.manual_seed(0)
        self.encoder = Encoder(config.encoder(), features.shape[1])
        head = ClassHead(config.dim, CLASSES)
        module = nn.ModuleDict({"encoder": self.encoder, "head": head}).train()
        data = TrainingData(self.graph, self.graph, [features], torch.arange(self.graph.num_nodes))
        objective = make_objective(config, self.encoder, head, data)
        self.step = EagerStep(objective, module, Adam(module, config.lr or 0.01))

    def run(self) -> None:
        self.step.run(self.done)
        self.done += 1

    def embed(self) -> Tensor:
        """Exact inference over the whole graph."""
        assert self.graph.features is not None
        return embed_exact(self.encoder, self.graph, [self.graph.features])
