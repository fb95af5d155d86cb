"""A Ray cluster as a pool of workers, with the interface of Python's own pools."""

import logging
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from graphsage.cluster.ray_tasks import _imported as imported_ray
from graphsage.errors import ConfigError

RETRIES = 3  # of a task whose worker or machine was lost


class RayPool(Executor):
    """Tasks of one core each, and one GPU each where the cluster has some and `device` allows it."""

    def __init__(self, address: str, device: str = "cpu", slots: int | None = None) -> None:
        ray = imported_ray(address)
        # The loopback address for a cluster of this command's own: nobody outside this machine is to see it.
        own = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"} if address == "local" else {}
        try:
            ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False, **own)
        except Exception as error:  # Ray raises plain ones too, when a node does not come up
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ConfigError(f"no Ray cluster at {address!r} ({first:.200}); start one: `ray start --head`, or leave "
                              "out --ray") from error  # fmt: skip
        self._ray = ray
        found = ray.cluster_resources()
        gpus = int(found.get("GPU", 0)) if device != "cpu" else 0
        if device == "cuda" and not gpus:
            raise ConfigError("--device cuda was asked for, but the Ray cluster has no GPU; use --device cpu")
        self.slots = slots or gpus or max(1, int(found.get("CPU", 1)))
        self._options = {"num_cpus": 1, "num_gpus": 1 if gpus else 0, "max_retries": RETRIES}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        task = self._ray.remote(fn).options(**self._options)
        future: Future[Any] = task.remote(*args, **kwargs).future()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._ray.shutdown()
