"""The same mistake names flags on the command line and arguments in Python."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphsage as gs
from command_line import SMALL, Command, planted, split
from graphsage.errors import GraphSageError

FILES = {
    "nodes.csv": "id,part,x,year\n" + "".join(f"{v},{'ab'[v % 2]},{v}.5,{2000 + v}\n" for v in range(12)),
    "edges.csv": "source,target\n" + "".join(f"{v},{(v + 1) % 12}\n" for v in range(12)),
    "outside.csv": "source,target\n0,99\n",
}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)


def train(**settings: Any) -> Callable[[], object]:
    return lambda: gs.train(planted(), split(), **{"dim": 8, "sample_sizes": (4, 3), "device": "cpu", **settings})


def tables(**roles: Any) -> Callable[[], object]:
    given = {"nodes": "nodes.csv", "edges": "edges.csv", "label": "part", "numeric": ("x",), **roles}
    return lambda: gs.train(gs.open_tables(gs.TableSpec(**given)), epochs=1, dim=4, sample_sizes=(2, 2), device="cpu")


def words(**roles: str) -> list[str]:
    given = {"nodes": "nodes.csv", "edges": "edges.csv", "label": "part", "numeric": "x", **roles}
    return [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", value)]


# (words after DATA, or a list of tables; the call; the flag in the sentence; the argument in the sentence)
MISTAKES = [
    (["--max-degree", "0"], train(max_degree=0), "--max-degree must be", "max_degree must be"),
    (["--batch-size", "0"], train(batch_size=0), "--batch-size must be", "batch_size must be"),
    (["--lr", "0"], train(lr=0), "--lr must be above 0", "lr must be above 0"),
    (["--dim", "1"], train(dim=1), "--dim must be", "dim must be"),
    (["--hidden-dim", "0"], train(hidden_dim=0), "--hidden-dim must be", "hidden_dim must be"),
    (["--walk-length", "1"], train(walk_length=1), "--walk-length must be", "walk_length must be"),
    (["--sample-sizes", "4,0"], train(sample_sizes=(4, 0)), "--sample-sizes must", "sample_sizes must"),
    (["--sample-sizes", "4,0"], train(sample_sizes=(4, 0)), "got 4,0", "got (4, 0)"),
    (["--num-layers", "3"], train(num_layers=3), "got 4,3", "got (4, 3)"),
    (["--dropout", "2"], train(dropout=2.0), "--dropout must be", "dropout must be"),
    (["--cap", "square"], train(cap="square"), "--cap must be one of", "cap must be one of"),
    (["--aggregator", "max"], train(aggregator="max"), "--aggregator must be", "aggregator must be"),
    (["--combine", "sum"], train(combine="sum"), "--combine must be", "combine must be"),
    (["--inference", "some"], train(inference="some"), "--inference must be", "inference must be"),
    (["--device", "abacus"], train(device="abacus"), "--device must be", "device must be"),
    (["--resume"], train(resume=True, out="run"), "run without --resume", "run without resume=True"),
    (words(edges="outside.csv"), tables(edges="outside.csv"), "--unknown-nodes drop", "unknown_nodes drop"),
    (words(unknown_nodes="keep"), tables(unknown_nodes="keep"), "--unknown-nodes must", "unknown_nodes must"),
    (words(text_method="magic"), tables(text_method="magic"), "--text-method must", "text_method must"),
    (words(train_until="2003"), tables(train_until="2003"), "give --time,", "give time,"),
    (words(val_until="2003"), tables(val_until="2003"), "needs --train-until", "needs train_until"),
    (words(fractions="1,1,1"), tables(fractions=(1.0, 1.0, 1.0)), "--fractions must", "fractions must"),
    (words(fractions="1,1,1"), tables(fractions=(1.0, 1.0, 1.0)), "got 1.0,1.0,1.0", "got (1.0, 1.0, 1.0)"),
    (words(time="part"), tables(time="part"), "names need --time-order", "names need time_order"),
    (words(label_separator="ab"), tables(label_separator="ab"), "--label-separator must", "label_separator must"),
    (words(delimiter=";;"), tables(delimiter=";;"), "--delimiter must", "delimiter must"),
    (words(time="year", train_until="soon"), tables(time="year", train_until="soon"), "--train-until", "train_until"),
    (
        words(time="year", train_until="2005", val_until="2003"),
        tables(time="year", train_until="2005", val_until="2003"),
        "--val-until 2003 is before --train-until 2005",
        "val_until='2003' is before train_until='2005'",
    ),
]


@pytest.mark.parametrize(("line", "call", "flag", "argument"), MISTAKES, ids=[each[2] for each in MISTAKES])
def test_a_mistake_is_spelled_as_in_the_interface_in_use(
    graphsage: Command, data: Path, line: list[str], call: Callable[[], object], flag: str, argument: str
) -> None:
    where = [] if "--nodes" in line else [data, *SMALL]
    said = graphsage("train", *where, *line, "--out", "run").error
    assert flag in said
    with pytest.raises(GraphSageError) as raised:
        call()
    assert argument in str(raised.value)
    assert "--" not in str(raised.value)


def test_a_model_without_classes_is_spelled_too(graphsage: Command, data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    short = ("--dim", "8", "--sample-sizes", "2,2", "--steps", "2", "--task", "unsupervised", "--device", "cpu")
    assert graphsage("train", data, "--out", run, *short).code == 0
    assert "train it with --task supervised" in graphsage("predict", run, "--out", tmp_path / "p.csv").error
    model = gs.load(run)
    with pytest.raises(GraphSageError, match="train it with task='supervised'"):
        model.probabilities(model.embed(planted(), np.arange(3)))
