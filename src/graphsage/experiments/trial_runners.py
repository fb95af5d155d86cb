"""The types of trials: what each does, on which device, and the version of its protocol.

A trial trains or fits one method on one data set and scores or times it. `settings["data"]` and `settings["digest"]`
name the data. Scored trials return `val` and `test` micro F1 (and `test_macro`), or those of several rows of a table.
"""

import itertools
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from graphsage.baselines.chance import random_classifier
from graphsage.baselines.deepwalk import CONTEXTS, DeepWalkConfig, embed_new, train_deepwalk
from graphsage.baselines.features import inductive_features, smoothed, without_leak
from graphsage.evaluation.f1 import f1_scores
from graphsage.evaluation.probe import Probe, standardized, tuned_probe
from graphsage.experiments.data import Named, Source, opened, with_noise
from graphsage.experiments.record import machine
from graphsage.experiments.theory import learn
from graphsage.graph.graph import Graph
from graphsage.graph.split import TRAIN, Split, training_graph
from graphsage.inference.model import Model
from graphsage.kernels.random import Stream
from graphsage.sampling.walks import walk_pairs
from graphsage.training.progress import Event
from graphsage.training.train import choose_device, train
from graphsage.training.trials import Result, Trial

Array = npt.NDArray[Any]
PROBE_PASSES = 5  # of the probe: scikit-learn's default at the time of the paper
NOT_SETTINGS = ("data", "digest", "device", "noise", "seed", "sampled")
Ticks = Sequence[tuple[int, float]]
ON_GPU = 100  # times as many timed steps on a GPU: they are short, and progress is reported five times a second
WALKS, PASSES, BATCH = 50, 5, 512
FIVE_PASSES = " five passes"
"""In the name of a score: DeepWalk's online step makes as many passes as its training."""
ROTATIONS = ("same run", "other run", "other run, aligned")


def graphsage(settings: dict[str, Any], data: Named) -> Result:
    """Train one GraphSAGE model without looking at validation nodes, then score it on them and on test nodes."""
    noise, seed = settings.get("noise", 0.0), settings["seed"]
    graph = with_noise(data, noise, seed)
    own = {name: value for name, value in settings.items() if name not in NOT_SETTINGS}
    began = time.monotonic()
    model = train(graph, data.unvalidated, device=settings["device"], seed=seed, **own)
    spent = {"train_seconds": time.monotonic() - began, "steps": model.about["training"]["steps"]}
    if model.head is None:
        z = model.embed(graph, inference="exact").numpy()
        gpu = choose_device(settings["device"]).type == "cuda"
        both = beside_features(z, graph, data)
        result = probed(z, data, seed, gpu=gpu) | {"with_features": probed(both, data, seed, gpu=gpu)}
        return result | rounded(spent)
    result = dict(spent)
    for prefix, inference in (("", "exact"), *([("sampled_", "sampled")] if settings.get("sampled") else [])):
        scores = model.evaluate_parts(graph, data.split, ("val", "test"), inference=inference)
        result |= {f"{prefix}{part}": scores[part].micro for part in ("val", "test")}
        result |= {} if prefix else {"test_macro": scores["test"].macro}
    return rounded(result)


def chance(settings: dict[str, Any], data: Named) -> Result:
    labels, parts = known_labels(data)
    drawn = {part: random_classifier(labels, parts["train"], parts[part], settings["seed"]) for part in ("val", "test")}
    return scored(labels, parts, drawn)


def features(settings: dict[str, Any], data: Named) -> Result:
    """A node's own features, or with noise in place of some."""
    noise, seed = settings.get("noise", 0.0), settings["seed"]
    return scaled_and_probed(feature_table(with_noise(data, noise, seed)), data, seed, tuned=not noise)


def hop_means(settings: dict[str, Any], data: Named) -> Result:
    """x || Ax || A^2 x."""
    z = inductive_features(data.graph, data.split, feature_table(data.graph), hops=2)
    return scaled_and_probed(z, data, settings["seed"])


def smoothing(settings: dict[str, Any], data: Named) -> Result:
    """GCN without weights, twice."""
    x = feature_table(data.graph)
    z = without_leak(data.graph, data.split, lambda seen: smoothed(seen, x, times=2))
    return scaled_and_probed(z, data, settings["seed"])


