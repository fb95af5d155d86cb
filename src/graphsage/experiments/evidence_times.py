"""What the times of Figure 2A say about the claims of the paper."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphsage.experiments.evidence import Found, Records, missing
from graphsage.experiments.figure2a import PASSES
from graphsage.experiments.record import by_machine, short, usual

Rows = dict[str, dict[str, Any]]
"""By the name of the method."""


@dataclass(frozen=True)
class _Timed:
    """What one machine's times say; it holds where there is no reason why not."""

    ratio: str
    each: str
    why: str = ""


def _on_every_machine(records: Records, judge: Callable[[Rows], _Timed | None]) -> Found:
    """A claim about times holds where it holds on all machines that were timed."""
    record = records["figure2a"]
    if record is None:
        return missing("figure2a")
    judged = {machine: judge({row["row"]: row for row in rows}) for machine, rows in by_machine(record).items()}
    found = {machine: timed for machine, timed in judged.items() if timed is not None}
    if not found:
        return missing("figure2a on a single graph")
    if len(found) == 1:
        timed = next(iter(found.values()))
        return Found(f"{timed.ratio} ({timed.each})", not timed.why, timed.why)
    ratios = ", ".join(f"{timed.ratio} on {machine}" for machine, timed in found.items())
    each = "; ".join(f"{machine}: {timed.each}" for machine, timed in found.items())
    why = "; ".join(f"on {machine}: {timed.why}" for machine, timed in found.items() if timed.why)
    return Found(f"{ratios} ({each})", not why, why)


def _names(factors: dict[str, float]) -> str:
    return ", ".join(name.removeprefix("GraphSAGE-") for name in factors)


def _factors(factors: dict[str, float], digits: int = 0) -> str:
    return ", ".join(f"{name.removeprefix('GraphSAGE-')} {value:.{digits}f} x" for name, value in factors.items())


def lstm_slower(records: Records) -> Found:
    def judge(rows: Rows) -> _Timed:
        lstm, pool = (usual(rows[f"GraphSAGE-{n}"]["supervised_step_milliseconds"]) for n in ("LSTM", "pool"))
        ratio = lstm / pool
        outside = "" if 1.5 <= ratio <= 4 else "outside of 1.5 to 4"
        return _Timed(f"{ratio:.1f} x", f"{short(lstm)} and {short(pool)} ms a step", outside)

    return _on_every_machine(records, judge)


def lstm_slowest(records: Records) -> Found:
    def judge(all_rows: Rows) -> _Timed:
        rows = {name: usual(row["supervised_step_milliseconds"]) for name, row in all_rows.items()
                if name.startswith("GraphSAGE")}  # fmt: skip
        slowest = max(rows, key=lambda name: rows[name])
        apart = rows[slowest] / min(rows.values())
        each = ", ".join(f"{name.removeprefix('GraphSAGE-')} {short(value)} ms" for name, value in rows.items())
        slower = "" if slowest == "GraphSAGE-LSTM" else f"{slowest} is slowest"
        far = "" if apart <= 10 else f"{slowest} takes {apart:.0f} times as long as the fastest"
        return _Timed(f"{apart:.0f} x from fastest to slowest", each, "; ".join(filter(None, (slower, far))))

    return _on_every_machine(records, judge)


def deepwalk_inference(records: Records) -> Found:
    def judge(rows: Rows) -> _Timed | None:
        if "DeepWalk" not in rows:
            return None
        sampled, exact = ({name: row[factor] for name, row in rows.items() if name != "DeepWalk"}
                          for factor in ("deepwalk_inference_factor", "deepwalk_exact_factor"))  # fmt: skip
        mean = statistics.geometric_mean(sampled.values())
        each = f"{_factors(sampled)}; beside exact inference {_factors(exact)}"
        below = {name: factor for name, factor in sampled.items() if factor < 100}
        return _Timed(f"{mean:.0f} x", each, "" if mean >= 100 else f"below 100 for {_names(below)}")

    return _on_every_machine(records, judge)


def deepwalk_training(records: Records) -> Found:
    def judge(rows: Rows) -> _Timed | None:
        if "DeepWalk" not in rows:
            return None
        own = PASSES * usual(rows["DeepWalk"]["pass_seconds"])
        others = {name: usual(row["pass_seconds"]) / own for name, row in rows.items() if name != "DeepWalk"}
        mean = statistics.geometric_mean(others.values())
        above = {name: value for name, value in others.items() if value > 5}
        below = {name: value for name, value in others.items() if value < 2}
        why = f"more than 5 for {_names(above)}" if mean > 5 else f"less than 2 for {_names(below)}" if mean < 2 else ""
        return _Timed(f"{mean:.1f} x", f"{_factors(others, 1)}; by one pass each {PASSES * mean:.0f} x", why)

    return _on_every_machine(records, judge)
