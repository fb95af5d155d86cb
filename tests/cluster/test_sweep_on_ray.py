"""A sweep as tasks of a Ray cluster, started for the test on this machine."""

import json
import os
import signal
import threading
import time
from pathlib import Path

import psutil
import pytest

from graphsage.cluster.ray_cluster import RayPool
from graphsage.cluster.sweep import run_search, run_winner
from graphsage.graph.storage import save_graph
from graphsage.training.score import Scorer
from graphsage.training.search import Search, finished
from graphsage.training.space import Choice, Space
from planted import planted_graph, planted_split

pytest.importorskip("ray")
SPACE = Space({"dim": 8, "sample_sizes": (4, 3), "batch_size": 16, "epochs": 3}, {"lr": Choice((0.05, 0.01, 0.001))})


def made(folder: Path) -> tuple[Search, Scorer]:
    graph = planted_graph()
    save_graph(graph, folder / "graph", {"given": planted_split(graph)})
    search = Search(folder / "out", SPACE, {"data": "graph", "split": "given"}, 3, "grid", "none")
    return search, Scorer(str(folder / "graph"), "given", "cpu", 1)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # Ray's own
def test_ray_finds_what_one_process_finds_and_survives_a_killed_worker(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    search, scorer = made(tmp_path / "a")
    run_search(search, scorer)
    here = [result["val"] for result in finished(search.open())]
    search, scorer = made(tmp_path / "b")
    killed: list[int] = []

    def kill() -> None:
        """The first worker that has begun a trial."""
        while not killed:
            time.sleep(0.02)
            if list((search.folder / "running").glob("*")):
                family = psutil.Process().children(recursive=True)
                workers = [process for process in family if "_ray_worker" in " ".join(process.cmdline())]
                for worker in workers[:1]:
                    os.kill(worker.pid, signal.SIGKILL)
                    killed.append(worker.pid)

    with RayPool("local", slots=2) as pool:
        threading.Thread(target=kill, daemon=True).start()
        assert run_search(search, scorer, ray=pool) == 0
        runs = run_winner(search, scorer, {**SPACE.fixed, "lr": 0.05}, 2, ray=pool)
    results = finished(search.open())
    assert killed
    assert [result["val"] for result in results] == pytest.approx(here, abs=0.02)
    # The kill may meet a worker between two trials; nothing is then made twice.
    assert max(result["attempts"] for result in results) in (1, 2)
    kept = (search.folder / "winner.jsonl").read_text().splitlines()
    assert [json.loads(line)["result"]["val"] for line in kept] == [run["val"] for run in runs]
    assert all(0 < run["test"] <= 1 for run in runs)
