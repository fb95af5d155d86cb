"""Records of results: scores over seeds, and everything needed to judge the number."""

import importlib.metadata
import platform
import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from graphsage.checksummed_json import read_checksummed, write_checksummed
from graphsage.errors import DataError

MEASURED = ("table1", "figure2a", "figure2b", "depth", "figure3", "pooling", "rotation", "theory", "facts", "wilcoxon")
EXPERIMENTS = (*MEASURED, "claims")
"""In the order in which all are made: the last ones read what the others wrote."""
LAYOUT = 1
"""Of the files that experiments write: raised when what reads them needs something that older ones lack."""
ON_CPU = ("random", "features", "deepwalk", "rotation")
"""Kinds of trials that no GPU takes part in, wherever they run."""
IN_TF32 = ("graphsage", "timed step")
"""Kinds of trials that --tf32 is for."""
LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn", "graphsage")


def spread(values: Iterable[float]) -> dict[str, Any]:
    """Mean, sample standard deviation and the values, rounded to what a reader needs."""
    kept = [round(value, 4) for value in values]
    return {
        "mean": round(statistics.fmean(kept), 4),
        "std": round(statistics.stdev(kept), 4) if len(kept) > 1 else 0.0,
        "values": kept,
    }


def short(value: float) -> str:
    """A time as people say it."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def write_result(path: Path, about: str, command: str, body: dict[str, Any]) -> None:
    """Write `body` with the hardware and library versions it was made on."""
    record = {"about": about, "command": command, "hardware": hardware(), "versions": versions(), **body}
    write_checksummed(path, record)


def read_result(path: Path) -> dict[str, Any] | None:
    """What an experiment wrote; None where it has written nothing."""
    if not path.exists():
        return None
    record = read_checksummed(path)
    if record.get("layout") != LAYOUT:
        raise DataError(f"{path} is no result that this version of graphsage wrote; delete it and make it again with "
                        f"`graphsage reproduce {path.stem}`, which finds its trials")  # fmt: skip
    return record


def by_machine(record: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The rows of Figure 2A, by the machine that they were timed on."""
    return {timed["device"]: timed["rows"] for timed in (record, *record.get("elsewhere", ()))}


def usual(times: Mapping[str, Any]) -> float:
    """The median: others on the machine can only make a time longer."""
    return float(statistics.median(times["values"]))


def hardware(device: str = "auto", *, tf32: bool = False) -> dict[str, Any]:
    """The machine, its GPU unless `device` leaves that idle, and whether that multiplied in TF32."""
    import torch

    from graphsage.kernels.threads import cores

    gpu = torch.cuda.get_device_name() if device != "cpu" and torch.cuda.is_available() else None
    found = {"machine": platform.machine(), "cores": cores(), "gpu": gpu}
    return found | ({"products": "TF32"} if tf32 else {})


def machine(hardware: dict[str, Any]) -> str:
    """In words."""
    if hardware["gpu"] is None:
        return f"{hardware['cores']} cores, no GPU"
    return f"{hardware['gpu']}, {hardware['products']}" if "products" in hardware else str(hardware["gpu"])


def machine_of(trial: Mapping[str, Any]) -> str:
    """What made a trial, by its record, in words: a GPU is not named for a method that leaves it idle."""
    found = dict(trial["hardware"])
    if trial["type"] not in IN_TF32:
        found.pop("products", None)
    return machine({**found, "gpu": None} if trial["type"] in ON_CPU else found)


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
