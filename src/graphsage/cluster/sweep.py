"""Run a search for settings in one process, several processes or the workers of a Ray cluster, by the same loop."""

import multiprocessing
import os
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from graphsage.cluster.ray_cluster import RayPool
from graphsage.errors import ConfigError, OutputError, setting
from graphsage.kernels.threads import cores
from graphsage.training.score import Scorer
from graphsage.training.search import Search, left, work
from graphsage.training.trials import Result, Runner, Trial, TrialStore, die_with

POLL_SECONDS = 0.5
RESTARTS = 3  # per worker; a trial that kills its process is abandoned earlier
OnDone = Callable[[], None]


def run_search(
    search: Search,
    scorer: Scorer,
    *,
    jobs: int = 1,
    ray: RayPool | None = None,
    deadline: float | None = None,
    on_done: OnDone = lambda: None,
) -> int:
    """Run trials until all are done or `deadline` (by time.time()) has passed; return the number left."""
    store = search.open()
    if ray is not None:
        _on_ray(search, replace(scorer, threads=1), ray, deadline, on_done)
    elif jobs == 1:
        work(search, scorer, on_done, lambda: _in_time(deadline))
    else:
        jobs = min(jobs, max(left(search, store), 1))
        _in_processes(search, replace(scorer, threads=max(1, cores() // jobs)), jobs, deadline, on_done)
    on_done()
    return left(search, store)


def run_winner(
    search: Search,
    scorer: Scorer,
    settings: dict[str, Any],
    seeds: int,
    *,
    jobs: int = 1,
    ray: RayPool | None = None,
    name: str = "winner",
) -> list[Result]:
    """Train the chosen settings with each seed and score them on test. Finished runs are kept."""
    runner = Runner(TrialStore(search.folder), scorer.result, jobs, pool=ray)
    return runner.run(Trial(name, {**settings, "seed": seed}, experiment=name) for seed in range(seeds))


def _in_processes(search: Search, scorer: Scorer, jobs: int, deadline: float | None, on_done: OnDone) -> None:
    context = multiprocessing.get_context("spawn")

    def start() -> Any:
        process = context.Process(target=_worker, args=(search, scorer, deadline, os.getpid()))
        process.start()
        return process

    workers, died = [start() for _ in range(jobs)], 0
    try:
        while workers:
            time.sleep(POLL_SECONDS)
            on_done()
            for worker in [each for each in workers if not each.is_alive()]:
                workers.remove(worker)
                if worker.exitcode != 0:
                    died += 1
                    if died > RESTARTS * jobs:
                        raise OutputError(
                            f"worker processes keep dying (exit code {worker.exitcode}); try fewer {setting('jobs')}"
                        )
                    workers.append(start())
    finally:  # after Ctrl-C or an error, the next command repeats their trials
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.join()


def _worker(search: Search, scorer: Scorer, deadline: float | None, parent: int) -> None:
    die_with(parent)
    try:
        work(search, scorer, None, lambda: _in_time(deadline))
    except KeyboardInterrupt:
        return


def _on_ray(search: Search, scorer: Scorer, ray: RayPool, deadline: float | None, on_done: OnDone) -> None:
    """Run as many workers as the cluster has slots. Ray restarts lost workers."""
    here = socket.gethostname()
    futures = [ray.submit(_ray_worker, search, scorer, deadline, here) for _ in range(min(ray.slots, search.total))]
    while any(not future.done() for future in futures):
        time.sleep(POLL_SECONDS)
        on_done()
    for future in futures:
        future.result()


def _ray_worker(search: Search, scorer: Scorer, deadline: float | None, driver: str) -> None:
    if not (search.folder / "search.json").exists():
        raise ConfigError(
            f"{socket.gethostname()} does not see {search.folder}, where {driver} keeps the sweep; put "
            "it into a folder that all machines share"
        )
    work(search, scorer, None, lambda: _in_time(deadline))


def _in_time(deadline: float | None) -> bool:
    return deadline is None or time.time() < deadline
