import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.class_weight import compute_class_weight

from graphsage.losses import supervised_loss
from graphsage.training.class_weights import RULES, class_weights
from graphsage.training.train import train
from planted import SMALL, planted_graph, planted_split

LABELS = st.lists(st.integers(0, 4), min_size=2, max_size=40).map(torch.tensor)
USED = st.sampled_from(["sqrt", "balanced"])


def test_balanced_weights_by_hand() -> None:
    """n / (k n_c) over the k classes that occur; class 2 has no training node and cannot be weighed."""
    classes = torch.tensor([0] * 6 + [1] * 3)
    assert class_weights("balanced", classes, 3).tolist() == [0.75, 1.5, 1.0]
    marks = torch.tensor([[1, 0, 1], [1, 0, 0], [1, 0, 0], [1, 0, 1]], dtype=torch.uint8)
    marks[0, 0] = 0
    absent, present = class_weights("balanced", marks, 3).tolist()
    assert absent == [2.0, 1.0, 1.0]
    assert present == pytest.approx([2 / 3, 1.0, 1.0])


@given(LABELS)
def test_balanced_weights_are_those_of_scikit_learn(labels: torch.Tensor) -> None:
    weights = class_weights("balanced", labels, 5)
    used = np.unique(labels.numpy())
    expected = compute_class_weight("balanced", classes=used, y=labels.numpy())
    assert (torch.ones(5) if weights is None else weights)[used].tolist() == pytest.approx(expected.tolist())


@given(LABELS, USED)
def test_nodes_weigh_one_on_average_and_rare_classes_more(labels: torch.Tensor, rule: str) -> None:
    weights = class_weights(rule, labels, 5)
    weights = torch.ones(5) if weights is None else weights
    assert float(weights[labels].mean()) == pytest.approx(1.0)
    counts = torch.bincount(labels, minlength=5)
    for a in labels.unique().tolist():
        for b in labels.unique().tolist():
            assert (counts[a] < counts[b]) <= bool(weights[a] > weights[b])


@given(st.sampled_from(list(RULES)), st.integers(1, 4), st.integers(1, 7))
def test_equal_classes_have_no_weights(rule: str, classes: int, each: int) -> None:
    assert class_weights(rule, torch.arange(classes).repeat(each), classes + 1) is None
    marks = torch.tensor([0, 1], dtype=torch.uint8).repeat(each)[:, None].repeat(1, classes)
    assert class_weights(rule, marks, classes) is None


@pytest.mark.parametrize("multilabel", [False, True])
def test_weights_of_equal_classes_change_no_bit_of_the_model(multilabel: bool) -> None:
    graph = planted_graph(multilabel=multilabel)
    split = planted_split(graph)
    train_nodes = split.nodes("train")
    kinds = torch.zeros(graph.num_nodes, dtype=torch.int64)
    kinds[train_nodes[::2]] = 1  # 36 nodes of each kind
    graph = graph.replace(labels=torch.nn.functional.one_hot(kinds, 2).to(torch.uint8) if multilabel else kinds)
    one, two = (train(graph, split, **SMALL, keep_weights="last", class_weights=rule) for rule in ("equal", "balanced"))
    assert torch.equal(one.embed(), two.embed())
    assert torch.equal(one.predict_proba(), two.predict_proba())


@given(st.integers(0, 1000))
def test_a_weight_of_w_counts_like_w_copies_of_a_node(seed: int) -> None:
    """The weighted mean over nodes (0, 1) with weights (1, 3), times their number, is the sum over (0, 1, 1, 1)."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(2, 3, generator=generator)
    rows = torch.tensor([0, 1, 1, 1])
    classes = torch.tensor([0, 2])
    weighted = supervised_loss(scores, classes, torch.tensor([1.0, 5.0, 3.0]))
    assert float(2 * weighted) == pytest.approx(float(4 * supervised_loss(scores[rows], classes[rows])), rel=1e-5)
    marks = torch.tensor([[0, 0, 0], [1, 1, 1]], dtype=torch.uint8)
    weighted = supervised_loss(scores, marks, torch.tensor([[1.0] * 3, [3.0] * 3]))
    assert float(2 * weighted) == pytest.approx(float(4 * supervised_loss(scores[rows], marks[rows])), rel=1e-5)


def test_balanced_weights_raise_the_recall_of_a_rare_class() -> None:
    graph = planted_graph(400)
    split = planted_split(graph)
    noisy = graph.features * 0.4 + torch.randn(400, 6, generator=torch.Generator().manual_seed(1))
    rare = (graph.labels == 1) & (torch.arange(400) % 8 == 0)
    graph = graph.replace(labels=rare.long(), features=noisy)
    recalls = []
    for rule in ("equal", "balanced"):
        model = train(graph, split, **{**SMALL, "epochs": 6}, keep_weights="last", class_weights=rule)
        recalls.append(float((model.predict()[rare] == 1).float().mean()))
    assert recalls[1] > recalls[0] + 0.3
