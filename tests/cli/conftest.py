"""Command lines run in this process, on small data."""

from pathlib import Path

import pytest
import torch

from command_line import KINDS, SMALL, Answer, Command, N, planted, split
from graphsage.cli.main import main
from graphsage.datasets import open as door
from graphsage.datasets.dataset import Dataset, text_plan
from graphsage.graph.split import NONE, Split
from graphsage.graph.storage import save_graph


@pytest.fixture
def graphsage(capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*words: object) -> Answer:
        capsys.readouterr()
        code = main([str(word) for word in words])
        return Answer(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph folder with the splits `given` and `empty`, which has no training node."""
    folder = tmp_path_factory.mktemp("data") / "planted"
    save_graph(planted(), folder, {"given": split(), "empty": Split(torch.full((N,), NONE, dtype=torch.uint8))})
    return folder


@pytest.fixture(scope="session")
def run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished supervised run on `data`; look, do not touch."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert main(["train", str(data), "--out", str(folder), *SMALL, "--lr", "0.05", "--head-scale"]) == 0
    return folder


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Dataset:
    """`setmm` is a small data set of raw texts, as the real one is."""
    words = {
        "comment": [f"about {KINDS[row % 3]} item {row % 7}" for row in range(N)],
        "formula": [f"|- x {row % 5} = {KINDS[row % 3][0]}" for row in range(N)],
    }
    made = Dataset(
        "setmm", planted(features=False), {"random": split()}, "random", columns=dict(words), plan=text_plan(*words)
    )
    monkeypatch.setitem(door.BUILT_IN, "setmm", lambda: made)
    monkeypatch.setenv("GRAPHSAGE_CACHE", str(tmp_path / "cache"))
    return made
