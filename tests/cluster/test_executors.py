"""Blocks in several processes are the blocks of one, also when a process is killed."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from encoders import encoder_of
from graphs import normal
from graphsage.cluster.executors import ProcessPool, executor_for
from graphsage.errors import DataError, OutputError
from graphsage.graph.graph import Graph
from graphsage.graph.storage import save_graph
from graphsage.inference.model import Model
from graphsage.inference.out_of_core.embed import Embedded, InProcess, embed_in_blocks
from graphsage.inference.out_of_core.plan import Budget
from graphsage.model.encoder import EncoderConfig
from graphsage.sampling.minibatch import SamplingConfig

BUDGET = Budget(2_000, 2)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Path]:
    folder = tmp_path_factory.mktemp("pool") / "graph"
    edges = [(v, (v + step) % 80) for v in range(80) for step in (1, 5, 17)]
    save_graph(Graph.from_edges(edges, 80, features=normal(1, 80, 6)), folder)
    return Model(encoder_of(EncoderConfig(dim=8), 6), None, SamplingConfig(max_degree=None)), folder


def whole(found: Embedded) -> torch.Tensor:
    return torch.cat([z for _, z in found.batches()])


@pytest.fixture
def pool() -> Iterator[ProcessPool]:
    said: list[str] = []
    made = ProcessPool(2, said.append)
    made.said = said  # type: ignore[attr-defined]
    yield made
    made.close()


def worker_ids(pool: ProcessPool) -> list[int]:
    return [] if pool._pool is None else list(pool._pool._processes or ())


def test_a_killed_worker_is_replaced_and_nothing_is_lost(
    world: tuple[Model, Path], pool: ProcessPool, tmp_path: Path
) -> None:
    expected = whole(embed_in_blocks(*world, tmp_path / "one", budget=BUDGET))
    killed: list[int] = []

    def kill_one(done: int, total: int) -> None:
        if done and not killed:
            killed.append(worker_ids(pool)[0])
            os.kill(killed[0], signal.SIGKILL)

    found = embed_in_blocks(*world, tmp_path / "two", budget=BUDGET, executor=pool, on_block=kill_one)
    assert killed
    assert "a worker died" in pool.said[0]  # type: ignore[attr-defined]
    assert found.blocks > 6
    torch.testing.assert_close(whole(found), expected, atol=1e-6, rtol=1e-6)


@pytest.mark.slow
def test_workers_that_die_again_and_again_stop_the_command_which_then_continues(
    world: tuple[Model, Path], pool: ProcessPool, tmp_path: Path
) -> None:
    over = threading.Event()

    def kill_all() -> None:
        while not over.is_set():
            for worker in worker_ids(pool):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
            time.sleep(0.05)

    killer = threading.Thread(target=kill_all)
    killer.start()
    try:
        with pytest.raises(OutputError, match=r"killed 3 times in a row.*run the same command again, which continues"):
            embed_in_blocks(*world, tmp_path / "work", budget=BUDGET, executor=pool)
    finally:
        over.set()
        killer.join()
    expected = whole(embed_in_blocks(*world, tmp_path / "one", budget=BUDGET))
    assert torch.equal(whole(embed_in_blocks(*world, tmp_path / "work", budget=BUDGET)), expected)


@pytest.mark.slow
def test_an_error_in_a_worker_is_the_error_of_the_command(
    world: tuple[Model, Path], pool: ProcessPool, tmp_path: Path
) -> None:
    _, graph = world
    other = tmp_path / "graph"
    save_graph(Graph.open(graph).replace(features=torch.full((80, 6), 1e30)), other)
    wild = Model(encoder_of(EncoderConfig(dim=8, normalize="never"), 6), None, SamplingConfig(max_degree=None))
    with pytest.raises(DataError, match="float16 cannot hold"):
        embed_in_blocks(wild, other, tmp_path / "work", budget=BUDGET, executor=pool, layer_dtype="float16")


def test_one_worker_needs_no_process() -> None:
    with executor_for(None, 1, 10**9, print) as one, executor_for(None, 2, 10**9, print) as two:
        assert isinstance(one, InProcess)
        assert isinstance(two, ProcessPool)
