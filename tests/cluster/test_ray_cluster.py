"""Importing Ray and connecting to it: the same for blocks and for sweeps."""

import sys
from typing import Any

import pytest

from graphsage.cluster.ray_cluster import RayPool, connect
from graphsage.errors import ConfigError


class Ray:
    """Writes down what is asked of it."""

    def __init__(self, connected: bool = False, error: Exception | None = None) -> None:
        self.connected, self.error = connected, error
        self.asked: list[dict[str, Any]] = []

    def is_initialized(self) -> bool:
        return self.connected

    def init(self, **options: Any) -> None:
        self.asked.append(options)
        if self.error is not None:
            raise self.error
        self.connected = True

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 3.0}

    def shutdown(self) -> None:
        self.connected = False


def test_a_cluster_of_our_own_is_on_the_loopback_address_with_the_cores_asked_for() -> None:
    ray = Ray()
    assert connect(ray, "local", 2)
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    mine = {"num_cpus": 2, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    assert ray.asked == [{"address": "local", **quiet, **mine}]
    other = Ray()
    assert connect(other, "10.0.0.1:6379", 2)
    assert other.asked == [{"address": "10.0.0.1:6379", **quiet}]


def test_a_connection_that_is_there_is_used_and_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = Ray(connected=True)
    assert not connect(ray, "auto")
    assert ray.asked == []
    monkeypatch.setitem(sys.modules, "ray", ray)
    with RayPool("auto") as pool:
        assert pool.slots == 3
    assert ray.connected


def test_a_pool_that_connected_disconnects_also_when_it_refuses_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = Ray()
    monkeypatch.setitem(sys.modules, "ray", ray)
    with RayPool("auto"):
        assert ray.connected
    assert not ray.connected
    with pytest.raises(ConfigError, match="the Ray cluster has no GPU; use device='cpu'"):
        RayPool("auto", device="cuda")
    assert len(ray.asked) == 2
    assert not ray.connected


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ConnectionError("no node\nmore lines"), "no node"),
        (RuntimeError(""), "RuntimeError"),
    ],
)
def test_no_cluster_is_one_sentence(error: Exception, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        connect(Ray(error=error), "auto")
    assert str(caught.value) == (
        f"no Ray cluster at 'auto' ({told}); start one with `ray start --head`, or use ray='local'"
    )
