"""Ray, imported and connected: to a cluster that is running, or to one started on this machine for the time being."""

import os
import secrets
from typing import Any

from graphsage.errors import ConfigError, setting


def imported_ray(address: str) -> Any:
    if address == "local" and not {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys():
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)  # for the cluster that ends with this process
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a cluster that is started here tells nobody
    try:
        import ray
    except ImportError as error:
        raise ConfigError(f"{setting('ray')} needs Ray: pip install 'graphsage[cluster]'") from error
    return ray


def connect(ray: Any, address: str, cores: int | None = None) -> bool:
    """Whether this call connected, and so has to disconnect. A cluster of this command's own has `cores` cores, or
    all of this machine."""
    if ray.is_initialized():
        return False
    own: dict[str, Any] = {}
    if address == "local":  # at the loopback address: nobody outside this machine is to see it
        own = {"num_cpus": cores, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", **own)
    except Exception as error:  # Ray raises plain ones too, when a node does not come up
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ConfigError(
            f"no Ray cluster at {address!r} ({first:.200}); start one with `ray start --head`, "
            f"or use {setting('ray', 'local')}"
        ) from error
    return True
