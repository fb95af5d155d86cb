import dataclasses
from pathlib import Path

import pytest
import torch

from graphsage.datasets.build_ppi import Proteins, build_ppi, read_tissue
from graphsage.datasets.open import open_data
from graphsage.datasets.sources import largest_component
from graphsage.errors import DataError


def ring(path: Path, proteins: list[str], chords: int) -> Path:
    n = len(proteins)
    pairs = [(proteins[i], proteins[(i + step) % n]) for step in range(1, chords + 1) for i in range(n)]
    path.write_text("# a comment\n" + "".join(f"{a}\t{b}\n" for a, b in pairs) + f"{proteins[1]} {proteins[0]}\n")
    return path


@pytest.fixture
def source(tmp_path: Path) -> Proteins:
    names = [f"{n}" for n in range(40)]
    tissues = [ring(tmp_path / f"t{t}.edgelist", names[t : t + 20], 3 if t % 2 else 1) for t in range(8)]
    (tmp_path / "sets.gmt").write_text(
        "COMMON\tx\t"
        + "\t".join(names[:20])
        + "\nRARE\tx\t1\t2\nELSEWHERE\tx\t"
        + "\t".join(f"z{n}" for n in range(99))
    )
    (tmp_path / "go.gmt").write_text("GO_A\tx\t3\t4\nGO_B\tx\t4\t5\t39\n")
    return Proteins(
        tissues=tissues,
        features=[tmp_path / "sets.gmt"],
        labels=[tmp_path / "go.gmt"],
        train_graphs=3,
        held_out_graphs=1,
        min_train_edges=20,
        min_held_out_edges=50,
    )


def test_large_graphs_are_held_out_and_others_train(source: Proteins, tmp_path: Path) -> None:
    graph = build_ppi(source, tmp_path / "out")
    data = open_data(tmp_path / "out")
    split = data.split()
    assert graph.graph_number is not None
    assert split.sizes() == {"train": 60, "val": 20, "test": 20}
    for part in ("val", "test"):
        rows = split.nodes(part)
        assert len(set(graph.graph_number[rows].tolist())) == 1
        assert int(graph.degrees[rows].sum()) // 2 == 60
    assert not bool((graph.graph_number[graph.edge_rows] != graph.graph_number[graph.indices.long()]).any())


def test_common_gene_sets_are_features_and_ontology_terms_labels(source: Proteins, tmp_path: Path) -> None:
    graph = build_ppi(source, tmp_path / "out")
    assert graph.class_names == ("GO_A", "GO_B")
    assert graph.num_features == 1  # RARE has 2 of 27 proteins, ELSEWHERE none
    assert graph.features is not None
    assert graph.labels is not None
    for row in range(graph.num_nodes):
        protein = str(graph.id_of(row)).split(":")[1]
        assert float(graph.features[row, 0]) == float(int(protein) < 20)
        assert graph.labels[row].tolist() == [int(protein in ("3", "4")), int(protein in ("4", "5", "39"))]


def test_another_seed_draws_other_graphs(source: Proteins, tmp_path: Path) -> None:
    def chosen(seed: int) -> list[str]:
        import dataclasses

        graph = build_ppi(dataclasses.replace(source, seed=seed), tmp_path / f"out{seed}")
        return sorted({str(graph.id_of(row)).split(":")[0] for row in range(graph.num_nodes)})

    assert len({tuple(chosen(seed)) for seed in range(6)}) > 1


def test_too_few_graphs_are_said(source: Proteins, tmp_path: Path) -> None:
    import dataclasses

    with pytest.raises(DataError, match="2 graphs of at least 50 edges and 9 others of at least 20 are needed"):
        build_ppi(dataclasses.replace(source, train_graphs=9), tmp_path / "out")
    with pytest.raises(DataError, match="no gene set holds 90%"):
        build_ppi(dataclasses.replace(source, min_share=0.9), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_edge_list_is_read_once_for_each_pair(tmp_path: Path) -> None:
    (tmp_path / "liver.edgelist").write_text("2 1 0.9\n1 2\n\n2 3\n")
    tissue = read_tissue(tmp_path / "liver.edgelist")
    assert (tissue.name, tissue.proteins, tissue.edges.tolist()) == ("liver", ["1", "2", "3"], [[0, 1], [1, 2]])
    (tmp_path / "bad.edgelist").write_text("1\n")
    with pytest.raises(DataError, match="line 1 must hold two protein ids"):
        read_tissue(tmp_path / "bad.edgelist")


def test_the_largest_component_is_renumbered() -> None:
    rows, edges = largest_component(6, torch.tensor([[4, 5], [5, 2], [0, 1]]).numpy())
    assert rows.tolist() == [2, 4, 5]
    assert edges.tolist() == [[1, 2], [2, 0]]


def test_two_tissues_of_one_name_are_refused_and_dots_do_not_make_them_one(source: Proteins, tmp_path: Path) -> None:
    assert read_tissue(ring(tmp_path / "brain.left.edgelist", ["a", "b", "c"], 1)).name == "brain.left"
    with pytest.raises(DataError, match="two tissues are called t0"):
        build_ppi(dataclasses.replace(source, tissues=[*source.tissues, source.tissues[0]]), tmp_path / "out")


def test_a_term_that_is_there_twice_is_named(source: Proteins, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'GO_A' more than once"):
        build_ppi(dataclasses.replace(source, labels=[*source.labels, *source.labels]), tmp_path / "out")


@pytest.mark.parametrize(("name", "message"), [("x.gz", "its name must end as"), ("x.zst", "is a folder")])
def test_what_cannot_be_unpacked_is_named(tmp_path: Path, name: str, message: str) -> None:
    path = tmp_path / name
    path.mkdir() if path.suffix == ".zst" else path.write_text("1 2\n")
    with pytest.raises(DataError, match=message):
        read_tissue(path)


def test_labels_are_needed(source: Proteins, tmp_path: Path) -> None:
    source.labels[0].write_text("")
    with pytest.raises(DataError, match="no ontology term"):
        build_ppi(source, tmp_path / "out")
    source.labels[0].write_text("GO_A\tx\tz3\tz4\n")
    with pytest.raises(DataError, match="no protein has any term of labels"):
        build_ppi(source, tmp_path / "out")
