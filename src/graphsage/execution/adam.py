"""Adam with entrywise clipping of the gradient, as one fused operation on a CPU and one Triton kernel on a GPU."""

from typing import Any

import torch
from torch import Tensor, nn

from graphsage.kernels.backend import on_triton


class Adam(torch.optim.Adam):
    """torch's Adam; `clip` limits each entry of a gradient first (0: it does not).

    On a GPU the step number and the rate live on the device, so that a captured step sees them change.
    """

    def __init__(self, module: nn.Module, lr: float, *, weight_decay: float = 0.0, clip: float = 0.0) -> None:
        parameters = list(module.parameters())
        self.clip = clip
        self.on_device = on_triton(parameters[0])
        super().__init__(parameters, lr=lr, weight_decay=weight_decay, fused=not self.on_device)
        if self.on_device:
            device = parameters[0].device
            self.steps = torch.zeros((), dtype=torch.float32, device=device)
            self.rate = torch.tensor(lr, dtype=torch.float32, device=device)
            self._rate = lr

    def set_rate(self) -> None:
        """Take over a rate that was changed in `param_groups`; called before a captured step is replayed."""
        lr = self.param_groups[0]["lr"]
        if self.on_device and lr != self._rate:
            self.rate.fill_(lr)
            self._rate = lr

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        if not self.on_device:
            if self.clip:
                nn.utils.clip_grad_value_(self.param_groups[0]["params"], self.clip)
            super().step(closure)
            return
        from graphsage.kernels.triton.adam import adam

        group = self.param_groups[0]
        if not (self.rate.is_cuda and torch.cuda.is_current_stream_capturing()):
            self.set_rate()
        self.steps += 1
        for parameter in group["params"]:
            if parameter.grad is None:
                continue
            state = self._moments(parameter)
            adam(
                parameter,
                parameter.grad,
                state["exp_avg"],
                state["exp_avg_sq"],
                self.steps,
                self.rate,
                betas=group["betas"],
                epsilon=group["eps"],
                weight_decay=group["weight_decay"],
                clip=self.clip,
            )

    def _moments(self, parameter: Tensor) -> dict[str, Any]:
        state: dict[str, Any] = self.state[parameter]
        if "exp_avg" not in state:
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        state["step"] = self.steps
        return state

    def restored(self) -> None:
        """After moments were put into `state`: count on from the step they hold."""
        for state in self.state.values():
            if self.on_device:
                self.steps.fill_(float(state["step"]))
