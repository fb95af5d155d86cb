"""The yardsticks of link prediction on a graph small enough to count by hand."""

import numpy as np
import pytest
from scipy import sparse

from graphsage.errors import DataError
from graphsage.evaluation.link_yardsticks import common_neighbors, nearest_vote, popularity, resource_allocation

# 0-1, 0-2, 1-2, 2-3, 3-4
EDGES = np.array([[0, 1], [0, 2], [1, 2], [2, 3], [3, 4]])


def symmetric() -> sparse.csr_array:
    dense = np.zeros((5, 5))
    dense[EDGES[:, 0], EDGES[:, 1]] = dense[EDGES[:, 1], EDGES[:, 0]] = 1
    return sparse.csr_array(dense)


def test_popularity_counts_links_to_a_candidate() -> None:
    links = sparse.csr_array(np.array([[1, 0, 1], [0, 0, 1]]))
    assert popularity(links)(np.array([0, 1])).tolist() == [[1, 0, 2], [1, 0, 2]]


def test_common_neighbors_by_hand() -> None:
    score = common_neighbors(symmetric(), np.array([0, 4]), np.array([1, 2, 3]))
    assert score(np.array([0])).tolist() == [[1, 1, 1]]  # 0 and 1 share 2; 0 and 2 share 1; 0 and 3 share 2
    assert score(np.array([1])).tolist() == [[0, 1, 0]]  # 4 and 2 share 3


def test_resource_allocation_divides_by_the_shared_nodes_degree() -> None:
    score = resource_allocation(symmetric(), np.array([0]), np.array([1, 2, 3]))
    assert score(np.array([0]))[0] == pytest.approx([1 / 3, 1 / 2, 1 / 3])


def test_the_nearest_vote_for_their_partners() -> None:
    voters = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0], [0.0, 0.0]])
    links = sparse.csr_array(np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1], [0, 0, 1]]))
    score = nearest_vote(np.array([[3.0, 4.0]]), voters, links, nearest=2)
    assert score(np.array([0]))[0] == pytest.approx([0.6 + 0.8, 0.8, 0])
    everyone = nearest_vote(np.array([[3.0, 4.0]]), voters, links, nearest=20)  # opposite features do not vote against
    assert everyone(np.array([0]))[0] == pytest.approx([1.4, 0.8, 0])
    with pytest.raises(DataError, match="4 voters and links of 3"):
        nearest_vote(np.zeros((1, 2)), voters, links[:3])
