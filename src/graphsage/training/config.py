"""Every setting of a training run, and the two forms of the model: the paper's and the released code's."""

import dataclasses
import math
import numbers
import operator
from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args, get_origin

from graphsage.errors import ConfigError, at_least, one_of, setting, written
from graphsage.evaluation.metrics import METRICS, Metric

if TYPE_CHECKING:  # they import torch, and `graphsage train --help` reads this module
    from graphsage.model.encoder import EncoderConfig
    from graphsage.sampling.minibatch import SamplingConfig

PLAIN: dict[str, Any] = {"layer_norm": False, "residual": False, "dropout": 0.0, "label_inputs": False}
"""What the paper's layers do not have."""
FORMS: dict[str, dict[str, Any]] = {
    "paper": {
        "combine": "joint",
        "normalize": "every",
        "last_activation": True,
        "cap": "row",
        "max_degree": 128,
        "redraw": True,
        "clip": 0.0,
        **PLAIN,
    },
    "reference": {
        "combine": "halves",
        "normalize": "last",
        "last_activation": False,
        "cap": "row",
        "max_degree": 128,
        "redraw": False,
        "clip": 5.0,
        **PLAIN,
    },
}
"""What the paper's text says, and what the authors' released code does. Each entry is also an option of its own.

Without a form, the paper's settings apply except for the cap: no edge is removed, in training or later."""
NO_CAP = "off"

WITHOUT_FEATURES: dict[str, Any] = {
    "label_inputs": True,
    "layer_norm": True,
    "residual": True,
    "normalize": "never",
    "dropout": 0.5,
}
"""The default for classes of a graph without features: docs/design/0014."""
FEW_STEPS, MOST_EPOCHS = 300, 60
"""Without a form, a graph without features and a regression train for more epochs if these have so few steps."""

TASKS: dict[str, dict[str, Any]] = {
    "supervised": {"epochs": 10, "lr": 0.01, "metric": "micro-f1"},
    "unsupervised": {"epochs": 1, "lr": 0.0001, "metric": None},
    "joint": {"epochs": 10, "lr": 0.001, "metric": "micro-f1"},
    "regression": {"epochs": 10, "lr": 0.01, "metric": "r2"},
    "links": {
        "epochs": 10,
        "lr": 0.001,
        "metric": "mrr",
        "link_split": "edges",
        "decoder": "dot",
        "negatives": "in-batch",
        "source_encoder": "sage",
    },
}
"""The defaults of each task."""

OBJECTIVES: dict[str, dict[str, Any]] = {
    "equation-1": {"walk_length": 5},
    "contrastive": {"epochs": 40, "lr": 0.001, "walk_length": 2},
}
"""What differs for each unsupervised objective. The joint task adds Equation 1 to the supervised loss."""

PAIRS, CLASSES, HIDDEN = ("unsupervised", "joint"), ("supervised", "joint"), ("pool", "meanpool", "lstm")
HEADS = (*CLASSES, "regression")
LINKS, SCORED = ("links",), (*HEADS, "links")
EQUATION_1, CONTRASTIVE = ("equation-1",), ("contrastive",)
USED_BY: dict[str, tuple[str, tuple[str, ...]]] = {
    "num_walks": ("task", PAIRS),
    "walk_length": ("task", PAIRS),
    "num_negatives": ("task", PAIRS),
    "negatives_per_pair": ("task", PAIRS),
    "objective": ("task", ("unsupervised",)),
    "temperature": ("task", ("unsupervised",)),
    "feature_dropout": ("task", ("unsupervised",)),
    "edge_dropout": ("task", ("unsupervised",)),
    "supervised_weight": ("task", ("joint",)),
    "whole_batches": ("task", ("supervised", "regression")),
    "head_scale": ("task", HEADS),
    "metric": ("task", SCORED),
    "link_split": ("task", LINKS),
    "pairs": ("task", LINKS),
    "decoder": ("task", LINKS),
    "negatives": ("task", LINKS),
    "link_negatives": ("task", LINKS),
    "source_encoder": ("task", LINKS),
    "popularity": ("task", LINKS),
    "class_weights": ("task", CLASSES),
    "calibrate": ("task", CLASSES),
    "loss": ("task", ("regression",)),
    "hidden_dim": ("aggregator", HIDDEN),
    "depth": ("aggregator", HIDDEN),
}
USED_BY_OBJECTIVE: dict[str, tuple[str, ...]] = {
    "num_walks": EQUATION_1,
    "num_negatives": EQUATION_1,
    "negatives_per_pair": EQUATION_1,
    "temperature": CONTRASTIVE,
    "feature_dropout": CONTRASTIVE,
    "edge_dropout": CONTRASTIVE,
}
"""Settings that have an effect only with some tasks, aggregators or unsupervised objectives. Aggregators of users may
read all of them."""

