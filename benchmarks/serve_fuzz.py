"""Can any request make the service fail? Generated from its own OpenAPI description (schemathesis), good and bad.

    python -m benchmarks.serve_fuzz [--cases 1000] [--out results/serve/fuzz.json]

Passes when no answer is 5xx (503 apart, which says "not now") and, without a key, all operations but health answer 401.
"""

import argparse
import random
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from benchmarks.serve_process import ROOT, Server, serving, surroundings, write_result
from graphsage.serving.keys import SCOPES, add_key

sys.path.append(str(ROOT / "tests" / "helpers"))
from small_service import Small, make_small

OPEN = ("/healthz", "/readyz")
KINDS = ("application/json", "text/plain", "multipart/form-data")


def known(body: Any, draw: random.Random, field: str = "") -> Any:
    """`body` with names of nodes that are in the graph wherever it names a node, and columns that the model reads."""
    if isinstance(body, dict):
        more = {"words": "about logic", "size": 3} if field == "attributes" else {}
        return {**{name: known(value, draw, name) for name, value in body.items() if name != "features"}, **more}
    if isinstance(body, list):
        return [known(value, draw, field) for value in body]
    if isinstance(body, str) and field in ("ids", "id", "edges", "source", "target"):
        return f"node-{draw.randrange(30)}"
    return body


def fuzz(operation: Any, server: Server, cases: int, key: str | None) -> Counter[str]:
    """Statuses of `cases` requests, half of them such as the description allows, half such as it does not."""
    seen: Counter[str] = Counter()
    session = requests.Session()
    headers = {"X-API-Key": key} if key else {}

    def send(case: Any) -> None:
        if sum(seen.values()) % 2:  # every other request names nodes that are there
            case.body = known(case.body, random.Random(sum(seen.values())))
        try:
            answer = case.call(base_url=f"http://{server.host}:{server.port}", session=session, headers=headers)
            seen[str(answer.status_code)] += 1
            if answer.status_code >= 500 and answer.status_code != 503:
                seen[f"failed: {case.method} {case.formatted_path}"] += 1
        except (requests.exceptions.InvalidHeader, requests.exceptions.InvalidURL, ValueError, UnicodeError):
            seen["cannot be sent"] += 1

    for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
        limits = settings(
            max_examples=max(1, cases // 2),
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        try:
            limits(given(case=operation.as_strategy(generation_mode=mode))(lambda case: send(case)))()
        except (Unsatisfiable, schemathesis.errors.SchemathesisError):
            continue  # nothing can be wrong with a request that has neither body nor parameters
    draw = random.Random(0)
    while sum(seen.values()) < cases:  # an operation that takes nothing is sent what it does not ask for
        answer = session.request(
            operation.method,
            f"http://{server.host}:{server.port}{operation.path}",
            timeout=30,
            params={draw.choice("abc"): draw.randbytes(4)},
            data=draw.randbytes(draw.randrange(64)),
            headers={**headers, "x-other": draw.randbytes(6).hex(), "content-type": draw.choice(KINDS)},
        )
        seen[str(answer.status_code)] += 1
        if answer.status_code >= 500 and answer.status_code != 503:
            seen[f"failed: {operation.method} {operation.path}"] += 1
    return seen


def run(small: Small, folder: Path, cases: int) -> dict[str, Any]:
    keys = folder / "keys"
    key = add_key(keys, "fuzz", SCOPES)
    with serving(small.run, small.graph, "--api-keys", str(keys)) as server:
        address = f"http://{server.host}:{server.port}/openapi.json"
        schema = schemathesis.openapi.from_url(address, headers={"X-API-Key": key})
        operations = [found.ok() for found in schema.get_all_operations()]
        rows, closed = {}, {}
        for operation in operations:
            name = f"{operation.method.upper()} {operation.path}"
            rows[name] = dict(fuzz(operation, server, cases, key))
            print(name, rows[name], file=sys.stderr, flush=True)
            if operation.path not in OPEN:
                closed[name] = dict(fuzz(operation, server, max(2, cases // 50), None))
        alive = requests.get(f"http://{server.host}:{server.port}/healthz", timeout=10).status_code == 200
    return {"operations": rows, "without_key": closed, "alive": alive}


def verdict(found: dict[str, Any]) -> bool:
    failed = [name for name, seen in found["operations"].items() if any(s.startswith("failed") for s in seen)]
    opened = [name for name, seen in found["without_key"].items() if set(seen) - {"401", "cannot be sent"}]
    return found["alive"] and not failed and not opened


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000, help="for each operation")
    parser.add_argument("--out", type=Path, default=Path("results/serve/fuzz.json"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    where = surroundings()
    with tempfile.TemporaryDirectory() as folder:
        found = run(make_small(Path(folder)), Path(folder), options.cases)
    passed = verdict(found)
    counts = {name: sum(n for s, n in seen.items() if s.isdigit()) for name, seen in found["operations"].items()}
    write_result(
        options.out,
        "requests generated from the service's own description",
        "python -m benchmarks.serve_fuzz",
        {"surroundings": where, "cases_asked": options.cases, "passed": passed, "cases": counts, **found},
    )
    raise SystemExit(not passed)


if __name__ == "__main__":
    main()
