"""Is damage on disk ever served, and is an acknowledged change ever lost without a word?

    python -m benchmarks.serve_damage [--flips 2000] [--journal 500] [--old CHECKOUT] [--out results/serve/damage.json]

Each flip changes one bit in one file of a model bundle, of a live graph with changes in its journal, or of a graph
folder. The service is started over the damaged files and asked for every node, as a client asks: embeddings, classes,
attributes, neighbors and searches. An answer may be refused; one that is given must be that of the undamaged files. A
graph folder is opened and its arrays are compared. The journal's part flips bits of the WAL, the mark and the manifest
of a live graph that was killed after its last acknowledged change, and opens it. Last, it times opening a live graph of
a million nodes, also with the package in CHECKOUT (52bbd43), the two alternating; at most 1.5 times the processor time
passes.
"""

import argparse
import io
import json
import logging
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from starlette.testclient import TestClient

from benchmarks.serve_process import ROOT, surroundings, write_result
from graphsage.datasets.open import open_data
from graphsage.errors import GraphSageError
from graphsage.graph.build import from_edges
from graphsage.live.adjacency import Cap
from graphsage.live.change import Change, NodeChange
from graphsage.live.store import LiveGraph
from graphsage.serving.app import make_app
from graphsage.serving.service import Service

sys.path.append(str(ROOT / "tests" / "helpers"))
from small_service import N, make_small, small_model

CAP = Cap(6, "symmetric", 0)
NODES = 1_000_000
ROUNDS = 9
_OPEN = """
import sys, time
from pathlib import Path
import numpy as np, torch
from graphsage.graph.build import from_edges
from graphsage.live.store import LiveGraph, create_store
try:
    from graphsage.live.adjacency import Cap
except ImportError:
    from graphsage.live.cap import Cap
torch.set_num_threads(1)
folder = Path(sys.argv[1])
if not folder.exists():
    n, draw = int(sys.argv[2]), np.random.default_rng(0)
    x = draw.normal(size=(n, 64)).astype(np.float32)
    graph = from_edges(draw.integers(0, n, (10 * n, 2)), n, features=x, ids=[f"node-{i}" for i in range(n)])
    create_store(folder, graph)
began, cpu = time.perf_counter(), time.process_time()
live = LiveGraph(folder, Cap(128, "symmetric", 0))
with live.reading() as (overlay, _):
    overlay.find("node-77")
print(time.perf_counter() - began, time.process_time() - cpu)
live.close()
"""


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)


def flipped(path: Path, draw: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)


def ask(run: Path, graph: Path) -> tuple[list[Any], list[int]]:
    """The answers of a service, None for one that was refused with 503; and the status of each."""
    service = Service(run, graph)
    try:
        client = TestClient(make_app(service), raise_server_exceptions=False)
        end = time.monotonic() + 20
        while not service.updater.caught_up() and not service.updater.trouble and time.monotonic() < end:
            time.sleep(0.002)
        ids = [f"node-{row}" for row in range(N)]
        new = {"attributes": {"words": "about logic item", "size": 3}, "edges": ["node-1", "node-4"]}
        answers = [
            client.post("/v1/embed", json={"ids": ids, "nodes": [new], "encoding": "base64"}),
            client.post("/v1/predict", json={"ids": [*ids, "added"], "nodes": [new]}),
            client.get("/v1/model"),
            *(client.post("/v1/search", json={"id": f"node-{row}", "k": 5}) for row in (3, 17)),
            *(client.get(f"/v1/nodes/{id}") for id in (*ids[::3], "added", "node-29")),
        ]
    finally:
        service.close()
    return [each.json() if each.status_code != 503 else None for each in answers], [
        each.status_code for each in answers
    ]


def outcome(look: Callable[[], tuple[list[Any], list[int]]], right: list[Any], log: io.StringIO) -> str:
    log.seek(0)
    log.truncate()
    try:
        found, statuses = look()
    except GraphSageError:
        return "refused"
    except Exception as error:
        return f"TRACEBACK {type(error).__name__}"
    if 500 in statuses or "Traceback" in log.getvalue():
        return "TRACEBACK in the service"
    if any(answer is not None and answer != wanted for answer, wanted in zip(found, right, strict=True)):
        return "WRONG"
    return "refused in part" if None in found else "same answers"


