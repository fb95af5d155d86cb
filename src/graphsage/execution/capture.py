"""The whole training step as one CUDA graph: captured once for each shape of batch, then replayed.

Gathering does not depend on the weights, so while one step learns, a second stream of the same graph already samples
and gathers for the next one. Two graphs take turns, each learning from the buffers that the other one filled.
If ranks share the step, a graph ends with the gradients of this rank's part. They are summed over the ranks between it
and a third graph, which updates the weights.
"""

import dataclasses
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from graphsage.execution.adam import Adam
from graphsage.execution.ranks import SINGLE_PROCESS, GradientBucket, Ranks
from graphsage.execution.step import EagerStep, Examples, StepObjective, gpu_rows

STAGED = 512  # steps whose examples are chosen at once, between two replays
WARM_UP = 3  # torch and cuBLAS allocate on first use, which must not happen during capture


class CapturedStep:
    """Computes what `EagerStep` computes. Falls back to it, with a warning, if the step cannot be captured."""

    def __init__(
        self, objective: StepObjective, module: nn.Module, optimizer: Adam, ranks: Ranks = SINGLE_PROCESS
    ) -> None:
        self.objective, self.module, self.optimizer, self.ranks = objective, module, optimizer, ranks
        self.total = torch.zeros((), dtype=torch.float64, device=next(module.parameters()).device)
        self.eager: EagerStep | None = None
        self.captures: dict[tuple[torch.Size, ...], _Capture] = {}
        self._first = self._count = 0
        self._current: _Capture | None = None

    def run(self, step: int) -> None:
        if self.eager is None and not self._first <= step < self._first + self._count:
            self._stage(step)
        if self.eager is not None:
            self.eager.run(step)
            return
        assert self._current is not None
        self.optimizer.set_rate()
        self._current.replay()

    def take_loss(self) -> Tensor:
        if self.eager is not None:
            return self.eager.take_loss()
        total = self.total.clone()
        self.total.zero_()
        return total

    def _stage(self, step: int) -> None:
        self._first, self._count = step, self.objective.steps_at_once(step, STAGED)
        examples = self.objective.choose_examples(step, self._count)
        shape = tuple(tensor.shape[1:] for tensor in examples)
        if shape not in self.captures:
            try:
                self.captures[shape] = _Capture(
                    self.objective, self.module, self.optimizer, self.total, examples, self.ranks
                )
            except RuntimeError as error:
                torch.cuda.synchronize()
                reason = str(error).strip().splitlines()[0]
                warnings.warn(
                    f"the training step cannot be captured as a CUDA graph and runs eagerly, which is slower: {reason}",
                    stacklevel=2,
                )
                self.eager = EagerStep(self.objective, self.module, self.optimizer, self.ranks)
                return
        self._current = self.captures[shape]
        self._current.stage(examples)


