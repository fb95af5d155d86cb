"""What a machine can do, as measured by `graphsage plan --calibrate`: rates for each kind of work."""

import bisect
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from graphsage.atomic import atomic_file
from graphsage.cluster.plan.work import Gather, Work
from graphsage.errors import DataError

VERSION = 1


@dataclass(frozen=True)
class Rate:
    """Reading one row at random from a table of `table_bytes` costs so much for the row and for each of its bytes."""

    table_bytes: float
    row_seconds: float
    byte_seconds: float


@dataclass(frozen=True)
class Profile:
    """All for the whole machine, with all its cores at work."""

    gather: Mapping[str, tuple[Rate, ...]]
    """By kind of reading, with growing tables: from those in cache to one in memory."""
    product_flops: float
    recurrent_flops: float
    recurrent_forward_flops: float
    stream_bytes: float
    fresh_bytes: float
    """As stream_bytes, where the result is in memory that was just handed out."""
    call_seconds: float
    draw_row_seconds: float
    """A row draws S neighbors in draw_row_seconds + S draw_seconds + S^2 compare_seconds."""
    draw_seconds: float
    compare_seconds: float
    step_seconds: Mapping[str, float]
    """A step of almost nothing, by aggregator: what starting operations costs."""
    disk_bytes: float
    """Read in order, a second."""
    disk_reads: float
    """Reads of 4 KiB at random places, a second."""
    reduce_seconds: float
    """Latency of an all_reduce between two processes on loopback, and its bandwidth."""
    reduce_bytes: float
    about: Mapping[str, Any] = field(default_factory=dict)

    def parts(self, work: Work) -> dict[str, float]:
        """Seconds that each kind of work takes; they do not overlap."""
        draws = sum(rows * (self.draw_row_seconds + size * self.draw_seconds + size**2 * self.compare_seconds)
                    for rows, size in work.drawn)  # fmt: skip
        products = work.products / self.product_flops
        forward_only = not work.drawn
        recurrent = work.recurrent / (self.recurrent_forward_flops if forward_only else self.recurrent_flops)
        return {"drawing": draws, "gathering": sum(map(self.gathering, work.gathers)),
                "products": products + recurrent,
                "passes": work.streamed / self.stream_bytes + work.fresh / self.fresh_bytes,
                "starting operations": work.calls * self.call_seconds}  # fmt: skip

    def gathering(self, gather: Gather) -> float:
        """Between two measured tables the cost goes with the logarithm of the size; beyond the largest it stays."""
        rates = self.gather[gather.kind]
        place = bisect.bisect_left([rate.table_bytes for rate in rates], gather.table_bytes)
        if place in (0, len(rates)):
            return _cost(rates[min(place, len(rates) - 1)], gather)
        low, high = rates[place - 1], rates[place]
        share = math.log(gather.table_bytes / low.table_bytes) / math.log(high.table_bytes / low.table_bytes)
        return (1 - share) * _cost(low, gather) + share * _cost(high, gather)

    def save(self, path: Path) -> None:
        with atomic_file(path) as temporary:
            temporary.write_text(json.dumps({"version": VERSION, **asdict(self)}, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Profile":
        again = f"graphsage plan --calibrate {path}"
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            version = values.pop("version")
            gather = {kind: tuple(Rate(**rate) for rate in rates) for kind, rates in values.pop("gather").items()}
            found = cls(gather=gather, **values)
        except FileNotFoundError:
            raise DataError(f"{path} does not exist; measure this machine first: {again}") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{path} is no profile ({error!r}); measure again: {again}") from error
        if version != VERSION:
            raise DataError(f"{path} is a profile of version {version}, not {VERSION}; measure again: {again}")
        return found


def _cost(rate: Rate, gather: Gather) -> float:
    return gather.rows * (rate.row_seconds + gather.row_bytes * rate.byte_seconds)
