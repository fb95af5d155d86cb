"""What unsupervised embeddings have to beat: four yardsticks, each by the paper's probe and by the tuned one.

The probes are fitted on training nodes and score validation and test nodes. A run keeps the result in `FILE`, because
DeepWalk and the tuned probe take minutes on large graphs.
"""

import dataclasses
import hashlib
import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from graphsage.baselines.deepwalk import DeepWalkConfig, embed_new, train_deepwalk
from graphsage.baselines.features import inductive_features, without_leak
from graphsage.checksummed_json import read_checksummed, write_checksummed
from graphsage.errors import DataError, DataWarning, OutputError
from graphsage.evaluation.f1 import f1_scores
from graphsage.evaluation.probe import Probe, standardized, tuned_probe
from graphsage.graph.graph import Graph
from graphsage.graph.split import TRAIN, Split, training_graph
from graphsage.inference.model import KEEP_BYTES, Model, graph_bytes, input_tables
from graphsage.kernels.random import Stream
from graphsage.model.encoder import Encoder

Array = npt.NDArray[Any]
FILE = "yardsticks.json"
VERSION = 1
HOPS = 2
WALKS = 10  # a fifth of Appendix C's, so that DeepWalk takes a minute and not five
LARGEST_DEEPWALK = 300_000  # training nodes
LARGEST_TUNED = 4_000_000_000  # training nodes x columns x classes
TENTH = 10  # without validation nodes, one training node in ten chooses the penalty of the tuned probe


@dataclass(frozen=True)
class Yardstick:
    """Micro F1 of a row by part (val, test), by both probes; None: not computed, and `note` says why."""

    name: str
    paper: dict[str, float] | None
    tuned: dict[str, float] | None
    penalty: float | None = None
    note: str | None = None


OnRow = Callable[[int, int], None]


def yardsticks(
    model: Model,
    graph: Graph,
    split: Split,
    *,
    inference: str | None = None,
    keep_in: Path | None = None,
    on_row: OnRow | None = None,
) -> list[Yardstick]:
    """The embeddings of an unsupervised `model` and, below, features alone, features and neighbor means, an untrained
    encoder of the same shape, and DeepWalk beside the features. `keep_in` is a folder for the result."""
    if graph.labels is None:
        raise DataError("the yardsticks are scored on labels, and the data has none; give a graph with labels")
    parts = {part: graph.labeled(split.nodes(part)) for part in ("train", "val", "test")}
    if not len(parts["train"]) or not len(parts["val"]) + len(parts["test"]):
        raise DataError(
            "the yardsticks need labels of training nodes and of validation or test nodes; use another split"
        )
    if graph_bytes(graph) > KEEP_BYTES:
        raise DataError("the graph is too large for the yardsticks, which need several copies of it in memory")
    identity = _identity(model, graph, split, inference)
    known = _kept(keep_in, identity)
    if known is None:
        known = list(_rows(model, graph, split, inference, on_row))
        if keep_in is not None:
            record = {"identity": identity, "rows": [dataclasses.asdict(row) for row in known]}
            try:
                write_checksummed(keep_in / FILE, record)
            except OutputError as error:
                warnings.warn(f"the yardsticks are not kept for later: {error}", DataWarning, stacklevel=2)
    return known


def _rows(
    model: Model,
    graph: Graph,
    split: Split,
    inference: str | None,
    on_row: OnRow | None,
) -> Iterator[Yardstick]:
    train = split.nodes("train").numpy()

    def table(seen: Graph) -> Array:
        return torch.cat([each.float() for each in input_tables(seen, model.structure)], dim=1).numpy()

    def own() -> Array:
        return model.embed(graph, inference=inference).numpy()

    def untrained() -> Array:
        return dataclasses.replace(model, encoder=_untrained(model)).embed(graph, inference=inference).numpy()

    features = None if model.encoder.in_dim == 0 else without_leak(graph, split, table)

    def raw() -> Array:
        return standardized(_needed(features), train)

    def hop_means() -> Array:
        return standardized(inductive_features(graph, split, _needed(features), HOPS), train)

    def deepwalk() -> Array:
        vectors = _deepwalk(model.seed, graph, split)
        return standardized(np.concatenate([vectors, _needed(features)], axis=1), train)

    makers: dict[str, Callable[[], Array]] = {
        "embeddings": own,
        "features": raw,
        f"features + {HOPS} hops of neighbor means": hop_means,
        "untrained encoder": untrained,
        "DeepWalk + features": deepwalk,
    }
    for number, (name, make) in enumerate(makers.items()):
        if on_row is not None:
            on_row(number, len(makers))
        try:
            yield both_probes(name, make(), graph, split, model.seed, gpu=model.device.type == "cuda")
        except DataError as reason:
            yield Yardstick(name, None, None, note=str(reason))
    if on_row is not None:
        on_row(len(makers), len(makers))


