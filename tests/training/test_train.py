import json
import os
import signal
import threading
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import graphsage as gs
from graphsage.errors import BundleError, ConfigError, DataError
from graphsage.evaluation.f1 import f1_scores
from graphsage.features.structure import Structure
from graphsage.graph.graph import UNKNOWN
from graphsage.training.checkpoint import FILE
from graphsage.training.config import Config
from graphsage.training.loop import Interrupted
from graphsage.training.objectives import make_objective
from graphsage.training.objectives.supervised import Supervised
from graphsage.training.train import set_up
from planted import SMALL, planted_graph, planted_split

TASKS = ["supervised", "unsupervised", "contrastive", "joint"]


def of(task: str) -> dict[str, str]:
    return {"task": "unsupervised", "objective": task} if task == "contrastive" else {"task": task}


def weights(model: gs.Model) -> dict[str, torch.Tensor]:
    head = {} if model.head is None else {f"head.{n}": v for n, v in model.head.state_dict().items()}
    return {**model.encoder.state_dict(), **head}


def same(one: gs.Model, two: gs.Model) -> bool:
    a, b = weights(one), weights(two)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("aggregator", ["mean", "gcn", "pool", "meanpool", "lstm"])
@pytest.mark.parametrize("form", ["paper", "reference"])
def test_every_aggregator_learns_the_planted_classes_in_both_forms(aggregator: str, form: str) -> None:
    graph = planted_graph()
    split = planted_split(graph)
    inner = {} if aggregator in ("mean", "gcn") else {"hidden_dim": 16}
    model = gs.train(graph, split, aggregator=aggregator, form=form, **{**SMALL, **inner, "epochs": 20})
    assert model.evaluate(graph, split, "test").micro > 0.85


def test_many_labels_are_learned_by_a_sigmoid_for_each() -> None:
    graph = planted_graph(classes=3, multilabel=True)
    split = planted_split(graph)
    model = gs.train(graph, split, **{**SMALL, "epochs": 30})
    assert model.multilabel
    assert model.evaluate(graph, split, "test").micro > 0.7
    assert model.predict(graph).shape == (120, 3)


def test_nodes_with_unknown_labels_are_neither_trained_on_nor_scored() -> None:
    graph = planted_graph(classes=3, multilabel=True)
    split, hidden = planted_split(graph), torch.arange(graph.num_nodes) % 5 == 0
    assert graph.labels is not None
    partly = graph.replace(labels=graph.labels.masked_fill(hidden[:, None], UNKNOWN))
    config = Config.from_dict(SMALL).resolved()
    run = set_up(partly, split, config, torch.device("cpu"), {})
    objective = make_objective(config, run.model.encoder, run.model.head, run.data)
    assert isinstance(objective, Supervised)
    train, test = (split.nodes(part) for part in ("train", "test"))
    assert torch.equal(objective.nodes, train[~hidden[train]])
    model, known = gs.train(partly, split, **SMALL), test[~hidden[test]]
    expected = f1_scores(graph.labels[known].numpy(), model.predict(partly, known).numpy())
    assert model.evaluate(partly, split, "test") == expected
    assert expected.nodes == len(known) < len(test)


@pytest.mark.parametrize("objective", ["equation-1", "contrastive"])
def test_unsupervised_embeddings_tell_the_planted_classes_apart(objective: str) -> None:
    graph = planted_graph()
    split = planted_split(graph)
    options = {**SMALL, "dim": 16, "steps": 150, "lr": 0.01, "epochs": 1}
    model = gs.train(graph, split, task="unsupervised", objective=objective, **options)
    assert model.head is None
    assert model.evaluate(graph, split, "test").micro > 0.85
    with pytest.raises(DataError, match="without labels"):
        model.predict(graph)


@pytest.mark.parametrize("task", TASKS)
def test_the_same_seed_gives_the_same_weights_and_another_seed_others(task: str) -> None:
    graph = planted_graph()
    split = planted_split(graph)
    options = {**SMALL, **of(task), "steps": 6, "dropout": 0.3}
    assert same(gs.train(graph, split, **options), gs.train(graph, split, **options))
    assert not same(gs.train(graph, split, **options), gs.train(graph, split, seed=1, **options))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("stop_after", [2, 5, 7])
