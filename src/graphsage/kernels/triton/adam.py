"""Adam (Kingma and Ba) for one parameter in one pass; the step number and the rate are read on the device."""

import math

import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _adam(
    parameter,
    grad,
    first,
    second,
    step,
    rate,
    count,
    weight_decay,
    clip,
    BETA1: tl.constexpr,
    BETA2: tl.constexpr,
    LOG_BETA1: tl.constexpr,
    LOG_BETA2: tl.constexpr,
    EPSILON: tl.constexpr,
    CLIPPED: tl.constexpr,
    LANES: tl.constexpr,
):
    i = tl.program_id(0) * LANES + tl.arange(0, LANES)
    inside = i < count
    p = tl.load(parameter + i, mask=inside)
    g = tl.load(grad + i, mask=inside)
    if CLIPPED:
        g = tl.minimum(tl.maximum(g, -clip), clip)
    g = g + weight_decay * p
    m = tl.load(first + i, mask=inside)
    v = tl.load(second + i, mask=inside)
    m = m + (g - m) * (1 - BETA1)
    v = v * BETA2 + g * g * (1 - BETA2)
    t = tl.load(step).to(tl.float64)
    unbias1 = (1.0 - tl.exp(t * LOG_BETA1)).to(tl.float32)
    unbias2 = (1.0 - tl.exp(t * LOG_BETA2)).to(tl.float32)
    size = tl.load(rate).to(tl.float32) / unbias1
    p = p - size * m / (tl.sqrt(v) / tl.sqrt(unbias2) + EPSILON)
    tl.store(first + i, m, mask=inside)
    tl.store(second + i, v, mask=inside)
    tl.store(parameter + i, p, mask=inside)


def adam(
    parameter: Tensor,
    grad: Tensor,
    first: Tensor,
    second: Tensor,
    step: Tensor,
    rate: Tensor,
    *,
    betas: tuple[float, float],
    epsilon: float,
    weight_decay: float,
    clip: float,
) -> None:
    """Update `parameter` and its moments in place; `step` already counts this step. `clip` 0 does not clip."""
    lanes = 1024
    _adam[(triton.cdiv(parameter.numel(), lanes),)](
        parameter,
        grad.contiguous(),
        first,
        second,
        step,
        rate,
        parameter.numel(),
        weight_decay,
        clip,
        BETA1=betas[0],
        BETA2=betas[1],
        LOG_BETA1=math.log(betas[0]),
        LOG_BETA2=math.log(betas[1]),
        EPSILON=epsilon,
        CLIPPED=clip > 0,
        LANES=lanes,
        num_warps=4,
    )