CHOICES: dict[str, tuple[str, ...]] = {
    "task": tuple(TASKS),
    "objective": tuple(OBJECTIVES),
    "form": tuple(FORMS),
    "cap": (NO_CAP, "row", "symmetric"),
    "inference": ("exact", "sampled"),
    "feature_type": ("float32", "float16", "bfloat16"),
    "metric": tuple(METRICS),
    "class_weights": ("equal", "sqrt", "balanced"),
    "schedule": ("constant", "cosine"),
    "loss": ("mse", "mae", "huber"),
    "keep_weights": ("best", "last"),
    "link_split": ("edges", "nodes", "time"),
    "decoder": ("dot", "bilinear", "mlp"),
    "negatives": ("in-batch", "uniform", "degree", "hard"),
    "source_encoder": ("sage", "features"),
}
"""The values of settings that have a fixed list of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """Settings of a run. None means unset: `form` or `task` decides. `resolved()` fills them in.

    Each field is an option of `graphsage train`: its docstring is the help text (cli/options.py).
    """

    task: str = "supervised"
    """Learn classes (supervised) or numbers (regression) of nodes, from the graph alone (unsupervised), from classes
    and graph (joint), or which links are missing (links)."""
    objective: str | None = None
    """Unsupervised loss: Equation 1 of the paper (equation-1), or InfoNCE between augmented views of a node and of one
    near it (contrastive)."""
    form: str | None = None
    """Follow the paper's text (paper), or the authors' released code (reference). Unset: the paper's model without its
    degree cap."""
    aggregator: str = "mean"
    """Function that aggregates the neighbors: mean, gcn, lstm, pool or meanpool."""
    sample_sizes: tuple[int, ...] = (25, 10)
    """Neighbors sampled in each layer, S_1 to S_K. The last is for a target's direct neighbors."""
    relation_sizes: tuple[int, ...] = ()
    """Neighbors sampled in each layer of the first relation, then of the second one, and so on. Unset: the relations
    share the sample sizes equally, rounded up."""
    num_layers: int | None = None
    """Number of layers K; it must equal the number of sample sizes, which sets it."""
    dim: int = 256
    """Width of the embeddings."""
    hidden_dim: int | None = None
    """Width inside pool and LSTM aggregators. Unset: 512 for pool, 128 for LSTM."""
    depth: int = 1
    """Layers inside the aggregator: of pool's MLP, or of the LSTM."""
    combine: str | None = None
    """One weight matrix for a node and its neighbors (joint), or one for each (halves)."""
    normalize: str | None = None
    """Scale h to length 1 after every layer (every), after the last one (last), or never. Unset: never for regression
    without a form."""
    last_activation: bool | None = None
    """Apply ReLU after the last layer too. Off for the unsupervised task."""
    bias: bool = False
    """Add a bias to each layer."""
    layer_norm: bool | None = None
    """Apply LayerNorm before each ReLU. Unset: on for classes of a graph without features unless a form is set."""
    residual: bool | None = None
    """Add the input of each layer to its result. Unset: as --layer-norm."""
    dropout: float | None = None
    """Fraction of hidden values zeroed in training. Unset: 0.5 for classes of a graph without features unless a form is
    set, otherwise 0."""
    head_scale: bool = False
    """Learn one factor for all class scores; helps on small data."""
    identity_dim: int = 0
    """Width of a learned vector per node. Such a model knows only the nodes of its training graph."""
    label_inputs: bool | None = None
    """Let nodes read the known labels of their neighbors: those of training nodes, except the targets of a batch.
    Unset: on for classes of a graph without features unless a form is set."""
    projections: int | None = None
    """Number of random projections of a node's neighbors that are added to its features. Unset: 128 for a graph without
    features if neither a form nor label inputs are set, otherwise none."""
    degree_features: bool = False
    """Add the degree to a node's features. Always on for a graph without features."""
    keep_features: bool = False
    """Append the scaled features to each embedding. The classes are predicted without them."""
    standardize: bool = True
    """Shift and scale features by the mean and deviation of the training nodes."""
    max_degree: int | None = None
    """Subsample edges so that no node has more neighbors, in training and inference. Unset: 128 with a form, otherwise
    no limit."""
    cap: str | None = None
    """Subsample the edges of a node with too many neighbors on its side (row), at both ends (symmetric), or not at all
    (off)."""
    redraw: bool | None = None
    """Sample new neighbors in every layer, instead of reusing those sampled for an earlier one."""
    epochs: int | None = None
    """Passes over the training nodes, or over the pairs of random walks."""
    steps: int | None = None
    """Stop after this many steps, whatever the number of epochs."""
    batch_size: int = 512
    """Targets per step, over all processes."""
    whole_batches: int = 0
    """Train on all neighbors, with the connected parts of the training graph assigned to so many batches of about equal
    size. 0 samples neighbors."""
    lr: float | None = None
    """Learning rate of Adam."""
    schedule: str = "constant"
    """Keep the learning rate (constant), or lower it to 0 along half a cosine by the last step (cosine)."""
    warmup: float = 0.0
    """Fraction of the steps in which the learning rate rises from 0."""
    weight_decay: float = 0.0
    """L2 penalty on the weights."""
    clip: float | None = None
    """Clip each gradient entry to this size; 0 does not clip."""
    patience: int | None = None
    """Stop after this many epochs without a better validation score. 0 never stops."""
    keep_weights: str | None = None
    """Keep the weights of the epoch with the best validation score (best), or the last ones (last)."""
    metric: str | None = None
    """Validation score that chooses weights and settings: micro-f1, macro-f1, accuracy, loss, auc or ap; for regression
    r2, rmse or mae; for links mrr, hits@10 or recall@50."""
    loss: str = "mse"
    """Error that regression minimizes, in deviations of the target: squared (mse), absolute (mae), or squared up to one
    deviation and absolute beyond (huber)."""
    class_weights: str = "equal"
    """Weight of a class in the loss: the same for all (equal), by the inverse of its number of training nodes
    (balanced), or by the root of that (sqrt)."""
    calibrate: bool | None = None
    """Choose the temperature of probabilities and the thresholds of sets of labels on validation nodes. Unset: on
    without a form."""
    num_walks: int = 50
    """Random walks from each node."""
    walk_length: int | None = None
    """Nodes of a random walk, its start included."""
    num_negatives: int = 20
    """Negative samples for each pair of nodes."""
    negatives_per_pair: bool = False
    """Sample negatives for each pair, instead of once per batch."""
    temperature: float = 0.2
    """The contrastive objective divides similarities by this number."""
    feature_dropout: float = 0.25
    """Share of the feature columns that a view of the contrastive objective lacks."""
    edge_dropout: float = 0.3
    """Share of the edges that a view of the contrastive objective lacks."""
    supervised_weight: float = 1.0
    """Weight of the supervised loss in the joint task."""
    link_split: str | None = None
    """Hold out links at random (edges), the links of the new nodes of a split (nodes), or the newest links (time)."""
    pairs: str | None = None
    """Table of links to learn (columns source and target) in place of the edges, which are then only read."""
    decoder: str | None = None
    """Score of a link from two embeddings: their product (dot), a product with a learned matrix (bilinear), or a
    product and a small network (mlp)."""
    negatives: str | None = None
    """Wrong targets in training: those of other links of the batch (in-batch), nodes drawn evenly (uniform) or by
    degree^0.75 (degree), or nodes near the sources (hard)."""
    link_negatives: int = 512
    """Wrong targets that are drawn for a batch of links, unless they come from the batch itself."""
    source_encoder: str | None = None
    """Embed the source of a link as any node (sage), or by a network of its features, for new nodes without edges
    (features)."""
    popularity: bool = False
    """Add a learned multiple of the logarithm of a target's number of links to the score."""
    tf32: bool = False
    """Multiply in TF32 on a GPU: faster, with factors rounded to 10 bits of mantissa."""
    feature_type: str | None = None
    """Dtype of the features in training: float32, float16 or bfloat16. Unset: that of the data."""
    inference: str = "exact"
    """Embed later from all neighbors (exact), or from a sample as in training (sampled)."""
    seed: int = 0
    """Seed of every random choice: the same seed gives the same model."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, _typed(field.name, field.type, getattr(self, field.name)))
        for name, known in CHOICES.items():
            if getattr(self, name) is not None:
                one_of(name, getattr(self, name), known)
        if self.num_layers is not None and self.num_layers != len(self.sample_sizes):
            raise ConfigError(
                f"{setting('sample_sizes')} must hold one number for each of the {self.num_layers} layers; "
                f"got {written(self.sample_sizes)}"
            )
        at_least(1, self, "epochs", "steps", "batch_size", "num_walks", "num_negatives", "link_negatives")
        at_least(2, self, "walk_length")
        at_least(
            0, self, "projections", "whole_batches", "patience", "weight_decay", "clip", "supervised_weight", "seed"
        )
        if self.lr is not None and not 0 < self.lr < math.inf:
            raise ConfigError(f"{setting('lr')} must be above 0 and finite; got {self.lr}")
        if not 0 <= self.warmup < 1:
            raise ConfigError(f"{setting('warmup')} must be at least 0 and below 1; got {self.warmup}")
        if not 0 < self.temperature < math.inf:
            raise ConfigError(f"{setting('temperature')} must be above 0 and finite; got {self.temperature}")
        for name in ("feature_dropout", "edge_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{setting(name)} must be at least 0 and below 1; got {getattr(self, name)}")
        if self.seed >= 2**63:
            raise ConfigError(f"{setting('seed')} must be below 2^63; got {self.seed}")
        if self.metric is not None and self.task in SCORED and METRICS[self.metric].of != self._scored:
            fitting = ", ".join(name for name, metric in METRICS.items() if metric.of == self._scored)
            raise ConfigError(
                f"{setting('metric', self.metric)} does not fit {setting('task', self.task)}; use one of {fitting}"
            )
        for name in ("patience", "keep_weights"):
            if self.task == "unsupervised" and getattr(self, name) not in (None, "last"):
                raise ConfigError(
                    f"{setting(name)} needs a validation score, which unsupervised training does not have; leave it out"
                )
        if self.label_inputs and (self.task != "supervised" or self.whole_batches):
            other = setting("whole_batches") if self.whole_batches else setting("task", self.task)
            raise ConfigError(
                f"{setting('label_inputs', True)} hides the labels of a batch's targets and needs "
                f"{setting('task', 'supervised')} with batches of some nodes; leave it or {other} out"
            )
        if self.task == "links":
            self._check_links()
        if self.cap == NO_CAP and self.max_degree is not None:
            raise ConfigError(
                f"{setting('max_degree')} needs a cap, row or symmetric; got {self.max_degree} "
                f"and {setting('cap', NO_CAP)}"
            )
        if self.resolved() is self:
            self.encoder()  # checks the fields of the model and of sampling
            self.sampling()

    def _check_links(self) -> None:
        """Refuse what would tell a model the links it is asked for, and batches without a negative."""
        if self.batch_size == 1 and self.negatives in (None, TASKS["links"]["negatives"]):
            raise ConfigError(
                f"{setting('negatives', 'in-batch')} are targets of other links of the batch, and with "
                f"{setting('batch_size', 1)} there are none; use a larger batch or {setting('negatives', 'uniform')}"
            )
        told = {
            "degree_features": bool(self.degree_features),
            "projections": bool(self.projections),
            "max_degree": self.max_degree is not None,
            "cap": self.cap not in (None, NO_CAP),
            "form": self.form is not None,
            "redraw": self.redraw is False,
        }
        if (name := next((name for name, used in told.items() if used), None)) is not None:
            raise ConfigError(
                f"{setting(name)} does not fit {setting('task', 'links')}: what a model reads must not depend on the "
                "link it is asked for; leave it out"
            )

    @property
    def regression(self) -> bool:
        return self.task == "regression"

    @property
    def _scored(self) -> str:
        """What a validation score compares."""
        return "numbers" if self.regression else "links" if self.task == "links" else "classes"

    @property
    def calibrates(self) -> bool:
        return self.task in CLASSES and (self.form is None if self.calibrate is None else self.calibrate)

    def without_effect(self) -> list[str]:
        """One sentence for each setting that differs from its default and that this task or aggregator does not use."""
        found = []
        for name, (owner, users) in USED_BY.items():
            chosen, default = getattr(self, owner), Config.__dataclass_fields__[name].default
            known = owner == "task" or chosen in ("mean", "gcn")  # a user's aggregator may use any setting
            if known and chosen not in users and getattr(self, name) != default:
                others = " or ".join(setting(owner, user) for user in users)
                found.append(f"{setting(name)} has no effect with {setting(owner, chosen)}; it needs {others}")
        if self.task == "unsupervised" and (objective := self.resolved().objective) is not None:
            for name, users in USED_BY_OBJECTIVE.items():
                if objective not in users and getattr(self, name) != Config.__dataclass_fields__[name].default:
                    needed = setting("objective", users[0])
                    found.append(
                        f"{setting(name)} has no effect with {setting('objective', objective)}; it needs {needed}"
                    )
        return found

    def resolved(self, *, featureless: bool = False, num_train: int | None = None) -> "Config":
        """The same settings with nothing left open. Some depend on whether the graph is `featureless`, and the number
        of epochs on that of the training nodes, if it is known."""
        choices = {**FORMS[self.form or "paper"], **TASKS[self.task]}
        objective = self.objective or "equation-1"
        if self.task in PAIRS:
            choices |= OBJECTIVES[objective if self.task == "unsupervised" else "equation-1"]
        if self.task == "unsupervised":
            choices["objective"] = objective
        if self.form is None and self.max_degree is None:
            choices["cap"] = NO_CAP
        if self.form is None and self.regression:
            choices["normalize"] = "never"  # vectors of length 1 cannot say how much (docs/log.md)
        featureless = featureless and self.form is None and self.task == "supervised" and not self.identity_dim
        if featureless:
            choices |= WITHOUT_FEATURES | ({"label_inputs": False} if self.whole_batches else {})
        if (featureless or (self.form is None and self.regression)) and num_train and not self.whole_batches:
            steps = -(-num_train // self.batch_size)  # of an epoch
            choices["epochs"] = max(choices["epochs"], min(-(-FEW_STEPS // steps), MOST_EPOCHS))
        if (self.cap or choices["cap"]) == NO_CAP:
            del choices["max_degree"]
        if self.task in ("unsupervised", "links"):
            choices["last_activation"] = False  # docs/design/0003: with ReLU the embeddings collapse under Equation 1
        if self.class_weights != "equal" and self.task in CLASSES:
            choices["metric"] = "macro-f1"  # micro F1 would choose the epoch in which the weights did least
        filled = {name: v for name, v in choices.items() if v is not None and getattr(self, name) is None}
        return dataclasses.replace(self, **filled) if filled else self

    @property
    def keeps_best(self) -> bool:
        """Whether the weights of the best epoch are kept, given validation nodes: without a form, and with patience."""
        if self.task not in SCORED or self.keep_weights is not None:
            return self.keep_weights == "best"
        return self.form is None or bool(self.patience)

    def selection(self) -> Metric:
        """The score that chooses weights and settings; unsupervised training is scored by its probe's micro F1."""
        return METRICS[self.resolved().metric or "micro-f1" if self.task in SCORED else "micro-f1"]

    def rate(self, step: int, total: int) -> float:
        """The learning rate of `step`, counted from 0, of `total` steps."""
        lr, rising = self.lr or TASKS[self.task]["lr"], self.warmup * total
        if step < rising:
            return lr * (step + 1) / (rising + 1)
        if self.schedule == "constant":
            return lr
        return lr * 0.5 * (1 + math.cos(math.pi * (step - rising) / (total - rising)))

    @property
    def rate_needs_length(self) -> bool:
        """Whether the learning rate depends on the number of steps."""
        return self.schedule != "constant" or self.warmup > 0

    def encoder(self) -> "EncoderConfig":
        """The part of the settings that shapes the model."""
        from graphsage.model.encoder import EncoderConfig

        full = self.resolved()
        assert full.combine is not None
        assert full.normalize is not None
        assert full.last_activation is not None
        assert full.layer_norm is not None
        assert full.residual is not None
        assert full.dropout is not None
        return EncoderConfig(
            aggregator=full.aggregator,
            num_layers=max(len(full.sample_sizes), 1),
            dim=full.dim,
            hidden_dim=full.hidden_dim,
            depth=full.depth,
            bias=full.bias,
            layer_norm=full.layer_norm,
            residual=full.residual,
            dropout=full.dropout,
            identity_dim=full.identity_dim,
            combine=full.combine,
            normalize=full.normalize,
            last_activation=full.last_activation,
        )

    def sampling(self) -> "SamplingConfig":
        """The part of the settings that says how neighborhoods are drawn."""
        from graphsage.model.aggregators import aggregator_named
        from graphsage.sampling.minibatch import SamplingConfig

        full = self.resolved()
        assert full.cap is not None
        assert full.redraw is not None
        return SamplingConfig(
            sample_sizes=full.sample_sizes,
            relation_sizes=full.relation_sizes,
            max_degree=full.max_degree,
            cap="row" if full.cap == NO_CAP else full.cap,
            redraw=full.redraw,
            self_loops=self.form == "reference" or not aggregator_named(full.aggregator).includes_self,
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
        return cls(**settings)


def _typed(name: str, hint: Any, value: object) -> Any:
    """The value of a field by its type; NumPy's numbers become Python's."""
    kinds = get_args(hint) or (hint,)
    if value is None and NoneType in kinds:
        return None
    kind = get_origin(hint) if get_origin(hint) is tuple else kinds[0]
    rule, read = _RULES[kind]
    try:
        return read(value)
    except (TypeError, ValueError):
        raise ConfigError(f"{setting(name)} must be {rule}; got {value!r}") from None


def _integer(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError
    return operator.index(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError
    return value if isinstance(value, int) else float(value)


def _switch(value: object) -> bool:
    if value not in (True, False):
        raise TypeError
    return bool(value)


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


_RULES: dict[Any, tuple[str, Callable[[Any], Any]]] = {
    int: ("an integer", _integer),
    float: ("a number", _number),
    bool: ("true or false", _switch),
    str: ("a name", _name),
    tuple: ("a sequence of integers", lambda sizes: tuple(map(_integer, sizes))),
}
"""What a message says of each type, and a function that reads it."""
