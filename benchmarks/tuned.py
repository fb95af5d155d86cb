"""setmm and Debian with settings chosen on validation, then five seeds beside logistic regressions.

python -m benchmarks.tuned setmm          -> results/setmm-sweep.json, setmm.json
python -m benchmarks.tuned debian FOLDER  -> results/debian-sweep.json, debian.json, debian-baselines.json and
                                             debian-cpu.json

FOLDER holds nodes.csv and edges.csv as `graphsage data build debian` writes them. The section of a package is learned
from its description and its relations. Settings are chosen by training on packages up to bookworm and validating on
those new in trixie; the final models train on packages up to trixie and are tested on those new in forky and sid.

Runs are kept in --resume-dir: an interrupted command continues there. Delete the folder to measure everything again.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graphsage.baselines.features import logistic_scores
from graphsage.datasets.debian import RELEASES, debian_tables
from graphsage.experiments.record import spread, write_result
from graphsage.training.score import Score, Scorer, opened
from graphsage.training.trials import Runner, Trial, TrialStore

SPLITS = ("random", "date")
RATES = [{"lr": 0.01}, {"lr": 0.003}, {"lr": 0.001}]
REGULARIZED = [{}, {"head_scale": True, "dropout": 0.3}, {"head_scale": True, "dropout": 0.5}]
EPOCHS = (3, 6)


def grid(*choices: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every combination of one element from each of `choices`."""
    return [{name: value for part in parts for name, value in part.items()} for parts in itertools.product(*choices)]


POINTS = [{}, *grid([{"max_degree": None}], RATES[:2], [REGULARIZED[0], REGULARIZED[2]])]
"""The paper's settings, and four without its cap of 128 neighbors: thousands of packages depend on some."""


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


def setmm(results: Path, store: TrialStore, seeds: int, device: str) -> None:
    found, made = {}, []
    for split in SPLITS:
        scorer = Scorer("setmm", split, device)
        found[split] = chosen(score_all(scorer, grid(RATES, REGULARIZED), (), store))
        for name, own in (("the defaults", {}), ("chosen on validation", found[split]["chosen"])):
            scores = score_all(scorer, [{**own, "seed": seed} for seed in range(seeds)], ("val", "test"), store)
            made.append(row(f"{split}: GraphSAGE-mean, {name}", scores))
    about = "setmm: one run for each point of the grid, ranked by validation micro-F1"
    write_result(results / "setmm-sweep.json", about, "python -m benchmarks.tuned setmm", {"splits": found})
    body = {"rows": made, "baselines": {split: logistic_scores(*opened("setmm", split)) for split in SPLITS}}
    about = "setmm: test micro-F1 of GraphSAGE-mean beside logistic regressions on the same features"
    write_result(results / "setmm.json", about, "python -m benchmarks.tuned setmm", body)


def debian(folder: Path, results: Path, store: TrialStore, seeds: int, device: str) -> None:
    def write(name: str, about: str, body: dict[str, Any]) -> None:
        write_result(results / name, f"Debian: {about}", "python -m benchmarks.tuned debian FOLDER", body)

    scorer = Scorer(debian_tables(folder, train_until="bookworm", val_until="trixie"), "time", device)
    longest = [{**point, "epochs": max(EPOCHS)} for point in POINTS]
    found = chosen(score_all(scorer, longest, (), store), EPOCHS)
    write(
        "debian-sweep.json",
        "one run for each point of the grid, trained on packages up to bookworm, ranked by "
        "micro-F1 on packages new in trixie",
        found,
    )
    spec, best = debian_tables(folder, train_until="trixie"), found["chosen"]
    points = [{**best, "seed": seed} for seed in range(seeds)]
    scores = score_all(Scorer(spec, "time", device), points, ("test",), store)
    write(
        "debian.json",
        "section of packages new in forky and sid, test micro-F1 (which is accuracy) of "
        "GraphSAGE-mean trained on packages up to trixie",
        {"rows": [row("GraphSAGE-mean, chosen on validation", scores)]},
    )
    write(
        "debian-baselines.json",
        "test micro-F1 of logistic regressions on the same split and features",
        {"baselines": logistic_scores(*opened(spec, "time"))},
    )
    write(
        "debian-cpu.json",
        "wall time and peak memory of the whole command, from two CSV files to an evaluated model",
        cost(folder, best),
    )


def cost(folder: Path, best: dict[str, Any]) -> dict[str, Any]:
    """Wall time, processor time and peak memory from two CSV files to an evaluated model, with an empty cache."""
    with tempfile.TemporaryDirectory() as scratch:
        run = Path(scratch) / "run"
        fresh = {**os.environ, "GRAPHSAGE_CACHE": str(Path(scratch) / "cache")}
        training = _measured(["-m", "graphsage", *whole_command(folder, best, run)[1:]], fresh)
        evaluation = _measured(["-m", "graphsage", "evaluate", str(run)], fresh)
        steps: float = json.loads((run / "config.json").read_text(encoding="utf-8"))["about"]["training"]["seconds"]
    return {
        "typed": [" ".join(whole_command(Path("FOLDER"), best, Path("run"))), "graphsage evaluate run"],
        "seconds": round(training[0] + evaluation[0], 1),
        "cpu_seconds": round(training[1] + evaluation[1], 1),
        "peak_gib": max(training[2], evaluation[2]),
        "reading_and_featurizing_seconds_at_most": round(training[0] - steps, 1),
    }


def whole_command(folder: Path, settings: dict[str, Any], out: Path) -> list[str]:
    """The command line that trains with these settings."""
    flags = [
        "--nodes",
        str(folder / "nodes.csv"),
        "--edges",
        str(folder / "edges.csv"),
        "--label",
        "section",
        "--text",
        "description",
        "--time",
        "release",
        "--edge-time",
        "release",
        "--time-order",
        ",".join(RELEASES),
        "--train-until",
        "trixie",
    ]
    for name, value in settings.items():
        flag = f"--{name.replace('_', '-')}"
        flags += [flag] if value is True else [flag, "none" if value is None else str(value)]
    return ["graphsage", "train", *flags, "--out", str(out)]


def _measured(arguments: list[str], environment: dict[str, str]) -> tuple[float, float, float]:
    """Wall seconds, processor seconds and peak GiB of a Python process."""
    began = time.monotonic()
    with subprocess.Popen([sys.executable, *arguments], env=environment) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(process.returncode)
    return round(time.monotonic() - began, 1), usage.ru_utime + usage.ru_stime, round(usage.ru_maxrss / 2**20, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["setmm", "debian"])
    parser.add_argument("folder", type=Path, nargs="?", help="Debian's tables")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder to write to")
    parser.add_argument("--resume-dir", type=Path, default=Path("build/tuned"))
    options = parser.parse_args()
    common = options.results, TrialStore(options.resume_dir / options.what), options.seeds, options.device
    if options.what == "setmm":
        setmm(*common)
    elif options.folder is None:
        parser.error("debian needs the folder of its tables")
    else:
        debian(options.folder, *common)


if __name__ == "__main__":
    main()
