"""The product's own training step and inference on a made graph, set up as `graphsage.train` does."""

import dataclasses

import torch
from torch import nn

from graphsage.execution.adam import Adam
from graphsage.execution.ranks import SINGLE_PROCESS, Ranks
from graphsage.execution.step import Step, make_step
from graphsage.graph.graph import Graph
from graphsage.inference.feature_placement import place
from graphsage.model.encoder import Encoder
from graphsage.model.heads import ClassHead
from graphsage.training.config import Config
from graphsage.training.objectives import make_objective
from graphsage.training.objectives.base import Objective, TrainingData


class Ours:
    """One run before its first step. Neighbors are drawn from the whole graph, as the peers' examples do."""

    def __init__(
        self, graph: Graph, nodes: torch.Tensor, config: Config, device: str, ranks: Ranks = SINGLE_PROCESS
    ) -> None:
        config = config.resolved()
        assert graph.features is not None
        assert graph.labels is not None
        classes = graph.labels.shape[1] if graph.multilabel else int(graph.labels.max()) + 1
        torch.manual_seed(0)
        where = torch.device(device)
        shape = dataclasses.replace(config.encoder(), relations=tuple(graph.relations), weighted=graph.weighted)
        self.encoder = Encoder(shape, graph.features.shape[1]).to(where)
        head = None if config.task == "unsupervised" else ClassHead(config.dim, classes).to(where)
        self.graph = place(graph, where, config.feature_type)
        assert self.graph.features is not None
        self.tables = [self.graph.features]
        data = TrainingData(self.graph, self.graph, self.tables, nodes.to(where), ranks.rank, ranks.count)
        module = nn.ModuleDict({"encoder": self.encoder} | ({} if head is None else {"head": head}))
        self.module = module.train()
        self.objective: Objective = make_objective(config, self.encoder, head, data)
        self.optimizer = Adam(module, config.lr or 0.01, clip=config.clip or 0.0)
        self.step: Step = make_step(self.objective, module, self.optimizer, ranks)
        self.done = 0

    def run(self) -> None:
        self.step.run(self.done)
        self.done += 1
