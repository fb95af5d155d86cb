"""A graph larger than the memory allowed: built from tables and embedded exactly, killed half way and resumed.

    python -m benchmarks.larger_graph FOLDER [--nodes 10000000] [--memory 3GB] [--out results/scale/larger-graph.json]

FOLDER needs about 35 GB for 10 million nodes. What is there is used again, so an interrupted run continues with the
phase it was in. Degrees follow a power law; features are normal numbers in float16; weights are random, since the
time does not depend on them. Everything runs through the command line, each command in a process of its own.
"""

import argparse
import hashlib
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks.measured_process import Taken, disk_speed, forget, graphsage

WIDTH = 128
CHUNK = 250_000  # nodes, or edges over EDGES_A_NODE, of a row group
EDGES_A_NODE = 10.001  # each is stored both ways; a few repeat or are loops
HALF_WAY = 0.6  # of all blocks: the last layer has begun, and some of it is kept
STRIDE = 7_368_787  # a prime: spreads the hubs over all rows


def write_nodes(path: Path, nodes: int) -> None:
    """Row numbers as ids, and 128 float16 features."""
    kind = pa.list_(pa.float16(), WIDTH)
    schema = pa.schema([("id", pa.int64()), ("x", kind)])
    with parquet.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, nodes, CHUNK):
            count = min(CHUNK, nodes - start)
            x = np.random.default_rng([0, start]).standard_normal((count, WIDTH), dtype=np.float32).astype(np.float16)
            lists = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), WIDTH)
            writer.write_table(pa.table({"id": np.arange(start, start + count), "x": lists}, schema))


def write_edges(path: Path, nodes: int) -> None:
    """Ends drawn by rank r^2: the node of rank i has a degree like i^(-1/2), a power law of exponent 3."""
    schema = pa.schema([("source", pa.int32()), ("target", pa.int32())])
    total, each = int(nodes * EDGES_A_NODE), int(CHUNK * EDGES_A_NODE)
    with parquet.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, total, each):
            draws = np.random.default_rng([1, start]).random((2, min(each, total - start)))
            ranks = (draws * draws * nodes).astype(np.int64)
            ends = ((ranks * STRIDE + 12_345) % nodes).astype(np.int32)
            writer.write_table(pa.table({"source": ends[0], "target": ends[1]}, schema))


def write_model(folder: Path, dim: int) -> None:
    import torch

    from graphsage.inference.model import Model
    from graphsage.model.encoder import Encoder, EncoderConfig
    from graphsage.sampling.minibatch import SamplingConfig

    torch.manual_seed(0)
    encoder = Encoder(EncoderConfig(aggregator="mean", num_layers=2, dim=dim), WIDTH).eval()
    Model(encoder, None, SamplingConfig(max_degree=None), about={"data": "a generated graph"}).save(folder)


