import numpy as np
import pytest

from graphsage.baselines.chance import random_classifier
from graphsage.errors import DataError
from graphsage.evaluation.f1 import f1_scores


def test_classes_are_drawn_as_often_as_training_nodes_have_them() -> None:
    labels = np.array([0] * 700 + [1] * 300 + [-1] * 500 + [2] * 5000)
    drawn = random_classifier(labels, np.arange(1500), np.arange(1500, 6500), seed=1)
    assert np.bincount(drawn, minlength=3)[2] == 0
    assert (drawn == 0).mean() == pytest.approx(0.7, abs=0.03)


def test_many_labels_are_drawn_each_on_its_own() -> None:
    rng = np.random.default_rng(0)
    labels = (rng.random((4000, 3)) < [0.1, 0.5, 0.9]).astype(np.uint8)
    drawn = random_classifier(labels, np.arange(2000), np.arange(2000, 4000))
    assert drawn.shape == (2000, 3)
    assert drawn.mean(axis=0) == pytest.approx([0.1, 0.5, 0.9], abs=0.04)


def test_a_single_label_keeps_its_column() -> None:
    labels = np.array([[0], [1], [1], [0]], np.uint8)
    assert random_classifier(labels, np.arange(4), np.arange(3)).shape == (3, 1)


def test_frequencies_need_a_label() -> None:
    with pytest.raises(DataError, match="no training node has a label"):
        random_classifier(np.array([-1, -1, 0]), np.arange(2), np.arange(2, 3))


def test_the_papers_citation_row_is_a_draw_from_the_class_frequencies() -> None:
    counts = [77356, 37935, 36688, 52225, 84231, 13988]  # Appendix B
    labels = np.repeat(np.arange(6), counts)
    nodes = np.arange(len(labels))
    assert f1_scores(labels, random_classifier(labels, nodes, nodes)).micro == pytest.approx(0.206, abs=0.003)
