import json
import os
import shutil
import socket
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import graphsage as gs
from graphsage.checksummed_json import CHECKSUM, with_checksum
from graphsage.errors import BundleError
from planted import SMALL, planted_graph, planted_split
from small_service import small_model


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
    del config[CHECKSUM]
    change(config)
    (run / "config.json").write_text(json.dumps(with_checksum(config)))


def rehash(run: Path) -> None:
    from graphsage.inference.fingerprint import checksum

    rewrite(run, lambda config: config["files"].update({"model.safetensors": checksum(run / "model.safetensors")}))


def test_a_bundle_of_a_newer_version_is_refused(run: Path) -> None:
    rewrite(run, lambda config: config.update(format=99, graphsage="9.0"))
    with pytest.raises(BundleError, match=r"written by graphsage 9\.0.*upgrade"):
        gs.load(run)


def test_a_bundle_of_an_older_format_is_refused(run: Path) -> None:
    rewrite(run, lambda config: config.update(format=2))
    with pytest.raises(BundleError, match="in bundle format 2, and this version reads format 7; train the model again"):
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


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": "x"}', '{"format": 7, "files": {}}'])
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


FILES = ("config.json", "model.safetensors", "features.json", "features.safetensors")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with features from columns; look, do not touch."""
    folder = tmp_path_factory.mktemp("bundle") / "run"
    small_model()[0].save(folder)
    return folder


@pytest.mark.parametrize("name", FILES)
def test_what_is_no_regular_file_is_refused_before_it_is_opened(bundle: Path, tmp_path: Path, name: str) -> None:
    run = shutil.copytree(bundle, tmp_path / "run")
    for what in ("a FIFO", "a symbolic link", "a socket", "a folder"):
        path = run / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        if what == "a FIFO":
            os.mkfifo(path)
        elif what == "a symbolic link":
            path.symlink_to(bundle / name)
        elif what == "a socket":
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(str(path))
        else:
            path.mkdir()
        with pytest.raises(BundleError, match=rf"{name} is {what}, and only regular files are read"):
            gs.load(run)


def test_a_nested_bomb_in_a_bundle_is_refused(bundle: Path, tmp_path: Path) -> None:
    run = shutil.copytree(bundle, tmp_path / "run")
    for depth in (100, 100_000):
        (run / "config.json").write_text('{"format": 7, "about": ' + "[" * depth + "]" * depth + "}")
        with pytest.raises(BundleError, match=r"config\.json is damaged.*nested too deeply"):
            gs.load(run)


def test_a_flipped_bit_anywhere_in_a_bundle_is_refused_or_changes_nothing(bundle: Path, tmp_path: Path) -> None:
    model, x = small_model()
    graph = gs.Graph.from_edges([(v, (v + 1) % len(x)) for v in range(len(x))], features=x)
    z, refused = model.embed(graph), 0
    draw = np.random.default_rng(3)
    run = shutil.copytree(bundle, tmp_path / "run")
    for turn in range(120):
        path = run / FILES[turn % 4]
        whole = path.read_bytes()
        damaged = bytearray(whole)
        damaged[draw.integers(len(whole))] ^= 1 << int(draw.integers(8))
        path.write_bytes(damaged)
        try:
            assert torch.equal(gs.load(run).embed(graph), z)
        except BundleError as error:
            refused += path.name in str(error) or "bundle format" in str(error)
        path.write_bytes(whole)
    assert refused > 90


def test_the_limits_of_features_come_from_the_training_nodes_and_are_kept(tmp_path: Path) -> None:
    graph = planted_graph()
    split = planted_split(graph)
    x = graph.features.clone()
    x[split.nodes("train")[0], 1] = -7
    x[split.nodes("test")[0], 2] = 1e5
    model = gs.train(graph.replace(features=x), split, **SMALL, out=tmp_path / "run")
    expected = x[split.nodes("train")].abs().amax(dim=0)
    for each in (model, gs.load(tmp_path / "run")):
        assert each.limits is not None
        assert torch.equal(each.limits.largest, expected)
        assert each.limits.bounds[1] == 7000
    assert json.loads((tmp_path / "run" / "config.json").read_text())["limits"] == {"multiple": 1000}