def deepwalk(settings: dict[str, Any], data: Named) -> Result:
    """DeepWalk alone and with features, by both variants of the online step, on the CPU. `rows` holds all scores."""
    names = ("lr", "passes", "num_walks", "dim", "seed")
    config = DeepWalkConfig(**{name: settings[name] for name in names if name in settings})
    graph = data.graph.replace(features=None, labels=None)
    seen = training_graph(graph, data.split)
    began = time.monotonic()
    model = train_deepwalk(seen, data.split.nodes("train"), config)
    train_seconds = time.monotonic() - began
    new = torch.nonzero(data.split.codes != TRAIN).flatten()
    rows: dict[str, Result] = {}
    for contexts, passes in itertools.product(CONTEXTS, (config.online_passes, PASSES)):
        began = time.monotonic()
        added = embed_new(model, graph, new, replace(config, contexts=contexts, online_passes=passes))
        z, usual = added.embeddings.numpy(), passes == config.online_passes
        spent = {
            "train_seconds": round(train_seconds, 3),
            "online_seconds": round(time.monotonic() - began, 3),
            "new_nodes": len(new),
            "without_vector": int((~added.known).sum()),
        }
        variant = contexts if usual else f"{contexts}{FIVE_PASSES}"
        rows[f"DeepWalk {variant}"] = probed(z, data, settings["seed"], tuned=usual) | spent
        for noise in settings.get("noises", [0.0]) if usual else [0.0]:
            both = beside_features(z, with_noise(data, noise, settings["seed"]), data)
            name = f"DeepWalk + features {variant}" + (f" noise {noise}" if noise else "")
            rows[name] = probed(both, data, settings["seed"], tuned=usual and not noise) | spent
    return {"rows": rows, "val": max(row["val"] for row in rows.values())}


def known_labels(data: Named) -> tuple[Array, dict[str, Array]]:
    """Labels, and the rows of each part whose label is known."""
    assert data.graph.labels is not None
    labels: Array = data.graph.labels.numpy()
    return labels, {part: data.graph.labeled(data.split.nodes(part)).numpy() for part in ("train", "val", "test")}


def probed(z: Array, data: Named, seed: int, *, tuned: bool = True, gpu: bool = False) -> Result:
    """Scores of the paper's probe, and of the tuned one with the prefix `tuned_`."""
    labels, parts = known_labels(data)
    probe = Probe(seed, PROBE_PASSES).fit(z[parts["train"]], labels[parts["train"]])
    result = scored(labels, parts, {part: probe.predict(z[parts[part]]) for part in ("val", "test")})
    if tuned:
        penalty, predicted = tuned_probe(z, labels, parts, gpu=gpu)
        result |= {f"tuned_{name}": value for name, value in scored(labels, parts, predicted).items()}
        result["penalty"] = penalty
    return result


def scaled_and_probed(z: Array, data: Named, seed: int, *, tuned: bool = True) -> Result:
    """Both probes on standardized columns. The tuned one has no seed: the trial of seed 0 fits it for all."""
    return probed(standardized(z, data.split.nodes("train").numpy()), data, seed, tuned=tuned and seed == 0)


def scored(labels: Array, parts: dict[str, Array], predicted: dict[str, Array]) -> Result:
    found = {part: f1_scores(labels[parts[part]], answers) for part, answers in predicted.items()}
    return rounded({"val": found["val"].micro, "test": found["test"].micro, "test_macro": found["test"].macro})


def feature_table(graph: Graph) -> Array:
    assert graph.features is not None
    table: Array = graph.features.float().numpy()
    return table


def beside_features(z: Array, graph: Graph, data: Named) -> Array:
    """z and the features side by side, all columns standardized by the training nodes, as the authors do."""
    return standardized(np.concatenate([z, feature_table(graph)], axis=1), data.split.nodes("train").numpy())


def rounded(result: Result) -> Result:
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in result.items()}


def wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def rotation(settings: dict[str, Any], data: Named) -> Result:
    """Micro F1 of a probe of one run on its own vectors, on those of another run, and on these after alignment."""
    names = ("lr", "passes", "num_walks", "dim")
    given = {name: settings[name] for name in names if name in settings}
    graph = data.graph.replace(features=None, labels=None)
    everyone = torch.arange(graph.num_nodes)
    first, second = (
        train_deepwalk(graph, everyone, DeepWalkConfig(**given, seed=2 * settings["seed"] + number)).embeddings.numpy()
        for number in (0, 1)
    )
    labels, parts = known_labels(data)
    known = np.concatenate(list(parts.values()))
    known.sort()
    split = Split.random(len(known), seed=settings["seed"])
    train, test = known[split.nodes("train").numpy()], known[split.nodes("test").numpy()]
    probe = Probe(settings["seed"], PROBE_PASSES).fit(first[train], labels[train])
    vectors = (first, second, second @ procrustes(second[train], first[train]))
    scores = {
        name: f1_scores(labels[test], probe.predict(z[test])).micro for name, z in zip(ROTATIONS, vectors, strict=True)
    }
    return rounded({"val": scores["same run"], **scores})


def procrustes(source: Array, target: Array) -> Array:
    """The orthogonal matrix Q for which source @ Q is closest to target."""
    u, _, v = np.linalg.svd(source.T @ target)
    return np.asarray(u @ v)


def timed_step(settings: dict[str, Any], data: Named) -> Result:
    """A trial: milliseconds of one step with these settings."""
    own = {name: value for name, value in settings.items() if name not in (*NOT_SETTINGS, "machine")}
    _, ticks = timed_training(data, device=settings["device"], seed=settings["seed"], **own)
    return {"step_milliseconds": 1000 * usual_step(ticks)}


def timed_training(data: Named, *, steps: int, device: str, **settings: Any) -> tuple[Model, Ticks]:
    """A model after `steps` steps (ON_GPU times as many on a GPU), and times at the ends of steps, fewer on a GPU."""
    ticks = [(0, time.monotonic())]

    def tick(event: Event) -> None:
        if event.step > ticks[-1][0]:
            ticks.append((event.step, time.monotonic()))

    steps *= ON_GPU if choose_device(device).type == "cuda" else 1
    model = train(data.graph, data.unvalidated, steps=steps, device=device, on_event=tick, **settings)
    return model, ticks


