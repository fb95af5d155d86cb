"""The golden cases: which models are trained on which small graph. Plain data; nothing here is computed by the product.

Every number of the graph is a multiple of 1/8, drawn from numpy's frozen legacy generator. So all machines and versions
begin with the same bits.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

AGGREGATORS = ("mean", "gcn", "pool", "meanpool", "lstm")
FORMS = ("paper", "reference")
TASKS = ("supervised", "unsupervised", "joint")

NODES, WIDTH, CLASSES = 72, 6, 3
HUB, LOOP, ALONE, UNSEEN = 0, 7, 71, (5, 12, 23, 34, 45, 56, 60, 61)
"""A node with more neighbors than the cap keeps, one with a self loop, one without neighbors, those not trained on."""
KNOWN = (HUB, LOOP, ALONE, UNSEEN[0], 2, 4, 33, 58)
NEW = ((NODES, HUB), (NODES, 9), (NODES, 40), (NODES + 1, NODES), (NODES + 1, 3))
"""Edges of three nodes that arrive after training; the third has none."""
NUM_NEW = 3


@dataclass(frozen=True)
class Case:
    """One training. `known_only`: the model has a vector for each training node, so that it takes no new ones."""

    name: str
    settings: dict[str, Any]
    graph: str = "classes"

    @property
    def known_only(self) -> bool:
        return bool(self.settings.get("identity_dim"))


def settings_of(aggregator: str, form: str, task: str, **changes: Any) -> dict[str, Any]:
    """All that decides the numbers is said here: no default of the product does, so that it may change."""
    settings = {
        "aggregator": aggregator,
        "form": form,
        "task": task,
        "sample_sizes": (4, 3),
        "dim": 8,
        "hidden_dim": 6,
        "depth": 1,
        "bias": False,
        "dropout": 0.0,
        "head_scale": False,
        "identity_dim": 0,
        "degree_features": False,
        "standardize": True,
        "max_degree": 8,
        "cap": "symmetric" if form == "paper" else "row",
        "redraw": form == "paper",
        "combine": "joint" if form == "paper" else "halves",
        "normalize": "every" if form == "paper" else "last",
        "last_activation": form == "paper" and task != "unsupervised",
        "clip": 0.0 if form == "paper" else 5.0,
        "steps": 20,
        "batch_size": 16,
        "lr": 0.005,
        "weight_decay": 0.0,
        "num_walks": 4,
        "walk_length": 4,
        "num_negatives": 5,
        "negatives_per_pair": False,
        "supervised_weight": 0.5,
        "feature_type": "float32",
        "inference": "sampled" if task == "unsupervised" else "exact",
        "seed": 2,
    }
    # Settings without effect are left out, because training warns of them.
    unused = set() if task != "supervised" else {"num_walks", "walk_length", "num_negatives", "negatives_per_pair"}
    unused |= set() if task == "joint" else {"supervised_weight"}
    unused |= {"hidden_dim"} if aggregator in ("mean", "gcn") else set()
    return {name: value for name, value in (settings | changes).items() if name not in unused}


def _main() -> list[Case]:
    return [
        Case(f"{aggregator}-{form}-{task}", settings_of(aggregator, form, task))
        for aggregator in AGGREGATORS
        for form in FORMS
        for task in TASKS
    ]


def _extra(what: str, aggregator: str, form: str, task: str, graph: str = "classes", **changes: Any) -> Case:
    return Case(f"{aggregator}-{form}-{task}-{what}", settings_of(aggregator, form, task, **changes), graph)


CASES = (
    *_main(),
    _extra("dropout", "mean", "paper", "supervised", dropout=0.3),
    _extra("dropout", "pool", "reference", "supervised", dropout=0.3),
    _extra("bias", "mean", "paper", "supervised", bias=True),
    _extra("bias", "lstm", "reference", "supervised", bias=True),
    # Some entries of identity rows have gradients near 1e-8. That is rounding, and it is Adam's epsilon: their first
    # step is of any size up to lr. With weight decay the gradients are larger than that.
    _extra("identity-decay", "mean", "paper", "supervised", identity_dim=3, weight_decay=0.01),
    _extra("identity-decay", "gcn", "reference", "unsupervised", identity_dim=3, weight_decay=0.01),
    _extra("three-layers", "mean", "paper", "supervised", sample_sizes=(3, 2, 2)),
    _extra("three-layers", "lstm", "reference", "supervised", sample_sizes=(3, 2, 2), inference="sampled"),
    _extra("one-layer", "pool", "paper", "supervised", sample_sizes=(4,)),
    _extra("labels", "mean", "paper", "supervised", "labels"),
    _extra("labels", "pool", "reference", "joint", "labels"),
    _extra("degrees", "mean", "paper", "supervised", degree_features=True),
    _extra("degrees", "gcn", "reference", "supervised", degree_features=True, inference="sampled"),
    _extra("negatives-per-pair", "mean", "paper", "unsupervised", negatives_per_pair=True),
    _extra("negatives-per-pair", "pool", "reference", "joint", negatives_per_pair=True),
    _extra("bfloat16", "mean", "paper", "supervised", feature_type="bfloat16"),
    _extra("bfloat16", "pool", "reference", "supervised", feature_type="bfloat16"),
    _extra("head-scale", "gcn", "paper", "supervised", head_scale=True),
    _extra("depth", "pool", "paper", "supervised", depth=2),
)

GPU_CASES = tuple(
    case
    for case in CASES
    if case.name
    in ("mean-paper-supervised", "pool-paper-supervised", "lstm-paper-supervised", "mean-paper-unsupervised")
)


@dataclass(frozen=True, eq=False)
class Arrays:
    """A graph as arrays."""

    edges: np.ndarray[Any, Any]
    features: np.ndarray[Any, Any]
    new_features: np.ndarray[Any, Any]
    labels: np.ndarray[Any, Any]
    train: np.ndarray[Any, Any]


def arrays_of(graph: str) -> Arrays:
    """Three planted kinds, edges mostly within one. 'classes': a node has one kind; 'labels': it may have several."""
    draw = np.random.RandomState(5)
    kind = np.arange(NODES) % CLASSES
    pairs = draw.randint(0, NODES - 1, (4 * NODES, 2))  # the last node stays alone
    near = kind[pairs[:, 0]] == kind[pairs[:, 1]]
    pairs = pairs[near | (draw.randint(0, 8, len(pairs)) == 0)]
    hub = np.stack([np.full(30, HUB), np.arange(1, 31)], axis=1)
    edges = np.concatenate([pairs, hub, [(LOOP, LOOP)], hub[3:4], hub[4:5, ::-1]])  # two edges are there twice
    numbers = draw.randint(-12, 13, (NODES + NUM_NEW, WIDTH)) / 8
    numbers[:NODES, :CLASSES] += np.eye(CLASSES)[kind]
    labels: np.ndarray[Any, Any] = kind
    if graph == "labels":
        labels = (np.eye(CLASSES)[kind] + (draw.randint(0, 4, (NODES, CLASSES)) == 0)).clip(max=1).astype(np.uint8)
    train = np.ones(NODES, bool)
    train[list(UNSEEN)] = False
    features = numbers.astype(np.float32)
    return Arrays(edges, features[:NODES], features[NODES:], labels, train)