def flips(folder: Path, count: int, draw: random.Random) -> dict[str, Any]:
    folder.mkdir()
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger("graphsage").addHandler(handler)
    logging.getLogger("graphsage").propagate = False
    small = make_small(folder)
    with LiveGraph(small.graph, CAP) as live:
        x = small_model()[1][0]
        live.apply(Change((NodeChange("added", x, {"words": "logic"}),), (("added", "node-3"), ("added", "node-4"))))
        live.compact()
        live.apply(Change((NodeChange("node-5", x, {"words": "changed"}),), (("node-5", "node-9"),)))
        live.apply(Change(removed_edges=(("node-0", "node-2"),)))
    data = folder / "data"
    draw_graph = np.random.default_rng(1)
    made = from_edges(
        draw_graph.integers(0, 200, (700, 2)),
        200,
        features=draw_graph.normal(size=(200, 9)).astype(np.float32),
        labels=np.arange(200) % 4,
        ids=[f"id-{i}" for i in range(200)],
    )
    made.save(data)

    def arrays() -> tuple[list[Any], list[int]]:
        graph = open_data(data).graph
        tensors = [graph.indptr, graph.indices, graph.features, graph.labels]
        return [*(None if t is None else t.tolist() for t in tensors), list(graph.ids or ()), graph.class_names], []

    looks: dict[str, Callable[[], tuple[list[Any], list[int]]]] = {
        "bundle": lambda: ask(small.run, small.graph),
        "live graph": lambda: ask(small.run, small.graph),
        "graph folder": arrays,
    }
    folders = {"bundle": small.run, "live graph": small.graph, "graph folder": data}
    ask(small.run, small.graph)  # writes the caches of the map
    right = {name: look()[0] for name, look in looks.items()}
    kept = folder / "kept"
    for name, place in folders.items():
        shutil.copytree(place, kept / name)
    found: dict[str, Counter[str]] = {name: Counter() for name in folders}
    by_file: dict[str, Counter[str]] = {}
    for number in range(count):
        name = draw.choice(list(folders))
        path = draw.choice(files_of(kept / name))
        relative = path.relative_to(kept / name)
        flipped(folders[name] / relative, draw)
        result = outcome(looks[name], right[name], log)
        found[name][result] += 1
        if result.isupper() or result.startswith("TRACE"):
            print(f"{name}/{relative}: {result}", file=sys.stderr, flush=True)
        by_file.setdefault(f"{name}/{relative}", Counter())[result] += 1
        shutil.rmtree(folders[name])
        shutil.copytree(kept / name, folders[name])
        if number % 100 == 99:
            print(f"{number + 1} flips: { {n: dict(c) for n, c in found.items()} }", file=sys.stderr, flush=True)
    logging.getLogger("graphsage").removeHandler(handler)
    return {"flips": count, **{name: dict(each) for name, each in found.items()}, "files": len(by_file)}


def journal_flips(folder: Path, count: int, draw: random.Random) -> dict[str, Any]:
    """Flips in the files that say which changes were acknowledged."""
    folder.mkdir()
    small = make_small(folder)
    live, x = LiveGraph(small.graph, CAP), small_model()[1][0]
    acknowledged = [f"w{i}" for i in range(40)]
    for id in acknowledged[:10]:
        live.apply(Change((NodeChange(id, x),), ((id, "node-0"),)))
    live.compact()
    for id in acknowledged[10:]:
        live.apply(Change((NodeChange(id, x),), ((id, "node-0"),)))
    killed = folder / "killed"
    shutil.copytree(small.graph, killed)  # what a kill leaves at this moment
    live.close()
    found: Counter[str] = Counter()
    for number in range(count):
        place = folder / str(number)
        shutil.copytree(killed, place)
        path = place / draw.choice(["journal.sqlite-wal", "journal.sqlite-wal", "manifest.json", "journal.mark"])
        flipped(path, draw)
        try:
            with LiveGraph(place, CAP) as again, again.reading() as (overlay, _):
                there = [overlay.find(id) is not None for id in acknowledged]
            found["all changes" if all(there) else "LOST"] += 1
        except GraphSageError:
            found["refused"] += 1
        except Exception as error:
            found[f"TRACEBACK {type(error).__name__}"] += 1
        shutil.rmtree(place)
    return {"flips": count, "acknowledged": len(acknowledged), **found}


def opening(folder: Path, old: Path | None) -> dict[str, Any]:
    packages = {"new": ROOT / "src", **({} if old is None else {"old": old / "src"})}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in packages}
    for turn in range(ROUNDS + 1):
        for name, package in packages.items():
            command = [sys.executable, "-c", _OPEN, str(folder / name), str(NODES)]
            said = subprocess.run(command, env={"PYTHONPATH": str(package)}, check=True, capture_output=True, text=True)
            if turn:  # the first one writes the graph
                wall, cpu = map(float, said.stdout.split())
                times[name].append((wall, cpu))
    result: dict[str, Any] = {"nodes": NODES, "rounds": ROUNDS}
    for name, each in times.items():
        result[name] = {
            "seconds": round(statistics.median(wall for wall, _ in each), 4),
            "cpu_seconds": round(statistics.median(cpu for _, cpu in each), 4),
            "fastest_s": round(min(wall for wall, _ in each), 4),
        }
    if old is not None:
        result["ratio_of_cpu"] = round(result["new"]["cpu_seconds"] / result["old"]["cpu_seconds"], 2)
        result["ratio"] = round(result["new"]["seconds"] / result["old"]["seconds"], 2)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flips", type=int, default=2000)
    parser.add_argument("--journal", type=int, default=500)
    parser.add_argument("--old", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results/serve/damage.json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    where, draw = surroundings(), random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        result: dict[str, Any] = {
            "bit_flips": flips(Path(folder) / "flips", options.flips, draw),
            "journal": journal_flips(Path(folder) / "journal", options.journal, draw),
            "opening": opening(Path(folder), options.old),
        }
    bad = [word for word in ("WRONG", "TRACEBACK", "LOST") if word in json.dumps(result)]
    passed = not bad and result["opening"].get("ratio_of_cpu", 1) <= 1.5
    about = "a service, a live graph and a graph folder over files with flipped bits"
    write_result(
        options.out, about, "python -m benchmarks.serve_damage", {"surroundings": where, "passed": passed, **result}
    )
    raise SystemExit(not passed)


if __name__ == "__main__":
    main()
