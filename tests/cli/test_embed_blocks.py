"""`graphsage embed --memory`: the same files as without it, from blocks."""

from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from command_line import Command, N, planted
from graphsage.datasets.dataset import Dataset
from graphsage.graph.storage import save_graph
from graphsage.inference.model import load
from graphsage.inference.out_of_core import embed as driver
from graphsage.inference.out_of_core.plan import Budget


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any memory that is asked for is 3,000 bytes for blocks, so that there are several."""
    monkeypatch.setattr(Budget, "of", staticmethod(lambda memory, workers, encoder, adjacency: Budget(3000, workers)))


def compared(graphsage: Command, tmp_path: Path, run: Path, *words: object, suffix: str) -> tuple[Path, Path]:
    one, two = tmp_path / f"one{suffix}", tmp_path / f"two{suffix}"
    assert graphsage("embed", run, *words, "--out", one).code == 0
    answer = graphsage("embed", run, *words, "--out", two, "--memory", "1GB", "--json").json
    assert answer["nodes"] == N
    assert answer["blocks"] > 4
    assert not (tmp_path / f"two{suffix}.work").exists()
    return one, two


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".txt", ".parquet"])
def test_every_format_holds_the_same_as_without_blocks(
    graphsage: Command, run: Path, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphsage.inference.out_of_core.embed.CHUNK_ROWS", 4)  # several batches
    one, two = compared(graphsage, tmp_path, run, suffix=suffix)
    if suffix == ".parquet":
        a, b = (pyarrow.parquet.read_table(path) for path in (one, two))
        assert a.schema == b.schema
        assert a["id"].to_pylist() == b["id"].to_pylist()
        vectors = [np.array(table["embedding"].to_pylist()) for table in (a, b)]
        np.testing.assert_allclose(*vectors, atol=1e-5)
    elif suffix == ".npy":
        np.testing.assert_allclose(np.load(one), np.load(two), atol=1e-5)
        assert one.with_suffix(".ids.json").read_bytes() == two.with_suffix(".ids.json").read_bytes()
    else:
        sign = "," if suffix == ".csv" else " "
        rows = [[line.split(sign) for line in path.read_text().splitlines()] for path in (one, two)]
        assert rows[0][0] == rows[1][0]
        assert [row[0] for row in rows[0]] == [row[0] for row in rows[1]]
        vectors = [np.array([row[1:] for row in table[1:]], float) for table in rows]
        np.testing.assert_allclose(*vectors, atol=1e-5)


def test_labels_and_predictions_stand_beside_the_vectors(graphsage: Command, run: Path, tmp_path: Path) -> None:
    words = ("--with-label", "--with-prediction", "--keep-features")
    one, two = compared(graphsage, tmp_path, run, *words, suffix=".parquet")
    a, b = (pyarrow.parquet.read_table(path) for path in (one, two))
    vectors = [np.array(table["embedding"].to_pylist()) for table in (a, b)]
    model = load(run)
    assert vectors[0].shape == (N, model.encoder.config.dim + model.encoder.in_dim)
    np.testing.assert_allclose(*vectors, atol=1e-5)
    for column in ("id", "label", "prediction"):
        assert a[column].to_pylist() == b[column].to_pylist()


def test_the_graph_that_the_run_keeps_is_read_in_place(graphsage: Command, texts: Dataset, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert graphsage("train", "setmm", "--out", run, "--dim", 8, "--epochs", 1, "--device", "cpu").code == 0
    words = (
        "embed",
        run,
        "--memory",
        "1GB",
        "--resume-dir",
        tmp_path / "work",
        "--out",
        tmp_path / "two.npy",
        "--json",
    )
    assert graphsage(*words).code == 0
    assert graphsage("embed", run, "--out", tmp_path / "one.npy").code == 0
    np.testing.assert_allclose(np.load(tmp_path / "one.npy"), np.load(tmp_path / "two.npy"), atol=1e-5)
    again = graphsage(*words)
    assert again.code == 0
    assert f"resumed in {tmp_path / 'work'}: " in again.err
    assert not (tmp_path / "work" / "graph").exists()


def test_an_interrupted_command_continues(
    graphsage: Command, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = driver.infer_block, []

    def counted(folder: Path, stage: int, block: int) -> Path:
        calls.append((stage, block))
        if len(calls) == 5:
            raise KeyboardInterrupt
        return real(folder, stage, block)

    monkeypatch.setattr(driver, "infer_block", counted)
    words = ("embed", run, "--memory", "1GB", "--out", tmp_path / "z.npy")
    assert graphsage(*words).code == 130
    assert (tmp_path / "z.npy.work").exists()
    assert not (tmp_path / "z.npy").exists()
    said = graphsage(*words)
    assert said.code == 0
    assert "4 of" in said.err
    assert len(calls) == len(set(calls)) + 1


def test_other_work_in_the_folder_is_refused(graphsage: Command, run: Path, tmp_path: Path) -> None:
    words = ("embed", run, "--memory", "1GB", "--resume-dir", tmp_path / "work", "--out", tmp_path / "z.npy")
    assert graphsage(*words).code == 0
    save_graph(planted(seed=3), tmp_path / "other")
    said = graphsage("embed", run, tmp_path / "other", *words[2:])
    assert "holds the work of another graph; delete it to begin anew" in said.error


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--memory", "plenty"), "--memory must be a size such as 4GB"),
        (("--memory", "1GB", "--node-ids", "ids.txt"), "leave --node-ids out"),
        (("--memory", "1GB", "--inference", "sampled"), "leave --inference sampled out"),
        (("--memory", "1GB", "--device", "cuda"), "leave --device cuda out"),
        (("--memory", "1GB", "--layer-dtype", "int8"), "--layer-dtype must be one of float32, float16"),
        (("--workers", "2"), "--workers needs --memory"),
        (("--resume-dir", "w"), "--resume-dir needs --memory"),
    ],
)
def test_mistakes_are_one_sentence(
    graphsage: Command, run: Path, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    assert sentence in graphsage("embed", run, "--out", tmp_path / "z.npy", *words).error
