"""How many lanes and warps a kernel runs with."""

import triton


def whole_rows(dim: int, columns_per_warp: int = 128, most_warps: int = 8) -> dict[str, int]:
    """For a kernel whose programs take whole rows of `dim` columns."""
    lanes = triton.next_power_of_2(dim)
    return {"DIM": dim, "LANES": lanes, "num_warps": max(1, min(most_warps, lanes // columns_per_warp))}
