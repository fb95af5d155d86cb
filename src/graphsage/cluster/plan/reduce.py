"""all_reduce between two processes of this machine, over loopback, as ranks on CPUs do it."""

import multiprocessing
import os
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

SMALL, LARGE = 1 << 10, 1 << 22  # numbers in a buffer
TRIES = 7


def reduce_rates() -> tuple[float, float]:
    """Seconds for almost nothing, and bytes a second that a rank sends for a large buffer."""
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as folder:
        workers = [context.Process(target=_rank, args=(rank, str(Path(folder) / "store"), send)) for rank in range(2)]
        for worker in workers:
            worker.start()
        send.close()
        try:
            small, large = receive.recv()
        finally:
            for worker in workers:
                worker.join(60)
    sent = 4 * LARGE  # 2 (R - 1) / R times the buffer, for R = 2
    return small, sent / max(large - small, 1e-9)


def _rank(rank: int, store: str, send: Connection) -> None:
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    import torch
    import torch.distributed as distributed

    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    seconds = []
    for size in (SMALL, LARGE):
        buffer, tries = torch.ones(size), []
        for _ in range(TRIES):
            distributed.barrier()
            begin = time.perf_counter()
            distributed.all_reduce(buffer)
            tries.append(time.perf_counter() - begin)
        seconds.append(min(tries))
    distributed.destroy_process_group()
    if rank == 0:
        send.send(tuple(seconds))
