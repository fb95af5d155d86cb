"""N ranks that take b targets of each step train the model that one rank trains with N * b."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphsage as gs
import rank_jobs as jobs
from graphsage.cluster.ranks import SCRATCH, join
from graphsage.errors import ConfigError, DataError, LostRankError
from graphsage.execution.ranks import SINGLE_PROCESS
from graphsage.graph.storage import save_graph
from planted import planted_graph, planted_split
from rank_processes import free_port, run_ranks

Results = list[dict[str, jobs.Weights]]

# 72 training nodes in steps of 16: each of two ranks takes 8, and 4 in the last step of an epoch.
TWO: dict[str, dict[str, Any]] = {
    f"{task} {aggregator}": {
        "task": task,
        "aggregator": aggregator,
        "dropout": 0.3,
        "lr": 0.01,
        "steps": 12,
        "max_degree": 6,
        **({"hidden_dim": 8} if aggregator in ("pool", "lstm") else {}),
        **({"num_walks": 1} if task == "unsupervised" else {}),
    }
    for task in ("supervised", "unsupervised")
    for aggregator in ("mean", "gcn", "pool", "lstm")
}
TWO |= {
    f"{task}, two relations": {
        "task": task,
        "direction": "both",
        "weighted": True,
        "steps": 12,
        "max_degree": 6,
        **more,
    }
    for task, more in (("supervised", {}), ("unsupervised", {"num_walks": 1, "lr": 0.01}))
}
THREE: dict[str, dict[str, Any]] = {
    "fewer targets than ranks": {"batch_size": 70, "epochs": 4},  # the second step has 2
    "early stop": {"batch_size": 7, "patience": 1, "epochs": 9},
    "joint": {"task": "joint", "steps": 9, "batch_size": 20, "form": "reference"},
    "each pair's negatives": {
        "task": "unsupervised",
        "steps": 9,
        "negatives_per_pair": True,
        "num_negatives": 5,
        "lr": 0.01,
    },
    "identity": {"identity_dim": 4, "steps": 9, "weight_decay": 0.01, "head_scale": True},
}


def close(one: jobs.Weights, two: jobs.Weights) -> None:
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_allclose(one[name], two[name], atol=2e-5, rtol=2e-4, err_msg=name)


def equal(one: jobs.Weights, two: jobs.Weights) -> bool:
    return one.keys() == two.keys() and all(np.array_equal(one[name], two[name]) for name in one)


@pytest.fixture(scope="module")
def two() -> Results:
    return run_ranks(2, jobs.train_each, TWO)


@pytest.fixture(scope="module")
def three() -> Results:
    return run_ranks(3, jobs.train_each, THREE)


@pytest.mark.parametrize("name", TWO)
def test_two_ranks_train_what_one_trains(name: str, two: Results) -> None:
    assert equal(two[0][name], two[1][name])
    close(jobs.train(SINGLE_PROCESS, TWO[name]), two[0][name])


@pytest.mark.parametrize("name", THREE)
def test_three_ranks_train_what_one_trains(name: str, three: Results) -> None:
    assert equal(three[0][name], three[1][name])
    assert equal(three[0][name], three[2][name])
    close(jobs.train(SINGLE_PROCESS, THREE[name]), three[0][name])


def test_a_signal_to_any_rank_stops_all_after_one_step_and_another_number_of_ranks_resumes(tmp_path: Path) -> None:
    # Step 14 is within an epoch: the end of the shorter run is scored, and could be kept as the best.
    options = {"steps": 14, "dropout": 0.2, "keep_weights": "last"}
    stopped = run_ranks(3, jobs.stop_then_train, options, tmp_path, 6)
    assert [type(error).__name__ for error in stopped] == ["Interrupted"] * 3
    assert steps_done(tmp_path) == 6
    first, second = run_ranks(2, jobs.train, options, tmp_path, True)
    assert equal(first, second)
    close(jobs.train(SINGLE_PROCESS, options), first)
    bundle = gs.load(tmp_path)  # that rank 0 wrote
    assert all(np.array_equal(value.numpy(), first[name]) for name, value in bundle.encoder.state_dict().items())
    longer = {**options, "steps": 20}
    continued = jobs.train(SINGLE_PROCESS, longer, tmp_path, True)  # one rank resumes the run of two
    close(jobs.train(SINGLE_PROCESS, longer), continued)


def steps_done(run: Path) -> int:
    content = (run / "checkpoint.safetensors").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    step: int = json.loads(header["__metadata__"]["progress"])["step"]
    return step


def test_only_the_first_rank_writes(tmp_path: Path) -> None:
    run_ranks(2, jobs.train_in_own_folder, tmp_path)
    assert (tmp_path / "0" / "log.jsonl").exists()
    assert (tmp_path / "0" / "model.safetensors").exists()
    assert not (tmp_path / "1").exists()


def test_an_error_of_the_first_rank_is_everybodys() -> None:
    errors = run_ranks(3, jobs.fail)
    assert [str(error) for error in errors] == ["edge 7 points nowhere"] * 3
    assert [type(error) for error in errors] == [DataError] * 3


def test_the_others_wait_while_the_first_rank_works_longer_than_the_timeout() -> None:
    assert run_ranks(2, jobs.work_long, timeout=2) == [b"done"] * 2


@pytest.mark.parametrize("silent", [False, True], ids=["dies", "is cut off"])
def test_a_rank_that_is_gone_is_a_clear_error_within_the_timeout(silent: bool) -> None:
    before = time.monotonic()
    error, _ = run_ranks(2, jobs.disappear, silent, timeout=2)
    assert isinstance(error, LostRankError)
    assert "rank 0 lost contact" in str(error)
    assert "resume=True" in str(error)
    assert time.monotonic() - before < 25


def test_ranks_that_read_different_data_are_refused() -> None:
    errors = run_ranks(2, jobs.read_other_data)
    assert all(isinstance(error, DataError) and "different data" in str(error) for error in errors)


def test_data_that_is_no_folder_is_written_once_mapped_by_all_and_removed(tmp_path: Path) -> None:
    first, second = run_ranks(2, jobs.share, tmp_path)
    assert first[0] == second[0] == "mine"
    np.testing.assert_array_equal(first[1], second[1])
    assert first[2] >= 1
    assert second[2] >= 1
    assert (first[3], second[3]) == (True, False)  # only the rank that saves the model needs the fitted features
    assert first[4] == second[4]
    assert (first[5], second[5]) == (["words"], [])  # the run keeps the columns
    assert not (tmp_path / SCRATCH).exists()


def test_a_machine_without_the_folder_says_so(tmp_path: Path) -> None:
    graph = planted_graph()
    save_graph(graph, tmp_path / "graph", {"given": planted_split(graph)})
    lost, missing = run_ranks(2, jobs.open_folder, tmp_path / "graph", tmp_path, timeout=5)
    assert isinstance(missing, DataError)
    assert "rank 1 cannot open" in str(missing)
    assert "data convert" in str(missing)
    assert isinstance(lost, LostRankError)


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads by their names in /proc")
def test_no_thread_of_the_group_outlives_it() -> None:
    """One that did would abort a rank now and then when it ends, after its work was done."""
    code = (
        "import torch; from pathlib import Path; from graphsage.cluster.ranks import join\n"
        "def threads(): return sum('gloo' in path.read_text() for path in Path('/proc/self/task').glob('*/comm'))\n"
        "with join('cpu') as ranks:\n"
        "    import torch._dynamo  # as an optimizer's first step does\n"
        "    ranks.add(torch.ones(1)); during = threads()\n"
        "print(during > 0, threads())"
    )
    fixed = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "GLOO_SOCKET_IFNAME": "lo"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env=os.environ | fixed | {"RANK": str(rank)},
            text=True,
            stdout=subprocess.PIPE,
        )
        for rank in range(2)
    ]
    assert [rank.communicate(timeout=120)[0] for rank in ranks] == ["True 0\n"] * 2


def test_without_torchrun_one_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with join() as ranks:
        assert (ranks.rank, ranks.count, ranks.any(True), ranks.first(lambda: b"x")) == (0, 1, True, b"x")
    with pytest.raises(ConfigError, match="above 0"), join(timeout=0):
        pass
