"""Blocks on Ray: the same vectors, also when a worker or a node is lost."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphsage.cluster.executors import executor_for
from graphsage.cluster.ray_cluster import LOST, RayTasks
from graphsage.errors import ConfigError, DataError, OutputError

ROOT = Path(__file__).parents[2]


def test_without_ray_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"ray needs Ray: pip install 'graphsage\[cluster\]'"):
        RayTasks("auto", 1, 10**9)


class FakeRay:
    """Ray's few calls that are used, with answers chosen in advance: what a block says, time after time."""

    class exceptions:
        class RayError(Exception):
            pass

        class WorkerCrashedError(RayError):
            pass

        NodeDiedError = ObjectLostError = OutOfMemoryError = RaySystemError = WorkerCrashedError

        class RayTaskError(RayError):
            def __init__(self, cause: Exception) -> None:
                self.cause = cause

    def __init__(self, answers: dict[int, list[Any]], nodes: list[dict[str, Any]] | None = None) -> None:
        self.answers, self.asked = answers, 0
        self._nodes = [{"Alive": True, "Resources": {"CPU": 1, "memory": 100}}] if nodes is None else nodes

    def is_initialized(self) -> bool:
        return True

    def nodes(self) -> list[dict[str, Any]]:
        return self._nodes

    def remote(self, **options: Any) -> Any:
        class Task:
            def remote(_, folder: str, stage: int, block: int) -> tuple[int, int]:
                self.asked += 1
                return block, self.asked

        return lambda function: Task()

    def wait(self, waiting: list[Any], num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        ready = [r for r in waiting if self.answers[r[0]]]
        return ready[:1], []

    def get(self, reference: tuple[int, int]) -> Any:
        answer = self.answers[reference[0]].pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(answers: dict[int, list[Any]], nodes: list[dict[str, Any]] | None = None) -> FakeRay:
        made = FakeRay(answers, nodes)
        monkeypatch.setitem(sys.modules, "ray", made)
        return made

    return install


CRASH = FakeRay.exceptions.WorkerCrashedError("gone")


def test_a_block_whose_worker_died_is_handed_out_again(fake: Any) -> None:
    ray, said, done = fake({0: ["a"], 1: [CRASH, "b"], 2: ["a"]}), [], []
    tasks = RayTasks("auto", 1, 100, said.append)
    tasks.run(Path("work"), 0, [0, 1, 2], done.append)
    assert sorted(done) == [0, 1, 2]
    assert ray.asked == 4
    assert dict(tasks.blocks_on) == {"a": 2, "b": 1}
    assert said == ["warning: block 1 lost its worker (WorkerCrashedError); computing it again"]


def test_a_block_that_always_kills_its_worker_stops_the_command(fake: Any) -> None:
    fake({5: [CRASH] * LOST})
    with pytest.raises(OutputError, match=r"block 5 of work lost its worker 12 times.*same command again"):
        RayTasks("auto", 1, 100).run(Path("work"), 0, [5], print)


def test_an_error_of_ours_comes_back_as_it_was(fake: Any) -> None:
    fake({0: [FakeRay.exceptions.RayTaskError(DataError("layer 1 is wrong"))]})
    with pytest.raises(DataError, match="layer 1 is wrong"):
        RayTasks("auto", 1, 100).run(Path("work"), 0, [0], print)
    fake({0: [FakeRay.exceptions.RayTaskError(ZeroDivisionError("oops"))]})
    with pytest.raises(OutputError, match="a block failed on a worker: ZeroDivisionError"):
        RayTasks("auto", 1, 100).run(Path("work"), 0, [0], print)


def test_when_no_machine_is_left_the_command_stops(fake: Any) -> None:
    ray = fake({0: []})
    tasks = RayTasks("auto", 1, 100)
    ray._nodes = [{"Alive": False, "Resources": {"CPU": 1, "memory": 100}}]
    with pytest.raises(OutputError, match=r"no machine of the Ray cluster is left.*1 blocks are left"):
        tasks.run(Path("work"), 0, [0], print)


def test_a_task_that_fits_nowhere_is_refused_at_once(fake: Any) -> None:
    fake({})
    with pytest.raises(
        ConfigError, match="no machine of the Ray cluster has a core and 101 bytes for a task; the largest offers 100"
    ):
        RayTasks("auto", 1, 101)


def test_a_cluster_has_room_for_as_many_blocks_as_its_machines_have_cores_and_memory_for(fake: Any) -> None:
    machines = [(True, 4, 1000), (True, 2, 1000), (True, 8, 299), (False, 8, 9000)]
    fake({}, [{"Alive": alive, "Resources": {"CPU": cores, "memory": most}} for alive, cores, most in machines])
    assert RayTasks("auto", 1, 300).slots == 3 + 2


def test_a_cluster_without_a_core_is_refused_at_once(fake: Any) -> None:
    fake({}, [{"Alive": True, "Resources": {"memory": 1000}}])
    with pytest.raises(ConfigError, match="no machine of the Ray cluster has a core and 300 bytes"):
        RayTasks("auto", 1, 300)


def test_workers_below_one_are_refused() -> None:
    with (
        pytest.raises(ConfigError, match="workers must be at least 1; got 0"),
        executor_for("local", 0, 10**9, print),
    ):
        pass


@pytest.mark.slow
def test_two_nodes_agree_with_one_process_and_faults_are_survived(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.ray_faults", "--nodes", "150000", "--out", tmp_path / "r.json"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "r.json").read_text())
    for case in ("two_nodes", "worker_killed", "second_node_cut_off"):
        assert found[case]["max_difference"] < 1e-5, case
    assert len(found["two_nodes"]["blocks_by_node"]) == 2
    assert found["worker_killed"]["fault"] == "killed a worker in the middle of a block"
    assert found["second_node_cut_off"]["fault"] == "cut off the second node"
    assert "run the same command again" in found["all_nodes_lost"]["message"]
    assert found["all_nodes_lost"]["resumed_in_process"]["max_difference"] < 1e-5
