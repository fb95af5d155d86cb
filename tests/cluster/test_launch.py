"""`graphsage train --workers N` and torchrun as real command lines: killed, stopped, interrupted and misused."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from safetensors.numpy import load_file

import rank_jobs as jobs
from graphsage.cluster.launch import launch
from graphsage.graph.storage import save_graph
from planted import planted_graph, planted_split
from rank_processes import run_ranks

EPOCHS = 25
SMALL = ("--dim", "8", "--sample-sizes", "4,3", "--batch-size", "16", "--epochs", str(EPOCHS), "--device", "cpu")
TRAIN = ("-m", "graphsage", "train")
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


class Job:
    """A command line at work, and what it prints."""

    def __init__(self, *words: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *map(str, words)],
            text=True,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def ranks(self) -> list[int]:
        """Process ids of the ranks, the first one first: children of the launcher, in the order they began."""
        return [child for child in _children(self.process.pid) if _is_rank(child)]

    def wait(self, seconds: float = 200) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=seconds)
        return self.process.returncode, out, err


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _is_rank(pid: int) -> bool:
    return b"\0RANK=" in Path(f"/proc/{pid}/environ").read_bytes()


@pytest.fixture
def start() -> Iterator[Callable[..., Job]]:
    jobs: list[Job] = []

    def begin(*words: object) -> Job:
        jobs.append(Job(*words))
        return jobs[-1]

    yield begin
    for job in jobs:
        if job.process.poll() is None:  # ranks have sessions of their own and would outlive their launcher
            for pid in [*_children(job.process.pid), job.process.pid]:
                os.kill(pid, signal.SIGKILL)
        job.process.communicate()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    graph = planted_graph()
    save_graph(graph, tmp_path / "graph", {"given": planted_split(graph)})
    return tmp_path / "graph"


def after_epochs(run: Path, count: int, seconds: float = 200) -> None:
    """Wait until a run has finished so many epochs."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (run / "log.jsonl").exists() and len((run / "log.jsonl").read_text().splitlines()) >= count:
            return
        time.sleep(0.02)
    raise TimeoutError(f"{run} did not finish {count} epochs in {seconds} s")


def same_as_undisturbed(run: Path) -> bool:
    whole = run_ranks(2, jobs.train, {"dim": 8, "epochs": EPOCHS})[0]
    kept = load_file(run / "model.safetensors")
    found = {name.removeprefix("encoder."): value for name, value in kept.items()}
    assert any(name.startswith("layers.") for name in whole)
    assert set(whole) <= set(found)
    return all((whole[name] == found[name]).all() for name in whole)


