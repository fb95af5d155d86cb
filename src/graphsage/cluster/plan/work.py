"""The cost model: how many bytes, products and draws a training step and whole-graph inference ask of a machine.

Pure functions of sizes. B targets, S_k neighbors drawn in layer k, D features, W the width of every h^k, H the width
inside the aggregator, N nodes, E stored edges (an undirected edge is stored twice). r_k is the number of rows that
layer k computes: r_K = B and r_(k-1) = r_k (1 + S_k).
"""

import math
from dataclasses import dataclass

from graphsage.errors import one_of
from graphsage.model.aggregators.lstm import LSTM_DIM
from graphsage.model.aggregators.pool import POOL_DIM

FLOAT = 4
UNIT_ROWS = 512  # ReLU and scaling to length 1 take so many rows at a time
JOIN_BYTES = 1 << 19  # and gathering features so many bytes
WINNER_ROWS = 32  # whose neighbors are in cache while each column of pool picks its winners
HIDDEN = {"pool": POOL_DIM, "meanpool": POOL_DIM, "lstm": LSTM_DIM}
AGGREGATORS = ("mean", "gcn", "lstm", "pool", "meanpool")


@dataclass(frozen=True)
class Graph:
    nodes: int
    edges: int
    dim: int
    value_bytes: int = FLOAT
    """Of one feature: 4, or 2 for half precision."""

    @property
    def row_bytes(self) -> int:
        return self.dim * self.value_bytes

    @property
    def feature_bytes(self) -> int:
        return self.nodes * self.row_bytes

    @property
    def index_bytes(self) -> int:
        """Of one stored edge."""
        return 4 if self.nodes < 2**31 else 8

    @property
    def folder_bytes(self) -> int:
        """On disk: features, edges, where each node's begin, and a label a node."""
        return self.feature_bytes + self.edges * self.index_bytes + 16 * self.nodes


@dataclass(frozen=True)
class Model:
    aggregator: str = "mean"
    sample_sizes: tuple[int, ...] = (25, 10)
    width: int = 256
    hidden: int | None = None
    classes: int = 50

    def __post_init__(self) -> None:
        one_of("aggregator", self.aggregator, AGGREGATORS)

    @property
    def inner(self) -> int:
        """H."""
        return 0 if self.averages else self.hidden or HIDDEN[self.aggregator]

    @property
    def recurrent(self) -> bool:
        return self.aggregator == "lstm"

    @property
    def averages(self) -> bool:
        return self.aggregator in ("mean", "gcn")

    def fan_in(self, below: int) -> int:
        """Width of what W of a layer is applied to, over rows of width `below`."""
        return below if self.aggregator == "gcn" else below + (self.inner or below)

    def inside(self, below: int) -> int:
        """Weights inside the aggregator of a layer."""
        if self.recurrent:
            return 4 * self.inner * (below + self.inner + 2)
        return 0 if self.averages else self.inner * (below + 1)

    def parameters(self, dim: int) -> int:
        layers = [dim] + [self.width] * (len(self.sample_sizes) - 1)
        each = [self.fan_in(below) * self.width + self.inside(below) for below in layers]
        return sum(each) + self.classes * (self.width + 1)


@dataclass(frozen=True)
class Gather:
    """`rows` of `row_bytes` read from random places of a table; `kind` is how (the names of a profile's rates)."""

    kind: str
    rows: float
    row_bytes: float
    table_bytes: float

    @property
    def bytes(self) -> float:
        return self.rows * self.row_bytes


@dataclass(frozen=True)
class Work:
    """What something asks of one machine."""

    gathers: tuple[Gather, ...] = ()
    products: float = 0.0
    """Floating point operations in matrix products."""
    recurrent: float = 0.0
    """The same inside an LSTM, where they come step by step."""
    streamed: float = 0.0
    """Bytes read or written one after the other, outside of products."""
    fresh: float = 0.0
    """The same in memory that the system hands out anew each time, as large results are."""
    calls: float = 0.0
    """Operations that are started on blocks small enough for the cache."""
    drawn: tuple[tuple[float, int], ...] = ()
    """(rows, size): so many rows draw `size` neighbors each."""

    def __add__(self, other: "Work") -> "Work":
        return Work(self.gathers + other.gathers, self.products + other.products, self.recurrent + other.recurrent,
                    self.streamed + other.streamed, self.fresh + other.fresh, self.calls + other.calls,
                    self.drawn + other.drawn)  # fmt: skip

    @property
    def gathered(self) -> float:
        return sum(gather.bytes for gather in self.gathers)


def layer_rows(batch: float, sample_sizes: tuple[int, ...]) -> list[float]:
    """r_1 .. r_K."""
    rows = [float(batch)]
    for size in reversed(sample_sizes[1:]):
        rows.insert(0, rows[0] * (1 + size))
    return rows


def distinct(draws: float, nodes: float) -> float:
    """Expected number of different nodes among uniform draws."""
    return nodes * -math.expm1(-draws / nodes) if nodes else 0.0


def training_step(graph: Graph, model: Model, batch: float) -> Work:
    """Draw, read, forward, backward and Adam for `batch` targets, on a CPU."""
    rows = layer_rows(batch, model.sample_sizes)
    work = Work(drawn=tuple(zip(rows, model.sample_sizes, strict=True)))
    work += _first_layer(graph, model, rows[0])
    for k in range(2, len(rows) + 1):
        work += _upper_layer(model, rows[k - 1], rows[k - 2], model.sample_sizes[k - 1])
    # ReLU and length 1 pass over h^k and its gradient a few times; Adam over weights, gradients and two moments.
    passes = 6 * FLOAT * model.width * sum(rows) + 7 * FLOAT * model.parameters(graph.dim)
    head = 3 * 2 * batch * model.width * model.classes
    return work + Work(products=head, streamed=passes, calls=12 * sum(rows) / UNIT_ROWS)