def _needed(features: Array | None) -> Array:
    if features is None:
        raise DataError("the graph has no features")
    return features


def _untrained(model: Model) -> Encoder:
    """The encoder before the first step."""
    before, identity = model.encoder, model.encoder.identity
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(model.seed)
        made = Encoder(before.config, before.in_dim, None if identity is None else identity.num_embeddings)
    made.shift.copy_(before.shift)
    made.scale.copy_(before.scale)
    return made.to(model.device).eval()


def _deepwalk(seed: int, graph: Graph, split: Split) -> Array:
    """Vectors of all nodes; those of unseen nodes by the online step."""
    train = split.nodes("train")
    if len(train) > LARGEST_DEEPWALK:
        raise DataError(f"DeepWalk of {len(train):,} training nodes would take too long; its limit is 300,000")
    graph = graph.replace(features=None, labels=None)
    config = DeepWalkConfig(num_walks=WALKS, seed=seed)
    trained = train_deepwalk(training_graph(graph, split), train, config)
    new = torch.nonzero(split.codes != TRAIN).flatten()
    return embed_new(trained, graph, new, config).embeddings.numpy() if len(new) else trained.embeddings.numpy()


def both_probes(
    name: str, z: Array, graph: Graph, split: Split, seed: int, *, gpu: bool = False, paper: bool = True
) -> Yardstick:
    """Micro F1 of vectors z (N, D) of all nodes, by both probes, or without the paper's."""
    assert graph.labels is not None
    labels: Array = graph.labels.cpu().numpy()
    parts = {part: graph.labeled(split.nodes(part)) for part in ("train", "val", "test")}
    train = parts["train"][torch.argsort(graph.keys.cpu()[parts["train"]], stable=True)]  # see Model.answers
    asked = {part: parts[part].numpy() for part in ("val", "test") if len(parts[part])}

    def micro(predicted: dict[str, Array]) -> dict[str, float]:
        return {part: round(f1_scores(labels[rows], predicted[part]).micro, 4) for part, rows in asked.items()}

    by_paper = None
    if paper:
        probe = Probe(seed).fit(z[train], labels[train])
        by_paper = micro({part: probe.predict(z[rows]) for part, rows in asked.items()})
    classes = labels.shape[1] if graph.multilabel else graph.num_classes
    if len(train) * z.shape[1] * classes > LARGEST_TUNED:
        return Yardstick(name, by_paper, None, note="the tuned probe of so many nodes and classes would take too long")
    fitted, chosen = train.numpy(), asked.get("val")
    if chosen is None:
        order = torch.argsort(Stream(seed, "tuned probe").keys(graph.keys.cpu()[train]), stable=True).numpy()
        cut = max(len(order) // TENTH, 1)
        fitted, chosen = fitted[order[cut:]], fitted[order[:cut]]
    others = asked.get("test", chosen)
    penalty, predicted = tuned_probe(z, labels, {"train": fitted, "val": chosen, "test": others}, gpu=gpu)
    return Yardstick(name, by_paper, micro(predicted), penalty)


def _identity(model: Model, graph: Graph, split: Split, inference: str | None) -> str:
    """A digest of all that the rows depend on."""
    settings = {
        "version": VERSION,
        "encoder": dataclasses.asdict(model.encoder.config),
        "sampling": dataclasses.asdict(model.sampling),
        "inference": inference or model.inference,
        "seed": model.seed,
        "keep_features": model.keep_features,
    }
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    tensors = [split.codes, graph.indptr, graph.indices, graph.keys, *model.encoder.state_dict().values()]
    for tensor in tensors if graph.labels is None else [*tensors, graph.labels]:
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _kept(folder: Path | None, identity: str) -> list[Yardstick] | None:
    if folder is None or not (folder / FILE).exists():
        return None
    try:
        record = read_checksummed(folder / FILE)
        return [Yardstick(**row) for row in record["rows"]] if record["identity"] == identity else None
    except (DataError, KeyError, TypeError):  # damaged: make it again
        return None
