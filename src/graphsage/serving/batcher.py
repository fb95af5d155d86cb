"""Micro-batches: one thread computes waiting requests together. It never delays a request to fill a batch.

While several senders ask, a batch takes from each in turn, and few nodes from each. So none waits for whole batches of
another one.
"""

import math
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from graphsage.errors import DamageError, GraphSageError
from graphsage.graph.ids import node_key
from graphsage.inference.model import check_finite
from graphsage.live.node_features import RowError
from graphsage.live.overlay import Overlay
from graphsage.live.overlay_view import Target
from graphsage.live.store import LiveGraph, Version
from graphsage.serving.answers import Problem, retry
from graphsage.serving.metrics import Metrics
from graphsage.serving.served_model import ServedModel

SHARE = 4  # nodes of a sender in a batch while there are others
_RECENT = 1.0  # seconds that a sender counts after its last request


@dataclass(frozen=True, eq=False)
class NewNode:
    """A node of a request that is not stored."""

    id: str | None
    attributes: dict[str, Any] | None
    features: list[float] | None
    edges: list[str]


@dataclass(frozen=True, eq=False)
class Answer:
    """z (B, dim) and outputs (B, C), probabilities or numbers, of a job's nodes, ids first; the versions of model and
    graph."""

    model: ServedModel
    version: Version
    z: Tensor
    outputs: Tensor | None
    seen: Any = None
    """What the job's `look` returned."""


@dataclass(eq=False)
class Job:
    ids: Sequence[str]
    nodes: Sequence[NewNode] = ()
    deadline: float = float("inf")
    predict: bool = False
    model: ServedModel | None = None
    """The model of a search index, if it is not the one in service."""
    sender: str | None = None
    """Name of the key that asks, empty without keys; None for work in the background."""
    look: Callable[[Overlay, ServedModel], Any] | None = None
    """Reads more of the state of the graph that the nodes are embedded from."""
    done: "Future[Answer]" = field(default_factory=Future)

    @property
    def size(self) -> int:
        return len(self.ids) + len(self.nodes)


class Waiting:
    """Jobs by sender. `batch` is the most nodes taken at once, unless the first job has more."""

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self._jobs: dict[str | None, deque[Job]] = {}  # the sender whose turn is next comes first
        self._asked: dict[str, float] = {}  # when each sender last asked

    def add(self, job: Job) -> None:
        self._jobs.setdefault(job.sender, deque()).append(job)
        if job.sender is not None:
            self._asked[job.sender] = time.monotonic()

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def take(self) -> list[Job]:
        """The next batch."""
        if len(self._asked) > 1:
            since = time.monotonic() - _RECENT
            self._asked = {sender: at for sender, at in self._asked.items() if at > since}
        share = SHARE if len(self._asked) > 1 else self._batch
        taken: list[Job] = []
        room = self._batch
        for sender in list(self._jobs):
            mine, left = self._jobs[sender], share
            if taken and mine[0].size > room:
                break  # its turn is next
            del self._jobs[sender]
            while mine and (not taken or mine[0].size <= room) and (left == share or mine[0].size <= left):
                taken.append(mine.popleft())
                room -= taken[-1].size
                left -= taken[-1].size
            if mine:
                self._jobs[sender] = mine
        return taken


