"""A small service: 30 nodes whose features come from a text and a number, a model with three classes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from graphsage.serving.app import make_app
from graphsage.serving.service import Service
from graphsage.serving.settings import Settings
from small_service import Small, make_small


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """A run and a store to copy; look, do not touch."""
    return make_small(tmp_path_factory.mktemp("small"))


@pytest.fixture
def service(small: Small, tmp_path: Path) -> Iterator[Service]:
    copied = small.copy(tmp_path)
    made = Service(copied.run, copied.graph, Settings(deadline=60.0))  # however busy the machine is
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def client(service: Service) -> TestClient:
    return TestClient(make_app(service), raise_server_exceptions=False)
