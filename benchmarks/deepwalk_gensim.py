"""Our DeepWalk beside gensim's Word2Vec on the same pairs of the same walks, all nodes at hand (transductive).

    python -m benchmarks.deepwalk_gensim DATA [DATA ...] --seeds 5 --out results/deepwalk-gensim.json

DATA is a graph folder or another format that `graphsage train` reads, with one class a node. gensim is given each pair
as a text of two words, the same number of negatives and passes, and the rate of one pair in our batches of 64. It takes
each pair both ways.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gensim.models import Word2Vec

from graphsage.baselines.deepwalk import DeepWalkConfig, train_deepwalk
from graphsage.datasets.open import open_data
from graphsage.evaluation.f1 import f1_scores
from graphsage.evaluation.probe import Probe
from graphsage.experiments.record import spread, write_result
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split
from graphsage.sampling.walks import walk_pairs


def ours(graph: Graph, config: DeepWalkConfig) -> Any:
    return train_deepwalk(graph, torch.arange(graph.num_nodes), config).target.numpy()


def gensims(graph: Graph, config: DeepWalkConfig) -> Any:
    walks = walk_pairs(graph, torch.arange(graph.num_nodes), config.seed, config.num_walks, config.walk_length)
    u, v, valid = walks.pairs(torch.arange(walks.count))
    texts = [[str(a), str(b)] for a, b in zip(u[valid].tolist(), v[valid].tolist(), strict=True)]
    rate = config.lr / config.batch_size
    model = Word2Vec(
        texts,
        vector_size=config.dim,
        sg=1,
        negative=config.num_negatives,
        ns_exponent=0.75,
        window=1,
        min_count=0,
        epochs=config.passes,
        alpha=rate,
        min_alpha=rate,
        sample=0,
        workers=1,
        seed=config.seed,
    )
    z = np.zeros((graph.num_nodes, config.dim), np.float32)
    for row in range(graph.num_nodes):
        if str(row) in model.wv:
            z[row] = model.wv[str(row)]
    return z


def score(z: Any, graph: Graph, seed: int) -> float:
    assert graph.labels is not None
    labels = graph.labels.numpy()
    z = z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)
    split = Split.random(graph.num_nodes, seed=seed)
    train, test = split.nodes("train").numpy(), split.nodes("test").numpy()
    return f1_scores(labels[test], Probe(seed).fit(z[train], labels[train]).predict(z[test])).micro


def compared(graph: Graph, lr: float, seeds: int) -> dict[str, Any]:
    """Scores and processor time of both, and how far their means are apart."""
    scores: dict[str, list[float]] = {"graphsage": [], "gensim": []}
    seconds: dict[str, list[float]] = {"graphsage": [], "gensim": []}
    for seed in range(seeds):
        config = DeepWalkConfig(lr=lr, seed=seed)
        for name, make in (("graphsage", ours), ("gensim", gensims)):
            began = time.process_time()
            z = make(graph, config)
            seconds[name].append(time.process_time() - began)
            scores[name].append(score(z, graph, seed))
            print(f"seed {seed}  {name}  {scores[name][-1]:.3f}  {seconds[name][-1]:.0f} s", flush=True)
    rows = {name: {"test_micro_f1": spread(scores[name]), "cpu_seconds": spread(seconds[name])} for name in scores}
    apart = rows["graphsage"]["test_micro_f1"]["mean"] - rows["gensim"]["test_micro_f1"]["mean"]
    return {"nodes": graph.num_nodes, "lr": lr, **rows, "difference": round(apart, 4)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.8)
    parser.add_argument("--out", type=Path, default=Path("results/deepwalk-gensim.json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for spec in options.data:
        data = open_data(spec)
        print(data.name, flush=True)
        found = compared(data.graph.replace(features=None), options.lr, options.seeds)
        rows.append({"data": data.name, **found})
        command = (
            f"python -m benchmarks.deepwalk_gensim {' '.join('PATH/' + row['data'] for row in rows)} "
            f"--seeds {options.seeds}"
        )
        about = "DeepWalk: probe micro F1 of our vectors and of gensim's, transductive"
        write_result(options.out, about, command, {"rows": rows})


if __name__ == "__main__":
    main()
