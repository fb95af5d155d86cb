"""Figure 2A: time to train and time to embed unseen nodes, DeepWalk included, on the largest data given."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from graphsage.baselines.deepwalk import DeepWalkConfig, embed_new, train_deepwalk
from graphsage.experiments.data import Named, Source, facts, opened
from graphsage.experiments.paper import NAMES
from graphsage.experiments.profile import AGGREGATORS
from graphsage.experiments.record import spread, usual
from graphsage.experiments.session import Session
from graphsage.experiments.steps import seconds_per_step, timed_training
from graphsage.experiments.trials import make_trial, wait_for
from graphsage.graph.split import TRAIN, training_graph
from graphsage.kernels.random import Stream
from graphsage.sampling.walks import walk_pairs
from graphsage.training.train import choose_device
from graphsage.training.trials import Result, Trial

WALKS, PASSES, BATCH = 50, 5, 512
NO_TIMES = ("val", "seconds", "cpu_seconds")  # what trials tell beside the times of a method


def run(session: Session) -> Path:
    """Times of this machine, and beside them those that others have left in the same folder."""
    source = session.largest
    data = opened(source)
    here = methods(session, source, session.machine)
    session.time(session.with_seeds(here))
    timed = [timed_on(session, source, machine) for machine in session.machines(here, session.machine)]
    body = {"data": {source.name: facts(data)}, "unseen_nodes": len(unseen(data, None)),
            "timed_nodes": len(unseen(data, session.profile.timed_nodes)), **timed[0],
            "elsewhere": timed[1:]}  # fmt: skip
    return session.keep("figure2a", "Figure 2A: seconds to train, microseconds to embed an unseen node", body)


def methods(session: Session, source: Source, machine: str) -> dict[str, Trial]:
    """What is timed, by its name in the paper's tables."""
    profile = session.profile
    common = {"nodes": profile.timed_nodes, "steps": profile.timed_steps, "machine": machine}
    found = {}
    for aggregator in AGGREGATORS:
        found[NAMES[aggregator]] = make_trial("figure2a", "timed graphsage", f"time {aggregator}", source,
                                              aggregator=aggregator, **common, model=dict(profile.timed))  # fmt: skip
    if opened(source).one_graph:
        found["DeepWalk"] = make_trial("figure2a", "timed deepwalk", "time DeepWalk", source, **common, threads=1)
    return found


def timed_on(session: Session, source: Source, machine: str) -> dict[str, Any]:
    """What one machine has timed, and with what."""
    made = {name: list(session.trials.seeds(trial, session.seeds).values())
            for name, trial in methods(session, source, machine).items()}  # fmt: skip
    rows = compared({name: [record["result"] for record in records] for name, records in made.items()})
    made_with = {f"{record['hardware']['cores']} cores, torch {record['versions']['torch']}"
                 for records in made.values() for record in records}  # fmt: skip
    return {"device": machine, "made_with": sorted(made_with), "rows": rows}


def compared(runs: Mapping[str, Sequence[Result]]) -> list[dict[str, Any]]:
    """A row for each method: times over the seeds, and how many times as long DeepWalk needs for an unseen node."""
    rows: dict[str, dict[str, Any]]
    rows = {name: {key: spread(run[key] for run in made) for key in made[0] if key not in NO_TIMES}
            for name, made in runs.items()}  # fmt: skip
    if "DeepWalk" in rows:
        walked = usual(rows["DeepWalk"]["embed_microseconds"])
        for row in (row for name, row in rows.items() if name != "DeepWalk"):
            row["deepwalk_inference_factor"] = round(walked / usual(row["embed_microseconds"]), 1)
            row["deepwalk_exact_factor"] = round(walked / usual(row["exact_embed_microseconds"]), 1)
    return [{"row": name, **row} for name, row in rows.items()]


def unseen(data: Named, count: int | None) -> torch.Tensor:
    """Validation and test nodes, as the paper's 79,534; `count` of them drawn at random where that is enough."""
    nodes = torch.nonzero(data.split.codes != TRAIN).flatten()
    order = torch.argsort(Stream(0, "timed").keys(nodes), stable=True)
    return nodes if count is None else nodes[order[:count]].sort().values


def timed_graphsage(settings: dict[str, Any], data: Named) -> Result:
    """Seconds of a supervised and of an unsupervised step of 512, what these make of an epoch and of one pass over the
    walks, and the time to embed unseen nodes from samples and from all neighbors."""
    device = choose_device(settings["device"])
    nodes = unseen(data, settings["nodes"])
    result: Result = {}
    for task in ("supervised", "unsupervised"):
        model, ticks = timed_training(
            data, task=task, aggregator=settings["aggregator"], steps=settings["steps"], seed=settings["seed"],
            device=settings["device"], **settings["model"],
        )  # fmt: skip
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
    """The same for DeepWalk: a pass over the walks, and the online step with the paper's 50 walks and 5 passes."""
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
    there = graph.to(device)
    began = time.monotonic()
    embed_new(model, there, nodes, DeepWalkConfig(num_walks=WALKS, passes=PASSES, seed=settings["seed"]))
    wait_for(device)
    online = time.monotonic() - began
    return {"pass_seconds": spent * WALKS / short.num_walks,
            "embed_microseconds": 1e6 * online / len(nodes)}  # fmt: skip


def num_pairs(data: Named) -> int:
    seen = training_graph(data.graph.replace(features=None, labels=None), data.split)
    return walk_pairs(seen, data.split.nodes("train"), 0).count
