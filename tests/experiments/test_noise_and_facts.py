from pathlib import Path

import numpy as np
import pytest
import torch

from graphsage.experiments.data import Named, Source, opened
from graphsage.experiments.facts import measured
from graphsage.experiments.figure2a import unseen
from graphsage.experiments.noise import normal, with_noise
from graphsage.experiments.rotation import procrustes
from graphsage.experiments.trials import probed
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split
from graphsage.graph.storage import save_graph
from graphsage.kernels.random import Stream

GRAPH = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (3, 0)], 5, features=np.eye(5, 4), labels=[0, 1, 0, 1, 0])
DATA = Named("d", GRAPH, Split.masks([1, 1, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]), "", "")


def test_noise_replaces_a_growing_set_of_whole_columns() -> None:
    assert GRAPH.features is not None
    assert with_noise(DATA, 0.0, 0) is GRAPH
    half, all_gone = (with_noise(DATA, share, 0).features for share in (0.5, 1.0))
    assert half is not None
    assert all_gone is not None
    changed = (half != GRAPH.features).any(dim=0)
    assert int(changed.sum()) == 2
    assert torch.equal(half[:, changed], all_gone[:, changed])
    assert bool((all_gone != GRAPH.features).all())
    assert not torch.equal(all_gone, with_noise(DATA, 1.0, 1).features)


def test_normal_numbers_have_the_moments_of_normal_numbers() -> None:
    drawn = normal(Stream(0, "test").keys(torch.arange(200_000)))
    assert float(drawn.mean()) == pytest.approx(0, abs=0.01)
    assert float(drawn.var()) == pytest.approx(1, abs=0.02)
    assert float((drawn.abs() > 1.96).double().mean()) == pytest.approx(0.05, abs=0.003)


def test_edges_back_and_empty_nodes_are_counted() -> None:
    # Edges at unseen nodes 3 and 4: 2-3, 0-3 lead back, 3-4 does not. Node 4 has features 0.
    assert measured(DATA) == {"edges_back": round(2 / 3, 4), "nodes_without_features": 0.2}


def test_unseen_nodes_are_those_outside_training() -> None:
    assert unseen(DATA, None).tolist() == [3, 4]
    assert len(unseen(DATA, 1)) == 1


def test_alignment_finds_a_rotation() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(50, 6))
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    assert np.allclose(z @ turn @ procrustes(z @ turn, z), z)


def test_debian_is_opened_from_its_two_tables(tmp_path: Path) -> None:
    rows = [("a", "bullseye", "libs"), ("b", "trixie", "games"), ("c", "sid", "libs"), ("d", "forky", "games"),
            ("e", "sid", "libs"), ("f", "bookworm", "libs"), ("g", "sid", "libs")]  # fmt: skip
    text = "id,release,section,description\n" + "".join(f"{i},{r},{s},a package of {s} {i}\n" for i, r, s in rows)
    (tmp_path / "nodes.csv").write_text(text)
    (tmp_path / "edges.csv").write_text("source,target,kind,release\na,b,depends,trixie\nc,a,depends,sid\n")
    data = opened(Source("debian", str(tmp_path)))
    assert data.split.sizes() == {"train": 3, "val": 1, "test": 3}
    assert data.one_graph
    assert data.column is None
    assert data.graph.features is not None


def test_a_graph_that_was_made_of_debian_is_not_taken_for_its_releases(tmp_path: Path) -> None:
    save_graph(GRAPH, tmp_path / "graph", {"given": DATA.split})
    assert opened(Source("debian", str(tmp_path / "graph"))).note == ""


def test_ppi_says_whose_labels_it_has(tmp_path: Path) -> None:

    labels = np.zeros((1000, 2), np.uint8)
    labels.flat[:610] = 1
    number = np.arange(1000) // 500
    graph = Graph.from_edges(
        [(0, 1), (600, 601)], 1000, features=np.ones((1000, 1)), labels=labels, graph_number=number
    )
    save_graph(graph, tmp_path / "g", {"given": Split.by_graph(torch.from_numpy(number), [], [1])})
    data = opened(Source("ppi", str(tmp_path / "g")))
    assert data.note.startswith("the released labels (density 0.305")
    assert not data.one_graph


def test_the_probe_learns_from_training_rows_alone() -> None:
    """The held-out rows say the opposite of the training rows: whoever looked at them would be right about them."""
    labels = np.arange(60) % 2
    z = np.eye(2)[labels] * 4
    z[40:] = z[40:, ::-1]
    masks = [(np.arange(60) >= a) & (np.arange(60) < b) for a, b in ((0, 40), (40, 50), (50, 60))]
    graph = Graph.from_edges([(v, v + 1) for v in range(59)], 60, features=z, labels=labels)
    found = probed(z, Named("d", graph, Split.masks(*masks), "", ""), seed=0)
    assert found["val"] == found["test"] == 0
