import csv
import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from graphsage.datasets.build_citation import Citations, build_citation
from graphsage.datasets.open import open_data
from graphsage.errors import DataError

pytest.importorskip("gensim")

PAPERS = [
    ("a", "NI", 2000, "cells of the immune system"),
    ("b", "GU", 2003, "forests and cells"),
    ("c", "NI", 2004, "immune response of cells"),
    ("d", "GU", 2005, "forests in the north"),
    ("e", "RU", 2004, "neurons"),
    ("f", "NI", 1999, "too old"),
    ("g", "NI", 2006, "too new"),
    ("h", "NI", 2001, "alone"),
    ("i", "GU", 2005, ""),
    ("j", "NI", 2005, "immune cells"),
]
CITES = [
    ("b", "a"),
    ("c", "a"),
    ("d", "b"),
    ("c", "e"),
    ("e", "h"),
    ("a", "f"),
    ("g", "a"),
    ("i", "c"),
    ("j", "c"),
    ("j", "gone"),
]


@pytest.fixture
def source(tmp_path: Path) -> Citations:
    for name, head, rows in (
        ("papers", ("id", "field", "year", "abstract"), PAPERS),
        ("cites", ("source", "target"), CITES),
    ):
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([head, *rows])
    return Citations(nodes=tmp_path / "papers.csv", edges=tmp_path / "cites.csv", fields=("NI", "GU"), dim=4)


def test_the_largest_component_of_the_fields_and_years_is_kept(source: Citations, tmp_path: Path) -> None:
    graph = build_citation(source, tmp_path / "out")
    assert [graph.id_of(row) for row in range(graph.num_nodes)] == ["a", "b", "c", "d", "i", "j"]
    assert graph.num_edges == 5
    assert graph.class_names == ("GU", "NI")
    assert graph.time is not None
    assert graph.time.tolist() == [2000, 2003, 2004, 2005, 2005, 2005]


def test_2005_is_tested_with_30_percent_for_validation(source: Citations, tmp_path: Path) -> None:
    build_citation(source, tmp_path / "out")
    split = open_data(tmp_path / "out").split()
    assert split.nodes("train").tolist() == [0, 1, 2]
    assert split.sizes() == {"train": 3, "val": 1, "test": 2}


def test_features_are_text_vectors_and_degrees_without_a_look_ahead(source: Citations, tmp_path: Path) -> None:
    graph = build_citation(source, tmp_path / "out")
    assert graph.features is not None
    text, degrees = graph.features[:, :4], graph.features[:, 4:]
    assert bool((text[:3] != 0).any(dim=1).all())
    assert not text[4].any()  # an empty abstract
    # b is cited in 2005, which is not known in training: its degree is that of 2004, as if d were not there.
    cut = Citations(nodes=source.nodes, edges=source.edges, fields=source.fields, dim=4, last_year=2004)
    before = build_citation(cut, tmp_path / "before")
    assert before.features is not None
    assert torch.equal(degrees[:3], before.features[:, 4:])
    assert torch.allclose(text[:3], before.features[:, :4], atol=1e-6)
    assert np.isfinite(graph.features.numpy()).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fields": ("XX",)}, "no citation joins two papers"),
        ({"year": "abstract"}, "must be a year"),
        ({"label": "topic"}, "topic"),
        ({"train_until": 1999}, "no paper of the largest component is from 1999"),
    ],
)
def test_mistakes_are_named(source: Citations, tmp_path: Path, changes: dict[str, object], message: str) -> None:
    given = {"nodes": source.nodes, "edges": source.edges, "fields": source.fields, "dim": 4, **changes}
    with pytest.raises(DataError, match=message):
        build_citation(Citations(**given), tmp_path / "out")  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_papers_without_a_field_are_left_out(source: Citations, tmp_path: Path) -> None:
    source.nodes.write_text(source.nodes.read_text().replace("j,NI,", "j,,"))
    graph = build_citation(dataclasses.replace(source, fields=()), tmp_path / "out")
    assert "" not in graph.class_names
    assert "j" not in [graph.id_of(row) for row in range(graph.num_nodes)]


def test_without_later_papers_there_is_nothing_to_test_on(source: Citations, tmp_path: Path) -> None:
    source.nodes.write_text(source.nodes.read_text().replace(",2005,", ",2004,"))
    with pytest.raises(DataError, match="after 2004"):
        build_citation(source, tmp_path / "out")
