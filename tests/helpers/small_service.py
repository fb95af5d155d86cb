"""What service tests share: a small run and live graph, made in a second."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphsage.features.columns import Numeric
from graphsage.features.limits import FeatureLimits, largest_of
from graphsage.features.pipeline import FeaturePlan, Step
from graphsage.features.text import TfidfSvd
from graphsage.graph.build import from_edges
from graphsage.inference.model import Model
from graphsage.live.node_features import fingerprint
from graphsage.live.store import create_store
from graphsage.model.encoder import Encoder, EncoderConfig
from graphsage.model.heads import ClassHead
from graphsage.sampling.minibatch import SamplingConfig
from graphsage.serving.keys import FORMAT, Key

SOURCE = str(Path(__file__).parents[2] / "src")
N = 30
KINDS = ("algebra", "logic", "topology")
NEW = {"attributes": {"words": "about logic item", "size": 3}, "edges": ["node-1", "node-4"]}


def api_key(secret: str, *scopes: str, expires: date | None = None) -> Key:
    """A key named after its scopes."""
    return Key("-".join(scopes), scopes, sha256(secret.encode()).digest(), expires)


def write_keys(path: Path, *keys: Key) -> Path:
    path.write_text("\n".join([FORMAT, *(key.line() for key in keys), ""]))
    path.chmod(0o600)
    return path


@dataclass(frozen=True)
class Small:
    run: Path
    graph: Path

    def copy(self, folder: Path) -> "Small":
        shutil.copytree(self.run, folder / "run")
        shutil.copytree(self.graph, folder / "graph")
        return Small(folder / "run", folder / "graph")


def columns() -> dict[str, list[Any]]:
    return {
        "words": [f"about {KINDS[row % 3]} item {row % 7}" for row in range(N)],
        "size": [None if row % 11 == 0 else row % 5 for row in range(N)],
    }


def small_model(seed: int = 0, **changes: Any) -> tuple[Model, Any]:
    """A model with random weights, and the features of the nodes."""
    plan = FeaturePlan((Step(TfidfSvd(dim=4, min_df=1), ("words",)), Step(Numeric(), ("size",))))
    fitted, x = plan.fit(columns(), np.arange(N))
    torch.manual_seed(seed)
    encoder = Encoder(EncoderConfig(dim=8, num_layers=2), x.shape[1]).eval()
    limits = FeatureLimits(largest_of([torch.from_numpy(x)], torch.arange(N)))
    options = {"class_names": KINDS, "features": fitted, "limits": limits, "seed": seed, **changes}
    options.setdefault("about", {"data": "small"})
    return Model(encoder, ClassHead(8, 3), SamplingConfig(sample_sizes=(3, 2), max_degree=6), **options), x


def make_small(folder: Path) -> Small:
    model, x = small_model()
    model.save(folder / "run")
    draw = np.random.default_rng(0)
    pairs = np.concatenate([draw.integers(0, N, (60, 2)), [(0, v) for v in range(1, 12)]])
    graph = from_edges(
        pairs, N, features=x, labels=np.arange(N) % 3, class_names=KINDS, ids=[f"node-{row}" for row in range(N)]
    )
    said = [{name: values[row] for name, values in columns().items()} for row in range(N)]
    create_store(folder / "graph", graph, said, fingerprint(model))
    return Small(folder / "run", folder / "graph")


def eventually(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)


@contextmanager
def served(small: Small, *options: str, fault: str = "") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A service over `small` in a process of its own, and its address."""
    command = [sys.executable, "-m", "graphsage", "serve", str(small.run), "--graph", str(small.graph), "--port", "0"]
    command += ["--map", "pca"]
    env = {**os.environ, "PYTHONPATH": SOURCE, "GRAPHSAGE_FAULT": fault}
    process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True, env=env)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"on (http://[\d.]+:\d+)", line)
        assert found, line + process.stderr.read()
        yield process, found[1]
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()
