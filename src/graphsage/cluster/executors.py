"""Where the blocks of a whole-graph inference run: here, in processes of this machine, or on a Ray cluster."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from graphsage.errors import ConfigError, setting
from graphsage.inference.out_of_core.embed import Executor, InProcess


@contextmanager
def executor_for(ray: str | None, workers: int, memory: int, say: Callable[[str], None]) -> Iterator[Executor]:
    """`ray` is a cluster's address ('auto' and 'local' too); without one, several workers are processes here.
    `say` is told when a worker died and its blocks are computed again."""
    if workers < 1:
        raise ConfigError(f"{setting('workers')} must be at least 1; got {workers}")
    if ray is not None:
        from graphsage.cluster.ray_tasks import RayTasks

        with closing(RayTasks(ray, workers, memory // workers, say)) as tasks:
            yield tasks
    elif workers > 1:
        from graphsage.cluster.process_pool import ProcessPool

        with closing(ProcessPool(workers, say)) as pool:
            yield pool
    else:
        yield InProcess()
