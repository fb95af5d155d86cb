"""What the order of nodes, of a batch and the width of rows do for reading: `python -m benchmarks.locality`.

CPU seconds of one thread, the fastest of several runs that take turns, on the Reddit-shaped graph. Its communities are
known here (they were planted), so the order by community is better than any that could be found. Nothing that is tried
here is switched on: the numbers say why.
"""

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.workload import REDDIT, make
from graphsage.experiments.record import write_result
from graphsage.graph.graph import Graph
from graphsage.kernels.buffers import huge_page_table
from graphsage.kernels.random import Stream
from graphsage.sampling.minibatch import sample_minibatch

WIDTH, ROWS = 256, 2000
SHARE = 0.1  # of the graph's rows that are reduced in one run
Call = Callable[[], object]


def fastest(calls: dict[str, Call], rounds: int) -> dict[str, float]:
    found = dict.fromkeys(calls, float("inf"))
    for turn in range(rounds + 1):
        for name, call in calls.items():
            begin = time.process_time()
            call()
            if turn:  # the first one warms up
                found[name] = min(found[name], time.process_time() - begin)
    return {name: round(seconds, 5) for name, seconds in found.items()}


def reordered(graph: Graph, order: Tensor) -> Graph:
    """The same graph with node order[i] called i."""
    n = graph.num_nodes
    name = torch.empty(n, dtype=torch.int64)
    name[order] = torch.arange(n)
    edges = (name[graph.edge_rows] * n + name[graph.indices.long()]).sort().values
    counts = torch.bincount(edges // n, minlength=n)
    return Graph(F.pad(counts.cumsum(0), (1, 0)), (edges % n).int(), directed=True)


def reduce_all(graph: Graph, rows: Tensor, passes: int = 1) -> tuple[Call, int]:
    """Average the neighbors' rows for a share of all nodes, spread over the graph; and how many neighbors that are."""
    runs = list(pairwise([*range(0, graph.num_nodes, ROWS), graph.num_nodes]))[:: round(1 / SHARE)]
    parts = []
    for start, stop in runs:
        first, last = int(graph.indptr[start]), int(graph.indptr[stop])
        parts.append((graph.indices[first:last], (graph.indptr[start : stop + 1] - first).int()))

    def call() -> None:
        for _ in range(passes):
            for index, offsets in parts:
                F.embedding_bag(index, rows, offsets, mode="sum", include_last_offset=True)

    return call, sum(len(index) for index, _ in parts)


def whole_graph(graph: Graph, groups: Tensor, rounds: int) -> dict[str, float]:
    """Nanoseconds a neighbor of exact inference, by order of the nodes and by how rows are stored."""
    pulled = torch.bincount(graph.indices.long(), minlength=graph.num_nodes)
    orders = {"as made": None, "by community": groups.argsort(stable=True), "by how often read": pulled.argsort()}
    wide = huge_page_table(graph.num_nodes, WIDTH).normal_()
    narrow = huge_page_table(graph.num_nodes, WIDTH // 4).normal_()
    calls: dict[str, tuple[Call, int]] = {}
    for name, order in orders.items():
        here = graph if order is None else reordered(graph, order)
        calls[name] = reduce_all(here, wide)
        calls[f"{name}, 64 columns at a time"] = reduce_all(here, narrow, 4)
    calls["as made, bfloat16 rows and result"] = reduce_all(graph, wide.bfloat16())
    calls["as made, torch's own memory"] = reduce_all(graph, torch.empty(wide.shape).copy_(wide))
    seconds = fastest({name: call for name, (call, _) in calls.items()}, rounds)
    return {name: round(seconds[name] / count * 1e9, 2) for name, (_, count) in calls.items()}


def one_batch(graph: Graph, features: Tensor, groups: Tensor, rounds: int) -> dict[str, float]:
    """Milliseconds to average what one training step reads, by order of the batch and of the nodes."""
    targets = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(0))[:512]
    batch = sample_minibatch(graph, targets, (25, 10), Stream(0, "locality").keys(targets))
    rows, index = batch.rows, batch.neighborhoods[0][0].index
    order = groups.argsort(stable=True)
    name = torch.empty_like(order)
    name[order] = torch.arange(len(order))
    sorted_features = torch.from_numpy(features.numpy()[order.numpy()])  # NumPy's memory, as the original
    renamed = name[index]
    variants: dict[str, tuple[Tensor, Tensor]] = {
        "as drawn": (index, features),
        "each row's neighbors ascending": (index.sort(dim=1).values, features),
        "rows by node": (index[rows.argsort()], features),
        "rows by smallest neighbor": (index[index.amin(dim=1).argsort()], features),
        "nodes by community": (renamed, sorted_features),
        "nodes and rows by community": (renamed[name[rows].argsort()], sorted_features),
    }
    calls: dict[str, Call] = {
        name: partial(F.embedding_bag, i.contiguous(), t, mode="sum") for name, (i, t) in variants.items()
    }
    return {name: round(seconds * 1e3, 3) for name, seconds in fastest(calls, rounds).items()}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, default=Path("results/bench/locality.json"))
    options.add_argument("--rounds", type=int, default=5)
    asked = options.parse_args()
    torch.set_num_threads(1)
    graph, _ = make(REDDIT)
    assert graph.features is not None
    assert graph.labels is not None
    features = torch.from_numpy(np.array(graph.features.numpy()))
    whole = whole_graph(graph.replace(features=None), graph.labels, asked.rounds)
    batch = one_batch(graph.replace(features=None), features, graph.labels, 2 * asked.rounds)
    for name, value in whole.items():
        print(f"whole graph: {name:38} {value:8.1f} ns a neighbor")
    for name, value in batch.items():
        print(f"one batch:   {name:38} {value:8.1f} ms")
    about = "CPU time of one thread, fastest of several runs that take turns, Reddit-shaped graph"
    body = {"whole graph, ns a neighbor": whole, "one batch, ms": batch}
    write_result(asked.out, about, "python -m benchmarks.locality", body)
    return 0


if __name__ == "__main__":
    sys.exit(main())
