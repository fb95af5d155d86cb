"""Capping a graph on disk keeps the edges that capping it in memory keeps."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs import graphs, star
from graphsage.errors import ConfigError
from graphsage.graph.cap import CAPS, cap_degrees, cap_files
from graphsage.graph.external.csr import CsrFiles
from graphsage.graph.graph import Graph
from graphsage.graph.storage import save_graph


@given(graphs(directed=None), st.integers(1, 4), st.sampled_from(CAPS), st.integers(0, 3), st.integers(1, 20))
def test_both_keep_the_same_edges_in_runs_of_any_size(graph: Graph, most: int, cap: str, seed: int, run: int) -> None:
    capped = cap_degrees(graph, most, seed=seed, cap=cap)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_graph(graph, folder / "graph")
        save_graph(capped, folder / "memory")
        made = cap_files(
            CsrFiles.open(folder / "graph"),
            folder / "disk",
            most,
            seed=seed,
            cap=cap,
            directed=graph.directed,
            run_edges=run,
        )
        assert made == bool((graph.degrees > most).any())
        if made:
            for array in ("indptr.npy", "indices.npy"):
                assert (folder / "disk" / array).read_bytes() == (folder / "memory" / array).read_bytes()
        else:
            assert not (folder / "disk").exists()


def test_no_cap_and_wrong_caps(tmp_path: Path) -> None:
    save_graph(star(5), tmp_path / "graph")
    adjacency = CsrFiles.open(tmp_path / "graph")
    assert not cap_files(adjacency, tmp_path / "out", None, seed=0, cap="row", directed=False)
    with pytest.raises(ConfigError, match="cap must be one of"):
        cap_files(adjacency, tmp_path / "out", 2, seed=0, cap="best", directed=False)
