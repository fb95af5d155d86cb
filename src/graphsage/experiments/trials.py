"""What a trial of an experiment does: train or fit one method on one data set, score it, and time it.

`settings["data"]` and `settings["digest"]` name the data. Trials of this file return `val` and `test` micro F1 (and
`test_macro`), or those for each of several rows of a table.
"""

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from graphsage.baselines.chance import random_classifier
from graphsage.baselines.deepwalk import CONTEXTS, DeepWalkConfig, embed_new, train_deepwalk
from graphsage.evaluation.f1 import f1_scores
from graphsage.evaluation.probe import Probe
from graphsage.experiments.data import Named, Source, opened
from graphsage.experiments.noise import with_noise
from graphsage.features.scaler import fit_scaler
from graphsage.graph.graph import Graph
from graphsage.graph.split import TRAIN, training_graph
from graphsage.training.train import train
from graphsage.training.trials import Result, Trial

Array = npt.NDArray[Any]
PROBE_PASSES = 5  # of the probe: scikit-learn's default at the time of the paper
VERSIONS = dict.fromkeys(("graphsage", "random", "features", "deepwalk", "rotation", "theory", "timed step",
                          "timed graphsage", "timed deepwalk"), 1)  # fmt: skip
"""The protocol version of each trial type. Raise it if a type gives other results for the same settings: its kept
trials are no longer used, and those of other types stay."""
NOT_SETTINGS = ("data", "digest", "device", "noise", "seed", "sampled")


def make_trial(experiment: str, type: str, label: str, source: Source | None, **settings: Any) -> Trial:
    """A trial, on a data set if there is one: identified by the data's digest, not by its path or by the device."""
    if source is not None:
        label = f"{source.name} {label}"
        settings = {"data": source.name, "digest": opened(source).digest, **settings}
    return Trial(label, settings, type, VERSIONS[type], experiment)


def protocol(types: Iterable[str]) -> int:
    """The protocol version of a result: grows by one with each change of one of its trial types."""
    return 1 + sum(VERSIONS[type] - 1 for type in types)


def graphsage(settings: dict[str, Any], data: Named) -> Result:
    """Train one GraphSAGE model without looking at validation nodes, then score it on them and on test nodes."""
    noise, seed = settings.get("noise", 0.0), settings["seed"]
    graph = with_noise(data, noise, seed)
    own = {name: value for name, value in settings.items() if name not in NOT_SETTINGS}
    began = time.monotonic()
    model = train(graph, data.unvalidated, device=settings["device"], seed=seed, **own)
    seconds = time.monotonic() - began
    if model.head is None:
        result = probed(model.embed(graph, inference="exact").numpy(), data, seed)
    else:
        scores = model.evaluate_parts(graph, data.split, ("val", "test"), inference="exact")
        result = {"val": scores["val"].micro, "test": scores["test"].micro, "test_macro": scores["test"].macro}
    result |= {"train_seconds": seconds, "steps": model.about["training"]["steps"]}
    if settings.get("sampled") and model.head is not None:
        sampled = model.evaluate_parts(graph, data.split, ("val", "test"), inference="sampled")
        result |= {"sampled_val": sampled["val"].micro, "sampled_test": sampled["test"].micro}
    return rounded(result)


def chance(settings: dict[str, Any], data: Named) -> Result:
    labels, parts = known_labels(data)
    drawn = {part: random_classifier(labels, parts["train"], parts[part], settings["seed"]) for part in ("val", "test")}
    return scored(labels, parts, drawn)


def features(settings: dict[str, Any], data: Named) -> Result:
    """The paper's logistic probe on a node's own features, scaled by the training nodes."""
    graph = with_noise(data, settings.get("noise", 0.0), settings["seed"])
    return probed(scaled_features(graph, data), data, settings["seed"])


def deepwalk(settings: dict[str, Any], data: Named) -> Result:
    """DeepWalk alone and beside the features, with both variants of the online step. `rows` holds all scores. Always
    on the CPU, several at a time: a GPU gains little on steps of 64 pairs."""
    names = ("lr", "passes", "num_walks", "dim", "seed")
    config = DeepWalkConfig(**{name: settings[name] for name in names if name in settings})
    graph = data.graph.replace(features=None, labels=None)
    seen = training_graph(graph, data.split)
    began = time.monotonic()
    model = train_deepwalk(seen, data.split.nodes("train"), config)
    train_seconds = time.monotonic() - began
    new = torch.nonzero(data.split.codes != TRAIN).flatten()
    rows: dict[str, Result] = {}
    for contexts in CONTEXTS:
        began = time.monotonic()
        z = embed_new(model, graph, new, replace(config, contexts=contexts)).embeddings.numpy()
        spent = {"train_seconds": round(train_seconds, 3), "online_seconds": round(time.monotonic() - began, 3),
                 "new_nodes": len(new)}  # fmt: skip
        rows[f"DeepWalk {contexts}"] = probed(z, data, settings["seed"]) | spent
        for noise in settings.get("noises", [0.0]):
            noisy = with_noise(data, noise, settings["seed"])
            both = np.concatenate([z, scaled_features(noisy, data)], axis=1)
            suffix = f" noise {noise}" if noise else ""
            rows[f"DeepWalk + features {contexts}{suffix}"] = probed(both, data, settings["seed"]) | spent
    return {"rows": rows, "val": max(row["val"] for row in rows.values())}


def known_labels(data: Named) -> tuple[Array, dict[str, Array]]:
    """Labels, and the rows of each part whose label is known."""
    assert data.graph.labels is not None
    labels: Array = data.graph.labels.numpy()
    parts = {part: data.split.nodes(part).numpy() for part in ("train", "val", "test")}
    if labels.ndim == 1:
        parts = {part: rows[labels[rows] >= 0] for part, rows in parts.items()}
    return labels, parts


def probed(z: Array, data: Named, seed: int) -> Result:
    """Scores of the logistic probe, fitted on the training rows of z."""
    labels, parts = known_labels(data)
    probe = Probe(seed, PROBE_PASSES).fit(z[parts["train"]], labels[parts["train"]])
    return scored(labels, parts, {part: probe.predict(z[parts[part]]) for part in ("val", "test")})


def scored(labels: Array, parts: dict[str, Array], predicted: dict[str, Array]) -> Result:
    found = {part: f1_scores(labels[parts[part]], answers) for part, answers in predicted.items()}
    return rounded({"val": found["val"].micro, "test": found["test"].micro, "test_macro": found["test"].macro})


def scaled_features(graph: Graph, data: Named) -> Array:
    assert graph.features is not None
    scaler = fit_scaler([graph.features], data.split.nodes("train"))
    made: Array = scaler.apply(graph.features.float()).numpy()
    return made


def rounded(result: Result) -> Result:
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in result.items()}


def wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