class Batcher:
    def __init__(self, live: LiveGraph, model: Callable[[], ServedModel], metrics: Metrics, batch: int) -> None:
        self._live, self._model, self._metrics, self._batch = live, model, metrics, batch
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="graphsage-batches", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> "Future[Answer]":
        self._queue.put(job)
        return job.done

    def close(self) -> None:
        """Finish the waiting jobs."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        waiting, closed = Waiting(self._batch), False
        while True:
            while not closed and (not waiting or not self._queue.empty()):
                job = self._queue.get()
                if job is None:
                    closed = True
                else:
                    waiting.add(job)
            jobs = waiting.take()
            if not jobs:
                return
            for model in {id(job.model): job.model for job in jobs}.values():
                self._compute([job for job in jobs if job.model is model], model)

    def _compute(self, jobs: list[Job], other: ServedModel | None) -> None:
        good, now = [], time.monotonic()
        for job in jobs:
            if job.deadline < now:
                _fail(job, retry(503, "the request waited longer than its deadline"))
            elif not job.done.done():
                good.append(job)
        try:
            self._answer(good, other)
        except DamageError as error:
            if len(good) == 1:
                _fail(good[0], error)
            else:
                for job in good:  # those that read none of the damaged part get their answers
                    self._compute([job], other)
        except Exception as error:  # every job gets an answer
            for job in good:
                if not job.done.done():
                    _fail(job, error)

    def _answer(self, jobs: list[Job], other: ServedModel | None) -> None:
        model = other or self._model()
        features = _features(jobs, model)
        targets: list[Target] = []
        accepted: list[tuple[Job, int, Any]] = []
        with self._live.reading() as (overlay, version):
            if other is None and model is not self._model():  # replaced meanwhile
                model = self._model()
                features = _features(jobs, model)
            for job in jobs:
                try:
                    made = _targets(job, overlay, features[id(job)])
                    seen = None if job.look is None else job.look(overlay, model)
                except (Problem, GraphSageError) as error:
                    _fail(job, error)
                    continue
                accepted.append((job, len(targets), seen))
                targets += made
            compute = model.encoder.read(targets)
        z = compute()  # the graph may change meanwhile
        wanted = any(job.predict for job, *_ in accepted)
        p = model.encoder.outputs(z) if wanted and targets else None
        self._metrics.batch.observe(len(targets))
        self._metrics.embedded.inc(len(targets))
        finite = _is_finite(z, p)
        for job, start, seen in accepted:
            here = slice(start, start + job.size)
            try:
                if not finite:  # look for the jobs whose results are not
                    check_finite(z[here])
                    if p is not None:
                        check_finite(p[here])
            except GraphSageError as error:
                _fail(job, error)
                continue
            if job.done.set_running_or_notify_cancel():
                job.done.set_result(Answer(model, version, z[here], None if p is None else p[here], seen))


def _features(jobs: Sequence[Job], model: ServedModel) -> dict[int, Any]:
    """Features of each job's new nodes, or a Problem. Texts of all jobs are transformed together."""
    everyone = [node for job in jobs for node in job.nodes]
    try:
        made = model.rows.features([n.attributes for n in everyone], [n.features for n in everyone])
    except RowError:
        if len(jobs) > 1:
            return {key: value for job in jobs for key, value in _features([job], model).items()}
        try:
            model.rows.features([n.attributes for n in everyone], [n.features for n in everyone])
        except RowError as error:
            return {id(jobs[0]): Problem(422, f"nodes[{error.row}]: {error}")}
    found, start = {}, 0
    for job in jobs:
        found[id(job)] = made[start : start + len(job.nodes)]
        start += len(job.nodes)
    return found


def _targets(job: Job, overlay: Overlay, features: Any) -> list[Target]:
    if isinstance(features, Problem):
        raise features
    targets = []
    for place, name in enumerate(job.ids):
        row = overlay.find(name)
        if row is None:
            raise Problem(404, f"ids[{place}] is not in the graph")
        targets.append(Target(overlay, row))
    width = overlay.base.graph.num_features
    for place, (node, x) in enumerate(zip(job.nodes, features, strict=True)):
        if x is None and width:
            raise Problem(422, f"nodes[{place}] needs attributes or features")
        if node.id is not None and overlay.find(node.id) is not None:
            raise Problem(409, f"nodes[{place}] has the id of a node in the graph; ask by ids, or leave the id out")
        rows = []
        for edge, other in enumerate(node.edges):
            row = overlay.find(other)
            if row is None:
                raise Problem(422, f"nodes[{place}].edges[{edge}] is not in the graph")
            rows.append(row)
        key = node_key(node.id) if node.id is not None else node_key("" if x is None else x.tobytes().hex())
        targets.append(Target(*overlay.visitor(key, x, rows)))
    return targets


def _is_finite(z: Tensor, p: Tensor | None) -> bool:
    """Whether all results of a batch are finite: one pass, since each call gives up Python's lock."""
    return math.isfinite(float(z.sum())) and (p is None or math.isfinite(float(p.sum())))


def _fail(job: Job, error: Exception) -> None:
    if job.done.set_running_or_notify_cancel():
        job.done.set_exception(error)
