"""Appendix D: two DeepWalk runs on one graph are rotated against each other, and Procrustes alignment undoes it."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphsage.baselines.deepwalk import DeepWalkConfig, train_deepwalk
from graphsage.evaluation.f1 import f1_scores
from graphsage.evaluation.probe import Probe
from graphsage.experiments.data import Named, facts, opened
from graphsage.experiments.record import spread
from graphsage.experiments.session import Inapplicable, Session
from graphsage.experiments.trials import PROBE_PASSES, Array, known_labels, make_trial, rounded
from graphsage.graph.split import Split
from graphsage.training.trials import Result

ROWS = ("same run", "other run", "other run, aligned")


def run(session: Session) -> Path:
    source = session.single
    if source is None:
        reasons = "; ".join(f"{each.name}: {opened(each).apart}" for each in session.sources)
        raise Inapplicable(f"DeepWalk cannot be applied ({reasons}); add --data setmm")
    trial = make_trial(
        "rotation", "rotation", "rotation", source, **session.profile.deepwalk, lr=max(session.profile.deepwalk_rates)
    )
    runs = session.runs({"rotation": trial})["rotation"]
    body = {"data": {source.name: facts(opened(source))},
            "rows": [{"row": name, "test_micro_f1": spread(run[name] for run in runs)} for name in ROWS]}  # fmt: skip
    return session.keep("rotation", "Appendix D: a probe fitted on one DeepWalk run, asked about another run", body)


def rotation(settings: dict[str, Any], data: Named) -> Result:
    """Both runs see all nodes. The probe is fitted on 70% of them in the first run and asked about 20%, in the same
    run and in the second one; that one is also aligned to the first by the nodes the probe was fitted on."""
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
        name: f1_scores(labels[test], probe.predict(z[test])).micro for name, z in zip(ROWS, vectors, strict=True)
    }
    return rounded({"val": scores["same run"], **scores})


def procrustes(source: Array, target: Array) -> Array:
    """The orthogonal matrix Q for which source @ Q is closest to target."""
    u, _, v = np.linalg.svd(source.T @ target)
    return np.asarray(u @ v)
