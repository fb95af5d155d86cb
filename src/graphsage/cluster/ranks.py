"""Ranks of torch.distributed, as torchrun starts them: gloo between CPUs, NCCL between GPUs."""

import dataclasses
import importlib
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from graphsage import errors
from graphsage.datasets.dataset import Dataset
from graphsage.datasets.open import load_folder
from graphsage.errors import ConfigError, DataError, GraphSageError, LostRankError, setting
from graphsage.execution.ranks import SINGLE_PROCESS, Ranks
from graphsage.graph.storage import save_graph
from graphsage.kernels.threads import cores

TIMEOUT_SECONDS = 600.0
RESTART, JOB = "GRAPHSAGE_RESTART", "GRAPHSAGE_JOB"
_WORKING, _DONE, _FAILED = range(3)


def number_of_ranks() -> int:
    """Number of ranks that torchrun started; 1 without torchrun."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def restarts() -> int:
    """Number of restarts after a rank died, by `launch` or by torchrun."""
    return int(os.environ.get(RESTART, "0")) + int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def job() -> str | None:
    """A name that only the attempts of one command share; None if nothing restarts the command.
    It is the --rdzv-id of torchrun; on one machine, together with the process of torchrun."""
    if JOB in os.environ or "TORCHELASTIC_RUN_ID" not in os.environ:
        return os.environ.get(JOB)
    name = os.environ["TORCHELASTIC_RUN_ID"]
    return name if os.environ.get("GROUP_WORLD_SIZE", "1") != "1" else f"{name} {os.getppid()} {_began(os.getppid())}"


def _began(pid: int) -> str:
    """Start time of a process in clock ticks, because process ids are reused."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def device_of_rank(name: str) -> str:
    """The device of this rank: the ranks of a machine take its GPUs in turn."""
    if number_of_ranks() == 1 or name not in ("auto", "cuda") or not torch.cuda.is_available():
        return name
    return f"cuda:{int(os.environ.get('LOCAL_RANK', '0')) % torch.cuda.device_count()}"


@contextmanager
def join(device: str = "auto", timeout: float = TIMEOUT_SECONDS) -> Iterator[Ranks]:
    """Form a group with the other ranks within the block; a single process if torchrun started no others.
    If a rank does not answer for `timeout` seconds, the others stop with a LostRankError."""
    if timeout <= 0:
        raise ConfigError(f"the time to wait for a rank must be above 0 seconds; got {timeout}")
    if number_of_ranks() == 1:
        yield SINGLE_PROCESS
        return
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(threads_of_rank(int(os.environ.get("LOCAL_WORLD_SIZE", "1"))))
    here = device_of_rank(device)
    if here.startswith("cuda"):
        torch.cuda.set_device(here)
    with _contact(timeout):
        _meet(_backend(here), timedelta(seconds=timeout))
    try:
        yield Group(dist.get_rank(), dist.get_world_size(), timeout)
    finally:
        dist.destroy_process_group()


def _meet(backend: str, timeout: timedelta) -> None:
    # A later import (by an optimizer's first step) would keep the group in its default arguments. The group would
    # outlive `join`, and its threads would abort the process when they free a tensor after Python has ended.
    importlib.import_module("torch.distributed.nn")
    store, rank, count = next(dist.rendezvous("env://", timeout=timeout))  # type: ignore[attr-defined]
    if os.environ.get("GROUP_WORLD_SIZE", "1") == "1":
        # torchrun keeps its store over restarts, with the addresses of dead ranks.
        store = dist.PrefixStore(f"attempt {restarts()}", store)  # type: ignore[attr-defined]
    dist.init_process_group(backend, store=store, rank=rank, world_size=count, timeout=timeout)


