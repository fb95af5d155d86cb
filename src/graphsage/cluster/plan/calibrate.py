"""Measure what a profile holds, in less than a minute. Every number is the fastest of a few tries: what the machine can
do, not what else ran on it."""

import os
import platform
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from scipy.optimize import nnls
from torch import Tensor

from graphsage.cluster.plan.disk import disk_rates
from graphsage.cluster.plan.profile import Profile, Rate
from graphsage.cluster.plan.reduce import reduce_rates
from graphsage.kernels.gather import gather_max, gather_mean
from graphsage.kernels.lstm_rows import lstm_over_rows
from graphsage.kernels.memory import table as inference_table
from graphsage.kernels.neighborhood import Dense, Ragged
from graphsage.kernels.random import Stream
from graphsage.kernels.sample import sample_last_hop
from graphsage.kernels.self_and_mean import bag_sum
from graphsage.model.aggregators.lstm import LSTMAggregator

TABLES = tuple(2**power for power in (18, 21, 23, 25, 27, 29))  # bytes, from a level of cache to memory
WIDTHS = (16, 256)  # numbers in a row: narrow ones cost their place, wide ones their bytes
ROWS = (4096, 1024)  # that gather, of each width
TRIES = 5
SIZE = 16  # neighbors of a row
Say = Callable[[str], None]


def calibrate(
    folder: Path | None = None, say: Say = lambda text: None, clock: Callable[[], float] = time.perf_counter
) -> Profile:
    """Rates of this machine with torch's current number of threads; files to measure the disk go to `folder`.

    On a busy machine `clock` may be time.process_time, with one thread: then other work counts for less.
    """
    watch = Stopwatch(clock)
    say("gathering rows from tables of growing size")
    gather = _gather_rates(watch)
    say("products, passes and draws")
    product, (stream, fresh), call = _product_flops(watch), _stream_bytes(watch), _call_seconds(watch)
    both, forward = _recurrent_flops(watch)
    row, draw, compare = _draw_seconds(watch)
    say("steps of almost nothing")
    steps = {name: _empty_step(watch, name) for name in ("mean", "gcn", "lstm", "pool", "meanpool")}
    say("disk")
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        in_order, at_random = disk_rates(Path(scratch) / "file")
    say("all_reduce between two processes")
    latency, bandwidth = reduce_rates()
    return Profile(
        gather=gather, product_flops=product, recurrent_flops=both, recurrent_forward_flops=forward,
        stream_bytes=stream, fresh_bytes=fresh, call_seconds=call, draw_row_seconds=row, draw_seconds=draw,
        compare_seconds=compare, step_seconds=steps, disk_bytes=in_order, disk_reads=at_random,
        reduce_seconds=latency, reduce_bytes=bandwidth, about=_about(),
    )  # fmt: skip


@dataclass(frozen=True)
class Stopwatch:
    clock: Callable[[], float]

    def fastest(self, call: Callable[[], Any], tries: int = TRIES) -> float:
        call()
        seconds = []
        for _ in range(tries):
            begin = self.clock()
            call()
            seconds.append(self.clock() - begin)
        return max(min(seconds), 1e-9)


def _mean(table: Tensor, index: Tensor) -> Callable[[], Any]:
    return lambda: F.embedding_bag(index, table, mode="mean")


def _half(table: Tensor, index: Tensor) -> Callable[[], Any]:
    """As training reads half precision: some rows at a time."""
    half, neighborhood, step = torch.ones(table.shape, dtype=torch.float16), _drawn(index), 128
    return lambda: [bag_sum(half, neighborhood, at, at + step) for at in range(0, len(index), step)]


def _select(table: Tensor, index: Tensor) -> Callable[[], Any]:
    return lambda: table.index_select(0, index.flatten())


def _merge(table: Tensor, index: Tensor) -> Callable[[], Any]:
    return lambda: gather_max(table, _drawn(index))


def _ragged(reduce: Callable[[Tensor, Ragged], Tensor]) -> Callable[[Tensor, Tensor], Callable[[], Any]]:
    """As exact inference reads, row by row; where it reads in panels it is faster."""

    def prepare(table: Tensor, index: Tensor) -> Callable[[], Any]:
        offsets = torch.arange(0, index.numel() + 1, index.shape[1])
        lists = Ragged(index.flatten(), offsets, torch.zeros(len(index)), slice(0, len(index)))
        large = inference_table(len(table), table.shape[1]).copy_(table)
        return lambda: reduce(large, lists)

    return prepare


def _drawn(index: Tensor) -> Dense:
    return Dense(index, torch.ones(len(index), dtype=torch.bool), torch.zeros(len(index)), slice(0, len(index)))


KINDS: dict[str, Callable[[Tensor, Tensor], Callable[[], Any]]] = {
    "mean": _mean, "half": _half, "select": _select, "merge": _merge, "ragged": _ragged(gather_mean),
    "max": _ragged(gather_max),
}  # fmt: skip


