"""setmm, the built-in citation graph: settings chosen on validation, then five seeds beside two logistic regressions.

python -m graphsage.experiments.setmm sweep --out results/setmm-sweep.json
python -m graphsage.experiments.setmm final --out results/setmm.json
"""

import argparse
import json
from pathlib import Path
from typing import Any

from graphsage.baselines.features import logistic_scores
from graphsage.experiments.choose import chosen, grid
from graphsage.experiments.record import write_result
from graphsage.experiments.scored import ScoreAll, rows, unfinished
from graphsage.training.score import Run, opened

SPLITS = ("random", "date")
RATES = (0.01, 0.003, 0.001)
REGULARIZED: tuple[dict[str, Any], ...] = (
    {},
    {"head_scale": True, "dropout": 0.3},
    {"head_scale": True, "dropout": 0.5},
)


def sweep(score_all: ScoreAll, device: str) -> dict[str, Any]:
    """Every point of the grid once, with one seed; the best on validation for each split."""
    points = grid([{"lr": lr} for lr in RATES], REGULARIZED)
    scores = score_all(Run(split, "setmm", split, point, device, parts=()) for split in SPLITS for point in points)
    return {"splits": {split: chosen([s for s in scores if s.label == split]) for split in SPLITS}}


def final(score_all: ScoreAll, device: str, seeds: int, best: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The paper's settings and the chosen ones, `seeds` times each, and the baselines."""
    runs = []
    for split in SPLITS:
        for name, settings in (("the defaults", {}), ("chosen on validation", best[split])):
            label = f"{split}: GraphSAGE-mean, {name}"
            runs += [Run(label, "setmm", split, {**settings, "seed": seed}, device) for seed in range(seeds)]
    return {
        "rows": rows(score_all(runs)),
        "baselines": {split: logistic_scores(*opened("setmm", split)) for split in SPLITS},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["sweep", "final"])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--sweep", type=Path, default=Path("results/setmm-sweep.json"), help="what the sweep wrote")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    with unfinished(options.out.with_suffix(".unfinished"), options.jobs) as score_all:
        if options.what == "sweep":
            body = sweep(score_all, options.device)
            about = "setmm: one run for each point of the grid, ranked by validation micro-F1"
        else:
            found = json.loads(options.sweep.read_text(encoding="utf-8"))["splits"]
            best = {split: found[split]["chosen"] for split in SPLITS}
            body = final(score_all, options.device, options.seeds, best)
            about = "setmm: test micro-F1 of GraphSAGE-mean beside logistic regressions on the same features"
        write_result(options.out, about, f"python -m graphsage.experiments.setmm {options.what}", body)


if __name__ == "__main__":
    main()
