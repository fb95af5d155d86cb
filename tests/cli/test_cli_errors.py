"""Every mistake ends with one sentence that says what is wrong, and exit code 2."""

import json
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from command_line import SMALL, Command
from graphsage.checksummed_json import read_checksummed, write_checksummed
from graphsage.inference.fingerprint import checksum


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    """A run that may be damaged."""
    return Path(shutil.copytree(run, tmp_path / "copy"))


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--aggregator", "max"], "got 'max'"),
        (["--task", "magic"], "--task must be one of supervised, unsupervised, joint, regression, links; got 'magic'"),
        (["--form", "draft"], "--form must be one of paper, reference; got 'draft'"),
        (["--sample-sizes", "ten"], "--sample-sizes must be numbers separated by commas, such as 25,10; got 'ten'"),
        (["--sample-sizes", "4,0"], "one positive number per layer"),
        (["--set", "num_layers=3"], "each of the 3 layers; got 4,3"),
        (["--max-degree", "few"], "--max-degree must be a valid integer or none; got 'few'"),
        (["--max-degree", "0"], "--max-degree must be at least 1; got 0"),
        (["--lr", "0"], "--lr must be above 0"),
        (["--dropout", "2"], "dropout"),
        (["--epochs", "0"], "--epochs must be at least 1"),
        (["--set", "cap=square"], "--cap must be one of"),
        (["--set", "cap"], "--set takes name=value"),
        (["--set", "caps=row"], "--set: there is no setting 'caps'"),
        (["--split", "lunar"], "has no split 'lunar'"),
        (["--split", "empty"], "no training nodes"),
        (["--device", "abacus"], "--device must be auto, cpu or cuda"),
        (["--resume", "--overwrite"], "give one of them"),
    ],
)
def test_a_wrong_setting_is_refused_before_anything_is_written(
    graphsage: Command, data: Path, tmp_path: Path, words: list[str], part: str
) -> None:
    assert part in graphsage("train", data, "--out", tmp_path / "run", *SMALL, *words).error
    assert not (tmp_path / "run" / "config.json").exists()


def test_data_that_does_not_exist_is_named(graphsage: Command, run: Path, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    for words in (
        ["train", nothing, "--out", tmp_path / "run"],
        ["evaluate", run, nothing],
        ["embed", run, nothing, "--out", tmp_path / "z.npy"],
        ["info", nothing],
    ):
        assert f"{nothing} does not exist" in graphsage(*words).error


def test_training_needs_data(graphsage: Command, tmp_path: Path) -> None:
    assert "nothing to train on" in graphsage("train", "--out", tmp_path / "run").error


def test_a_truncated_array_is_named(graphsage: Command, data: Path, tmp_path: Path) -> None:
    broken = Path(shutil.copytree(data, tmp_path / "broken"))
    features = broken / "features.npy"
    features.write_bytes(features.read_bytes()[:-100])
    assert str(features) in graphsage("train", broken, "--out", tmp_path / "run", *SMALL).error
    assert str(features) in graphsage("info", broken).error


def test_a_missing_tensor_is_named(graphsage: Command, copy: Path) -> None:
    file = copy / "model.safetensors"
    tensors = load_file(file)
    tensors.pop("head.linear.bias")
    save_file(tensors, file)
    assert "model.safetensors" in graphsage("evaluate", copy).error
    config = read_checksummed(copy / "config.json")
    config["files"]["model.safetensors"] = checksum(file)
    write_checksummed(copy / "config.json", config)
    assert "lacks the tensor 'head.linear.bias'" in graphsage("evaluate", copy).error


def test_a_missing_file_of_a_bundle_is_named(graphsage: Command, copy: Path) -> None:
    (copy / "model.safetensors").unlink()
    assert "lacks model.safetensors" in graphsage("info", copy).error


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"format": 7}'])
def test_a_damaged_bundle_is_an_error(graphsage: Command, copy: Path, content: str) -> None:
    (copy / "config.json").write_text(content)
    for words in (["evaluate", copy], ["info", copy]):
        assert "config.json is damaged" in graphsage(*words).error


def test_a_bundle_of_a_newer_version_asks_for_an_upgrade(graphsage: Command, copy: Path) -> None:
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"format": 99}))
    assert "upgrade graphsage" in graphsage("embed", copy, "--out", copy / "z.npy").error


def test_a_folder_without_a_model_is_an_error(graphsage: Command, tmp_path: Path) -> None:
    assert "is not a model bundle" in graphsage("evaluate", tmp_path).error
    assert "does not exist" in graphsage("evaluate", tmp_path / "none").error


def test_a_model_that_forgot_its_data_asks_for_it(graphsage: Command, copy: Path, data: Path) -> None:
    config = read_checksummed(copy / "config.json")
    write_checksummed(copy / "config.json", config | {"about": {}, "data": None})
    assert "keeps no graph; name the data, or train again" in graphsage("evaluate", copy).error
    assert graphsage("evaluate", copy, data).code == 0


def test_a_place_that_cannot_be_written_is_an_error(graphsage: Command, data: Path, run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    below = tmp_path / "file" / "below"
    for words in (
        ["train", data, "--out", below, *SMALL],
        ["embed", run, "--out", below / "z.parquet"],
        ["predict", run, "--out", below / "p.csv"],
    ):
        assert "cannot write" in graphsage(*words).error
    assert (tmp_path / "file").read_text() == "not a folder"


@pytest.mark.parametrize("command", ["embed", "predict"])
def test_unknown_nodes_are_named(graphsage: Command, run: Path, tmp_path: Path, command: str) -> None:
    ids, out = tmp_path / "ids.txt", tmp_path / "out.csv"
    ids.write_text("node-1\nnode-1000\n")
    assert "'node-1000'" in graphsage(command, run, "--node-ids", ids, "--out", out).error
    ids.write_text("\n\n")
    assert "holds no node id" in graphsage(command, run, "--node-ids", ids, "--out", out).error
    ids.write_bytes(b"\xff\xfe")
    assert "is not UTF-8 text" in graphsage(command, run, "--node-ids", ids, "--out", out).error
    assert "does not exist" in graphsage(command, run, "--node-ids", tmp_path / "none", "--out", out).error
    assert not out.exists()


@pytest.mark.parametrize(
    ("command", "name", "known"),
    [("embed", "z.xlsx", ".parquet, .csv, .npy"), ("embed", "z", ".parquet, .csv, .npy"), ("predict", "p.npy", ".csv")],
)
def test_an_unknown_suffix_lists_the_known_ones(
    graphsage: Command, run: Path, tmp_path: Path, command: str, name: str, known: str
) -> None:
    assert known in graphsage(command, run, "--out", tmp_path / name).error


@pytest.mark.parametrize(("words", "part"), [(["--part", "exam"], "'exam'"), (["--split", "lunar"], "'lunar'")])
def test_an_unknown_part_or_split_is_named(graphsage: Command, run: Path, words: list[str], part: str) -> None:
    assert part in graphsage("evaluate", run, *words).error