def _first_layer(graph: Graph, model: Model, rows: float) -> Work:
    """Over the frozen table: no gradient goes to it, so of three products two are made."""
    size, dim, width, inner = model.sample_sizes[0], graph.dim, model.width, model.inner
    table, kind = graph.feature_bytes, "mean" if graph.value_bytes == FLOAT else "half"
    own = Gather("select", rows, graph.row_bytes, table)
    if model.averages:
        fan = model.fan_in(dim)
        neighbors = Gather(kind, rows * size, graph.row_bytes, table)
        return Work((neighbors, own), products=4 * rows * fan * width, streamed=2 * FLOAT * rows * fan,
                    calls=8 * FLOAT * rows * dim / JOIN_BYTES)  # fmt: skip
    seen = distinct(rows * (size + 1), graph.nodes)
    read = Work((Gather("select", seen, graph.row_bytes, table),), streamed=3 * FLOAT * seen * dim)
    if model.recurrent:
        work = read + Work(products=4 * seen * dim * 4 * inner) + _steps_in_time(rows, size, inner, seen)
    elif model.aggregator == "pool":
        # The gradient of W_pool is a sum of the winners' rows, which are in cache: one for each row and column.
        winners = Gather("mean", rows * inner, FLOAT * dim, FLOAT * WINNER_ROWS * size * dim)
        work = read + Work((winners,), products=2 * seen * dim * inner) + _maximum(rows, size, inner, seen)
    else:
        merged = Gather("mean", 2 * rows * size, FLOAT * inner, FLOAT * seen * inner)
        work = read + Work((merged,), products=4 * seen * dim * inner, streamed=4 * FLOAT * seen * inner)
    # The row's own half of W needs no gradient below; the aggregator's half does.
    return work + Work(products=2 * rows * width * (2 * dim + 3 * inner), streamed=2 * FLOAT * rows * (dim + inner))


def _upper_layer(model: Model, rows: float, below: float, size: int) -> Work:
    """Over the rows that the layer below returned, which lie one after the other: forward and two products back."""
    width, inner = model.width, model.inner
    work = Work(products=6 * rows * model.fan_in(width) * width, streamed=2 * FLOAT * below * width)
    if model.recurrent:
        return work + Work(products=6 * below * width * 4 * inner) + _steps_in_time(rows, size, inner, below)
    if not model.averages:
        # The maximum reads them once; its gradient compares, counts and divides.
        work += Work(products=6 * below * width * inner, streamed=8 * FLOAT * below * inner)
    return work


def _maximum(rows: float, size: int, inner: int, seen: float) -> Work:
    """A running maximum over gathered rows, each merged while it is in cache; two bytes name the winner."""
    table = FLOAT * seen * inner
    return Work((Gather("merge", rows * size, FLOAT * inner, table),), streamed=30 * rows * inner + table)


def _steps_in_time(rows: float, size: int, inner: int, seen: float) -> Work:
    """An LSTM's hidden state: S products one after the other, three times with the gradients, at a rate that includes
    the gates. What the input adds to those is projected once a row, gathered, and scattered back."""
    gates = Gather("select", 2 * rows * size, FLOAT * 4 * inner, FLOAT * seen * 4 * inner)
    return Work((gates,), recurrent=3 * 2 * 4 * inner * inner * rows * size)


def inference(graph: Graph, model: Model) -> list[Work]:
    """Exact inference, layer by layer: each node is transformed once, each stored edge read once a layer."""
    made, below, value = [], graph.dim, graph.value_bytes
    for _ in model.sample_sizes:
        made.append(_layer_of_all(graph, model, below, value))
        below, value = model.width, FLOAT
    return made


def reduced_width(model: Model, below: int) -> int:
    """Width of the rows that neighbors read: what W made of them where that is narrower."""
    if model.averages:
        return min(below, model.width)
    return below if model.recurrent else model.inner


def _layer_of_all(graph: Graph, model: Model, below: int, value: int) -> Work:
    nodes, edges, width, inner = graph.nodes, graph.edges, model.width, model.inner
    narrow = reduced_width(model, below)
    out, calls = 3 * FLOAT * nodes * width, 6 * nodes / UNIT_ROWS
    if model.recurrent:
        read = Gather("select", edges, value * below, value * nodes * below)
        return Work((read,), products=2 * nodes * width * (below + inner), fresh=out + 2 * FLOAT * edges * below,
                    recurrent=2 * 4 * inner * edges * (below + inner), calls=calls)  # fmt: skip
    if model.averages and narrow == below:
        first = below == graph.dim and value == graph.value_bytes  # features are where they are, not in huge pages
        kind = "half" if value < FLOAT else "mean" if first else "ragged"
        read = Gather(kind, edges, value * below, value * nodes * below)
        products = 2 * nodes * width * model.fan_in(below)
        return Work((read,), products=products, fresh=out + 6 * FLOAT * nodes * below, calls=calls)
    read = Gather("max" if model.aggregator == "pool" else "ragged", edges, FLOAT * narrow, FLOAT * nodes * narrow)
    per_node = width * model.fan_in(below) if model.averages else below * inner + width * (below + inner)
    return Work((read,), products=2 * nodes * per_node, fresh=out + 2 * FLOAT * nodes * (below + narrow), calls=calls)
