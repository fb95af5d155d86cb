"""Ranks that share a step: the parts of a batch make up the batch, whatever the number of ranks."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from graphsage.training.batches import Epochs
from graphsage.training.config import Config
from graphsage.training.objectives import make_objective
from graphsage.training.train import Run, set_up
from planted import SMALL, planted_graph, planted_split, step_loss

CPU = torch.device("cpu")


@given(st.integers(1, 60), st.integers(1, 20), st.integers(1, 25), st.integers(0, 200))
def test_the_parts_of_all_ranks_are_the_batch_in_order(examples: int, batch: int, ranks: int, step: int) -> None:
    whole = Epochs(examples, batch, seed=0).positions(step, CPU)[0]
    parts, weights = [], []
    for rank in range(ranks):
        epochs = Epochs(examples, batch, 0, rank, ranks)
        assert epochs.steps == Epochs(examples, batch, 0).steps
        part = epochs.positions(step, CPU)[0, epochs.part(step)]
        assert len(part) >= 1
        assert epochs.weight(step) in (0.0, len(part) / len(whole))
        weights.append(epochs.weight(step))
        if weights[-1]:
            parts.append(part)
    assert torch.equal(torch.cat(parts), whole)
    assert sum(weights) == pytest.approx(1.0)
    sizes = {len(part) for part in parts}
    assert max(sizes) - min(sizes) <= 1


def set_up_small(**options: Any) -> tuple[Config, Run]:
    graph = planted_graph()
    config = Config.from_dict({**SMALL, **options}).resolved()
    return config, set_up(graph, planted_split(graph), config, CPU, {})


def gradients(config: Config, run: Run, step: int, rank: int, ranks: int) -> tuple[float, list[Tensor]]:
    objective = make_objective(config, run.model.encoder, run.model.head, replace(run.data, rank=rank, ranks=ranks))
    run.module.train()
    run.module.zero_grad()
    loss = step_loss(objective, step)
    torch.autograd.backward(loss)
    return float(loss.detach()), [p.grad.clone() for p in run.module.parameters()]


@pytest.mark.parametrize("ranks", [2, 3, 17])
@pytest.mark.parametrize("aggregator", ["mean", "gcn", "pool", "lstm"])
@pytest.mark.parametrize(
    "options",
    [
        {"task": "supervised", "dropout": 0.3, "class_weights": "balanced", "label_inputs": True},
        {"task": "unsupervised", "dropout": 0.3},
        {"task": "unsupervised", "negatives_per_pair": True},
        {"task": "joint", "supervised_weight": 0.7},
    ],
    ids=["supervised", "unsupervised", "each pair's negatives", "joint"],
)
def test_gradients_of_the_parts_add_up_to_the_gradient_of_the_batch(
    ranks: int, aggregator: str, options: dict[str, Any]
) -> None:
    config, run = set_up_small(aggregator=aggregator, hidden_dim=8, num_walks=2, **options)
    per_epoch = make_objective(config, run.model.encoder, run.model.head, run.data).epochs.steps
    for step in (0, per_epoch - 1, per_epoch + 1):  # the last batch of an epoch is smaller
        loss, whole = gradients(config, run, step, 0, 1)
        parts = [gradients(config, run, step, rank, ranks) for rank in range(ranks)]
        assert sum(part for part, _ in parts) == pytest.approx(loss, rel=1e-5)
        for total, *each in zip(whole, *(grads for _, grads in parts), strict=True):
            torch.testing.assert_close(torch.stack(each).sum(0), total, atol=1e-6, rtol=1e-4)


def test_many_labels_are_averaged_over_the_whole_batch() -> None:
    graph = planted_graph(classes=3, multilabel=True)
    config = Config.from_dict({**SMALL, "batch_size": 7}).resolved()
    run = set_up(graph, planted_split(graph), config, CPU, {})
    loss, whole = gradients(config, run, 10, 0, 1)
    parts = [gradients(config, run, 10, rank, 3) for rank in range(3)]
    assert sum(part for part, _ in parts) == pytest.approx(loss, rel=1e-5)
    torch.testing.assert_close(sum(grads[0] for _, grads in parts), whole[0], atol=1e-6, rtol=1e-4)
