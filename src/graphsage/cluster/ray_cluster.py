"""A Ray cluster: connection, a pool with the interface of Python's own, and blocks of inference as tasks.

The cluster is already running, or this process starts one on this machine and stops it at its end."""

import os
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

from graphsage.errors import ConfigError, GraphSageError, OutputError, setting


def imported_ray(address: str) -> Any:
    if address == "local" and not {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys():
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)  # for the cluster of this process
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a cluster that starts here sends no usage statistics
    try:
        import ray
    except ImportError as error:
        raise ConfigError(f"{setting('ray')} needs Ray: pip install 'graphsage[cluster]'") from error
    return ray


def connect(ray: Any, address: str, cores: int | None = None) -> bool:
    """Whether this call connected, and so must disconnect. A local cluster has `cores` cores, or all cores."""
    if ray.is_initialized():
        return False
    own: dict[str, Any] = {}
    if address == "local":  # at the loopback address, invisible to other machines
        own = {"num_cpus": cores, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", **own)
    except Exception as error:  # Ray raises plain Exceptions too if a node does not start
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ConfigError(
            f"no Ray cluster at {address!r} ({first:.200}); start one with `ray start --head`, "
            f"or use {setting('ray', 'local')}"
        ) from error
    return True


RETRIES = 3  # by Ray itself, of a task whose worker or machine was lost


class RayPool(Executor):
    """Tasks of one core each, and of one GPU each if the cluster has GPUs and `device` allows them."""

    def __init__(self, address: str, device: str = "cpu", slots: int | None = None) -> None:
        self._ray = ray = imported_ray(address)
        self._connected = connect(ray, address)
        found = ray.cluster_resources()
        gpus = int(found.get("GPU", 0)) if device != "cpu" else 0
        if device == "cuda" and not gpus:
            self.shutdown()
            raise ConfigError(
                f"{setting('device', 'cuda')} was asked for, but the Ray cluster has no GPU; "
                f"use {setting('device', 'cpu')}"
            )
        self.slots = slots or gpus or max(1, int(found.get("CPU", 1)))
        self._options = {"num_cpus": 1, "num_gpus": 1 if gpus else 0, "max_retries": RETRIES}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        task = self._ray.remote(fn).options(**self._options)
        future: Future[Any] = task.remote(*args, **kwargs).future()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if self._connected:
            self._ray.shutdown()


LOST = 3  # times that a block is submitted again after RETRIES
_SILENCE = 60.0  # seconds without a finished block before a check for live machines


class RayTasks:
    def __init__(self, address: str, workers: int, task_bytes: int, say: Callable[[str], None] | None = None) -> None:
        """Tasks of one core and `task_bytes` each; a local cluster has room for `workers`."""
        self.bytes, self.say = task_bytes, say
        self.blocks_on: Counter[str] = Counter()
        """Blocks computed per machine, by Ray's node id."""
        self._ray = imported_ray(address)
        self._connected = connect(self._ray, address, workers)
        self.slots = self._room()

    def _room(self) -> int:
        """Number of tasks that run at once. Without this check, a task that fits nowhere would wait forever."""
        machines = [node["Resources"] for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
        room = sum(int(min(each["CPU"], each.get("memory", 0) // self.bytes)) for each in machines)
        if not room:
            most = max((machine.get("memory", 0) for machine in machines), default=0)
            self.close()
            raise ConfigError(
                f"no machine of the Ray cluster has a core and {self.bytes:,} bytes for a task; the largest offers "
                f"{int(most):,}: give less {setting('memory')}, or more {setting('workers')} to share it"
            )
        return room

    def run(self, folder: Path, stage: int, blocks: Sequence[int], on_done: Callable[[int], None]) -> None:
        ray, crashed = self._ray, self._ray.exceptions
        task = ray.remote(num_cpus=1, memory=self.bytes, max_retries=RETRIES)(_infer_block)
        waiting = {task.remote(str(folder), stage, block): block for block in blocks}
        lost: dict[int, int] = {}
        while waiting:
            ready, _ = ray.wait(list(waiting), num_returns=1, timeout=_SILENCE)
            if not ready:
                self._check_alive(len(waiting))
            for reference in ready:
                block = waiting.pop(reference)
                try:
                    self.blocks_on[ray.get(reference)] += 1
                except crashed.RayTaskError as error:
                    raise _own(error) from error
                except (
                    crashed.WorkerCrashedError,
                    crashed.NodeDiedError,
                    crashed.ObjectLostError,
                    crashed.OutOfMemoryError,
                    crashed.RaySystemError,
                ) as error:
                    lost[block] = lost.get(block, 0) + 1
                    if lost[block] == LOST:
                        raise OutputError(
                            f"block {block} of {folder} lost its worker {LOST * (RETRIES + 1)} times "
                            f"({type(error).__name__}); run the same command again, which continues, "
                            f"with less {setting('memory')} or on other machines"
                        ) from error
                    if self.say is not None:
                        self.say(f"warning: block {block} lost its worker ({type(error).__name__}); computing it again")
                    waiting[task.remote(str(folder), stage, block)] = block
                    continue
                on_done(block)

    def _check_alive(self, left: int) -> None:
        try:
            alive = [node for node in self._ray.nodes() if node["Alive"]]
        except Exception as error:  # Ray's error if its head is gone
            raise OutputError(
                f"the Ray cluster does not answer ({error!r:.200}); {left} blocks are left: run the same "
                "command again, which continues, when it is back"
            ) from error
        if not any(node["Resources"].get("CPU") and node["Resources"].get("memory", 0) >= self.bytes for node in alive):
            raise OutputError(
                f"no machine of the Ray cluster is left that can run a block; {left} blocks are left: "
                "run the same command again, which continues, when one is back"
            )

    def close(self) -> None:
        if self._connected and self._ray.is_initialized():
            self._ray.shutdown()


def _infer_block(folder: str, stage: int, block: int) -> str:
    """Compute a block and return the id of the machine."""
    import ray
    import torch

    from graphsage.inference.out_of_core.infer import infer_block

    torch.set_num_threads(1)
    infer_block(Path(folder), stage, block)
    return str(ray.get_runtime_context().get_node_id())


def _own(error: Any) -> Exception:
    """The GraphSageError within Ray's wrapper, or an OutputError."""
    cause = error.cause
    if isinstance(cause, GraphSageError):
        return cause
    return OutputError(f"a block failed on a worker: {cause!r:.300}")
