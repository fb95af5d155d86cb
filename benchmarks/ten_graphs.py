"""Ten generated graphs, written before any default was tuned, on which the default has to prove itself.

Each function of GRAPHS makes the tables of one graph as a user would have them: a node table, an edge table, and the
roles of their columns. The seed changes the graph and its split 60/20/20.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.tables.spec import TableSpec

Array = npt.NDArray[Any]
Rng = np.random.Generator

WORDS_PER_TEXT = (4, 12)
VOCABULARY, TOPIC_WORDS = 1500, 60


def knn(seed: int) -> TableSpec:
    """scikit-learn's table of digits, 1,797 images; an edge joins each with its 8 nearest."""
    from sklearn.datasets import load_digits
    from sklearn.neighbors import kneighbors_graph

    table = load_digits()
    nearest = kneighbors_graph(table.data, 8).tocoo()
    return _tables(seed, np.stack([nearest.row, nearest.col], axis=1), table.target, numeric=table.data)


def homophily(seed: int) -> TableSpec:
    """3,000 nodes of 6 classes; 4 of 5 edges stay within a class, and features say little."""
    rng = np.random.default_rng([seed, 1])
    classes = rng.integers(6, size=3000)
    return _tables(seed, _partition(rng, classes, 12_000, 0.8), classes, numeric=_noisy(rng, classes, 24, 0.4))


def heterophily(seed: int) -> TableSpec:
    """3,000 nodes of 4 classes; 9 of 10 edges lead to the next class of the circle."""
    rng = np.random.default_rng([seed, 2])
    classes = rng.integers(4, size=3000)
    edges = _partition(rng, classes, 12_000, 0.9, shift=1)
    return _tables(seed, edges, classes, numeric=_noisy(rng, classes, 24, 0.5))


def hubs(seed: int) -> TableSpec:
    """4,000 nodes of 5 classes; ten hubs without a class signal have 1,000 neighbors each."""
    rng = np.random.default_rng([seed, 3])
    classes = rng.integers(5, size=4000)
    to_hubs = np.stack([np.repeat(np.arange(10), 1000), rng.integers(10, 4000, size=10_000)], axis=1)
    edges = np.concatenate([_partition(rng, classes, 8_000, 0.7), to_hubs])
    return _tables(seed, edges, classes, numeric=_noisy(rng, classes, 16, 0.5))


def very_small(seed: int) -> TableSpec:
    """60 nodes of 2 classes."""
    rng = np.random.default_rng([seed, 4])
    classes = np.arange(60) % 2
    return _tables(seed, _partition(rng, classes, 150, 0.8), classes, numeric=_noisy(rng, classes, 6, 0.8))


def very_imbalanced(seed: int) -> TableSpec:
    """5,000 nodes; one class has 95% of them, four share the rest."""
    rng = np.random.default_rng([seed, 5])
    classes = rng.choice(5, size=5000, p=[0.95, 0.02, 0.01, 0.01, 0.01])
    return _tables(seed, _partition(rng, classes, 15_000, 0.5), classes, numeric=_noisy(rng, classes, 16, 0.8))


def directed(seed: int) -> TableSpec:
    """4,000 nodes of 4 classes; in-neighbors tell the class, and nodes point anywhere."""
    rng = np.random.default_rng([seed, 6])
    classes = rng.integers(4, size=4000)
    source = rng.integers(4000, size=24_000)
    wanted = (classes[source] + rng.integers(2, size=24_000)) % 4
    edges = np.stack([source, _member(rng, classes, wanted)], axis=1)
    return _tables(seed, edges, classes, numeric=_noisy(rng, classes, 16, 0.4), direction="in")


def text_only(seed: int) -> TableSpec:
    """3,000 short texts of 8 topics that share most words; 2 of 3 edges stay within a topic."""
    rng = np.random.default_rng([seed, 7])
    topics = rng.integers(8, size=3000)
    own = rng.integers(VOCABULARY, size=(8, TOPIC_WORDS))
    texts = []
    for topic in topics:
        size = rng.integers(*WORDS_PER_TEXT)
        of_topic = rng.random(size) < 0.25
        words = np.where(of_topic, rng.choice(own[topic], size), rng.integers(VOCABULARY, size=size))
        texts.append(" ".join(f"word{word}" for word in words))
    return _tables(seed, _partition(rng, topics, 9_000, 0.66), topics, text=texts)


