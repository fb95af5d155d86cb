"""Every setting of a training run, with the paper's values as defaults, and the two forms of the model."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from graphsage.errors import ConfigError, one_of
from graphsage.model.encoder import EncoderConfig
from graphsage.sampling.minibatch import SamplingConfig

TASKS = ("supervised", "unsupervised", "joint")
INFERENCES = ("exact", "sampled")
FEATURE_TYPES = ("float32", "float16", "bfloat16")

FORMS: dict[str, dict[str, Any]] = {
    "paper": {"combine": "joint", "normalize": "every", "last_activation": True, "cap": "symmetric", "redraw": True,
              "clip": 0.0},
    "reference": {"combine": "halves", "normalize": "last", "last_activation": False, "cap": "row", "redraw": False,
                  "clip": 5.0},
}  # fmt: skip
"""What the paper's text says, and what the authors' released code does. Each entry is also an option of its own."""

_DEFAULTS: dict[str, dict[str, Any]] = {
    "supervised": {"epochs": 10, "lr": 0.01},
    "unsupervised": {"epochs": 1, "lr": 0.0001},
    "joint": {"epochs": 10, "lr": 0.001},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """Settings of a run. None means: what `form` or `task` says. `resolved()` fills them in."""

    task: str = "supervised"
    form: str = "paper"
    aggregator: str = "mean"
    sample_sizes: tuple[int, ...] = (25, 10)
    """S_1..S_K: the last one is the number of direct neighbors of a target. Its length is the depth K."""
    num_layers: int | None = None
    """K; only a check, since sample_sizes already says it."""
    dim: int = 256
    hidden_dim: int | None = None
    depth: int = 1
    combine: str | None = None
    normalize: str | None = None
    last_activation: bool | None = None
    bias: bool = False
    dropout: float = 0.0
    head_scale: bool = False
    """Learn one factor for all class scores."""
    identity_dim: int = 0
    degree_features: bool = False
    """Append degree features to x_v; turned on by itself for a graph without any features."""
    standardize: bool = True
    """Shift and scale features by the mean and deviation of the training nodes."""
    max_degree: int | None = 128
    cap: str | None = None
    redraw: bool | None = None
    epochs: int | None = None
    steps: int | None = None
    """Stop after this many steps, whatever `epochs` says."""
    batch_size: int = 512
    lr: float | None = None
    weight_decay: float = 0.0
    clip: float | None = None
    """Clip each gradient entry to this size; 0 does not clip."""
    patience: int | None = None
    """Stop after this many epochs without a better validation F1 and keep the best weights. None never stops."""
    num_walks: int = 50
    walk_length: int = 5
    num_negatives: int = 20
    negatives_per_pair: bool = False
    """Draw negatives for each pair rather than once for the batch."""
    supervised_weight: float = 1.0
    """Weight of the supervised loss in the joint task."""
    tf32: bool = False
    """On a GPU, round the factors of float32 products to 10 bits of mantissa: faster, and exact enough to train."""
    feature_type: str | None = None
    """Keep the features as float32, float16 or bfloat16 while training; sums are float32 anyway. None: as they are."""
    inference: str = "exact"
    """How embeddings are made after training: 'exact' (all neighbors) or 'sampled' (as in training, the paper)."""
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "sample_sizes", tuple(self.sample_sizes))
        for size in self.sample_sizes:
            _whole("sample_sizes", size)
        for name in ("num_layers", "dim", "hidden_dim", "depth", "identity_dim", "max_degree", "epochs", "steps",
                     "batch_size", "patience", "num_walks", "walk_length", "num_negatives", "seed"):  # fmt: skip
            _whole(name, getattr(self, name))
        one_of("task", self.task, TASKS)
        one_of("form", self.form, FORMS)
        one_of("inference", self.inference, INFERENCES)
        if self.feature_type is not None:
            one_of("feature_type", self.feature_type, FEATURE_TYPES)
        if self.num_layers is not None and self.num_layers != len(self.sample_sizes):
            raise ConfigError(
                f"sample_sizes must hold one number for each of the {self.num_layers} layers; got {self.sample_sizes}"
            )
        for name in ("epochs", "steps", "batch_size", "num_walks", "num_negatives", "patience"):
            _at_least(name, getattr(self, name), 1)
        _at_least("walk_length", self.walk_length, 2)
        for name in ("weight_decay", "clip", "supervised_weight", "seed"):
            _at_least(name, getattr(self, name), 0)
        if self.lr is not None and not 0 < self.lr < math.inf:
            raise ConfigError(f"lr must be above 0 and finite; got {self.lr}")
        if self.seed >= 2**63:
            raise ConfigError(f"seed must be below 2^63; got {self.seed}")
        if self.task == "unsupervised" and self.patience is not None:
            raise ConfigError("patience watches validation F1, which unsupervised training does not have; leave it out")
        if self.resolved() is self:
            self.encoder()  # checks the fields of the model and of sampling
            self.sampling()

    def resolved(self) -> "Config":
        """The same settings with nothing left open."""
        choices = {**FORMS[self.form], **_DEFAULTS[self.task]}
        if self.task == "unsupervised":
            choices["last_activation"] = False  # docs/design/0003: with ReLU the embeddings collapse under Equation 1
        filled = {name: value for name, value in choices.items() if getattr(self, name) is None}
        return dataclasses.replace(self, **filled) if filled else self

    def encoder(self) -> EncoderConfig:
        """The part of the settings that shapes the model."""
        full = self.resolved()
        assert full.combine is not None
        assert full.normalize is not None
        assert full.last_activation is not None
        return EncoderConfig(
            aggregator=full.aggregator, num_layers=max(len(full.sample_sizes), 1), dim=full.dim,
            hidden_dim=full.hidden_dim, depth=full.depth, bias=full.bias, dropout=full.dropout,
            identity_dim=full.identity_dim, combine=full.combine, normalize=full.normalize,
            last_activation=full.last_activation,
        )  # fmt: skip

    def sampling(self) -> SamplingConfig:
        """The part of the settings that says how neighborhoods are drawn."""
        full = self.resolved()
        assert full.cap is not None
        assert full.redraw is not None
        return SamplingConfig(
            sample_sizes=full.sample_sizes, max_degree=full.max_degree, cap=full.cap, redraw=full.redraw
        )

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, settings: dict[str, Any]) -> "Config":
        """From JSON or TOML; an unknown name is an error that lists the known ones."""
        known = {field.name for field in dataclasses.fields(cls)}
        for name in settings:
            if name not in known:
                raise ConfigError(f"there is no setting {name!r}; settings are {', '.join(sorted(known))}")
        try:
            return cls(**settings)
        except TypeError as error:
            raise ConfigError(f"a setting has the wrong type: {error}") from error


def _at_least(name: str, value: float | None, minimum: int) -> None:
    if value is not None and not minimum <= value < math.inf:
        raise ConfigError(f"{name} must be at least {minimum} and finite; got {value}")


def _whole(name: str, value: object) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise ConfigError(f"{name} must be a whole number; got {value!r}")