class _Capture:
    """The graphs for one shape of batch, and what they read and write."""

    def __init__(
        self,
        objective: StepObjective,
        module: nn.Module,
        optimizer: Adam,
        total: Tensor,
        examples: Examples,
        ranks: Ranks,
    ) -> None:
        self.objective, self.module, self.optimizer, self.total, self.ranks = objective, module, optimizer, total, ranks
        self.bucket = GradientBucket(module) if ranks.count > 1 else None
        self.staged = tuple(tensor.new_empty(STAGED, *tensor.shape[1:]) for tensor in examples)
        self.cursor = torch.zeros(1, dtype=torch.int64, device=total.device)
        self.last = torch.zeros_like(self.cursor)
        self.turn = 0
        self.stage(examples)
        self.slots = [self._read(), self._read()]
        self._warm_up()
        self.graphs = [self._capture(0), self._capture(1)]
        self.update = self._capture_update() if self.bucket is not None else None

    def stage(self, examples: Examples) -> None:
        """Take the next steps' examples, and read for the first of them."""
        for buffer, tensor in zip(self.staged, examples, strict=True):
            buffer[: len(tensor)].copy_(tensor)
        self.cursor.zero_()
        self.last.fill_(len(examples[0]) - 1)
        if hasattr(self, "graphs"):
            self._fill(self.turn)

    def replay(self) -> None:
        self.graphs[self.turn].replay()
        if self.bucket is not None and self.update is not None:
            self.ranks.add(self.bucket.buffer)
            self.update.replay()
        self.turn = 1 - self.turn

    def _read(self, out: Tensor | None = None) -> Any:
        return self.objective.gather(tuple(tensor.index_select(0, self.cursor)[0] for tensor in self.staged), out)

    def _fill(self, turn: int) -> None:
        """Read what the cursor stands at into the buffers of one turn."""
        slot = self.slots[turn]
        read = self._read(gpu_rows(self.objective, slot))
        pairs = [(a, b) for a, b in zip(_tensors(slot), _tensors(read), strict=True) if a.data_ptr() != b.data_ptr()]
        torch._foreach_copy_([a for a, _ in pairs], [b for _, b in pairs])

    def _learn(self, turn: int) -> None:
        loss = self.objective.loss(self.slots[turn])
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        if self.bucket is not None:
            self.bucket.collect(loss)
        else:
            self._apply(loss.detach())

    def _apply(self, loss: Tensor) -> None:
        self.optimizer.step()
        self.total += loss

    def _warm_up(self) -> None:
        """Run a few steps on a side stream, as capturing demands, and undo what they learned."""
        weights = [value.clone() for value in self.module.state_dict().values()]
        moments = {p: {name: value.clone() for name, value in s.items()} for p, s in self.optimizer.state.items()}
        steps, total = self.optimizer.steps.clone(), self.total.clone()
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        try:
            with torch.cuda.stream(stream):
                for number in range(2 * WARM_UP):
                    with waiting_refused() if number >= 2 * WARM_UP - 2 else nullcontext():
                        self._fill(1 - number % 2)
                        self._learn(number % 2)
                    if self.bucket is not None:
                        self._apply(self.bucket.hand_back())
        finally:
            torch.cuda.current_stream().wait_stream(stream)
            self._restore(weights, moments, steps, total)

    @torch.no_grad()
    def _restore(
        self, weights: list[Tensor], moments: dict[Tensor, dict[str, Tensor]], steps: Tensor, total: Tensor
    ) -> None:
        for value, before in zip(self.module.state_dict().values(), weights, strict=True):
            value.copy_(before)
        for parameter, state in self.optimizer.state.items():
            for name in ("exp_avg", "exp_avg_sq"):
                moment = moments.get(parameter, {}).get(name)
                state[name].zero_() if moment is None else state[name].copy_(moment)
        self.optimizer.steps.copy_(steps)
        self.total.copy_(total)

    def _capture(self, turn: int) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        # Learning is many short kernels in a row: they go first, and reading ahead takes what they leave idle.
        here = torch.cuda.Stream(priority=-1)  # type: ignore[no-untyped-call]
        ahead = torch.cuda.Stream(priority=0)  # type: ignore[no-untyped-call]
        with captured(graph, here):
            self.cursor += 1
            torch.minimum(self.cursor, self.last, out=self.cursor)  # what is read after the last step is never used
            ahead.wait_stream(here)
            with torch.cuda.stream(ahead):
                self._fill(1 - turn)
            self._learn(turn)
            here.wait_stream(ahead)
        return graph

    def _capture_update(self) -> torch.cuda.CUDAGraph:
        assert self.bucket is not None
        graph = torch.cuda.CUDAGraph()
        with captured(graph):
            self._apply(self.bucket.hand_back())
        return graph


@contextmanager
def waiting_refused() -> Iterator[None]:
    """Refuse operations in which the CPU waits for the GPU. A capture would fail at them too, but a failed capture
    leaves torch's allocator in a state in which memory is not given back."""
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # torch: "a prototype feature"
        before = torch.cuda.get_sync_debug_mode()
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


@contextmanager
def captured(graph: torch.cuda.CUDAGraph, stream: torch.cuda.Stream | None = None) -> Iterator[None]:
    """Capture the block into `graph`.

    torch keeps a cuBLAS workspace per stream. A captured one must come from the graph's own memory and be dropped with
    it; otherwise it holds gigabytes after the graph is gone. So all workspaces are dropped before and after.
    If the block fails, `torch.cuda.graph` leaves its stream as the current one; the old one is made current again.
    """
    before = torch.cuda.current_stream()
    torch._C._cuda_clearCublasWorkspaces()
    try:
        with torch.cuda.graph(graph, stream=stream):
            yield
    finally:
        torch.cuda.set_stream(before)
        torch._C._cuda_clearCublasWorkspaces()


def _tensors(value: Any) -> Iterator[Tensor]:
    """Every tensor inside nested dataclasses and tuples, in a fixed order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _tensors(item)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from _tensors(getattr(value, field.name))
