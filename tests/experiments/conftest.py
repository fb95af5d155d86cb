from pathlib import Path

import pytest

from graphsage.experiments.data import Source
from reproduction import two_sources


@pytest.fixture
def sources(tmp_path: Path) -> tuple[Source, ...]:
    return two_sources(tmp_path)
