"""Questions to a link predictor, on a graph small enough to compute by hand."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphsage.evaluation.link_scores import Questions, link_scores
from graphsage.graph.graph import Graph
from graphsage.graph.link_split import LinkPart

# 0 is known to be linked to 1, and 2 to 3; 0 asks for 3, and 2 for 4 and 1
PART = LinkPart(
    Graph.from_edges([[0, 1], [2, 3]], 5, directed=True),
    torch.tensor([[0, 3], [2, 4], [2, 1]]),
    torch.tensor([[0, 1], [2, 3]]),
    torch.arange(5),
)


def test_scores_by_hand() -> None:
    asked = Questions.of(PART)
    assert asked.sources.tolist() == [0, 2]
    assert asked.partners.toarray().tolist() == [[0, 0, 0, 1, 0], [0, 1, 0, 0, 1]]
    assert asked.known.toarray().tolist() == [[1, 1, 0, 0, 0], [0, 0, 1, 1, 0]]
    table = np.array([[9.0, 9, 5, 4, 3], [1, 2, 9, 9, 0]])  # 0: 2 before 3; 2: 1 before 0 before 4
    found = link_scores(asked, lambda rows: table[rows], cutoffs=(1, 2))
    assert found.mrr == pytest.approx((1 / 2 + 1) / 2)
    assert found.hits == {1: 0.5, 2: 1.0}
    assert found.recall == {1: 0.25, 2: 0.75}  # the second partner of 2 is third in the list
    assert found.sources == 2


def test_auc_compares_with_wrong_candidates_of_the_same_source() -> None:
    asked = Questions.of(PART)
    right = np.array([[0.0, 0, 0, 1, 0], [0, 1, 0, 0, 1]])
    assert link_scores(asked, lambda rows: right[rows]).auc == 1.0
    assert link_scores(asked, lambda rows: -right[rows]).auc == 0.0
    constant = link_scores(asked, lambda rows: np.zeros((len(rows), 5)))
    assert (constant.auc, constant.ap) == (0.5, 0.5)


def test_yardsticks_know_the_known_links_alone() -> None:
    asked = Questions.of(PART)
    found = asked.yardsticks(PART, np.eye(5))
    everyone = np.arange(2)
    assert found["popularity"](everyone).tolist() == [[0, 1, 0, 1, 0]] * 2
    assert found["common neighbors"](everyone).tolist() == [[1, 0, 0, 0, 0], [0, 0, 1, 0, 0]]
    assert set(found) == {"popularity", "common neighbors", "resource allocation", "nearest vote"}
    assert "nearest vote" not in asked.yardsticks(PART, None)


@given(st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_fewer_questions_are_some_of_all_of_them(n: int, seed: int) -> None:
    pairs = torch.unique(torch.randint(n, (3 * n, 2), generator=torch.Generator().manual_seed(seed)), dim=0)
    part = LinkPart(Graph.from_edges([[0, 1]], n), pairs, pairs[:0], torch.arange(n))
    whole, some = Questions.of(part), Questions.of(part, 2, seed)
    assert set(some.sources) <= set(whole.sources)
    assert len(some.sources) == min(2, len(whole.sources))
    places = np.searchsorted(whole.sources, some.sources)
    assert (whole.partners[places].toarray() == some.partners.toarray()).all()
