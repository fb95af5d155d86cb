"""Micro-batches and changes: who waits for whom, and which graph and model an answer is about."""

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphsage.live.change import Change, NodeChange
from graphsage.serving import batcher
from graphsage.serving.batcher import SHARE, Job, NewNode, Waiting
from graphsage.serving.service import Service


class Pause:
    """Holds a function where it is called, until `go`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.reached, self.going = function, threading.Event(), threading.Event()

    def __call__(self, *arguments: Any) -> Any:
        self.reached.set()
        assert self.going.wait(60)
        return self.function(*arguments)


@pytest.fixture
def ready(service: Service) -> Service:
    end = time.monotonic() + 60
    while service.updater.index is None:  # it computes, too
        assert time.monotonic() < end
        time.sleep(0.01)
    return service


@pytest.fixture
def pause(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any, str], Pause]]:
    made: list[Pause] = []

    def at(owner: Any, name: str) -> Pause:
        made.append(Pause(getattr(owner, name)))
        monkeypatch.setattr(owner, name, made[-1])
        return made[-1]

    yield at
    for each in made:
        each.going.set()


@pytest.mark.parametrize("inference", ["exact", "sampled"])
def test_a_change_does_not_wait_while_a_batch_is_computed(
    ready: Service, pause: Callable[[Any, str], Pause], inference: str
) -> None:
    object.__setattr__(ready.model.encoder, "inference", inference)
    before = ready.batcher.submit(Job(["node-1"])).result(60)
    paused = pause(ready.model.encoder.fast, "encode")
    asked = ready.batcher.submit(Job(["node-1"]))
    assert paused.reached.wait(60)
    other = NodeChange("node-1", np.ones(ready.model.rows.width, np.float32))
    made = ready.live.submit(Change((other,), removed_nodes=("node-7",))).result(60)
    paused.going.set()
    answer = asked.result(60)
    assert (before.version.sequence, answer.version.sequence, made.sequence) == (0, 0, 1)
    assert torch.equal(answer.z, before.z)  # the graph as it was when it was read
    after = ready.batcher.submit(Job(["node-1"])).result(60)
    assert after.version == made
    assert not torch.equal(after.z, before.z)


def test_a_model_that_is_exchanged_while_features_are_made_makes_them_again(
    ready: Service, pause: Callable[[Any, str], Pause]
) -> None:
    old = ready.model
    new = NewNode(None, {"words": "about logic item", "size": 2.0}, None, ["node-1"])
    paused = pause(batcher, "_features")
    asked = ready.batcher.submit(Job([], [new]))
    assert paused.reached.wait(60)
    again = ready.run.with_name("again")
    shutil.copytree(ready.run, again)
    ready.run = again
    fresh = ready.reload()
    paused.going.set()
    assert asked.result(60).model is fresh
    assert fresh is not old


SENDERS = st.sampled_from(["a", "b", "c", None])


@given(st.lists(st.one_of(st.none(), st.tuples(SENDERS, st.integers(1, 12)))))
def test_each_job_is_taken_once_in_its_senders_order_and_none_starves(
    steps: list[tuple[str | None, int] | None],
) -> None:
    waiting, sent, taken = Waiting(16), list[Job](), list[Job]()
    for step in [*steps, *[None] * len(steps)]:
        if step is not None:
            sent.append(Job([""] * step[1], sender=step[0]))
            waiting.add(sent[-1])
            continue
        first = {job.sender: job for job in sent[::-1] if job not in taken}  # whose turn it is, for each sender
        batch = waiting.take()
        assert bool(batch) == bool(first)
        assert sum(job.size for job in batch) <= 16
        for sender in {job.sender for job in batch}:
            mine = [job.size for job in batch if job.sender == sender]
            assert len(mine) == 1 or sum(mine) <= SHARE or len({job.sender for job in sent}) < 3
        if sum(min(job.size, 16) for job in first.values()) + SHARE * len(first) <= 16:
            assert {*first.values()} <= {*batch}
        taken += batch
    assert not waiting
    for sender in {job.sender for job in sent}:
        assert [job for job in taken if job.sender == sender] == [job for job in sent if job.sender == sender]
    assert len(taken) == len(sent)


def test_a_sender_with_many_jobs_does_not_fill_the_batches_of_others() -> None:
    waiting = Waiting(64)
    many, one = [Job(["x"], sender="many") for _ in range(200)], Job(["x"], sender="one")
    for job in many[:100]:
        waiting.add(job)
    assert len(waiting.take()) == 64  # alone
    waiting.add(one)
    assert waiting.take() == [*many[64 : 64 + SHARE], one]
    assert len(waiting.take()) == SHARE  # the other may come again any moment
    waiting._asked["one"] -= 2.0
    assert len(waiting.take()) == 100 - 64 - 2 * SHARE
