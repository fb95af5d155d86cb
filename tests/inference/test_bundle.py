import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import graphsage as gs
from graphsage.errors import BundleError
from planted import SMALL, planted_graph, planted_split


@pytest.fixture
def run(tmp_path: Path) -> Path:
    graph = planted_graph()
    gs.train(graph, planted_split(graph), **SMALL).save(tmp_path / "run")
    return tmp_path / "run"


def test_saving_and_loading_a_model_changes_nothing(tmp_path: Path) -> None:
    graph = planted_graph()
    for options in (
        {"aggregator": "lstm"},
        {"head_scale": True, "degree_features": True},
        {"task": "unsupervised"},
        {"form": "reference", "aggregator": "pool", "hidden_dim": 5, "depth": 2},
    ):
        model = gs.train(graph, planted_split(graph), **{**SMALL, "steps": 3, **options})
        model.save(tmp_path / "run")
        again = gs.load(tmp_path / "run")
        assert torch.equal(model.embed(graph), again.embed(graph))
        assert (again.class_names, again.sampling, again.about) == (model.class_names, model.sampling, model.about) or (
            json.loads(json.dumps(model.about)) == again.about
        )
        if model.head is not None:
            assert torch.equal(model.predict_proba(graph), again.predict_proba(graph))


def rewrite(run: Path, change) -> None:
    config = json.loads((run / "config.json").read_text())
    change(config)
    (run / "config.json").write_text(json.dumps(config))


def rehash(run: Path) -> None:
    from graphsage.inference.fingerprint import checksum

    rewrite(run, lambda config: config["sha256"].update({"model.safetensors": checksum(run / "model.safetensors")}))


def test_a_bundle_of_a_newer_version_is_refused(run: Path) -> None:
    rewrite(run, lambda config: config.update(format=99, graphsage="9.0"))
    with pytest.raises(BundleError, match=r"written by graphsage 9\.0.*upgrade"):
        gs.load(run)


def test_a_bundle_of_an_older_format_is_refused(run: Path) -> None:
    rewrite(run, lambda config: config.update(format=2))
    with pytest.raises(BundleError, match="in bundle format 2, and this version reads format 3; train the model again"):
        gs.load(run)


def test_a_bundle_with_a_missing_tensor_is_refused(run: Path) -> None:
    tensors = load_file(run / "model.safetensors")
    tensors.pop("encoder.layers.0.weight.weight")
    save_file(tensors, run / "model.safetensors")
    rehash(run)
    with pytest.raises(BundleError, match=r"lacks the tensor 'encoder\.layers\.0"):
        gs.load(run)


def test_a_bundle_with_a_tensor_of_another_shape_or_name_is_refused(run: Path) -> None:
    tensors = load_file(run / "model.safetensors")
    tensors["encoder.shift"] = torch.zeros(3)
    save_file(tensors, run / "model.safetensors")
    rehash(run)
    with pytest.raises(BundleError, match="must be"):
        gs.load(run)
    tensors["encoder.shift"] = torch.zeros(6)
    save_file({**tensors, "extra": torch.zeros(1)}, run / "model.safetensors")
    rehash(run)
    with pytest.raises(BundleError, match="'extra'"):
        gs.load(run)


@pytest.mark.parametrize("damage", ["flip", "truncate", "remove"])
def test_a_damaged_weight_file_is_refused(run: Path, damage: str) -> None:
    path = run / "model.safetensors"
    data = bytearray(path.read_bytes())
    if damage == "remove":
        path.unlink()
    else:
        data[-1] ^= 255
        path.write_bytes(data[: len(data) // 2] if damage == "truncate" else data)
    with pytest.raises(BundleError, match=r"model\.safetensors"):
        gs.load(run)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": "x"}', '{"format": 3, "sha256": {}}'])
def test_a_damaged_config_is_refused(run: Path, text: str) -> None:
    (run / "config.json").write_text(text)
    with pytest.raises(BundleError, match=r"config\.json"):
        gs.load(run)


def test_a_folder_that_is_no_bundle_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="does not exist"):
        gs.load(tmp_path / "nothing")
    with pytest.raises(BundleError, match=r"config\.json is missing"):
        gs.load(tmp_path)


def test_an_aggregator_that_is_not_registered_is_named(run: Path) -> None:
    rewrite(run, lambda config: config["encoder"].update(aggregator="mine"))
    with pytest.raises(BundleError, match=r"'mine'.*register"):
        gs.load(run)


def test_a_graph_with_other_features_is_refused(run: Path) -> None:
    model = gs.load(run)
    graph = planted_graph()
    with pytest.raises(gs.DataError, match="trained on 6 features per node; this graph has 2"):
        model.embed(graph.replace(features=graph.features[:, :2].contiguous()))
    with pytest.raises(gs.DataError, match="node 120 is not in the graph"):
        model.embed(graph, [0, 120])
