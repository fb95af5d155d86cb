"""Questions to a link predictor: which candidates is a source linked to? And the scores of the answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from graphsage.errors import DataError
from graphsage.evaluation.link_yardsticks import (
    common_neighbors,
    nearest_vote,
    popularity,
    resource_allocation,
)
from graphsage.evaluation.ranking import CUTOFFS, Scores, ranking
from graphsage.graph.graph import Graph
from graphsage.graph.link_split import LinkPart

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Questions:
    """Q sources, C candidates (rows of a graph), and which pairs are to be found (Q, C) or known already (Q, C)."""

    sources: Array
    candidates: Array
    partners: sparse.csr_array
    known: sparse.csr_array

    @classmethod
    def of(cls, part: LinkPart, most: int | None = None, seed: int = 0) -> "Questions":
        """The questions of a part of the links; of `most` sources drawn by the seed if there are more."""
        pairs, known, candidates = (each.cpu().numpy() for each in (part.pairs, part.known, part.candidates))
        sources = np.unique(pairs[:, 0])
        if most is not None and len(sources) > most:
            sources = np.sort(np.random.default_rng(seed).choice(sources, most, replace=False))
        itself = np.stack([sources, sources], axis=1)
        return cls(
            sources,
            candidates,
            _matrix(pairs, sources, candidates),
            _matrix(np.concatenate([known, itself]), sources, candidates),
        )

    def yardsticks(self, part: LinkPart, features: Array | None) -> dict[str, Scores]:
        """Scores that need no model, by what `part` knows of links and edges; `features` are (N, D)."""
        known, n = part.known.cpu().numpy(), part.messages.num_nodes
        lists = _ones(known[:, 0], known[:, 1], (n, n))
        edges = _adjacency(part.messages)
        both = sparse.csr_array(lists + lists.T + edges + edges.T)
        both.data[:] = 1
        found = {
            "popularity": popularity(sparse.csr_array(lists[:, self.candidates])),
            "common neighbors": common_neighbors(both, self.sources, self.candidates),
            "resource allocation": resource_allocation(both, self.sources, self.candidates),
        }
        if features is not None:
            voters = sparse.csr_array(lists[self.candidates][:, self.candidates])
            found["nearest vote"] = nearest_vote(features[self.sources], features[self.candidates], voters)
        return found


@dataclass(frozen=True)
class LinkScores:
    """Means over the sources; AUC and AP of all pairs to be found, against as many wrong ones of the same sources."""

    mrr: float
    hits: dict[int, float]
    recall: dict[int, float]
    auc: float
    ap: float
    sources: int

    def as_dict(self) -> dict[str, float]:
        own = {"mrr": self.mrr}
        own |= {f"hits@{k}": value for k, value in self.hits.items()}
        own |= {f"recall@{k}": value for k, value in self.recall.items()}
        return own | {"auc": self.auc, "ap": self.ap}


def link_scores(asked: Questions, scores: Scores, cutoffs: Sequence[int] = CUTOFFS, seed: int = 0) -> LinkScores:
    """How well `scores` (rows of sources -> scores of all candidates) answer."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    wrong = _wrong_candidates(asked, seed)
    true_scores, wrong_scores = [], []

    def watched(rows: Array) -> Array:
        made = scores(rows)
        first, last = asked.partners.indptr[rows[0]], asked.partners.indptr[rows[-1] + 1]
        of = np.repeat(np.arange(len(rows)), np.diff(asked.partners.indptr[rows[0] : rows[-1] + 2]))
        chosen = wrong[first:last]
        has = chosen >= 0
        true_scores.append(made[of[has], asked.partners.indices[first:last][has]])
        wrong_scores.append(made[of[has], chosen[has]])
        return made

    found = ranking(watched, asked.partners, asked.known, cutoffs, seed)
    both = np.concatenate([*true_scores, *wrong_scores])
    count = len(both) // 2
    if not count:
        raise DataError("every source is linked to all candidates, so there is no wrong answer to compare with")
    truth = np.repeat([1, 0], count)
    auc, ap = float(roc_auc_score(truth, both)), float(average_precision_score(truth, both))
    return LinkScores(found.mrr, found.hits, found.recall, auc, ap, found.queries)


def _wrong_candidates(asked: Questions, seed: int) -> Array:
    """For each pair to be found a candidate of the same source, neither known nor to be found; -1: there is none."""
    draws = np.random.default_rng(seed)
    right = sparse.csr_array(asked.partners + asked.known)
    count = len(asked.candidates)
    chosen = []
    for row in range(len(asked.sources)):
        taken = np.unique(right.indices[right.indptr[row] : right.indptr[row + 1]])
        size = int(asked.partners.indptr[row + 1] - asked.partners.indptr[row])
        free = count - len(taken)
        if not free:
            chosen.append(np.full(size, -1))
            continue
        place = draws.integers(free, size=size)  # among those that are not taken
        chosen.append(place + np.searchsorted(taken - np.arange(len(taken)), place, side="right"))
    return np.concatenate(chosen)


def _matrix(pairs: Array, sources: Array, candidates: Array) -> sparse.csr_array:
    at = [
        np.searchsorted(some, pairs[:, end]).clip(max=len(some) - 1) for end, some in enumerate((sources, candidates))
    ]
    here = (sources[at[0]] == pairs[:, 0]) & (candidates[at[1]] == pairs[:, 1])
    return _ones(at[0][here], at[1][here], (len(sources), len(candidates)))


def _adjacency(graph: Graph) -> sparse.csr_array:
    """Row u: the targets of the edges of u."""
    return _ones(graph.indices.long().cpu().numpy(), graph.edge_rows.cpu().numpy(), (graph.num_nodes,) * 2)


def _ones(rows: Array, columns: Array, shape: tuple[int, int]) -> sparse.csr_array:
    made = sparse.csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)
    made.sum_duplicates()
    made.data[:] = 1
    return made
