"""Rules of training and inference that a run obeys without showing it: which graph, which rows, which weight."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from graphsage.errors import ConfigError
from graphsage.evaluation.probe import Probe
from graphsage.features.degree import degree_features
from graphsage.graph.cap import cap_degrees
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split, training_graph
from graphsage.inference.embed import embed_exact, embed_sampled
from graphsage.inference.model import Model
from graphsage.training.checkpoint import TrainingState
from graphsage.training.config import Config
from graphsage.training.loop import run_loop
from graphsage.training.objectives import make_objective
from graphsage.training.train import train
from planted import SMALL, planted_graph, planted_split, step_loss

TASKS = ["supervised", "unsupervised", "joint"]


@dataclass
class Start:
    """A run as `train` sets it up."""

    config: Config
    module: nn.ModuleDict
    objective: Any
    model: Model

    def parts(self) -> list[Any]:
        joint = self.config.task == "joint"
        return [self.objective.supervised, self.objective.unsupervised] if joint else [self.objective]


def data() -> tuple[Graph, Split]:
    graph = planted_graph()
    return graph, planted_split(graph)


def start(monkeypatch: pytest.MonkeyPatch, *, go: bool = False, **options: Any) -> Start:
    """A run before its first step or, with `go`, after its last."""
    caught: list[Any] = []

    def catch(config: Config, module: nn.ModuleDict, objective: Any, **rest: Any) -> TrainingState:
        caught.extend([config, module, objective])
        return run_loop(config, module, objective, **rest) if go else TrainingState()

    with monkeypatch.context() as patch:
        patch.setattr("graphsage.training.train.run_loop", catch)
        model = train(*data(), device="cpu", **{**SMALL, **options})
    return Start(*caught, model)


def weights(run: Start) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in run.module.named_parameters()}


def first_gradients(run: Start) -> dict[str, Tensor]:
    torch.autograd.backward(step_loss(run.objective, 0))
    return {name: value.grad.clone() for name, value in run.module.named_parameters()}


@pytest.mark.parametrize("task", ["unsupervised", "joint"])
def test_walks_go_over_the_training_graph_before_the_cap(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = training_graph(*data())
    walks = start(monkeypatch, task=task, max_degree=1, walk_length=2, num_walks=100).parts()[-1].walks
    u, v, _ = walks.pairs(torch.arange(walks.count))
    hub = int(seen.degrees.argmax())
    assert set(v[u == hub].tolist()) == set(seen.neighbors(hub).tolist())
    assert set(u.tolist()) == set(torch.nonzero(seen.degrees).flatten().tolist())


@pytest.mark.parametrize("task", ["unsupervised", "joint"])
def test_negatives_are_drawn_by_degrees_before_the_cap(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = training_graph(*data())
    negatives = start(monkeypatch, task=task, max_degree=1).parts()[-1].negatives
    drawn_in_proportion_to = torch.diff(negatives.cumulative, prepend=torch.zeros(1, dtype=torch.float64))
    torch.testing.assert_close(drawn_in_proportion_to, seen.degrees.double() ** 0.75)


@pytest.mark.parametrize(("form", "cap"), [(None, "row"), ("paper", "symmetric"), ("reference", "row")])
@pytest.mark.parametrize("task", TASKS)
def test_neighborhoods_are_drawn_from_the_capped_training_graph(
    task: str, form: str | None, cap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from graphsage.training.objectives import base

    real, used = base.sample_minibatch, []

    def recording(graph: Graph, *rest: Any) -> Any:
        used.append(graph)
        return real(graph, *rest)

    monkeypatch.setattr(base, "sample_minibatch", recording)
    run = start(monkeypatch, task=task, form=form, cap=cap, max_degree=2, seed=3)
    step_loss(run.objective, 0)
    capped = cap_degrees(training_graph(*data()), 2, seed=3, cap=cap)
    assert len(used) == len(run.parts())
    for graph in used:
        assert torch.equal(graph.indptr, capped.indptr)
        assert torch.equal(graph.indices, capped.indices)


@pytest.mark.parametrize("weight", [0.0, 1.0, 2.5])
def test_the_joint_loss_is_equation_1_plus_the_weighted_supervised_loss(
    weight: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(monkeypatch, task="joint", supervised_weight=weight)
    built_from = (run.model.encoder, run.model.head, run.objective.data)
    supervised, unsupervised = (make_objective(replace(run.config, task=task), *built_from) for task in TASKS[:2])
    for step in (0, 1, 7):
        one, other = step_loss(unsupervised, step), step_loss(supervised, step)
        assert torch.stack([one, other]).min() > 0.1
        torch.testing.assert_close(step_loss(run.objective, step), one + weight * other)


def recorded_probe(monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[Any]]:
    """What probes are fitted on from here on, and what they answer."""
    fitted, answers = [], []

    class Recording(Probe):
        def fit(self, z: np.ndarray, labels: np.ndarray) -> Probe:
            fitted.append((z, labels))
            return super().fit(z, labels)

        def predict(self, z: np.ndarray) -> np.ndarray:
            answers.append(super().predict(z))
            return answers[-1]

    monkeypatch.setattr("graphsage.inference.model.Probe", Recording)
    return fitted, answers


@pytest.mark.parametrize("parts", [("test",), ("val", "test"), ("train", "val")])
def test_the_probe_is_fitted_on_the_labeled_training_nodes_only(
    parts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, split = data()
    unlabeled, nodes = split.nodes("train").split([5, len(split.nodes("train")) - 5])
    graph = graph.replace(labels=graph.labels.index_fill(0, unlabeled, -1))
    model = train(graph, split, task="unsupervised", **{**SMALL, "steps": 2})
    fitted, _ = recorded_probe(monkeypatch)
    model.evaluate_parts(graph, split, parts)
    [(z, labels)] = fitted
    np.testing.assert_array_equal(labels, graph.labels[nodes].numpy())
    np.testing.assert_allclose(z, model.embed(graph, nodes).numpy(), rtol=0, atol=1e-6)


def test_labels_of_other_nodes_do_not_change_what_the_probe_predicts(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, split = data()
    other = graph.replace(labels=torch.where(split.codes == 0, graph.labels, 1 - graph.labels))
    model = train(graph, split, task="unsupervised", **{**SMALL, "steps": 2})
    _, answers = recorded_probe(monkeypatch)
    scores = [model.evaluate(labeled, split, "test").micro for labeled in (graph, other)]
    np.testing.assert_array_equal(*answers)
    assert scores[0] == pytest.approx(1 - scores[1])  # the truth did change


@pytest.mark.parametrize(("form", "cap"), [("paper", "symmetric"), ("reference", "row")])
def test_inference_reads_the_capped_graph_and_degree_features_the_whole_one(form: str, cap: str) -> None:
    graph, split = data()
    options = {**SMALL, "form": form, "steps": 1, "degree_features": True, "seed": 3}
    model = train(graph, split, max_degree=2, cap=cap, on_note=print, **options)
    uncapped = train(graph, split, cap="off", **options)
    uncapped.encoder.load_state_dict(model.encoder.state_dict())
    hub = graph.degrees.argmax()[None]
    tables = [graph.features, degree_features(graph.degrees)]
    capped = cap_degrees(graph, 2, seed=3, cap=cap)
    torch.testing.assert_close(model.embed(graph, hub), embed_exact(model.encoder, capped, tables, hub, seed=3))
    torch.testing.assert_close(uncapped.embed(graph, hub), embed_exact(model.encoder, graph, tables, hub, seed=3))
    assert not torch.allclose(model.embed(graph, hub), uncapped.embed(graph, hub), atol=1e-3)
    drawn = embed_sampled(model.encoder, capped, tables, hub, model.sampling, seed=3)
    torch.testing.assert_close(model.embed(graph, hub, inference="sampled"), drawn)


def test_clip_limits_each_gradient_entry_and_zero_limits_none(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = list(first_gradients(start(monkeypatch)).values())
    clip = float(torch.cat([g.flatten().abs() for g in raw]).median())
    assert clip > 0
    seen: list[list[Tensor]] = []

    def look(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        seen.append([p.grad.clone() for group in optimizer.param_groups for p in group["params"]])

    monkeypatch.setattr(torch.optim.Adam, "step", look)
    for setting in (clip, 0.0, None):
        start(monkeypatch, go=True, steps=1, clip=setting)
    torch.testing.assert_close(seen, [[g.clamp(-clip, clip) for g in raw], raw, raw])


@pytest.mark.parametrize(("lr", "step"), [(0.001, 0.001), (0.1, 0.1), (None, 0.01)])
def test_the_first_step_moves_each_weight_by_lr_against_its_gradient(
    lr: float | None, step: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(monkeypatch, lr=lr)
    before, after = weights(run), weights(start(monkeypatch, go=True, steps=1, lr=lr))
    for name, g in first_gradients(run).items():
        clear = g.abs() > 1e-4  # Adam divides by |g| + 1e-8
        assert bool(clear.any()), name
        moved = (after[name] - before[name])[clear]
        torch.testing.assert_close(moved, -step * g[clear].sign(), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("weight_decay", [0.0, 0.5])
def test_weight_decay_is_that_of_adam(weight_decay: float, monkeypatch: pytest.MonkeyPatch) -> None:
    run = start(monkeypatch)
    optimizer = torch.optim.Adam(run.module.parameters(), lr=0.01, weight_decay=weight_decay)
    for step in range(3):
        optimizer.zero_grad()
        torch.autograd.backward(step_loss(run.objective, step))
        optimizer.step()
    trained = start(monkeypatch, go=True, steps=3, weight_decay=weight_decay)
    torch.testing.assert_close(weights(trained), weights(run))


OF_FORM = {
    "paper": {"combine": "joint", "normalize": "every", "redraw": True, "cap": "row", "clip": 0.0},
    "reference": {"combine": "halves", "normalize": "last", "redraw": False, "cap": "row", "clip": 5.0},
}


@pytest.mark.parametrize("form", ["paper", "reference"])
@pytest.mark.parametrize(
    ("task", "epochs", "lr"), [("supervised", 10, 0.01), ("unsupervised", 1, 0.0001), ("joint", 10, 0.001)]
)
def test_what_is_left_open_follows_task_and_form_and_what_is_set_stays(
    task: str, epochs: int, lr: float, form: str
) -> None:
    relu = form == "paper" and task != "unsupervised"
    expected = {**OF_FORM[form], "epochs": epochs, "lr": lr, "last_activation": relu}
    resolved = Config(task=task, form=form).resolved().as_dict()
    assert {name: resolved[name] for name in expected} == expected
    other = {**OF_FORM["reference" if form == "paper" else "paper"], "epochs": 7, "lr": 0.3}
    other["last_activation"] = not relu
    resolved = Config(task=task, form=form, **other).resolved().as_dict()
    assert {name: resolved[name] for name in other} == other


def test_the_default_is_the_papers_form_without_its_cap() -> None:
    paper, default = (Config(form=form).resolved() for form in ("paper", None))
    assert (paper.cap, paper.max_degree, paper.sampling().max_degree) == ("row", 128, 128)
    assert (default.cap, default.max_degree, default.sampling().max_degree) == ("off", None, None)
    assert replace(default, form="paper", cap="row", max_degree=128) == paper


@pytest.mark.parametrize(
    ("given", "cap", "max_degree"),
    [
        ({"max_degree": 9}, "row", 9),
        ({"cap": "symmetric"}, "symmetric", 128),
        ({"form": "paper", "cap": "off"}, "off", None),
        ({"form": "reference", "max_degree": 9}, "row", 9),
    ],
)
def test_a_cap_needs_a_form_a_degree_or_a_kind(given: dict[str, Any], cap: str, max_degree: int | None) -> None:
    full = Config(**given).resolved()
    assert (full.cap, full.max_degree) == (cap, max_degree)
    assert full.resolved() is full
    assert full.sampling().max_degree == max_degree


def test_a_degree_without_a_cap_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_degree needs a cap, row or symmetric; got 9 and cap='off'"):
        Config(max_degree=9, cap="off")