def _gather_rates(watch: Stopwatch) -> dict[str, tuple[Rate, ...]]:
    """Of each kind and table size: the cost of a row, and of a byte, from a narrow and a wide one."""
    rates: dict[str, list[Rate]] = {kind: [] for kind in KINDS}
    for size in TABLES:
        tables = [torch.ones(max(SIZE, size // (4 * width)), width) for width in WIDTHS]
        draws = [torch.randint(len(table), (rows, SIZE), generator=torch.Generator().manual_seed(0))
                 for table, rows in zip(tables, ROWS, strict=True)]  # fmt: skip
        for kind, prepare in KINDS.items():
            seconds = [
                watch.fastest(prepare(table, index)) / index.numel() for table, index in zip(tables, draws, strict=True)
            ]
            value = 2 if kind == "half" else 4
            row, byte = _fit([[1, width * value] for width in WIDTHS], seconds)
            rates[kind].append(Rate(size * value / 4, row, byte))
    return {kind: tuple(found) for kind, found in rates.items()}


def _fit(costs: list[list[float]], seconds: list[float]) -> list[float]:
    """What each kind of cost takes, none of them less than nothing; each measurement counts by its relative error."""
    weighted = np.array(costs, dtype=float) / np.array(seconds)[:, None]
    scale = weighted.max(axis=0)  # a row and a byte are of very different size
    return [float(value) for value in nnls(weighted / scale, np.ones(len(seconds)))[0] / scale]


def _product_flops(watch: Stopwatch) -> float:
    """As layers make them: many rows times W, then the transposed product of the gradient; narrow and wide."""
    rows, flops, seconds = 8192, 0.0, 0.0
    for inner, width in ((128, 512), (512, 256)):
        x, w, g = torch.rand(rows, inner), torch.rand(width, inner), torch.rand(rows, width)
        flops += 4 * rows * inner * width
        seconds += watch.fastest(lambda x=x, w=w, g=g: (x @ w.t(), g.t() @ x))  # type: ignore[misc]
    return flops / seconds


def _stream_bytes(watch: Stopwatch) -> tuple[float, float]:
    """Into memory that is there, and into new memory."""
    x, y = torch.rand(1 << 23), torch.rand(1 << 23)
    return 3 * x.nbytes / watch.fastest(lambda: torch.add(x, y, out=y)), 3 * x.nbytes / watch.fastest(
        lambda: torch.add(x, y)
    )


def _call_seconds(watch: Stopwatch) -> float:
    x = torch.rand(64, 8)
    return watch.fastest(lambda: [x[at : at + 1].mul_(1.0) for at in range(64)]) / 64


def _recurrent_flops(watch: Stopwatch) -> tuple[float, float]:
    """Of an LSTM's hidden state over drawn neighbors, with its gradients and gates; and of a whole LSTM forward over
    lists of neighbors."""
    rows, size, dim, inner = 512, 16, 8, 128  # an input so narrow that the hidden state is all
    narrow, index = torch.rand(rows, dim), torch.randint(rows, (rows, size), generator=torch.Generator().manual_seed(0))
    weights = [torch.rand(4 * inner, width, requires_grad=True) for width in (dim, inner)]
    bias = torch.zeros(4 * inner, requires_grad=True)

    def both() -> None:
        torch.autograd.backward(lstm_over_rows(narrow, weights[0], weights[1], bias, index).sum())

    aggregator, below = LSTMAggregator(128, inner), torch.rand(rows * size, 128)
    keys, offsets = Stream(0, "exact").keys(torch.arange(rows)), torch.arange(0, rows * size + 1, size)
    lists = Ragged(torch.arange(rows * size), offsets, keys, slice(0, rows))
    with torch.no_grad():
        forward = watch.fastest(lambda: aggregator(below, lists))
    cells = 2 * 4 * inner * rows * size
    return 3 * cells * inner / watch.fastest(both), cells * (128 + inner) / forward


def _draw_seconds(watch: Stopwatch) -> tuple[float, float, float]:
    """For a row, for each neighbor that it draws, and for each pair of them that is compared."""
    nodes, degree, rows = 1 << 18, 32, 8192
    generator = torch.Generator().manual_seed(0)
    indptr = torch.arange(nodes + 1) * degree
    indices = torch.randint(nodes, (nodes * degree,), generator=generator, dtype=torch.int32)
    who = torch.randint(nodes, (rows,), generator=generator)
    keys = Stream(0, "neighbors").keys(who)
    sizes = (2, 5, 10, 25)
    seconds = [watch.fastest(partial(sample_last_hop, indptr, indices, who, keys, 1, size)) / rows for size in sizes]
    row, draw, compare = _fit([[1, size, size**2] for size in sizes], seconds)
    return row, draw, compare


def _empty_step(watch: Stopwatch, aggregator: str) -> float:
    """Training of a few nodes with a few numbers: all that is left is starting the operations."""
    from graphsage.cluster.plan.steps import TrainingSteps
    from graphsage.training.config import Config

    config = Config(aggregator=aggregator, sample_sizes=(2, 2), dim=8, hidden_dim=8, batch_size=4)
    return watch.fastest(TrainingSteps.made(64, 8, 4, 4, config).run, 20)


def _about() -> dict[str, Any]:
    return {"machine": platform.machine(), "cores": os.cpu_count(), "threads": torch.get_num_threads(),
            "torch": torch.__version__.split("+")[0], "memory_bytes": _memory()}  # fmt: skip


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
