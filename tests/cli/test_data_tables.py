"""`graphsage data build tables`: a folder that training reads."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from command_line import SMALL, Command, planted
from graphsage.graph.graph import Graph


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    graph = planted()
    assert graph.features is not None
    assert graph.labels is not None
    ids = [f"node-{row}" for row in range(graph.num_nodes)]
    pairs = [(ids[u], ids[v]) for v in range(graph.num_nodes) for u in graph.neighbors(v).tolist() if u <= v]
    nodes = {"id": ids, "x": graph.features.tolist(), "kind": [f"kind {c}" for c in graph.labels.tolist()]}
    parquet.write_table(pa.table(nodes), tmp_path / "n.parquet")
    parquet.write_table(
        pa.table({"source": [u for u, _ in pairs], "target": [v for _, v in pairs]}), tmp_path / "e.parquet"
    )
    return tmp_path / "n.parquet", tmp_path / "e.parquet"


def test_the_folder_is_the_graph_of_the_tables_and_can_be_trained_on(
    graphsage: Command, files: tuple[Path, Path], tmp_path: Path
) -> None:
    nodes, edges = files
    out = tmp_path / "graph"
    words = (
        "data",
        "build",
        "tables",
        "--nodes",
        nodes,
        "--edges",
        edges,
        "--vectors",
        "x",
        "--label",
        "kind",
        "--memory",
        "1GB",
        "--out",
        out,
    )
    answer = graphsage(*words, "--json").json
    expected = planted()
    assert answer == {
        "nodes": 90,
        "stored_edges": expected.num_stored_edges,
        "features": 7,
        "classes": 3,
        "dropped_edges": 0,
        "out": str(out),
    }
    built = Graph.open(out)
    assert built.features is not None
    np.testing.assert_array_equal(built.indices, expected.indices)
    np.testing.assert_array_equal(built.features, expected.features)
    assert "already exists" in graphsage(*words).error
    assert "90 nodes" in graphsage(*words, "--overwrite").out
    assert graphsage("train", out, "--out", tmp_path / "run", *SMALL).code == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "a graph needs edges"),
        (("--edges", "none.csv"), "none.csv does not exist"),
        (("--edges", "e.csv", "--memory", "much"), "--memory must be a size such as 4GB"),
        (("--edges", "e.csv", "--memory", "5MB"), "memory must be at least 414 MB; got 5 MB"),
        (
            ("--edges", "e.csv", "--nodes", "n.csv", "--vectors", "x", "--feature-type", "int8"),
            "--feature-type must be one of",
        ),
    ],
)
def test_mistakes_of_building_are_one_sentence(
    graphsage: Command, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    assert sentence in graphsage("data", "build", "tables", *words, "--out", tmp_path / "g").error
    assert list(tmp_path.iterdir()) == []
