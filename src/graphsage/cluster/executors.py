"""Run the blocks of whole-graph inference in this process, in a pool of processes, or on Ray."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from pathlib import Path

from graphsage.errors import ConfigError, OutputError, setting
from graphsage.inference.out_of_core.embed import Executor, InProcess
from graphsage.inference.out_of_core.infer import infer_block

DEATHS = 3  # in a row without a finished block


class ProcessPool:
    def __init__(self, workers: int, say: Callable[[str], None] | None = None) -> None:
        self.workers = self.slots = workers
        self.say = say
        self._pool: ProcessPoolExecutor | None = None

    def run(self, folder: Path, stage: int, blocks: Sequence[int], on_done: Callable[[int], None]) -> None:
        left, deaths = dict.fromkeys(blocks), 0
        while left:
            pool = self._started()
            try:
                futures = {pool.submit(infer_block, folder, stage, block): block for block in left}
                for future in as_completed(futures):
                    future.result()
                    del left[futures[future]]
                    deaths = 0
                    on_done(futures[future])
            except BrokenProcessPool:
                # The pool does not name the failed block: all remaining ones are submitted again.
                self.close()
                deaths += 1
                if deaths == DEATHS:
                    raise OutputError(
                        f"workers were killed {DEATHS} times in a row, perhaps for lack of memory; {len(left)} blocks "
                        f"are left; run the same command again with fewer {setting('workers')} or less "
                        f"{setting('memory')}: it continues"
                    ) from None
                if self.say is not None:
                    self.say(f"warning: a worker died; {len(left):,} blocks of this stage are submitted again")

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            threads = max(1, (os.cpu_count() or 1) // self.workers)
            spawn = multiprocessing.get_context("spawn")  # a forked copy of torch's threads would hang
            self._pool = ProcessPoolExecutor(self.workers, mp_context=spawn, initializer=_prepare, initargs=(threads,))
        return self._pool


def _prepare(threads: int) -> None:
    import torch

    torch.set_num_threads(threads)


@contextmanager
def executor_for(ray: str | None, workers: int, memory: int, say: Callable[[str], None]) -> Iterator[Executor]:
    """An executor on Ray at the address `ray` (or 'auto', 'local'), or in processes here. `say` reports deaths."""
    if workers < 1:
        raise ConfigError(f"{setting('workers')} must be at least 1; got {workers}")
    if ray is not None:
        from graphsage.cluster.ray_cluster import RayTasks

        with closing(RayTasks(ray, workers, memory // workers, say)) as tasks:
            yield tasks
    elif workers > 1:
        with closing(ProcessPool(workers, say)) as pool:
            yield pool
    else:
        yield InProcess()
