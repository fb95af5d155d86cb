"""Equation 1 beside the contrastive objective, by the paper's probe and the tuned one, with and without kept features.

    PYTHONPATH=src python -m benchmarks.unsupervised setmm ppi=FOLDER debian=FOLDER --seeds 5

Settings are compared by the tuned probe's micro F1 on validation nodes; test is reported. Every objective makes the
same number of steps. Finished trials are kept in --resume-dir, and the same command continues there. No command line
package is needed, only torch, NumPy, SciPy, scikit-learn and pyarrow. `--no-paper-probe` saves half of a CPU's time.
"""

import argparse
import json
import sys
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from graphsage.baselines.yardsticks import both_probes, yardsticks
from graphsage.datasets.debian import debian_tables
from graphsage.datasets.open import open_data
from graphsage.datasets.tables import open_tables
from graphsage.errors import DataWarning
from graphsage.experiments.record import spread, write_result
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split
from graphsage.training.train import train
from graphsage.training.trials import Result, Runner, Trial, TrialStore

WIDE = {"layer_norm": True, "residual": True, "normalize": "never"}
CANDIDATES: dict[str, dict[str, Any]] = {
    "untrained": {"objective": "contrastive", "lr": 1e-12, "steps": 1},
    "untrained, LayerNorm + skip": {"objective": "contrastive", "lr": 1e-12, "steps": 1, **WIDE},
    "contrastive, LayerNorm + skip": {"objective": "contrastive", **WIDE},
    "Equation 1": {"objective": "equation-1", "lr": 1e-3},
    "contrastive": {"objective": "contrastive"},
    "Equation 1, LayerNorm + skip": {"objective": "equation-1", "lr": 1e-3, **WIDE},
}


@lru_cache(maxsize=1)
def opened(data: str) -> tuple[Graph, Split]:
    name, _, folder = data.partition("=")
    if name == "debian":
        dataset, split = open_tables(debian_tables(folder, train_until="trixie")), "time"
    else:
        dataset, split = open_data(folder or name), "date" if name == "setmm" else None
    chosen = dataset.split(split)
    return dataset.with_features(chosen)[0], chosen


@dataclass(frozen=True)
class Evaluate:
    device: str
    paper: bool

    def __call__(self, trial: Trial) -> Result:
        warnings.simplefilter("ignore", DataWarning)
        graph, split = opened(trial.settings["data"])
        seed = trial.settings["seed"]
        model = train(graph, split, task="unsupervised", seed=seed, device=self.device, **trial.settings["own"])
        result: Result = {"train_seconds": model.about["training"]["seconds"]}
        if trial.type == "yardsticks":
            rows = yardsticks(model, graph, split)[1:]
            return result | {"rows": [{"name": row.name, "paper": row.paper, "tuned": row.tuned} for row in rows]}
        for name, keep in (("z", False), ("with_features", True)):
            z = model.embed(graph, inference="exact", keep_features=keep).numpy()
            gpu = model.device.type == "cuda"
            row = both_probes(name, z, graph, split, seed, gpu=gpu, paper=self.paper)
            result[name] = {"paper": row.paper, "tuned": row.tuned, "penalty": row.penalty}
        return result | {"val": result["z"]["tuned"]["val"], "test": result["z"]["tuned"]["test"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+", help="setmm, ppi=FOLDER or debian=FOLDER")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--sample-sizes", default="10,10")
    parser.add_argument("--only", help="names of candidates, separated by semicolons")
    parser.add_argument("--no-yardsticks", action="store_true")
    parser.add_argument("--no-paper-probe", action="store_true")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--resume-dir", type=Path, default=Path("results/trials/unsupervised"))
    asked = parser.parse_args()
    sizes = [int(size) for size in asked.sample_sizes.split(",")]
    shape = {"dim": asked.dim, "sample_sizes": sizes, "steps": asked.steps}
    names = asked.only.split(";") if asked.only else list(CANDIDATES)

    def trial(data: str, name: str, seed: int, type: str = "objective") -> Trial:
        own = {**shape, **CANDIDATES[name]}
        return Trial(name, {"data": data, "seed": seed, "own": own}, type, experiment="unsupervised")

    def done(trial: Trial, result: Result, made: int, total: int) -> None:
        print(f"{made}/{total} {trial.label} {json.dumps(result)}", file=sys.stderr, flush=True)

    runner = Runner(TrialStore(asked.resume_dir), Evaluate(asked.device, not asked.no_paper_probe), 1, None, done)
    rows = []
    for data in asked.data:
        for name in names:
            results = [runner.run([trial(data, name, seed)])[0] for seed in range(asked.seeds)]
            row: dict[str, Any] = {
                "data": data.partition("=")[0],
                "name": name,
                "settings": {**shape, **CANDIDATES[name]},
            }
            for kept in ("z", "with_features"):
                for probe in ("tuned",) if asked.no_paper_probe else ("paper", "tuned"):
                    for part in ("val", "test"):
                        row[f"{kept}_{probe}_{part}"] = spread(result[kept][probe][part] for result in results)
            row["train_seconds"] = spread(result["train_seconds"] for result in results)
            rows.append(row)
            write(asked.results, rows)
        if not asked.no_yardsticks:
            found = runner.run([trial(data, "untrained", 0, "yardsticks")])[0]["rows"]
            rows += [{"data": data.partition("=")[0], **row} for row in found]
            write(asked.results, rows)


def write(results: Path, rows: list[dict[str, Any]]) -> None:
    about = (
        "micro F1 of unsupervised embeddings by the paper's probe and the tuned one, without and with the scaled "
        "features; `val` chooses, `test` is reported"
    )
    write_result(results / "unsupervised.json", about, "python -m benchmarks.unsupervised DATA", {"rows": rows})


if __name__ == "__main__":
    main()
