"""setmm, the built-in citation graph: settings chosen on validation, then five seeds beside two logistic regressions.

python -m graphsage.experiments.setmm sweep --out results/setmm-sweep.json
python -m graphsage.experiments.setmm final --out results/setmm.json
"""

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

from graphsage.experiments.record import Run, Score, rows, score_all, write_result

SPLITS = ("random", "date")
RATES = (0.01, 0.003, 0.001)
REGULARIZED: tuple[dict[str, Any], ...] = (
    {},
    {"head_scale": True, "dropout": 0.3},
    {"head_scale": True, "dropout": 0.5},
)


def sweep(jobs: int, device: str) -> dict[str, Any]:
    """Every point of the grid once, with one seed; the best on validation for each split."""
    points = [{"lr": lr, **extra} for lr, extra in itertools.product(RATES, REGULARIZED)]
    runs = [Run(split, "setmm", split, point, device, threads(jobs)) for split in SPLITS for point in points]
    scores = score_all(runs, jobs)
    return {"splits": {split: _chosen([s for s in scores if s.label == split]) for split in SPLITS}}


def _chosen(scores: list[Score]) -> dict[str, Any]:
    ranked = sorted(scores, key=lambda s: -s.val)
    return {
        "chosen": ranked[0].settings,
        "points": [{**s.settings, "val_micro_f1": round(s.val, 4)} for s in ranked],
    }


def final(jobs: int, device: str, seeds: int, chosen: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The paper's settings and the chosen ones, `seeds` times each, and the baselines."""
    runs = []
    for split in SPLITS:
        for name, settings in (("the defaults", {}), ("chosen on validation", chosen[split])):
            label = f"{split}: GraphSAGE-mean, {name}"
            runs += [Run(label, "setmm", split, {**settings, "seed": s}, device, threads(jobs)) for s in range(seeds)]
    return {"rows": rows(score_all(runs, jobs)), "baselines": {split: baselines(split) for split in SPLITS}}


def baselines(split_name: str) -> dict[str, float]:
    """Test micro F1 of logistic regressions fitted on all training nodes."""
    from graphsage.baselines.features import inductive_features, logistic_regression
    from graphsage.datasets.open import open_data
    from graphsage.evaluation.f1 import f1_scores

    data = open_data("setmm")
    split = data.split(split_name)
    graph, _ = data.with_features(split)
    assert graph.labels is not None
    assert graph.features is not None
    x, labels = graph.features.numpy(), graph.labels.numpy()
    train, test = split.nodes("train").numpy(), split.nodes("test").numpy()
    made = {}
    for name, hops in (("logistic regression on features", 0),
                       ("logistic regression on features + 2 hops of neighbor means", 2)):  # fmt: skip
        table = inductive_features(graph, split, x, hops) if hops else x
        predicted = logistic_regression(table, labels, train, test)
        made[name] = round(f1_scores(labels[test], predicted).micro, 4)
    return made


def threads(jobs: int) -> int | None:
    return 1 if jobs > 1 else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["sweep", "final"])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--sweep", type=Path, default=Path("results/setmm-sweep.json"), help="what the sweep wrote")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if options.what == "sweep":
        body = sweep(options.jobs, options.device)
        about = "setmm: one run for each point of the grid, ranked by validation micro-F1"
    else:
        found = json.loads(options.sweep.read_text(encoding="utf-8"))["splits"]
        chosen = {split: found[split]["chosen"] for split in SPLITS}
        body = final(options.jobs, options.device, options.seeds, chosen)
        about = "setmm: test micro-F1 of GraphSAGE-mean beside logistic regressions on the same features"
    write_result(options.out, about, f"python -m graphsage.experiments.setmm {options.what}", body)


if __name__ == "__main__":
    main()