def seconds_per_step(ticks: Ticks) -> float:
    """The mean, without the first third, which allocates memory and loads kernels."""
    (first, began), (last, ended) = ticks[len(ticks) // 3], ticks[-1]
    return (ended - began) / (last - first)


def usual_step(ticks: Ticks) -> float:
    """The median of the same: others on the machine can only make a step longer."""
    pairs = itertools.pairwise(ticks[len(ticks) // 3 :])
    return statistics.median((ended - began) / (last - first) for (first, began), (last, ended) in pairs)


def unseen(data: Named, count: int | None) -> torch.Tensor:
    """Validation and test nodes, as the paper's 79,534, or `count` of them drawn at random."""
    nodes = torch.nonzero(data.split.codes != TRAIN).flatten()
    order = torch.argsort(Stream(0, "timed").keys(nodes), stable=True)
    return nodes if count is None else nodes[order[:count]].sort().values


def timed_graphsage(settings: dict[str, Any], data: Named) -> Result:
    """Times of training steps, of an epoch, of a pass over the walks, and of embedding unseen nodes."""
    device = choose_device(settings["device"])
    nodes = unseen(data, settings["nodes"])
    result: Result = {}
    for task in ("supervised", "unsupervised"):
        model, ticks = timed_training(
            data,
            task=task,
            form="paper",
            aggregator=settings["aggregator"],
            steps=settings["steps"],
            seed=settings["seed"],
            device=settings["device"],
            **settings["model"],
        )
        result[f"{task}_step_milliseconds"] = 1000 * seconds_per_step(ticks)
    train_nodes = data.split.nodes("train")
    result["epoch_seconds"] = result["supervised_step_milliseconds"] / 1000 * -(-len(train_nodes) // BATCH)
    pairs = num_pairs(data)
    result["pass_seconds"] = result["unsupervised_step_milliseconds"] / 1000 * -(-pairs // BATCH)
    for how in ("sampled", "exact"):
        model.embed(data.graph, nodes[:64], inference=how)
        wait_for(device)
        began = time.monotonic()
        model.embed(data.graph, nodes, inference=how)
        wait_for(device)
        name = "embed_microseconds" if how == "sampled" else "exact_embed_microseconds"
        result[name] = 1e6 * (time.monotonic() - began) / len(nodes)
    return result


def timed_deepwalk(settings: dict[str, Any], data: Named) -> Result:
    """Times of DeepWalk: a pass over the walks, and the online step with 50 walks by one and by five passes."""
    device = choose_device(settings["device"])
    nodes = unseen(data, settings["nodes"])
    graph = data.graph.replace(features=None, labels=None)
    seen = training_graph(graph, data.split).to(device)
    train_nodes = data.split.nodes("train")
    short = DeepWalkConfig(num_walks=WALKS // 5, passes=1, seed=settings["seed"])
    train_deepwalk(seen, train_nodes[:512], short)  # warms up
    wait_for(device)
    began = time.monotonic()
    model = train_deepwalk(seen, train_nodes, short)
    wait_for(device)
    spent = time.monotonic() - began
    result = {"pass_seconds": spent * WALKS / short.num_walks}
    there = graph.to(device)
    for name, passes in (("embed_microseconds", 1), ("five_pass_embed_microseconds", PASSES)):
        began = time.monotonic()
        embed_new(model, there, nodes, DeepWalkConfig(num_walks=WALKS, online_passes=passes, seed=settings["seed"]))
        wait_for(device)
        result[name] = 1e6 * (time.monotonic() - began) / len(nodes)
    return result


def num_pairs(data: Named) -> int:
    seen = training_graph(data.graph.replace(features=None, labels=None), data.split)
    return walk_pairs(seen, data.split.nodes("train"), 0).count


@dataclass(frozen=True)
class TrialType:
    run: Callable[..., Result]
    """Settings in, and the data unless the type has none; its result out."""
    version: int = 1
    """Raise it if the same settings give other results: kept trials of this type are then made again, no others."""
    cpu_only: bool = False
    """It leaves a GPU idle."""
    tf32: bool = False
    """--tf32 applies to it."""


TYPES = {
    "graphsage": TrialType(graphsage, version=2, tf32=True),
    "random": TrialType(chance, cpu_only=True),
    "features": TrialType(features, version=2, cpu_only=True),
    "hop means": TrialType(hop_means, cpu_only=True),
    "smoothing": TrialType(smoothing, cpu_only=True),
    "deepwalk": TrialType(deepwalk, version=2, cpu_only=True),
    "rotation": TrialType(rotation, version=2, cpu_only=True),
    "theory": TrialType(learn),
    "timed step": TrialType(timed_step, version=2, tf32=True),
    "timed graphsage": TrialType(timed_graphsage, version=2),
    "timed deepwalk": TrialType(timed_deepwalk, version=2),
}
"""Causes of version 2. The cap per row: graphsage, timed step, timed graphsage. The union of Equation 2: graphsage,
timed graphsage. The tuned probe: features, graphsage, deepwalk. DeepWalk and features standardized together: deepwalk.
One online pass: deepwalk, timed deepwalk. Zero vectors of nodes without a walk: deepwalk, rotation."""


def is_old(record: Mapping[str, Any]) -> bool:
    """Whether a trial was made under an older version of its type's protocol."""
    return bool(record["version"] < TYPES[record["type"]].version)


def make_trial(experiment: str, type: str, label: str, source: Source | None, **settings: Any) -> Trial:
    """A trial, on a data set if there is one: identified by the data's digest, not by its path or by the device."""
    if source is not None:
        label = f"{source.name} {label}"
        settings = {"data": source.name, "digest": opened(source).digest, **settings}
    return Trial(label, settings, type, TYPES[type].version, experiment)


def protocol(types: Iterable[str]) -> int:
    """The protocol version of a result: grows by one with each change of one of its trial types."""
    return 1 + sum(TYPES[type].version - 1 for type in types)


def machine_of(record: Mapping[str, Any]) -> str:
    """The machine that made a trial, in words, without a GPU that the trial left idle."""
    found, type = dict(record["hardware"]), TYPES[record["type"]]
    if not type.tf32:
        found.pop("products", None)
    return machine({**found, "gpu": None} if type.cpu_only else found)


@dataclass(frozen=True)
class Evaluate:
    """Makes trials, in this process or another one: holds the paths of the data and the device."""

    sources: tuple[Source, ...]
    device: str = "auto"
    tf32: bool = False
    """Multiply in TF32 when GraphSAGE is trained on a GPU."""

    def __call__(self, trial: Trial) -> Result:
        type, settings = TYPES[trial.type], {**trial.settings, "device": self.device}
        if self.tf32 and type.tf32:
            settings["tf32"] = True
        if "data" not in settings:
            return type.run(settings)
        source = next(source for source in self.sources if source.name == settings["data"])
        return type.run(settings, opened(source))
