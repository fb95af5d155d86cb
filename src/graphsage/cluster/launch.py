"""Several ranks on this machine: torch's launcher starts one process per rank, and all again if one dies."""

import logging
import os
import signal
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from graphsage.cluster.ranks import JOB, RESTART, threads_of_rank

LOST, INTERRUPTED = 3, 130


def launch(arguments: Sequence[str], workers: int, max_restarts: int, say: Callable[[str], None]) -> int:
    """Run `python -m graphsage ARGUMENTS` as `workers` ranks and return the exit code.
    Errors and interrupts end it. If a rank is killed or lost, all ranks restart, at most `max_restarts` times."""
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)  # `say` reports failures in one sentence
    job = uuid.uuid4().hex
    for attempt in range(max_restarts + 1):
        codes = _run(arguments, workers, job, attempt)
        if not any(codes.values()):
            return 0
        mistake = next((code for code in codes.values() if code > 0 and code != LOST), None)
        if mistake is not None:
            return mistake
        again = f"starting again from the last checkpoint ({attempt + 1} of {max_restarts})"
        say(f"{_fate(codes)}; {again if attempt < max_restarts else 'continue with --resume'}")
    return LOST


def _run(arguments: Sequence[str], workers: int, job: str, attempt: int) -> Mapping[int, int]:
    """Exit codes of the failed ranks; a signal's number is negative."""
    with tempfile.TemporaryDirectory(prefix="graphsage-") as logs, _environment(workers, job, attempt):
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=workers,
            run_id=f"{job}-{attempt}",
            rdzv_backend="c10d",
            rdzv_endpoint="localhost:0",
            local_addr="localhost",
            max_restarts=0,
            logs_specs=DefaultLogsSpecs(logs),
        )
        try:
            elastic_launch(config, sys.executable)("-m", "graphsage", *arguments)
        except ChildFailedError as error:
            return {rank: failure.exitcode for rank, failure in error.failures.items()}
        except SignalException:
            return {0: INTERRUPTED}  # the ranks got the signal too and have reported it
    return {}


def _fate(codes: Mapping[int, int]) -> str:
    for rank, code in codes.items():
        if code < 0:
            return f"rank {rank} was killed by {signal.Signals(-code).name}"
    return f"rank {next(iter(codes))} lost contact with another rank"


@contextmanager
def _environment(workers: int, job: str, attempt: int) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.setdefault("OMP_NUM_THREADS", str(threads_of_rank(workers)))
    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # loopback needs no host name
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    os.environ[JOB], os.environ[RESTART] = job, str(attempt)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
