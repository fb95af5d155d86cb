"""A Ray cluster as a pool of workers, with the interface of Python's own pools."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from graphsage.cluster.ray_cluster import connect, imported_ray
from graphsage.errors import ConfigError, setting

RETRIES = 3  # of a task whose worker or machine was lost


class RayPool(Executor):
    """Tasks of one core each, and one GPU each where the cluster has some and `device` allows it."""

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
