"""Embed nodes of a live graph, bit-identical alone or in a batch.

All draws are keyed by node id, so a vector depends on the graph and the model, not on row numbers, generations or
other nodes of the request.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsage.errors import ConfigError, DataError, setting
from graphsage.evaluation.calibration import Calibration
from graphsage.execution.fast_encoder import FastEncoder
from graphsage.features.structure import Structure
from graphsage.inference.embed import order_matters, prepare
from graphsage.inference.model import INFERENCE, Model
from graphsage.live.deterministic_matmul import deterministic, rows_are_independent
from graphsage.live.overlay_view import OverlayView, Target
from graphsage.model.encoder import Encoder
from graphsage.model.heads import ClassHead, RegressionHead
from graphsage.sampling.minibatch import SamplingConfig

Compute = Callable[[], Tensor]


@dataclass(frozen=True, eq=False)
class LiveEncoder:
    """A model made ready for a live graph."""

    encoder: Encoder
    fast: FastEncoder
    head: ClassHead | None
    sampling: SamplingConfig
    inference: str
    structure: Structure
    label_classes: int | None
    """The number of classes of label inputs, if the model has them: all labels in the graph are known."""
    keep_features: bool
    multilabel: bool
    calibration: Calibration
    seed: int
    together: bool
    """Whether nodes of a request are computed together; otherwise one by one, for bit-identical vectors."""
    by_key: bool
    """Whether neighbor lists are read in the order of keys."""

    @staticmethod
    def of(model: Model, inference: str | None = None) -> "LiveEncoder":
        if model.encoder.identity is not None:
            raise DataError(
                f"this model learned a vector for each training node ({setting('identity_dim')}) and cannot embed new "
                f"ones; train with features or {setting('degree_features', True)}"
            )
        if model.encoder.config.weighted:
            raise DataError(
                f"this model reads edge weights, which a live graph does not have; leave {setting('edge_weight')} out "
                "in training"
            )
        if model.encoder.config.relations:
            raise DataError(
                f"this model aggregates the relations {', '.join(model.encoder.config.relations)}, and a live graph "
                f"has one; train with {setting('direction', 'merged')} or {setting('direction', 'in')}"
            )
        how = inference or model.inference
        if how not in INFERENCE:
            raise ConfigError(f"{setting('inference')} must be exact or sampled; got {how!r}")
        encoder, head = deterministic(model.encoder), None if model.head is None else deterministic(model.head)
        fast = FastEncoder(encoder, modules_only=True)
        return LiveEncoder(
            encoder,
            fast,
            head,
            model.sampling,
            how,
            model.structure,
            model.num_classes if model.label_inputs else None,
            model.keep_features,
            model.multilabel,
            model.calibration,
            model.seed,
            rows_are_independent(encoder),
            order_matters(model.encoder, how),
        )

    @property
    def dim(self) -> int:
        """Width of what `embed` returns."""
        return self.encoder.config.dim + self.keep_features * self.encoder.in_dim

    def embed(self, targets: Sequence[Target]) -> Tensor:
        """z of `targets`, (B, dim)."""
        return self.read(targets)()

    @torch.no_grad()
    def read(self, targets: Sequence[Target]) -> Compute:
        """Read all inputs of `targets`. The returned function computes z, and the graph may change before it runs."""
        groups = [targets] if self.together else [[target] for target in targets]
        parts = [self._read(group) for group in groups if group]

        @torch.no_grad()
        def compute() -> Tensor:
            made = [part() for part in parts]
            if len(made) == 1:
                return made[0]
            return torch.cat(made) if made else torch.zeros(0, self.dim)

        return compute

    def _read(self, targets: Sequence[Target]) -> Compute:
        view = OverlayView(targets, self.structure, self.by_key, self.label_classes)
        sampling = self.sampling if self.inference == "sampled" else None
        return prepare(self.fast, view, view.targets, sampling, self.seed, keep_features=self.keep_features)

    @torch.no_grad()
    def outputs(self, z: Tensor) -> Tensor | None:
        """Probabilities of classes (B, C), or numbers of a regression (B, T); None if the model predicts nothing."""
        if self.head is None:
            return None
        scores = self.head(z[:, : self.encoder.config.dim].contiguous())
        if isinstance(self.head, RegressionHead):
            return self.head.values(scores)
        return self.calibration.probabilities(scores, self.multilabel)