def test_an_interrupted_run_resumes_bit_for_bit(task: str, stop_after: int, tmp_path) -> None:
    graph = planted_graph()
    split = planted_split(graph)
    options = {**SMALL, **of(task), "steps": 9, "dropout": 0.2, "negatives_per_pair": task == "unsupervised"}
    options |= {"layer_norm": True, "residual": True, "schedule": "cosine", "warmup": 0.3}
    whole = gs.train(graph, split, **options)

    def press_ctrl_c(event: object) -> None:
        if event.kind == "step" and event.step == stop_after:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted):
        gs.train(graph, split, out=tmp_path, on_event=press_ctrl_c, **options)
    resumed = gs.train(graph, split, out=tmp_path, resume=True, **options)
    assert same(whole, resumed)
    assert same(resumed, gs.load(tmp_path))


def test_joint_training_goes_on_where_the_pairs_end_within_an_epoch_of_targets() -> None:
    graph = planted_graph()
    options = {**SMALL, "task": "joint", "num_walks": 3, "walk_length": 2, "epochs": 6}  # 13.5 steps of pairs
    assert gs.train(graph, planted_split(graph), **options).about["training"]["steps"] == 30


def test_the_log_of_a_resumed_run_has_every_epoch_once(tmp_path) -> None:
    graph = planted_graph()
    split = planted_split(graph)

    def press_ctrl_c(event: object) -> None:
        if event.kind == "step" and event.step == 7:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted):
        gs.train(graph, split, out=tmp_path, on_event=press_ctrl_c, **SMALL)
    gs.train(graph, split, out=tmp_path, resume=True, **SMALL)
    records = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [record["epoch"] for record in records] == [1, 2, 3]
    assert all(record["loss"] > 0 and 0 <= record["val_score"] <= 1 for record in records)


def test_training_works_outside_the_main_thread() -> None:
    graph = planted_graph()
    made: list[gs.Model] = []
    thread = threading.Thread(target=lambda: made.append(gs.train(graph, planted_split(graph), **SMALL)))
    thread.start()
    thread.join()
    assert len(made) == 1


def test_resuming_with_other_settings_is_refused(tmp_path) -> None:
    graph = planted_graph()
    split = planted_split(graph)
    gs.train(graph, split, out=tmp_path, **SMALL)
    with pytest.raises(
        BundleError, match=r"other settings \(lr was [0-9.]+ and is now 0.5; sample_sizes was [0-9,]+ and"
    ):
        gs.train(graph, split, out=tmp_path, resume=True, **{**SMALL, "lr": 0.5, "sample_sizes": (7, 3)})
    with pytest.raises(BundleError, match="other data; resume"):
        gs.train(planted_graph(seed=3), split, out=tmp_path, resume=True, **SMALL)
    (tmp_path / FILE).write_bytes(b"broken")
    with pytest.raises(BundleError, match="damaged"):
        gs.train(graph, split, out=tmp_path, resume=True, **SMALL)
    with pytest.raises(BundleError, match="no checkpoint"):
        gs.train(graph, split, out=tmp_path / "nowhere", resume=True, **SMALL)


def test_a_run_whose_rate_depends_on_its_length_is_not_continued_for_more_epochs(tmp_path) -> None:
    graph = planted_graph()
    split = planted_split(graph)
    gs.train(graph, split, out=tmp_path, **{**SMALL, "epochs": 1, "schedule": "cosine"})
    with pytest.raises(BundleError, match="other settings"):
        gs.train(graph, split, out=tmp_path, resume=True, **{**SMALL, "epochs": 2, "schedule": "cosine"})


@given(st.integers(1, 200), st.floats(0, 0.9), st.sampled_from(["constant", "cosine"]))
def test_the_rate_rises_to_lr_and_falls_with_the_cosine(total: int, warmup: float, schedule: str) -> None:
    config = Config(lr=0.01, warmup=warmup, schedule=schedule)
    rates = [config.rate(step, total) for step in range(total)]
    top = rates.index(max(rates))
    assert all(0 < rate <= 0.01 for rate in rates)
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert schedule == "cosine" or rates[-1] == 0.01 or warmup * total > total - 1
    assert warmup or rates[0] == 0.01