def no_features(seed: int) -> TableSpec:
    """3,000 nodes without attributes; the class is the role: leaf, member of a clique, or end of a bridge."""
    rng = np.random.default_rng([seed, 8])
    edges, classes, count = [], [], 0
    while count < 3000:
        size = int(rng.integers(4, 8))
        members = np.arange(count, count + size)
        edges += [(a, b) for i, a in enumerate(members) for b in members[i + 1 :]]
        classes += [1] * size
        count += size
        for _ in range(int(rng.integers(2, 6))):
            edges.append((int(rng.choice(members)), count))
            classes.append(0)
            count += 1
        if len(classes) > 20:
            edges += [(count, int(rng.choice(members))), (count, int(rng.integers(count - size)))]
            classes.append(2)
            count += 1
    return _tables(seed, np.array(edges), np.array(classes))


def communities(seed: int) -> TableSpec:
    """4,000 nodes without attributes in 39 overlapping communities, with power-law degrees; labels are communities."""
    rng = np.random.default_rng([seed, 9])
    n, count = 4000, 39
    weight = rng.pareto(2.5, size=n) + 1.0
    size = rng.pareto(1.5, size=count) + 0.5
    member = rng.random((n, count)) < np.minimum(1.4 * size / size.sum(), 0.4)
    member[np.arange(n), rng.choice(count, size=n, p=size / size.sum())] = True
    edges = []
    for column in range(count):
        nodes = np.flatnonzero(member[:, column])
        share = weight[nodes] / weight[nodes].sum()
        edges.append(rng.choice(nodes, size=(5 * len(nodes), 2), p=share))
    edges.append(rng.choice(n, size=(n, 2), p=weight / weight.sum()))
    names = np.array([f"community {number}" for number in range(count)])
    return _tables(seed, np.concatenate(edges), [names[row].tolist() for row in member])


GRAPHS: dict[str, Callable[[int], TableSpec]] = {
    made.__name__: made
    for made in (
        knn,
        homophily,
        heterophily,
        hubs,
        very_small,
        very_imbalanced,
        directed,
        text_only,
        no_features,
        communities,
    )
}


def _tables(
    seed: int,
    edges: Array,
    label: Any,
    *,
    numeric: Array | None = None,
    text: list[str] | None = None,
    direction: str = "merged",
) -> TableSpec:
    """The two tables, nodes in random order, self loops left out."""
    n = len(label)
    order = np.random.default_rng([seed, 99]).permutation(n)
    ids = np.array([f"n{row}" for row in range(n)])
    labels = [label[row] if isinstance(label[row], list) else f"class {label[row]}" for row in order]
    nodes: dict[str, Any] = {"id": ids[order], "label": labels}
    if numeric is not None:
        nodes |= {f"x{column}": numeric[order, column] for column in range(numeric.shape[1])}
    if text is not None:
        nodes["text"] = [text[row] for row in order]
    edges = edges[edges[:, 0] != edges[:, 1]]
    return TableSpec(
        nodes=nodes,
        edges={"source": ids[edges[:, 0]], "target": ids[edges[:, 1]]},
        label="label",
        numeric=("x*",) if numeric is not None else (),
        text=("text",) if text is not None else (),
        fractions=(0.6, 0.2, 0.2),
        split_seed=seed,
        direction=direction,
    )


def _partition(rng: Rng, classes: Array, count: int, share: float, shift: int = 0) -> Array:
    """`count` edges, of which a `share` leads to the class `shift` further on, the others anywhere."""
    source = rng.integers(len(classes), size=count)
    wanted = (classes[source] + shift) % (classes.max() + 1)
    chosen = _member(rng, classes, wanted)
    anywhere = rng.integers(len(classes), size=count)
    return np.stack([source, np.where(rng.random(count) < share, chosen, anywhere)], axis=1)


def _member(rng: Rng, classes: Array, wanted: Array) -> Array:
    """A random node of each wanted class."""
    order = np.argsort(classes, kind="stable")
    counts = np.bincount(classes)
    starts = counts.cumsum() - counts
    found: Array = order[starts[wanted] + (rng.random(len(wanted)) * counts[wanted]).astype(np.int64)]
    return found


def _noisy(rng: Rng, classes: Array, width: int, signal: float) -> Array:
    """A random center for each class times `signal`, plus unit noise."""
    centers = rng.normal(size=(classes.max() + 1, width))
    table: Array = signal * centers[classes] + rng.normal(size=(len(classes), width))
    return table