def test_a_killed_rank_is_started_again_and_the_model_is_that_of_an_undisturbed_run(
    start: Callable[..., Job], folder: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    job = start(*TRAIN, folder, "--out", run, *SMALL, "--workers", 2, "--json")
    after_epochs(run, 3)
    os.kill(job.ranks()[1], signal.SIGKILL)
    code, out, err = job.wait()
    assert code == 0, err
    assert "rank 1 was killed by SIGKILL; starting again from the last checkpoint (1 of 3)" in err
    assert "Traceback" not in err
    assert len(out.splitlines()) == 1
    assert json.loads(out)["steps"] == EPOCHS * 5
    epochs = [json.loads(line)["epoch"] for line in (run / "log.jsonl").read_text().splitlines()]
    assert epochs == list(range(1, EPOCHS + 1))
    assert same_as_undisturbed(run)


@pytest.mark.parametrize(
    "words", [(*TRAIN, "--workers", 2), (*TORCHRUN, "--max-restarts", 2, *TRAIN)], ids=["workers", "torchrun"]
)
def test_an_overwritten_run_is_never_resumed_when_a_rank_dies_at_once(
    start: Callable[..., Job], folder: Path, tmp_path: Path, words: tuple[object, ...]
) -> None:
    """The old run has the same settings and more epochs: resuming it would be to do nothing."""
    run = tmp_path / "run"
    assert start(*TRAIN, folder, "--out", run, *SMALL, "--lr", 0.05).wait()[0] == 0
    job = start(*words, folder, "--out", run, *SMALL, "--lr", 0.05, "--overwrite", "--epochs", 2, "--json")
    end = time.monotonic() + 200
    while len(job.ranks()) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    os.kill(job.ranks()[1], signal.SIGKILL)
    code, out, err = job.wait()
    assert code == 0, err
    assert json.loads(out)["steps"] == 2 * 5
    assert [json.loads(line)["epoch"] for line in (run / "log.jsonl").read_text().splitlines()] == [1, 2]


@pytest.mark.slow
def test_torchrun_does_not_resume_a_run_that_it_was_not_told_to(
    start: Callable[..., Job], folder: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert start(*TRAIN, folder, "--out", run, *SMALL).wait()[0] == 0
    before = (run / "log.jsonl").read_bytes()
    more = (*SMALL, "--epochs", EPOCHS + 1)
    code, out, err = start(*TORCHRUN, "--max-restarts", 1, *TRAIN, folder, "--out", run, *more).wait()
    assert code
    assert out == ""
    assert err.count("already holds a run; continue it with --resume") == 2  # torchrun tries everything again
    assert (run / "log.jsonl").read_bytes() == before


@pytest.mark.slow
def test_without_restarts_a_killed_first_rank_ends_the_run_which_can_be_resumed(
    start: Callable[..., Job], folder: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    job = start(*TRAIN, folder, "--out", run, *SMALL, "--workers", 2, "--max-restarts", 0)
    after_epochs(run, 3)
    os.kill(job.ranks()[0], signal.SIGKILL)
    code, _, err = job.wait()
    assert code == 3
    assert "rank 0 was killed by SIGKILL; continue with --resume" in err
    assert "Traceback" not in err
    assert start(*TRAIN, "--out", run, "--resume", "--workers", 2).wait()[0] == 0
    assert same_as_undisturbed(run)


@pytest.mark.slow
def test_a_rank_that_no_longer_answers_is_given_up_within_the_timeout(
    start: Callable[..., Job], folder: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    job = start(*TRAIN, folder, "--out", run, *SMALL, "--workers", 2, "--rank-timeout", 5, "--max-restarts", 0)
    after_epochs(run, 3)
    os.kill(job.ranks()[1], signal.SIGSTOP)
    stopped = time.monotonic()
    code, _, err = job.wait()
    assert code == 3
    assert "rank 0 lost contact with another rank, which died or gave no answer for 5 s" in err
    assert "Traceback" not in err
    assert time.monotonic() - stopped < 60  # the launcher gives a stopped process half a minute before it kills it
    assert start(*TRAIN, "--out", run, "--resume", "--workers", 2).wait()[0] == 0
    assert same_as_undisturbed(run)


@pytest.mark.slow
@pytest.mark.parametrize("to_all", [True, False], ids=["Ctrl-C", "SIGTERM to the launcher"])
@pytest.mark.parametrize("words", [(*TRAIN, "--workers", 2), (*TORCHRUN, *TRAIN)], ids=["workers", "torchrun"])
def test_an_interrupt_writes_a_checkpoint_and_leaves_by_the_usual_door(
    start: Callable[..., Job], folder: Path, tmp_path: Path, words: tuple[object, ...], to_all: bool
) -> None:
    run = tmp_path / "run"
    job = start(*words, folder, "--out", run, *SMALL)
    after_epochs(run, 3)
    if to_all:
        os.killpg(job.process.pid, signal.SIGINT)  # as a terminal does
    else:
        os.kill(job.process.pid, signal.SIGTERM)
    code, out, err = job.wait()
    assert out == ""
    assert "interrupted; continue with --resume" in err
    if "--workers" in words:
        assert code == 130
        assert "Traceback" not in err
    assert start(*TRAIN, "--out", run, "--resume", "--workers", 2).wait()[0] == 0
    assert same_as_undisturbed(run)


@pytest.mark.slow
def test_torchrun_trains_and_starts_again_after_a_killed_rank(
    start: Callable[..., Job], folder: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    job = start(*TORCHRUN, "--max-restarts", 2, *TRAIN, folder, "--out", run, *SMALL, "--json")
    after_epochs(run, 3)
    os.kill(job.ranks()[1], signal.SIGKILL)
    code, out, err = job.wait()
    assert code == 0, err
    assert json.loads(out)["steps"] == EPOCHS * 5
    assert same_as_undisturbed(run)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--lr", -1), "error: --lr must be above 0"),
        (("--workers", 0), "error: --workers must be at least 1"),
        (("--split", "nowhere"), "error: graph has no split 'nowhere'"),  # found by rank 0, once the workers run
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    start: Callable[..., Job], folder: Path, tmp_path: Path, words: tuple[object, ...], sentence: str
) -> None:
    code, out, err = start(*TRAIN, folder, "--out", tmp_path / "run", *SMALL, "--workers", 2, *words).wait()
    assert (code, out) == (2, "")
    assert err.count("error: ") == 1
    assert sentence in err
    assert "Traceback" not in err
    assert not (tmp_path / "run").exists()


def test_an_old_run_is_kept_when_workers_refuse_to_overwrite_it(
    start: Callable[..., Job], folder: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert start(*TRAIN, folder, "--out", run, *SMALL, "--epochs", 1).wait()[0] == 0
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    words = (*TRAIN, folder, "--out", run, *SMALL, "--overwrite", "--split", "nowhere", "--workers", 2)
    assert start(*words).wait()[0] == 2
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_the_launcher_counts_its_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    fates = iter([{1: -9}, {0: 3, 1: 3}, {0: 3}])
    monkeypatch.setattr("graphsage.cluster.launch._run", lambda *_: next(fates))
    said: list[str] = []
    assert launch(["train"], 2, 2, said.append) == 3
    assert said == [
        "rank 1 was killed by SIGKILL; starting again from the last checkpoint (1 of 2)",
        "rank 0 lost contact with another rank; starting again from the last checkpoint (2 of 2)",
        "rank 0 lost contact with another rank; continue with --resume",
    ]


@pytest.mark.parametrize("codes", [{0: 3, 1: 2}, {0: 2, 1: 3, 2: -15}])
def test_the_launcher_does_not_repeat_mistakes(codes: dict[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphsage.cluster.launch._run", lambda *_: codes)
    assert launch(["train"], 2, 5, lambda text: pytest.fail(text)) == 2
