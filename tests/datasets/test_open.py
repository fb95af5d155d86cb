"""One door for all data."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from graphsage.datasets.open import open_data
from graphsage.errors import DataError
from graphsage.graph.build import from_edges
from graphsage.graph.split import Split
from graphsage.graph.storage import save_graph

DATA = Path(__file__).parents[2] / "../shared/data"


def save(folder: Path, *names: str) -> Path:
    graph = from_edges([[0, 1], [1, 2]], 10, time=np.arange(10))
    save_graph(graph, folder, {name: Split.random(10, seed=3) for name in names})
    return folder


def test_a_graph_folder_opens_with_its_splits(tmp_path: Path) -> None:
    data = open_data(save(tmp_path / "mine", "fold1", "given"))
    assert data.name == "mine"
    assert data.graph.num_edges == 2
    assert torch.equal(data.split().codes, Split.random(10, seed=3).codes)
    assert data.default_split == "given"
    assert data.split_names == ("fold1", "given", "random", "time")


@pytest.mark.parametrize(("stored", "default"), [((), "random"), (("fold2", "fold1"), "fold2")])
def test_the_first_stored_split_is_the_default(tmp_path: Path, stored: tuple[str, ...], default: str) -> None:
    data = open_data(str(save(tmp_path / "mine", *stored)))
    assert data.default_split == default
    assert data.split().sizes() == {"train": 7, "val": 1, "test": 2}


def test_a_path_that_does_not_exist_is_an_error_that_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        open_data(tmp_path / "nothing")
    for part in ("nothing does not exist", "graph.json", "train_graph.json", "nothing-G.json", "built-in data: setmm"):
        assert part in str(caught.value)


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_fits_nothing_is_an_error(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "thing"
    path.mkdir() if kind == "folder" else path.write_text("x")
    with pytest.raises(DataError, match="thing is not data that can be opened; looked for"):
        open_data(path)


def test_a_folder_with_two_releases_is_not_guessed(tmp_path: Path) -> None:
    for name in ("a-G.json", "b-G.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(DataError, match="looked for"):
        open_data(tmp_path)


@pytest.mark.parametrize("spec", ["", ".", "/"])
def test_odd_paths_are_data_errors(spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="built-in data"):
        open_data(spec)


def test_a_built_in_name_wins_over_a_folder_but_not_over_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save(Path("setmm"))
    assert open_data("setmm").graph.num_nodes == 27_222
    assert open_data("./setmm").graph.num_nodes == 10
    assert open_data(Path("setmm")).graph.num_nodes == 10


def codes(data: torch.Tensor, other: torch.Tensor, n: int) -> torch.Tensor:
    return torch.sort(data * n + other).values


@pytest.mark.slow
@pytest.mark.data
def test_both_forms_of_ppi_are_the_same_graph(tmp_path: Path) -> None:
    if not (DATA / "export.py").exists():
        pytest.skip("the data sets of ../shared/data are not here")
    for form in ("ppi", "ppi-pyg"):
        subprocess.run([sys.executable, DATA / "export.py", form, tmp_path / form], check=True, timeout=200)
    release, folder = open_data(tmp_path / "ppi" / "ppi"), open_data(tmp_path / "ppi-pyg")
    for data in (release, folder):
        assert (data.graph.num_nodes, data.graph.num_edges, data.graph.num_self_loops) == (56_944, 818_716, 25_084)
        assert data.split().sizes() == {"train": 44_906, "val": 6_514, "test": 5_524}
    order = torch.sort(release.split().codes, stable=True).indices  # the folder has train, then valid, then test
    assert torch.equal(release.graph.features[order], folder.graph.features)
    assert torch.equal(release.graph.labels[order], folder.graph.labels)
    new_row = torch.argsort(order)
    n = len(order)
    ends = []
    for graph, rows in ((release.graph, new_row), (folder.graph, torch.arange(n))):
        source = torch.repeat_interleave(torch.arange(n), graph.degrees)
        ends.append(codes(rows[source], rows[graph.indices.long()], n))
    assert torch.equal(*ends)


def test_planetoids_pickles_are_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "ind.cora.graph").write_bytes(b"\x80\x02")
    for path in (tmp_path, tmp_path / "raw", tmp_path / "raw" / "ind.cora"):
        with pytest.raises(DataError, match=r"holds Planetoid's pickles.*use Graph\.from_pyg"):
            open_data(path)
