"""Where results lie, for the files that make tables of them."""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def result(name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((ROOT / "results" / f"{name}.json").read_text(encoding="utf-8"))
    return record
