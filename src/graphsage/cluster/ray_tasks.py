"""Blocks as Ray Core tasks: on a cluster that is running, or on one that is started on this machine for the time being.

Every machine must see the work folder and the graph folder under the same paths. Ray tries a task again whose worker
died, on another machine if need be; a block that was half written then never had its name.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from graphsage.cluster.ray_cluster import connect, imported_ray
from graphsage.errors import ConfigError, GraphSageError, OutputError, setting

RETRIES = 3  # of a block whose worker died, by Ray itself
LOST = 3  # times that a block is handed out anew after those
_SILENCE = 60.0  # seconds without a finished block, after which it is asked whether anybody is left


class RayTasks:
    def __init__(self, address: str, workers: int, task_bytes: int, say: Callable[[str], None] | None = None) -> None:
        """Tasks of one core and `task_bytes` each; a cluster of this command's own has room for `workers`."""
        self.bytes, self.say = task_bytes, say
        self.blocks_on: Counter[str] = Counter()
        """How many blocks each machine computed, by Ray's name for it."""
        self._ray = imported_ray(address)
        self._connected = connect(self._ray, address, workers)
        self.slots = self._room()

    def _room(self) -> int:
        """How many tasks run at once. One that fits nowhere would wait for ever."""
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
                        self.say(f"warning: block {block} lost its worker ({type(error).__name__}); once more")
                    waiting[task.remote(str(folder), stage, block)] = block
                    continue
                on_done(block)

    def _check_alive(self, left: int) -> None:
        try:
            alive = [node for node in self._ray.nodes() if node["Alive"]]
        except Exception as error:  # whatever Ray says when its head is gone
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
    """Returns the name of the machine."""
    import ray
    import torch

    from graphsage.inference.out_of_core.infer import infer_block

    torch.set_num_threads(1)
    infer_block(Path(folder), stage, block)
    return str(ray.get_runtime_context().get_node_id())


def _own(error: Any) -> Exception:
    """Our own error out of Ray's wrapping, which carries the worker's traceback."""
    cause = error.cause
    if isinstance(cause, GraphSageError):
        return cause
    return OutputError(f"a block failed on a worker: {cause!r:.300}")
