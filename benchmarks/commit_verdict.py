"""Verdicts of `benchmarks.two_commits`: medians, ratios and quartiles of a row, and its line of the printed table."""

import statistics
from collections.abc import Sequence
from typing import Any

SIDES = ("old", "new")
SLOWER = {"cpu": 1.05, "cuda": 1.03}
"""The most that NEW may take, as a factor of OLD."""
MORE_MEMORY = {"cpu": 1.005, "cuda": 1.001}
"""The same for peak memory; two processes with the same code differed by up to 0.2% on a CPU."""
BUSY = 0.1  # share of the cores that other processes use, above which wall times are not comparable
MEDIAN_ERROR = 0.93  # standard error of a median, as a factor of the interquartile range / sqrt(n)
SAME_RESULT = 0.01  # relative: rounding in TF32 or bfloat16, not another computation


def judged(
    seconds: dict[str, list[float]],
    processor: dict[str, list[float]],
    memory: dict[str, dict[str, dict[str, int]]],
    checks: dict[str, float],
    device: str,
    others: float = 0.0,
) -> dict[str, Any]:
    """A row's medians, ratios, quartiles and verdict. The ratio that counts is the median over rounds of new / old:
    both halves of a round share the machine's state. If that is too noisy on a CPU, processor seconds decide.
    `others` is the share of the cores that other processes used."""
    ratios, processor_ratios = ratios_of(seconds), ratios_of(processor)
    medians = {side: statistics.median(seconds[side]) for side in SIDES}
    ratio, (first, third) = statistics.median(ratios), quartiles(ratios)
    error = MEDIAN_ERROR * (third - first) / len(ratios) ** 0.5
    grown = {phase: memory["new"][phase]["peak"] / max(memory["old"][phase]["peak"], 1) for phase in ("set_up", "runs")}
    bad = []
    noisy = 2 * error > SLOWER[device] - 1 or (device == "cpu" and others > BUSY)
    if (statistics.median(processor_ratios) if noisy and device == "cpu" else ratio) > SLOWER[device]:
        bad.append("slower")
    if noisy:
        bad.append("noisy")
    if max(grown.values()) > MORE_MEMORY[device]:
        bad.append("more memory")
    if abs(checks["new"] - checks["old"]) > SAME_RESULT * abs(checks["old"]):
        bad.append("different results")
    return {
        "old_seconds": medians["old"],
        "new_seconds": medians["new"],
        "old_quartiles": quartiles(seconds["old"]),
        "new_quartiles": quartiles(seconds["new"]),
        "ratio": ratio,
        "ratio_quartiles": [first, third],
        "ratio_error": error,
        "ratio_of_medians": medians["new"] / medians["old"],
        "processor_ratio": statistics.median(processor_ratios),
        "processor_ratio_quartiles": quartiles(processor_ratios),
        "rounds": len(ratios),
        "others_share": others,
        "old_memory": memory["old"],
        "new_memory": memory["new"],
        "memory_ratio": grown,
        "checks": checks,
        "verdict": ", ".join(bad) or "ok",
    }


def ratios_of(seconds: dict[str, list[float]]) -> list[float]:
    """new / old of each round."""
    return [new / old for old, new in zip(seconds["old"], seconds["new"], strict=True)]


def quartiles(values: Sequence[float]) -> list[float]:
    """First and third."""
    if len(values) < 2:
        return [values[0], values[0]]
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return [first, third]


COLUMNS = "{:36}{:>10}{:>10}{:>8}{:>16}{:>8}{:>9}{:>9}  {}"
HEADER = COLUMNS.format("row", "old ms", "new ms", "ratio", "quartiles", "CPU s", "old MB", "new MB", "verdict")


def line_of(name: str, row: dict[str, Any]) -> str:
    """One line of the printed table. Memory is the higher peak of set-up and runs."""
    if "error" in row:
        return f"{name:36}{row['error']}"
    times = (f"{row[f'{side}_seconds'] * 1e3:.3f}" for side in SIDES)
    spread = "-".join(f"{value:.3f}" for value in row["ratio_quartiles"])
    peaks = (f"{max(phase['peak'] for phase in row[f'{side}_memory'].values()) / 1e6:.0f}" for side in SIDES)
    ratios = f"{row['ratio']:.3f}", spread, f"{row['processor_ratio']:.3f}"
    return COLUMNS.format(name, *times, *ratios, *peaks, row["verdict"])