def test_a_finished_run_can_be_continued_for_more_epochs(tmp_path) -> None:
    graph = planted_graph()
    split = planted_split(graph)
    longer = {**SMALL, "epochs": 5}
    gs.train(graph, split, out=tmp_path, **SMALL)
    assert same(gs.train(graph, split, out=tmp_path, resume=True, **longer), gs.train(graph, split, **longer))


@pytest.mark.parametrize(("metric", "best_of"), [("micro-f1", max), ("loss", min)])
def test_early_stopping_keeps_the_weights_of_the_best_epoch(metric: str, best_of: Any) -> None:
    graph = planted_graph()
    split = planted_split(graph)
    epochs = []
    options = {**SMALL, "epochs": 60, "patience": 2, "lr": 0.02, "metric": metric}
    model = gs.train(graph, split, on_event=lambda e: epochs.append(e) if e.kind == "epoch" else None, **options)
    scores = [event.val_score for event in epochs]
    best = scores.index(best_of(scores))
    assert len(epochs) == best + 3 < 60
    alone = gs.train(graph, split, **{**options, "patience": None, "epochs": best + 1})
    assert same(model, alone)
    assert model.about["training"]["best_val_score"] == scores[best]


@pytest.mark.parametrize(
    ("options", "projections", "labels"),
    [
        ({}, 0, 3),
        ({"projections": 5}, 5, 3),
        ({"label_inputs": False}, 128, 0),
        ({"whole_batches": 1}, 128, 0),
        ({"task": "unsupervised"}, 128, 0),
        ({"form": "paper"}, 0, 0),
    ],
)
def test_a_graph_without_features_trains_on_its_structure_and_known_labels(
    options: dict[str, object], projections: int, labels: int
) -> None:
    graph = planted_graph().replace(features=None)
    model = gs.train(graph, planted_split(graph), **SMALL, **options)
    assert model.structure == Structure(degree=True, projections=projections)
    assert model.encoder.in_dim == 17 + projections + labels
    layers = model.encoder.config
    plain = options.get("form") or options.get("task")
    assert (layers.layer_norm, layers.residual, layers.dropout) == ((False, False, 0.0) if plain else (True, True, 0.5))
    bigger = graph.with_nodes(edges=[[120, 0], [120, 5]])
    known = {"known": planted_split(graph).nodes("train")} if labels else {}
    assert torch.isfinite(model.embed(bigger, [120], **known)).all()


def test_classes_without_features_and_regression_train_longer_if_an_epoch_has_few_steps() -> None:
    def epochs(num_train: int | None, featureless: bool = True, **options: object) -> int | None:
        return Config.from_dict(options).resolved(featureless=featureless, num_train=num_train).epochs

    assert [epochs(count) for count in (None, 1, 512, 512 * 10, 512 * 29, 512 * 31)] == [10, 60, 60, 30, 11, 10]
    assert epochs(512, featureless=False) == 10
    assert epochs(512, featureless=False, task="regression") == 60
    assert epochs(512, form="paper") == epochs(512, whole_batches=1) == epochs(512, identity_dim=2) == 10
    assert epochs(512, epochs=3) == 3


def test_known_labels_are_read_of_neighbors_and_kept_in_the_bundle(tmp_path) -> None:
    generator = torch.Generator().manual_seed(1)
    graph = planted_graph(classes=3).replace(features=torch.randn(120, 2, generator=generator))
    split = planted_split(graph)
    plain = gs.train(graph, split, **{**SMALL, "epochs": 30})
    model = gs.train(graph, split, label_inputs=True, out=tmp_path, **{**SMALL, "epochs": 30})
    assert model.encoder.in_dim == 2 + 1 + 3
    assert model.evaluate(graph, split, "test").micro > plain.evaluate(graph, split, "test").micro + 0.1
    loaded = gs.load(tmp_path)
    assert torch.equal(loaded.embed(), model.embed(graph))
    assert not torch.equal(model.embed(graph, known=[]), model.embed(graph))
    grown = graph.with_nodes(features=torch.zeros(1, 2), edges=[[120, 0], [120, 5]])
    assert torch.isfinite(model.embed(grown, [120], known=split.nodes("train"))).all()
    with pytest.raises(DataError, match="cannot find these"):
        model.embed(grown)
    with pytest.raises(DataError, match=r"reads known labels .* and the graph has none"):
        model.embed(graph.replace(labels=None))
    many = planted_graph(classes=3, multilabel=True)  # thresholds are chosen on validation nodes
    assert gs.train(many, split, label_inputs=True, **SMALL).evaluate(many, split, "test").micro > 0
    with pytest.raises(ConfigError, match="hides the labels of a batch's targets"):
        gs.train(graph, split, task="joint", label_inputs=True, **SMALL)


