"""Our DeepWalk beside an independent implementation."""

import numpy as np
import pytest
import torch

from graphsage.baselines.deepwalk import DeepWalkConfig, train_deepwalk
from graphsage.evaluation.probe import Probe
from graphsage.graph.split import Split
from graphsage.sampling.walks import walk_pairs
from planted import planted_graph


@pytest.mark.slow
def test_it_scores_as_gensims_word2vec_does_on_the_same_pairs() -> None:
    """Transductive probe accuracy within 2 points; `benchmarks.deepwalk_gensim` does the same on real graphs."""
    word2vec = pytest.importorskip("gensim.models").Word2Vec
    graph = planted_graph(400, classes=3)
    assert graph.labels is not None
    config = DeepWalkConfig(dim=32, lr=1.6)  # 400 nodes have few pairs: a larger rate than the paper's
    everyone = torch.arange(graph.num_nodes)
    ours = train_deepwalk(graph, everyone, config).target.numpy()
    walks = walk_pairs(graph, everyone, config.seed)
    u, v, valid = walks.pairs(torch.arange(walks.count))
    texts = [[str(a), str(b)] for a, b in zip(u[valid].tolist(), v[valid].tolist(), strict=True)]
    rate = config.lr / config.batch_size
    trained = word2vec(
        texts,
        vector_size=32,
        sg=1,
        negative=20,
        window=1,
        min_count=0,
        epochs=5,
        alpha=rate,
        min_alpha=rate,
        sample=0,
        workers=1,
        seed=0,
    )
    theirs = np.zeros_like(ours)
    theirs[walks.starts] = trained.wv[[str(row) for row in walks.starts.tolist()]]
    split, labels = Split.random(graph.num_nodes, (0.5, 0.0, 0.5)), graph.labels.numpy()
    train, test = split.nodes("train").numpy(), split.nodes("test").numpy()
    scores = []
    for z in (ours, theirs):
        z = z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)
        scores.append(float(np.mean(Probe().fit(z[train], labels[train]).predict(z[test]) == labels[test])))
    assert scores[0] > 0.5
    assert abs(scores[0] - scores[1]) <= 0.02
