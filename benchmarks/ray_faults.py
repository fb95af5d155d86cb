"""Whole-graph inference on two Ray nodes of this machine, beside in-process; with a worker killed, a node cut off, and
the whole cluster lost.

    python -m benchmarks.ray_faults [--nodes 60000] [--out results/scale/ray.json]
"""

import argparse
import json
import os
import secrets
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch

WIDTH, DIM, DEGREE = 64, 64, 20
TASK_BYTES = 200_000_000


def make(folder: Path, nodes: int) -> tuple[Any, Path]:
    """A random graph on disk and a model with random weights."""
    from graphsage.graph.graph import Graph
    from graphsage.graph.storage import save_graph
    from graphsage.inference.model import Model
    from graphsage.model.encoder import Encoder, EncoderConfig
    from graphsage.sampling.minibatch import SamplingConfig

    draw = np.random.default_rng(0)
    features = torch.from_numpy(draw.standard_normal((nodes, WIDTH), dtype=np.float32))
    save_graph(
        Graph.from_edges(draw.integers(0, nodes, (nodes * DEGREE // 2, 2)), nodes, features=features), folder / "graph"
    )
    torch.manual_seed(0)
    return Model(Encoder(EncoderConfig(dim=DIM), WIDTH).eval(), None, SamplingConfig()), folder / "graph"


class Faults:
    """Strikes once, some time after `done` blocks, while the others are computed."""

    def __init__(self, after: int, strike: Callable[[], str]) -> None:
        self.after, self.strike, self.said, self.blocks = after, strike, "", 0

    def __call__(self, done: int, total: int) -> None:
        self.blocks += 1
        if self.blocks == self.after + 1:  # the first call only says where it begins
            threading.Thread(target=self._run).start()

    def _run(self) -> None:
        time.sleep(0.2)
        self.said = self.strike()


def kill_worker() -> str:
    """End a process that computes a block, as the out-of-memory killer would."""
    for _ in range(2000):
        for process in psutil.process_iter(["cmdline"]):
            if (process.info["cmdline"] or [""])[0].startswith("ray::_infer_block") and mine(process):
                process.kill()
                return "killed a worker in the middle of a block"
        time.sleep(0.005)
    return "found no worker at work"


def mine(process: psutil.Process) -> bool:
    """Whether a process belongs to the cluster that this one started."""
    try:
        return any(parent.pid == os.getpid() for parent in process.parents())
    except psutil.Error:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=300_000)
    parser.add_argument("--blocks", type=int, default=12, help="of each layer")
    parser.add_argument("--out", type=Path, default=Path("results/scale/ray.json"))
    options = parser.parse_args()
    os.environ["RAY_AUTH_MODE"], os.environ["RAY_AUTH_TOKEN"] = "token", secrets.token_hex(32)
    os.environ.setdefault("RAY_worker_niceness", "0")  # workers share the cores with what else runs here as equals
    with tempfile.TemporaryDirectory() as name:
        result = measure(Path(name), options.nodes, options.blocks)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


def measure(folder: Path, nodes: int, blocks: int) -> dict[str, Any]:
    import ray
    from ray.cluster_utils import Cluster

    from graphsage.cluster.ray_cluster import RayTasks
    from graphsage.errors import OutputError
    from graphsage.experiments.record import hardware, versions
    from graphsage.inference.out_of_core.embed import Embedded, embed_in_blocks
    from graphsage.inference.out_of_core.plan import Budget

    model, graph = make(folder, nodes)
    budget = Budget(int(nodes * (4 * WIDTH + 8 * DEGREE + 24) / blocks / 0.6))

    def vectors(found: Embedded) -> torch.Tensor:
        return torch.cat([z for _, z in found.batches()])

    def timed(name: str, **how: Any) -> tuple[torch.Tensor, dict[str, Any]]:
        print(f"{time.strftime('%H:%M:%S')} {name}", file=sys.stderr, flush=True)
        begin = time.perf_counter()
        found = embed_in_blocks(model, graph, folder / name, budget=budget, **how)
        facts = {"seconds": round(time.perf_counter() - begin, 2), "blocks": found.blocks}
        return vectors(found), facts

    def on_ray(name: str, faults: Faults | None = None) -> dict[str, Any]:
        told: list[str] = []
        tasks = RayTasks("auto", 1, TASK_BYTES, told.append)
        z, facts = timed(name, executor=tasks, on_block=faults)
        facts |= {
            "max_difference": float((z - expected).abs().max()),
            "blocks_by_node": sorted(tasks.blocks_on.values()),
        }
        return facts | ({} if faults is None else {"fault": faults.said, "remarks": told})

    expected, alone = timed("in-process")
    small = {"object_store_memory": 100_000_000, "memory": 4 * TASK_BYTES}
    # The head computes nothing: Ray ends a command itself whose own machine's part of Ray dies.
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **small})
    try:
        first, other = (cluster.add_node(num_cpus=1, **small) for _ in range(2))
        cluster.wait_for_nodes()
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        two = on_ray("two-nodes")
        worker = on_ray("worker-killed", Faults(3, kill_worker))

        def cut_off() -> str:
            cluster.remove_node(other, allow_graceful=False)
            return "cut off the second node"

        second = on_ray("node-lost", Faults(3, cut_off))

        def lose_all() -> str:
            cluster.remove_node(first, allow_graceful=False)
            while any(node["Alive"] and node["Resources"].get("CPU") for node in ray.nodes()):
                time.sleep(0.05)  # the blocks are small: all could be done before anybody notices
            return "cut off the last node that computes"

        lost: dict[str, Any] = {}
        try:
            lost = on_ray("all-lost", Faults(3, lose_all))
        except OutputError as error:
            lost["message"] = str(error)
        ray.shutdown()
        z, facts = timed("all-lost")
        lost |= {"resumed_in_process": {**facts, "max_difference": float((z - expected).abs().max())}}
    finally:
        ray.shutdown()
        cluster.shutdown()
    return {
        "nodes": nodes,
        "features": WIDTH,
        "dim": DIM,
        "degree": DEGREE,
        "in_process": alone,
        "two_nodes": two,
        "worker_killed": worker,
        "second_node_cut_off": second,
        "all_nodes_lost": lost,
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "hardware": hardware(),
        "versions": versions() | {"ray": ray.__version__},
    }


if __name__ == "__main__":
    main()