def test_on_a_small_graph_a_batch_leaves_most_labels_to_be_read() -> None:
    graph = planted_graph(classes=3).replace(features=None)
    split = planted_split(graph)
    model = gs.train(graph, split, dim=32)
    assert model.about["training"]["steps"] == 60 * 4
    assert model.evaluate(graph, split, "test").micro > 0.7


def test_identity_vectors_are_learned_and_refuse_another_graph() -> None:
    graph = planted_graph().replace(features=None)
    split = planted_split(graph)
    model = gs.train(graph, split, identity_dim=4, **SMALL)
    assert model.encoder.identity is not None
    assert not model.structure.width
    with pytest.raises(DataError, match="identity_dim"):
        model.embed(graph.with_nodes(edges=[[120, 0]]))


def test_a_node_that_arrives_later_gets_the_vector_it_would_have_had() -> None:
    graph = planted_graph()
    model = gs.train(graph, planted_split(graph), **SMALL)
    last = graph.num_nodes - 1
    rows = torch.repeat_interleave(torch.arange(graph.num_nodes), graph.degrees)
    pairs = torch.stack([rows, graph.indices.long()], dim=1)
    touches = (pairs == last).any(dim=1)
    before = gs.Graph.from_edges(pairs[~touches], last, features=graph.features[:last])
    after = before.with_nodes(features=graph.features[last:], edges=pairs[touches])
    torch.testing.assert_close(model.embed(after), model.embed(graph), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"aggregator": "median"}, "aggregator must be one of mean, gcn, lstm, pool, meanpool"),
        ({"sample_sizes": (25, 10), "num_layers": 3}, "one number for each of the 3 layers"),
        ({"sample_sizes": ()}, "sample_sizes"),
        ({"sample_sizes": (5, 0)}, "sample_sizes"),
        ({"lr": 0.0}, "lr must be above 0"),
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"task": "magic"}, "task must be one of"),
        ({"form": "tensorflow"}, "form must be one of"),
        ({"dropout": 1.0}, "dropout"),
        ({"max_degree": 0}, "max_degree"),
        ({"inference": "psychic"}, "inference must be one of"),
        ({"wings": 2}, "no setting 'wings'"),
        ({"task": "unsupervised", "patience": 2}, "patience"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        gs.train(planted_graph(), None, **settings)


def test_missing_labels_and_missing_training_nodes_are_errors() -> None:
    graph = planted_graph()
    nobody = gs.Split(torch.full((120,), 2, dtype=torch.uint8))
    with pytest.raises(DataError, match="no training nodes"):
        gs.train(graph, nobody, **SMALL)
    with pytest.raises(DataError, match="needs labels"):
        gs.train(graph.replace(labels=None), planted_split(graph), **SMALL)
    with pytest.raises(DataError, match="no class among the training nodes"):
        gs.train(graph.replace(labels=torch.full((120,), -1)), planted_split(graph), **SMALL)
    with pytest.raises(ConfigError, match="no GPU" if not torch.cuda.is_available() else "auto, cpu or cuda"):
        gs.train(graph, planted_split(graph), device="cuda" if not torch.cuda.is_available() else "toaster", **SMALL)


def test_a_trained_model_holds_no_gradients() -> None:
    graph = planted_graph()
    model = gs.train(graph, planted_split(graph), device="cpu", **SMALL)
    assert model.head is not None
    assert all(weight.grad is None for module in (model.encoder, model.head) for weight in module.parameters())
