"""Result files: scores over seeds, everything needed to judge the number, and rows that earlier commands made."""

import importlib.metadata
import json
import platform
import statistics
from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any

from graphsage.checksummed_json import read_checksummed, write_checksummed
from graphsage.errors import DataError

MEASURED = ("table1", "figure2a", "figure2b", "depth", "figure3", "pooling", "rotation", "theory", "facts", "wilcoxon")
EXPERIMENTS = (*MEASURED, "claims")
"""In the order in which they are made: the last ones read the results of the others."""
LAYOUT = 1
"""Version of the result files: raised when their readers need a field that older files lack."""
LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn", "graphsage")


def spread(values: Iterable[float]) -> dict[str, Any]:
    """Mean, sample standard deviation and the values, rounded to four digits."""
    kept = [round(value, 4) for value in values]
    return {
        "mean": round(statistics.fmean(kept), 4),
        "std": round(statistics.stdev(kept), 4) if len(kept) > 1 else 0.0,
        "values": kept,
    }


def short(value: float) -> str:
    """A time with two significant digits, or whole from 10 on."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def write_result(path: Path, about: str, command: str, body: dict[str, Any]) -> None:
    """Write `body` with the hardware and library versions it was made on."""
    record = {"about": about, "command": command, "hardware": hardware(), "versions": versions(), **body}
    write_checksummed(path, record)


def read_result(path: Path) -> dict[str, Any] | None:
    """The result of an experiment; None if there is no file."""
    if not path.exists():
        return None
    record = read_checksummed(path)
    if record.get("layout") != LAYOUT:
        raise DataError(
            f"{path} is no result that this version of graphsage wrote; delete it and make it again with "
            f"`graphsage reproduce {path.stem}`, which finds its trials"
        )
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


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


Record = dict[str, Any]


def merge_results(earlier: Record | None, body: Record, part: str, key: Callable[[Record], Hashable]) -> Record:
    """`body` with the rows of `body[part]` that an earlier command made and this one did not, identified by `key`.

    Rows of another profile, of other settings or an older version of the code, or of other data under the same name
    are left out.
    """
    if earlier is None or any(
        earlier.get(name) != json.loads(json.dumps(body.get(name))) for name in ("profile", "version", "settings")
    ):
        return body
    data: Record = earlier["data"]
    same = {name for name in data if data[name]["digest"] == body["data"].get(name, data[name])["digest"]}
    made = {key(row) for row in body[part]}
    kept = [row for row in earlier[part] if row["data"] in same and key(row) not in made]
    machines = earlier["trials_on"] if kept else []
    return {
        **body,
        "data": {name: data[name] for name in data if name in same} | body["data"],
        part: kept + body[part],
        "trials_on": machines,
    }
