"""The captured training step shared by ranks: `PYTHONPATH=src python -m benchmarks.ranks_gpu --ranks 2`, on a GPU.

Trains the Reddit-shaped graph for some steps with one rank and with several on the GPUs there are (several on one GPU
go through the host's memory by gloo; each on its own by NCCL), checks that the losses agree, and measures the step.
Needs torch with Triton, NumPy and safetensors. Writes results/scale/ranks-gpu.json.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.ours import Ours
from benchmarks.workload import REDDIT, make
from graphsage.cluster.ranks import device_of_rank, join
from graphsage.training.config import Config
from graphsage.training.loop import matmul_precision

FIRST, GROUPS, EACH = 50, 5, 100


def measure(batch: int, out: Path) -> None:
    """One rank's part: the losses of the first steps, then the time of a step."""
    with join("cuda", timeout=120) as ranks:
        graph, split = make(REDDIT)
        config = Config(max_degree=None, tf32=True, batch_size=batch)
        with matmul_precision("high"):
            ours = Ours(graph, split.nodes("train"), config, device_of_rank("cuda"), ranks)
            losses = []
            for _ in range(FIRST):
                ours.run()
                losses.append(float(ours.step.take_loss()))
            times = []
            for _ in range(GROUPS):
                ranks.any(False)
                torch.cuda.synchronize()
                begin = time.perf_counter()
                for _ in range(EACH):
                    ours.run()
                torch.cuda.synchronize()
                times.append((time.perf_counter() - begin) / EACH * 1e6)
        if ranks.rank == 0:
            import torch.distributed as dist

            parameters = sum(p.numel() for p in ours.module.parameters())
            out.write_text(
                json.dumps(
                    {
                        "ranks": ranks.count,
                        "targets in a step": batch,
                        "backend": _backend(dist, ranks.count),
                        "gradient MB": parameters * 4 / 1e6,
                        "step us": round(statistics.median(times), 1),
                        "captured": getattr(ours.step, "eager", True) is None,
                        "losses": losses,
                    }
                )
            )


def _backend(dist: Any, count: int) -> str | None:
    return None if count == 1 else str(dist.get_backend(dist.group.WORLD))


def start(count: int, batch: int) -> dict[str, Any]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        shared = {
            **os.environ,
            "WORLD_SIZE": str(count),
            "LOCAL_WORLD_SIZE": str(count),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "GLOO_SOCKET_IFNAME": "lo",
        }
        command = [sys.executable, "-m", "benchmarks.ranks_gpu", "--as-rank", str(out), "--batch", str(batch)]
        processes = [
            subprocess.Popen(command, env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)})
            for rank in range(count)
        ]
        codes = [process.wait() for process in processes]
        if any(codes):
            return {"ranks": count, "targets in a step": batch, "failed": codes}
        result: dict[str, Any] = json.loads(out.read_text())
        return result


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--ranks", type=int, default=2)
    options.add_argument("--batch", type=int, default=512)
    options.add_argument("--out", default="results/scale/ranks-gpu.json")
    options.add_argument("--as-rank", type=Path, help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.as_rank is not None:
        measure(asked.batch, asked.as_rank)
        return 0
    found = [
        start(1, asked.batch),
        start(asked.ranks, asked.batch),
        start(1, asked.batch * asked.ranks),
        start(asked.ranks, asked.batch * asked.ranks),
    ]
    agree = []
    for one, several in ((found[0], found[1]), (found[2], found[3])):
        if "losses" in one and "losses" in several:
            agree.append(max(abs(a - b) for a, b in zip(one.pop("losses"), several.pop("losses"), strict=True)))
    report = {
        "what": "microseconds of a training step, mean, TF32, Reddit-shaped",
        "measured": found,
        "largest difference of the losses of one rank and of several": agree,
        "steps compared": FIRST,
        "gpus": torch.cuda.device_count(),
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
    }
    path = Path(asked.out)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=1))
    return 0 if len(agree) == 2 and max(agree) < 1e-2 else 1


if __name__ == "__main__":
    sys.exit(main())
