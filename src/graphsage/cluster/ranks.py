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
    """How many ranks torchrun has started; 1 where it has not."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def restarts() -> int:
    """How often this rank was started again after one had died, by `launch` or by torchrun."""
    return int(os.environ.get(RESTART, "0")) + int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def job() -> str | None:
    """What all attempts of one command share and no other command has; None where nobody would start it again.

    Over several machines that is the name which the user gave torchrun (--rdzv-id); on one, its process as well.
    """
    if JOB in os.environ or "TORCHELASTIC_RUN_ID" not in os.environ:
        return os.environ.get(JOB)
    name = os.environ["TORCHELASTIC_RUN_ID"]
    return name if os.environ.get("GROUP_WORLD_SIZE", "1") != "1" else f"{name} {os.getppid()} {_began(os.getppid())}"


def _began(pid: int) -> str:
    """When a process began, in the system's own count: numbers of processes come again."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def device_of_rank(name: str) -> str:
    """The device that this rank takes: the GPUs of a machine go round among its ranks."""
    if number_of_ranks() == 1 or name not in ("auto", "cuda") or not torch.cuda.is_available():
        return name
    return f"cuda:{int(os.environ.get('LOCAL_RANK', '0')) % torch.cuda.device_count()}"


@contextmanager
def join(device: str = "auto", timeout: float = TIMEOUT_SECONDS) -> Iterator[Ranks]:
    """Meet the other ranks within the block; alone where torchrun has started no others.

    A rank that does not answer for `timeout` seconds is lost: the others stop with a LostRankError.
    """
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
    # Imported later (an optimizer's first step does), it keeps the group in its default arguments. The group then
    # outlives `join`, and its threads abort the process when they let go of a tensor after Python has ended.
    importlib.import_module("torch.distributed.nn")
    store, rank, count = next(dist.rendezvous("env://", timeout=timeout))  # type: ignore[attr-defined]
    if os.environ.get("GROUP_WORLD_SIZE", "1") == "1":
        # torchrun keeps its store when it starts ranks again, and with it the addresses of those that died.
        store = dist.PrefixStore(f"attempt {restarts()}", store)  # type: ignore[attr-defined]
    dist.init_process_group(backend, store=store, rank=rank, world_size=count, timeout=timeout)


def threads_of_rank(ranks: int) -> int:
    """An equal share of the cores this process may use."""
    return max(1, cores() // ranks)


def _backend(device: str) -> str:
    """NCCL refuses two ranks on one GPU; gloo takes them through the host's memory."""
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
        """Rank 0 says now and then that it is still at work, so that the others wait as long as it takes."""
        if self.rank == 0:
            return self._work(call)
        while True:
            kind, content = self._hear()
            if kind == _DONE:
                return content
            if kind == _FAILED:
                raise _error(content)

    def _work(self, call: Callable[[], bytes]) -> bytes:
        try:
            with self._heartbeat():
                content = call()
        except GraphSageError as error:
            self._say(_FAILED, json.dumps([type(error).__name__, str(error)]).encode())
            raise
        self._say(_DONE, content)
        return content

    @contextmanager
    def _heartbeat(self) -> Iterator[None]:
        done = threading.Event()

        def beat() -> None:
            with suppress(LostRankError):  # whoever speaks next will find out
                while not done.wait(self.timeout / 4):
                    self._say(_WORKING)

        heart = threading.Thread(target=beat, daemon=True)
        heart.start()
        try:
            yield
        finally:
            done.set()
            heart.join()

    def _say(self, kind: int, content: bytes = b"") -> None:
        with _contact(self.timeout):
            dist.broadcast(torch.tensor([kind, len(content)]), 0)
            if content:
                dist.broadcast(torch.frombuffer(bytearray(content), dtype=torch.uint8), 0)

    def _hear(self) -> tuple[int, bytes]:
        head = torch.empty(2, dtype=torch.int64)
        with _contact(self.timeout):
            dist.broadcast(head, 0)
            content = torch.empty(int(head[1]), dtype=torch.uint8)
            if len(content):
                dist.broadcast(content, 0)
        return int(head[0]), content.numpy().tobytes()


def _error(content: bytes) -> GraphSageError:
    """What rank 0 raised; it has told the user already."""
    name, message = json.loads(content)
    error: GraphSageError = getattr(errors, name, GraphSageError)(message)
    error.reported = True
    return error


@contextmanager
def _contact(timeout: float) -> Iterator[None]:
    """Within the block, trouble between ranks is a LostRankError."""
    try:
        yield
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[0].split("] ")[-1]
        raise LostRankError(
            f"rank {os.environ.get('RANK', '0')} lost contact with another rank, which died or gave no answer for "
            f"{timeout:g} s ({reason}); continue from the last checkpoint with {setting('resume', True)}"
        ) from error


SCRATCH = ".graph.part"  # in the run's folder; named as what a killed process leaves behind


def share_data(
    ranks: Ranks, opened: Callable[[], tuple[Dataset, str]], folder: Path | None, run: Path
) -> tuple[Dataset, str]:
    """What rank 0 has `opened`, a data set and the name of its split, as a graph folder that every rank maps.

    That is `folder` where the data is one. Other data is written once, below `run`, and removed when all have it open.
    """
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

    told = json.loads(ranks.first(prepare))
    place = Path(told["folder"])
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
    ranks.any(False)  # everybody has it open
    if folder is None and ranks.rank == 0:
        shutil.rmtree(place, ignore_errors=True)
    return data, told["split"]
