"""Ranks as real processes over gloo, for tests: each calls one function and hands back what it returns."""

import multiprocessing as mp
import os
import socket
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any

_context = mp.get_context("forkserver")
# Imported once, and shared by every process that the server forks; torch's optimizers need the last one.
_context.set_forkserver_preload(["rank_jobs", "graphsage.cluster.ranks", "torch._dynamo"])


def run_ranks(count: int, function: Callable[..., Any], *arguments: Any, timeout: float = 60.0) -> list[Any]:
    """`function(ranks, *arguments)` on each of `count` ranks; what they return, or raise, by rank."""
    port = free_port()
    pipes, processes = [], []
    for rank in range(count):
        here, there = _context.Pipe(duplex=False)
        process = _context.Process(target=_rank, args=(there, rank, count, port, timeout, function, arguments))
        process.start()
        there.close()
        pipes.append(here)
        processes.append(process)
    try:
        return [_received(pipe, timeout) for pipe in pipes]
    finally:
        for process in processes:
            process.join(5)
            process.kill()


def _rank(pipe: Connection, rank: int, count: int, port: int, timeout: float, function: Any, arguments: Any) -> None:
    os.environ.update(
        RANK=str(rank),
        WORLD_SIZE=str(count),
        LOCAL_RANK=str(rank),
        LOCAL_WORLD_SIZE=str(count),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        GLOO_SOCKET_IFNAME="lo",
        OMP_NUM_THREADS="1",
    )
    import torch

    from graphsage.cluster.ranks import join

    torch.set_num_threads(1)
    try:
        with join("cpu", timeout) as ranks:
            result = function(ranks, *arguments)
    except BaseException as error:
        result = error
    pipe.send(result)


def _received(pipe: Connection, timeout: float) -> Any:
    if not wait([pipe], timeout + 30):
        raise TimeoutError(f"a rank gave no result in {timeout + 30} s")
    try:
        return pipe.recv()
    except EOFError as error:
        return error  # it died


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port
