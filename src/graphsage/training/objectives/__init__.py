"""The losses a training step can minimize (section 3.2), one file per task."""

from torch import nn

from graphsage.execution.fast_encoder import FastEncoder
from graphsage.graph.link_split import LinkSplit
from graphsage.kernels.buffers import STEP_SLACK, Buffers
from graphsage.model.encoder import Encoder
from graphsage.model.heads import ClassHead
from graphsage.model.links import LinkHead
from graphsage.training.config import Config
from graphsage.training.objectives.base import Objective, TrainingData
from graphsage.training.objectives.contrastive import Contrastive
from graphsage.training.objectives.joint import Joint
from graphsage.training.objectives.links import Links
from graphsage.training.objectives.supervised import Supervised
from graphsage.training.objectives.unsupervised import Unsupervised
from graphsage.training.objectives.whole import WholeGraphs


def make_objective(
    config: Config,
    encoder: Encoder,
    head: ClassHead | None,
    data: TrainingData,
    projection: nn.Module | None = None,
    links: tuple[LinkHead, LinkSplit] | None = None,
) -> Objective:
    """`projection` is the projection head of the contrastive objective; `links` are those to learn, with their head."""
    fast = FastEncoder(encoder, Buffers(STEP_SLACK))
    if links is not None:
        return Links(config, fast, links[0], data, links[1])
    if projection is not None:
        return Contrastive(config, fast, projection, data)
    if config.task == "unsupervised":
        return Unsupervised(config, fast, data)
    assert head is not None
    if config.task == "joint":
        return Joint(config, fast, head, data)
    return (WholeGraphs if config.whole_batches else Supervised)(config, fast, head, data)
