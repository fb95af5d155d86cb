"""The fast form learns what the slow form learns: test F1 of both, on both devices, over seeds.

    python -m benchmarks.same_f1 run --data ppi=PATH --data setmm --device cuda --out A.json
    GRAPHSAGE_TRITON=0 GRAPHSAGE_COMPILE=0 python -m benchmarks.same_f1 run ... --out B.json
    python -m benchmarks.same_f1 run ... --device cuda --tf32 --out C.json
    python -m benchmarks.same_f1 join A.json B.json ... --out results/bench/same-f1.json

`join` exits 1 where two means differ by more than three standard errors of their difference (and 0.005).
"""

import argparse
import json
import re
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch

from graphsage.datasets.open import open_data
from graphsage.experiments.record import write_result
from graphsage.kernels.backend import has_triton
from graphsage.kernels.compiled.library import library
from graphsage.training.config import Config
from graphsage.training.train import train

ABOUT = "test micro F1, paper's form, sampled training, exact inference"
AGGREGATORS = ("gcn", "mean", "lstm", "pool")


def run(asked: argparse.Namespace) -> int:
    torch.set_num_threads(asked.threads)
    fast = "captured, Triton" if asked.device == "cuda" and has_triton() else None
    fast = "call by call, C" if asked.device == "cpu" and library() else fast
    form = (fast or "call by call, torch") + (", TF32" if asked.tf32 else "")
    rows: list[dict[str, Any]] = []
    for given in asked.data:
        name, _, path = given.partition("=")
        data = open_data(path or name)
        split = data.split(None)
        graph, _ = data.with_features(split)
        for aggregator in asked.aggregators:
            scores = []
            begin = time.monotonic()
            for seed in range(asked.seeds):
                config = Config(aggregator=aggregator, epochs=asked.epochs, seed=seed, tf32=asked.tf32)
                model = train(graph, split, config, device=asked.device)
                scores.append(model.evaluate(graph, split).micro)
            seconds = round(time.monotonic() - begin, 1)
            rows.append(
                {
                    "data": name,
                    "aggregator": aggregator,
                    "device": asked.device,
                    "form": form,
                    "epochs": asked.epochs,
                    "f1": scores,
                    "seconds": seconds,
                }
            )
            print(name, aggregator, asked.device, form, [round(s, 4) for s in scores], seconds, flush=True)
            write_result(asked.out, ABOUT, command(), {"rows": rows})
    return 0


def command() -> str:
    """What was typed, with files by their names alone."""
    return " ".join(["python -m benchmarks.same_f1", *(re.sub(r"[^=]*/", "", word) for word in sys.argv[1:])])


def join(asked: argparse.Namespace) -> int:
    records = [json.loads(path.read_text(encoding="utf-8")) for path in asked.files]
    rows = [row for record in records for row in record["rows"]]
    runs = [{key: record.get(key) for key in ("command", "hardware", "versions")} for record in records]
    apart = []
    for row in rows:
        row["mean"], row["spread"] = statistics.mean(row["f1"]), statistics.stdev(row["f1"])
    for key in sorted({(row["data"], row["aggregator"]) for row in rows}):
        group = [row for row in rows if (row["data"], row["aggregator"]) == key]
        for other in group[1:]:
            error = ((group[0]["spread"] ** 2 + other["spread"] ** 2) / len(other["f1"])) ** 0.5
            difference = abs(group[0]["mean"] - other["mean"])
            if difference > max(3 * error, 0.005):
                apart.append({"data": key[0], "aggregator": key[1], "difference": difference, "error": error})
        print(*key, *(f"{row['device']} ({row['form']}): {row['mean']:.4f} ± {row['spread']:.4f}" for row in group))
    write_result(asked.out, ABOUT, command(), {"runs": runs, "rows": rows, "apart": apart})
    for row in apart:
        print("apart:", row, file=sys.stderr)
    return 1 if apart else 0


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = options.add_subparsers(required=True)
    runs = commands.add_parser("run")
    runs.add_argument("--data", action="append", required=True, help="ppi=PATH or setmm")
    runs.add_argument("--device", default="cpu")
    runs.add_argument("--tf32", action="store_true", help="products in TF32, for a GPU")
    runs.add_argument("--aggregators", nargs="+", default=AGGREGATORS)
    runs.add_argument("--seeds", type=int, default=5)
    runs.add_argument("--epochs", type=int, default=3)
    runs.add_argument("--threads", type=int, default=2)
    runs.add_argument("--out", type=Path, required=True)
    runs.set_defaults(do=run)
    joins = commands.add_parser("join")
    joins.add_argument("files", nargs="+", type=Path)
    joins.add_argument("--out", type=Path, default=Path("results/bench/same-f1.json"))
    joins.set_defaults(do=join)
    asked = options.parse_args()
    result: int = asked.do(asked)
    return result


if __name__ == "__main__":
    sys.exit(main())
