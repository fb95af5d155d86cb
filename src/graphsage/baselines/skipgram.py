"""Skip-gram with negative sampling on pairs of nodes: the step that DeepWalk repeats.

A node u has a vector T[u], another one C[u] serves where it is the context of others. For a batch of B pairs (u, v) and
Q negatives n shared by the batch the loss is Equation 1 with T[u] for z_u, and C[v], C[n] for z_v, z_n.
"""

import torch
from torch import Tensor

from graphsage.execution.capture import captured
from graphsage.kernels.threads import one_thread


class SkipGram:
    """Steps of gradient descent without autograd: only the rows of a batch are touched, by a few small products.

    The derivative of the loss by a score is sigmoid(score) - 1 for a pair and sigmoid(score) for a negative. On a GPU,
    many steps are recorded as one graph and replayed, since each is shorter than the launch of its kernels.
    """

    REPLAYED = 64  # steps in one recorded graph

    def __init__(self, target: Tensor, context: Tensor, lr: float, fresh: Tensor | None = None) -> None:
        self.target, self.context, self.lr = target, context, lr
        self.fresh = None if fresh is None else fresh.to(target.dtype)[:, None]
        self._recorded: tuple[torch.cuda.CUDAGraph, Tensor, Tensor] | None = None

    def step(self, u: Tensor, c: Tensor) -> None:
        """One step in place: u (B,), and its contexts c (B + Q,), the B partners of u followed by the Q negatives."""
        batch = len(u)
        rate = -self.lr / batch
        t_u, c_c = self.target.index_select(0, u), self.context.index_select(0, c)
        c_v, c_n = c_c[:batch], c_c[batch:]
        by_pair = torch.sigmoid_((t_u * c_v).sum(dim=1, keepdim=True)).sub_(1.0).mul_(rate)  # (B, 1)
        by_negative = torch.sigmoid_(t_u @ c_n.t()).mul_(rate)  # (B, Q)
        by_target = torch.addmm(by_pair * c_v, by_negative, c_n)
        by_context = torch.cat([by_pair * t_u, by_negative.t() @ t_u])
        if self.fresh is not None:
            by_target *= self.fresh.index_select(0, u)
            by_context *= self.fresh.index_select(0, c)
        self.target.index_add_(0, u, by_target)
        self.context.index_add_(0, c, by_context)

    def steps(self, u: Tensor, c: Tensor) -> None:
        """Many steps: u (R, B), c (R, B + Q). A step is shorter than it takes to wake a second thread for it."""
        done = self._replay(u, c) if self.target.is_cuda else 0
        with one_thread():
            for row in range(done, len(u)):
                self.step(u[row], c[row])

    def _replay(self, u: Tensor, c: Tensor) -> int:
        whole = len(u) - len(u) % self.REPLAYED
        for start in range(0, whole, self.REPLAYED):
            rows = slice(start, start + self.REPLAYED)
            if self._recorded is None:
                self._record(u[rows], c[rows])
                continue  # the steps were made while warming up
            graph, static_u, static_c = self._recorded
            static_u.copy_(u[rows])
            static_c.copy_(c[rows])
            graph.replay()
        return whole

    def _record(self, u: Tensor, c: Tensor) -> None:
        """Make these steps once as they are, then record them; recording itself changes nothing."""
        static_u, static_c = u.clone(), c.clone()
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for row in range(len(u)):
                self.step(static_u[row], static_c[row])
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with captured(graph):
            for row in range(len(u)):
                self.step(static_u[row], static_c[row])
        self._recorded = graph, static_u, static_c