def threads_of_rank(ranks: int) -> int:
    """An equal share of the cores this process may use."""
    return max(1, cores() // ranks)


def _backend(device: str) -> str:
    """NCCL, or gloo if ranks share a GPU, which NCCL refuses."""
    shared = int(os.environ.get("LOCAL_WORLD_SIZE", "1")) > max(torch.cuda.device_count(), 1)
    return "cpu:gloo,cuda:nccl" if device.startswith("cuda") and not shared and dist.is_nccl_available() else "gloo"


class Group:
    """The ranks of the default process group."""

    def __init__(self, rank: int, count: int, timeout: float) -> None:
        self.rank, self.count, self.timeout = rank, count, timeout

    def add(self, tensor: Tensor) -> None:
        with _contact(self.timeout):
            dist.all_reduce(tensor)

    def any(self, flag: bool) -> bool:
        flags = torch.tensor([flag], dtype=torch.uint8)
        with _contact(self.timeout):
            dist.all_reduce(flags, dist.ReduceOp.MAX)
        return bool(flags[0])

    def first(self, call: Callable[[], bytes]) -> bytes:
        """Rank 0 sends heartbeats during `call`, so that the other ranks wait for it without a limit."""
        if self.rank == 0:
            return self._work(call)
        while True:
            status, content = self._receive()
            if status == _DONE:
                return content
            if status == _FAILED:
                raise _error(content)

    def _work(self, call: Callable[[], bytes]) -> bytes:
        try:
            with self._heartbeat():
                content = call()
        except GraphSageError as error:
            self._send(_FAILED, json.dumps([type(error).__name__, str(error)]).encode())
            raise
        self._send(_DONE, content)
        return content

    @contextmanager
    def _heartbeat(self) -> Iterator[None]:
        done = threading.Event()

        def beat() -> None:
            with suppress(LostRankError):  # the next message raises it
                while not done.wait(self.timeout / 4):
                    self._send(_WORKING)

        heart = threading.Thread(target=beat, daemon=True)
        heart.start()
        try:
            yield
        finally:
            done.set()
            heart.join()

    def _send(self, status: int, content: bytes = b"") -> None:
        with _contact(self.timeout):
            dist.broadcast(torch.tensor([status, len(content)]), 0)
            if content:
                dist.broadcast(torch.frombuffer(bytearray(content), dtype=torch.uint8), 0)

    def _receive(self) -> tuple[int, bytes]:
        head = torch.empty(2, dtype=torch.int64)
        with _contact(self.timeout):
            dist.broadcast(head, 0)
            content = torch.empty(int(head[1]), dtype=torch.uint8)
            if len(content):
                dist.broadcast(content, 0)
        return int(head[0]), content.numpy().tobytes()


def _error(content: bytes) -> GraphSageError:
    """The error that rank 0 raised and has reported to the user."""
    name, message = json.loads(content)
    error: GraphSageError = getattr(errors, name, GraphSageError)(message)
    error.reported = True
    return error


@contextmanager
def _contact(timeout: float) -> Iterator[None]:
    """Turn errors of communication into a LostRankError."""
    try:
        yield
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[0].split("] ")[-1]
        raise LostRankError(
            f"rank {os.environ.get('RANK', '0')} lost contact with another rank, which died or gave no answer for "
            f"{timeout:g} s ({reason}); continue from the last checkpoint with {setting('resume', True)}"
        ) from error


SCRATCH = ".graph.part"  # in the run's folder; named like other files of killed processes


def share_data(
    ranks: Ranks, opened: Callable[[], tuple[Dataset, str]], folder: Path | None, run: Path
) -> tuple[Dataset, str]:
    """Share the data set and split name that rank 0 `opened`, as a graph folder that every rank maps.
    Without `folder`, its own graph folder, rank 0 writes one below `run` until all ranks map it."""
    mine: list[Dataset] = []

    def prepare() -> bytes:
        data, name = opened()
        place = folder
        if place is None:
            split = data.split(name)
            graph, fitted = data.with_features(split)
            place = run / SCRATCH
            save_graph(graph, place, {name: split})
            data = dataclasses.replace(data, graph=graph, plan=None, fitted=fitted)
        mine.append(data)
        return json.dumps({"folder": str(place.absolute()), "split": name}).encode()

    shared = json.loads(ranks.first(prepare))
    place = Path(shared["folder"])
    try:
        data = load_folder(place)
    except DataError as error:
        mine_alone = DataError(
            f"rank {ranks.rank} cannot open what rank 0 reads ({error}); write the data with `graphsage data convert` "
            "and give every machine a copy in the same place"
        )
        mine_alone.reported = False
        raise mine_alone from error
    if mine:
        data = dataclasses.replace(mine[0], graph=data.graph, splits={**mine[0].splits, **data.splits})
    ranks.any(False)  # all ranks have it open
    if folder is None and ranks.rank == 0:
        shutil.rmtree(place, ignore_errors=True)
    return data, shared["split"]
