"""set.mm by date and at random: GraphSAGE-mean with settings chosen on validation, beside logistic regressions.

    python -m benchmarks.setmm

Runs are kept in --resume-dir: an interrupted command continues there. Delete the folder to measure everything again.
"""

import argparse
import itertools
import json
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graphsage.baselines.features import logistic_scores
from graphsage.experiments.record import spread, write_result
from graphsage.training.score import Score, Scorer, opened
from graphsage.training.trials import Runner, Trial, TrialStore

SPLITS = ("random", "date")
RATES = [{"lr": 0.01}, {"lr": 0.003}, {"lr": 0.001}]
REGULARIZED = [{}, {"head_scale": True, "dropout": 0.3}, {"head_scale": True, "dropout": 0.5}]


def grid(*choices: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every combination of one element from each of `choices`."""
    return [{name: value for part in parts for name, value in part.items()} for parts in itertools.product(*choices)]


def chosen(scores: Sequence[Score], epochs: Sequence[int] = ()) -> dict[str, Any]:
    """The settings with the best validation micro F1, averaged over seeds, and all points, best first.

    A run of 20 epochs includes one of 10 with the same settings: `epochs` names the lengths that are points of their
    own, read from each run's curve.
    """
    found: dict[tuple[tuple[str, Any], ...], list[float]] = {}
    for made in scores:
        settings = {name: value for name, value in made.settings.items() if name != "seed"}
        for length in epochs or (len(made.curve),):
            key = tuple({**settings, **({"epochs": length} if epochs else {})}.items())
            found.setdefault(key, []).append(made.curve[length - 1])
    ranked = sorted(((statistics.fmean(values), dict(key)) for key, values in found.items()), key=lambda p: -p[0])
    points = [{**settings, "val_micro_f1": round(value, 4)} for value, settings in ranked]
    return {"chosen": ranked[0][1], "points": points}


def row(label: str, scores: Sequence[Score]) -> dict[str, Any]:
    """Mean and deviation over the runs (seeds) of one method, with the values themselves."""
    settings = {name: value for name, value in scores[0].settings.items() if name != "seed"}
    made = {"label": label, "settings": settings, "seeds": [one.settings.get("seed", 0) for one in scores]}
    for part in scores[0].exact:
        made[f"{part}_micro_f1"] = spread(one.exact[part][0] for one in scores)
        made[f"{part}_macro_f1"] = spread(one.exact[part][1] for one in scores)
    made["train_seconds"] = spread(one.train_seconds for one in scores)
    sampled = {f"sampled_{part}_micro_f1": spread(one.sampled[part] for one in scores) for part in scores[0].sampled}
    return made | sampled


def score_all(scorer: Scorer, points: Iterable[dict[str, Any]], parts: Sequence[str], store: TrialStore) -> list[Score]:
    """The score of each point, in order; points that the store has are read."""
    data = scorer.data if isinstance(scorer.data, str) else asdict(scorer.data)

    def evaluate(trial: Trial) -> dict[str, Any]:
        made = asdict(scorer.score(trial.settings["settings"], parts))
        print(json.dumps(made), file=sys.stderr, flush=True)
        return made

    trials = [Trial(str(scorer.split), {"data": data, "parts": parts, "settings": point}) for point in points]
    results = Runner(store, evaluate).run(trials)
    return [Score(**{name: result[name] for name in Score.__dataclass_fields__}) for result in results]


def measure(results: Path, store: TrialStore, seeds: int, device: str) -> None:
    found, made = {}, []
    for split in SPLITS:
        scorer = Scorer("setmm", split, device)
        found[split] = chosen(score_all(scorer, grid(RATES, REGULARIZED), (), store))
        for name, own in (("the defaults", {}), ("chosen on validation", found[split]["chosen"])):
            scores = score_all(scorer, [{**own, "seed": seed} for seed in range(seeds)], ("val", "test"), store)
            made.append(row(f"{split}: GraphSAGE-mean, {name}", scores))
    body = {
        "rows": made,
        "sweep": found,
        "baselines": {split: logistic_scores(*opened("setmm", split)) for split in SPLITS},
    }
    about = "setmm: test micro-F1 of GraphSAGE-mean beside logistic regressions on the same features"
    write_result(results / "setmm.json", about, "python -m benchmarks.setmm", body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder to write to")
    parser.add_argument("--resume-dir", type=Path, default=Path("build/setmm"))
    asked = parser.parse_args()
    measure(asked.results, TrialStore(asked.resume_dir), asked.seeds, asked.device)


if __name__ == "__main__":
    main()
