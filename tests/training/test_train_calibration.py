"""Temperature and thresholds of a trained model: chosen on validation nodes, and stored with it."""

import json

import pytest
import torch

from graphsage.checksummed_json import CHECKSUM, write_checksummed
from graphsage.errors import BundleError
from graphsage.evaluation.calibration import Calibration
from graphsage.graph.graph import Graph
from graphsage.graph.split import NONE, VAL, Split, without_test_nodes
from graphsage.inference.bundle import load_bundle
from graphsage.inference.model import Model, quality
from graphsage.training.train import train
from planted import SMALL, planted_graph, planted_split

MANY = planted_graph(160, classes=3, multilabel=True)
SPLIT = planted_split(MANY)


def fitted(graph: Graph = MANY, **options: object) -> Model:
    return train(graph, SPLIT, **{**SMALL, "epochs": 2, **options})


def numbers(model: Model) -> tuple[float, list[float] | None]:
    made = model.calibration
    return made.temperature, None if made.thresholds is None else made.thresholds.tolist()


def changed(part: str) -> Graph:
    """The labels of one part turned around."""
    labels = MANY.labels.clone()
    labels[SPLIT.nodes(part)] = 1 - labels[SPLIT.nodes(part)]
    return MANY.replace(labels=labels)


def test_validation_nodes_alone_choose_temperature_and_thresholds() -> None:
    before = numbers(fitted())
    assert before[0] != 1
    assert len(set(before[1])) == 1
    assert numbers(fitted(changed("test"))) == before
    assert numbers(fitted(changed("val"))) != before
    graph = MANY.replace(features=MANY.features.clone())
    graph.features[SPLIT.nodes("test")] += 100  # test nodes are not in the graph that validation sees
    assert numbers(fitted(graph)) == before


def test_thresholds_raise_the_validation_score_that_was_asked_for() -> None:
    for metric in ("micro-f1", "macro-f1"):
        model = fitted(metric=metric)
        seen = without_test_nodes(MANY, SPLIT)
        chosen = model.evaluate(seen, SPLIT, "val")
        model.calibration = Calibration(model.calibration.temperature)
        plain = model.evaluate(seen, SPLIT, "val")
        assert chosen.micro >= plain.micro if metric == "micro-f1" else chosen.macro >= plain.macro


@pytest.mark.parametrize("off", [{"calibrate": False}, {"form": "paper"}, {"form": "reference"}])
def test_without_calibration_scores_are_taken_as_they_are(off: dict) -> None:
    assert numbers(fitted(**off)) == (1.0, None)
    assert numbers(fitted(**off, **({} if "calibrate" in off else {"calibrate": True})))[0] != 1 or "calibrate" in off


def test_classes_do_not_change_and_their_probabilities_are_calibrated() -> None:
    graph = planted_graph(160)
    plain, model = (train(graph, SPLIT, **{**SMALL, "epochs": 40}, calibrate=on) for on in (False, True))
    assert torch.equal(plain.predict(), model.predict())
    seen = without_test_nodes(graph, SPLIT)
    losses = []
    for made in (plain, model):
        p = made.answers(seen, SPLIT, ("val",))["val"]
        losses.append(float(torch.nn.functional.nll_loss(p.probabilities.log(), p.truth)))
    assert losses[1] < losses[0]
    assert quality(model.answers(graph, SPLIT, ("test",))["test"], graph).calibration_error < 0.5


def test_a_calibration_is_stored_with_the_model(tmp_path) -> None:
    model = fitted()
    model.save(tmp_path)
    loaded = load_bundle(tmp_path)
    assert numbers(loaded) == numbers(model)
    assert torch.equal(loaded.predict(MANY), model.predict(MANY))


@pytest.mark.parametrize(
    "wrong",
    [{"temperature": 0.0}, {"temperature": "1"}, {"thresholds": [0.5]}, {"thresholds": [0.5, "x", 0.1]}, {"other": 1}],
)
def test_a_damaged_calibration_is_refused(tmp_path, wrong: dict) -> None:
    fitted(epochs=1).save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config.pop(CHECKSUM)
    config["calibration"] = {"temperature": 1.0, "thresholds": None} | wrong if "other" not in wrong else wrong
    write_checksummed(tmp_path / "config.json", config)
    with pytest.raises(BundleError, match=r"config\.json is damaged"):
        load_bundle(tmp_path)


def test_a_split_without_validation_nodes_leaves_scores_as_they_are() -> None:
    codes = SPLIT.codes.clone()
    codes[codes == VAL] = NONE
    assert numbers(train(MANY, Split(codes), **{**SMALL, "epochs": 1})) == (1.0, None)