class Phases:
    """Remembers what each phase found, so that a second start goes on after the last whole one."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "phases.json"
        self.found: dict[str, Any] = json.loads(self.path.read_text()) if self.path.exists() else {}

    def __call__(self, name: str, phase: Any) -> Any:
        if name not in self.found:
            print(f"{time.strftime('%H:%M:%S')} {name}", flush=True)
            self.found[name] = phase()
            self.path.write_text(json.dumps(self.found, indent=1) + "\n")
        return self.found[name]


def succeeded(taken: Taken) -> dict[str, Any]:
    if taken.status:
        raise SystemExit(f"a command ended with status {taken.status}")
    return taken.facts()


def checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def run(folder: Path, options: argparse.Namespace) -> None:
    phase = Phases(folder)
    nodes, edges, graph, model = (folder / n for n in ("nodes.parquet", "edges.parquet", "graph", "model"))

    def generate() -> dict[str, Any]:
        begin = time.perf_counter()
        write_nodes(nodes, options.nodes)
        write_edges(edges, options.nodes)
        write_model(model, options.dim)
        sizes = {"node_table_bytes": nodes.stat().st_size, "edge_table_bytes": edges.stat().st_size}
        return {"seconds": round(time.perf_counter() - begin, 1), **sizes}

    def build() -> dict[str, Any]:
        forget(nodes, edges)
        return succeeded(
            graphsage(
                "data",
                "build",
                "tables",
                "--nodes",
                nodes,
                "--edges",
                edges,
                "--vectors",
                "x",
                "--feature-type",
                "float16",
                "--memory",
                options.memory,
                "--out",
                graph,
                "--overwrite",
            )
        )

    def embed(name: str, **how: Any) -> Taken:
        forget(graph)
        return graphsage(
            "embed",
            model,
            graph,
            "--memory",
            options.memory,
            "--layer-dtype",
            options.store,
            "--resume-dir",
            folder / f"{name}.work",
            "--out",
            folder / f"{name}.npy",
            **how,
        )

    def undisturbed() -> dict[str, Any]:
        shutil.rmtree(folder / "whole.work", ignore_errors=True)
        facts = succeeded(embed("whole"))
        about = plan(folder / "whole.work")
        shutil.rmtree(folder / "whole.work")
        facts |= {"sha256": checksum(folder / "whole.npy"), "bytes": (folder / "whole.npy").stat().st_size, **about}
        (folder / "whole.npy").unlink()
        return facts

    def killed() -> dict[str, Any]:
        work = folder / "killed.work"
        shutil.rmtree(work, ignore_errors=True)
        taken = embed("killed", until=lambda: share_done(work) >= HALF_WAY)
        if taken.status != -9:
            raise SystemExit(f"the command ended with status {taken.status} before it could be killed half way")
        return {**taken.facts(), "kept": moments(work)}

    def resumed() -> dict[str, Any]:
        work = folder / "killed.work"
        before = phase.found["killed half way"]["kept"]
        last = plan(work)["stages"][-1]["name"]
        facts = succeeded(embed("killed"))
        after = moments(work)
        kept = [name for name in before if name.startswith(f"{last}/")]
        facts |= {
            "blocks_kept": len(kept),
            "blocks_kept_untouched": sum(before[n] == after.get(n) for n in kept),
            "sha256": checksum(folder / "killed.npy"),
        }
        shutil.rmtree(work)
        (folder / "killed.npy").unlink()
        return facts

    phase("disk speed", lambda: disk_speed(folder, options.disk_bytes))
    phase("generate", generate)
    phase("build", build)
    phase("embed", undisturbed)
    phase("killed half way", killed)
    phase("resumed", resumed)


def report(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """What the phases found that are over; None for the others."""
    found = Phases(folder).found
    about = json.loads((folder / "graph" / "graph.json").read_text())
    built, whole, halted, again = (found.get(name) for name in ("build", "embed", "killed half way", "resumed"))
    same = whole["sha256"] == again["sha256"] if whole and again else None
    if halted:
        share = len(halted["kept"]) / sum(stage["blocks"] for stage in whole["stages"])
        halted = {name: value for name, value in halted.items() if name != "kept"} | {"share_done": round(share, 3)}
    return {
        "nodes": about["nodes"],
        "stored_edges": about["stored_edges"],
        "features": WIDTH,
        "feature_type": "float16",
        "layers": 2,
        "aggregator": "mean",
        "dim": options.dim,
        "store": options.store,
        "memory_flag": options.memory,
        "peak_bytes": max(taken["peak_bytes"] for taken in (built, whole, halted, again) if taken),
        "same_bytes_after_kill": same,
        "disk": found["disk speed"],
        "generate": found["generate"],
        "build": built,
        "embed": whole,
        "killed": halted,
        "resumed": again,
    }


def plan(work: Path) -> dict[str, Any]:
    stages = json.loads((work / "work.json").read_text())["stages"]
    return {
        "stages": [
            {"name": f"{s['kind']}-{s['layer']}", "blocks": len(s["cuts"]) - 1, "source_rows": s["source_rows"]}
            for s in stages
        ]
    }


def moments(work: Path) -> dict[str, int]:
    """When each block that is done was written."""
    return {
        f"{note.parent.name}/{note.stem}": note.with_suffix(".npy").stat().st_mtime_ns
        for note in sorted(work.glob("*-*/[0-9]*.json"))
        if note.with_suffix(".npy").exists()
    }


def share_done(work: Path) -> float:
    """Of all blocks of all layers. Files of a layer that nothing reads any more are gone, so later ones tell."""
    if not (work / "work.json").exists():
        return 0.0
    stages = plan(work)["stages"]
    counts = [len(list((work / s["name"]).glob("[0-9]*.json"))) for s in stages]
    done = sum(s["blocks"] if any(counts[i + 1 :]) else counts[i] for i, s in enumerate(stages))
    return done / sum(s["blocks"] for s in stages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=10_000_000)
    parser.add_argument("--memory", default="3GB")
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--store", default="float16")
    parser.add_argument("--disk-bytes", type=int, default=2 << 30)
    parser.add_argument("--report", action="store_true", help="run nothing; write what the phases so far have found")
    parser.add_argument("--out", type=Path, default=Path("results/scale/larger-graph.json"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    from graphsage.experiments.record import hardware, versions

    written = {"date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "load": round(os.getloadavg()[2], 2)}
    if not options.report:
        run(options.folder, options)
    result = {**report(options.folder, options), **written, "hardware": hardware(), "versions": versions()}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
