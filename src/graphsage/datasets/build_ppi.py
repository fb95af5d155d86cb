"""The paper's PPI graphs (section 4.2, Appendix B) from tissue networks, gene sets and ontology labels.

An edge list for each tissue (two protein ids a line), gene sets as features and ontology terms as labels, both in GMT
format (name, description and genes, separated by tabs). Gene sets that hold at least 10% of all proteins become
features. 20 training graphs are drawn from tissues with at least 15,000 edges; 2 graphs for validation and 2 to test on
from those with at least 35,000.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from graphsage.datasets.sources import PACKED, Array, lines
from graphsage.errors import DataError, setting
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split
from graphsage.graph.storage import save_graph
from graphsage.kernels.random import Stream


@dataclass(frozen=True, kw_only=True)
class Proteins:
    """Files, and the numbers of Appendix B."""

    tissues: Sequence[Path]
    features: Sequence[Path]
    labels: Sequence[Path]
    min_share: float = 0.1
    train_graphs: int = 20
    held_out_graphs: int = 2
    """For validation, and as many for testing."""
    min_train_edges: int = 15_000
    min_held_out_edges: int = 35_000
    seed: int = 0


@dataclass(frozen=True)
class Tissue:
    name: str
    proteins: list[str]
    edges: Array


def build_ppi(source: Proteins, out: Path) -> Graph:
    """Write the graph folder `out` with the split `given`, whole graphs in each part, and return the graph."""
    tissues = [read_tissue(path) for path in source.tissues]
    names = [tissue.name for tissue in tissues]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"two tissues are called {twice}; each file must be given once, with a name of its own")
    train, val, test = choose(tissues, source)
    chosen = [*train, *val, *test]
    everyone = {protein for tissue in tissues for protein in tissue.proteins}
    sets = [found for path in source.features for found in read_gmt(path)]
    common = [(name, genes) for name, genes in sets if len(genes & everyone) >= source.min_share * len(everyone)]
    terms = [found for path in source.labels for found in read_gmt(path)]
    if not common:
        raise DataError(f"no gene set holds {100 * source.min_share:.0f}% of the {len(everyone)} proteins")
    repeated = [name for name, count in Counter(name for name, _ in terms).items() if count > 1]
    if repeated:
        raise DataError(
            f"the files of {setting('labels')} hold the term {repeated[0]!r} more than once; leave one of them"
        )
    if not terms:
        raise DataError(f"there is no ontology term to predict; check the files of {setting('labels')}")
    proteins = [protein for tissue in chosen for protein in tissue.proteins]
    if not set(proteins) & set().union(*(genes for _, genes in terms)):
        raise DataError(f"no protein has any term of {setting('labels')}; are its ids those of {setting('tissues')}?")
    sizes = [len(tissue.proteins) for tissue in chosen]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    number = np.repeat(np.arange(len(chosen)), sizes)
    graph = Graph.from_edges(
        np.concatenate([tissue.edges + start for tissue, start in zip(chosen, starts, strict=False)]),
        len(proteins),
        features=membership(proteins, [genes for _, genes in common]).astype(np.float32),
        labels=membership(proteins, [genes for _, genes in terms]),
        class_names=[name for name, _ in terms],
        ids=[f"{tissue.name}:{protein}" for tissue in chosen for protein in tissue.proteins],
        graph_number=number,
    )
    first, second = len(train), len(train) + len(val)
    split = Split.by_graph(torch.from_numpy(number), range(first, second), range(second, len(chosen)))
    save_graph(graph, out, {"given": split})
    return graph


def choose(tissues: Sequence[Tissue], source: Proteins) -> tuple[list[Tissue], list[Tissue], list[Tissue]]:
    """Training, validation and test graphs: the held-out ones first, since they must be large."""
    keys = Stream(source.seed, "tissues").keys(torch.arange(len(tissues))).tolist()
    order = [tissue for _, tissue in sorted(zip(keys, tissues, strict=True), key=lambda pair: pair[0])]
    large = [tissue for tissue in order if len(tissue.edges) >= source.min_held_out_edges]
    held = large[: 2 * source.held_out_graphs]
    others = [t for t in order if len(t.edges) >= source.min_train_edges and all(t is not other for other in held)]
    if len(held) < 2 * source.held_out_graphs or len(others) < source.train_graphs:
        raise DataError(
            f"{2 * source.held_out_graphs} graphs of at least {source.min_held_out_edges:,} edges and "
            f"{source.train_graphs} others of at least {source.min_train_edges:,} are needed; there are "
            f"{len(large)} and {len(others)}"
        )
    return others[: source.train_graphs], held[: source.held_out_graphs], held[source.held_out_graphs :]


def read_tissue(path: Path) -> Tissue:
    """An edge list: two ids per line. Further columns, empty lines and lines that begin with # are skipped."""
    pairs = []
    for number, line in enumerate(lines(path), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) < 2:
            raise DataError(f"{path} line {number} must hold two protein ids; got {line[:60]!r}")
        pairs.append((words[0], words[1]))
    proteins = sorted({protein for pair in pairs for protein in pair})
    place = {protein: row for row, protein in enumerate(proteins)}
    edges = np.array([(place[a], place[b]) for a, b in pairs], np.int64).reshape(-1, 2)
    edges = np.unique(np.sort(edges, axis=1), axis=0)
    name = path.stem if path.suffix in PACKED else path.name  # t.edgelist.gz is tissue t
    return Tissue(Path(name).stem, proteins, edges)


def read_gmt(path: Path) -> Iterator[tuple[str, set[str]]]:
    """Names of gene sets with their genes."""
    for number, line in enumerate(lines(path), start=1):
        if not line.strip():
            continue
        parts = line.split("\t")
        if len(parts) < 3:
            raise DataError(f"{path} line {number} must hold a name, a description and genes, separated by tabs")
        yield parts[0], {gene for gene in parts[2:] if gene}


def membership(proteins: Sequence[str], sets: Sequence[set[str]]) -> Array:
    """Which protein is in which set: (proteins, sets) of 0 and 1."""
    found = np.zeros((len(proteins), len(sets)), np.uint8)
    for column, genes in enumerate(sets):
        found[:, column] = [protein in genes for protein in proteins]
    return found
