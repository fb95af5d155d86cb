"""Room for a run: an old one stays until the new one begins, and only what a job itself began is resumed unasked."""

from pathlib import Path

import pytest

from command_line import SMALL, Command
from graphsage.cli.runs import RunFolder
from graphsage.cluster.ranks import JOB, RESTART, job
from graphsage.errors import OutputError


def kept(run: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in run.rglob("*") if path.is_file()}


@pytest.fixture
def old(graphsage: Command, data: Path, tmp_path: Path) -> Path:
    assert graphsage("train", data, "--out", tmp_path / "run", *SMALL, "--epochs", 3).code == 0
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--split", "nowhere"), "has no split 'nowhere'"),
        (("--split", "empty"), "no training node"),
        (("--device", "cuda:99"), "torch finds no GPU"),
    ],
)
def test_a_refused_overwrite_leaves_the_old_run_as_it_was(
    graphsage: Command, data: Path, old: Path, words: tuple[str, ...], sentence: str
) -> None:
    before = kept(old)
    assert sentence in graphsage("train", data, "--out", old, *SMALL, "--overwrite", *words).error
    assert kept(old) == before


def test_a_restart_before_the_first_step_overwrites_as_it_was_asked_to(
    graphsage: Command, data: Path, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(JOB, "mine")
    monkeypatch.setenv(RESTART, "1")
    answer = graphsage("train", data, "--out", old, *SMALL, "--overwrite", "--epochs", 1, "--json")
    assert answer.json["steps"] == 4
    assert len((old / "log.jsonl").read_text().splitlines()) == 1


def test_a_restart_does_not_touch_a_run_of_somebody_else(old: Path) -> None:
    folder = RunFolder(old, resume=False, overwrite=False)
    with pytest.raises(OutputError, match="already holds a run"):
        folder.resumes("mine", restarts=1)


def test_a_restart_resumes_what_its_job_began_where_there_is_a_checkpoint(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run", resume=False, overwrite=True)
    folder.begin("mine", resumed=False)
    assert not folder.resumes("mine", restarts=1)
    (folder.path / "checkpoint.safetensors").touch()
    assert folder.resumes("mine", restarts=1)
    assert not folder.resumes("mine", restarts=0)
    assert not folder.resumes("another", restarts=1)
    folder.begin("mine", resumed=True)
    assert (folder.path / "checkpoint.safetensors").exists()
    folder.end()
    assert not folder.resumes("mine", restarts=1)
    folder.begin("mine", resumed=False)
    assert not (folder.path / "checkpoint.safetensors").exists()


def test_a_job_is_what_the_attempts_of_one_command_share(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (JOB, "TORCHELASTIC_RUN_ID", "GROUP_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert job() is None
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    here = job()
    assert here is not None
    assert here == job()
    monkeypatch.setattr("graphsage.cluster.ranks.os.getppid", lambda: 1)
    assert job() != here  # another torchrun on this machine
    monkeypatch.setenv("GROUP_WORLD_SIZE", "2")
    assert job() == "none"
    monkeypatch.setenv(JOB, "mine")
    assert job() == "mine"
