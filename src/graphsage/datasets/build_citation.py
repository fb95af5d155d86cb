"""A citation graph as the paper made its own (section 4.1, Appendix B), from a table of papers and one of citations.

Papers of the chosen fields, the largest component of the citations among them. Papers up to 2004 train, those of 2005
test with 30% of them for validation. Features: word2vec vectors of the abstracts, combined by SIF, and the degree.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphsage.datasets.sources import Array, largest_component
from graphsage.errors import DataError, setting
from graphsage.features.degree import degree_features
from graphsage.features.recipe import Column
from graphsage.features.word_vectors import Word2Vec
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split, training_graph, with_validation
from graphsage.graph.storage import save_graph
from graphsage.kernels.random import Stream
from graphsage.tables.columns import cells
from graphsage.tables.ids import node_ids, read_edges
from graphsage.tables.messages import CellError
from graphsage.tables.source import open_table
from graphsage.tables.spec import ID, SOURCE, TARGET, guess


@dataclass(frozen=True, kw_only=True)
class Citations:
    """Two tables and the meaning of their columns."""

    nodes: Path
    edges: Path
    label: str = "field"
    year: str = "year"
    text: tuple[str, ...] = ("abstract",)
    fields: tuple[str, ...] = ()
    """Only papers of these fields; empty takes all."""
    first_year: int = 2000
    train_until: int = 2004
    last_year: int = 2005
    dim: int = 300
    seed: int = 0


def build_citation(source: Citations, out: Path) -> Graph:
    """Write the graph folder `out` with the split `given` and return the graph."""
    table = open_table(str(source.nodes))
    name = guess(table, None, ID, "id")
    table.need([source.label, source.year, *source.text])
    read = table.read(list(dict.fromkeys([name, source.label, source.year, *source.text])))
    known = node_ids(read[name], name, table.place)
    with table.place.naming():
        years = _years(cells(read[source.year]), source.year)
    labels = [str(cell or "") for cell in cells(read[source.label])]
    wanted = (years >= source.first_year) & (years <= source.last_year) & (np.array(labels) != "")
    if source.fields:
        wanted &= np.isin(np.array(labels), source.fields)
    citations = open_table(str(source.edges))
    ends = (guess(citations, None, SOURCE, "source"), guess(citations, None, TARGET, "target"))
    pairs = read_edges(citations, ends, known, "drop").pairs
    pairs = pairs[wanted[pairs].all(axis=1)]
    rows, edges = _papers(len(known), pairs, wanted)
    names = sorted({labels[row] for row in rows})
    columns = {text: [str(cell or "") for cell in np.array(cells(read[text]), object)[rows]] for text in source.text}
    split = split_by_year(years[rows], source)
    graph = Graph.from_edges(
        edges,
        len(rows),
        labels=[names.index(labels[row]) for row in rows],
        class_names=names,
        ids=[known[int(row)].as_py() for row in rows],
        time=years[rows],
    )
    graph = graph.replace(features=torch.from_numpy(_features(graph, split, columns, source)))
    save_graph(graph, out, {"given": split})
    return graph


def _papers(count: int, pairs: Array, wanted: Array) -> tuple[Array, Array]:
    if not len(pairs):
        raise DataError(
            f"no citation joins two papers of these fields and years; check {setting('fields')} and the years"
        )
    rows, edges = largest_component(count, pairs)
    assert wanted[rows].all()
    return rows, edges


def _features(graph: Graph, split: Split, columns: dict[str, list[str]], source: Citations) -> Array:
    """Text vectors learned from training papers, and degrees: of training papers in the training graph, else in all."""
    train = split.nodes("train").numpy()
    given: dict[str, Any] = dict(columns)
    text = Word2Vec(dim=source.dim, seed=source.seed).fit(given, train).transform(given)
    degrees = graph.degrees.clone()
    degrees[train] = training_graph(graph, split).degrees[train]
    return np.concatenate([text, degree_features(degrees).numpy()], axis=1)


def split_by_year(years: Array, source: Citations) -> Split:
    """Years up to `train_until` train; of the later papers 30% validate and the rest are for testing."""
    later = years > source.train_until
    if later.all():
        raise DataError(f"no paper of the largest component is from {source.train_until} or before; check the years")
    if not later.any() and source.last_year > source.train_until:
        raise DataError(
            f"no paper of the largest component is from after {source.train_until}; there is none to test on"
        )
    return with_validation(Split.masks(~later, test=later), Stream(source.seed, "citation split"))


def _years(column: Column, name: str) -> Array:
    years = np.empty(len(column), np.int64)
    for row, cell in enumerate(column):
        try:
            years[row] = int(str(cell)[:4])
        except ValueError:
            raise CellError(name, row, f"is {cell!r}; it must be a year") from None
    return years
