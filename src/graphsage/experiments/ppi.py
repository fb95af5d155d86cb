"""PPI (section 4.2): supervised and unsupervised test F1 of the four aggregators beside the paper's.

python -m graphsage.experiments.ppi PATH/ppi --out results/ppi.json
"""

import argparse
from pathlib import Path
from typing import Any

from graphsage.experiments.record import earlier_rows, rows, score_all, threads, write_result
from graphsage.training.score import Run, Score

PAPER = {
    "supervised": {"gcn": 0.500, "mean": 0.598, "lstm": 0.612, "pool": 0.600},
    "unsupervised": {"gcn": 0.465, "mean": 0.486, "lstm": 0.482, "pool": 0.502},
}
"""Table 1, on the released labels."""

NAMED = ("task", "form", "aggregator")


def variants(tasks: list[str], aggregators: list[str]) -> list[dict[str, Any]]:
    """Both forms of each aggregator, and what the design notes ask: redrawing, and ReLU at the end (unsupervised)."""
    made: list[dict[str, Any]] = []
    for task in tasks:
        training = {"lr": 0.01} if task == "supervised" else {"lr": 1e-4, "steps": 4000}
        for aggregator in aggregators:
            for form in ("reference", "paper") if task == "supervised" else ("reference",):
                made.append({"task": task, "form": form, "aggregator": aggregator, **training})
            if task == "supervised":
                made.append({"task": task, "form": "reference", "aggregator": aggregator, "redraw": True, **training})
        if task == "unsupervised":
            made.append({"task": task, "form": "reference", "aggregator": "gcn", "last_activation": True, **training})
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="a release prefix (PATH/ppi), PyG's raw folder or a graph folder")
    parser.add_argument("--labels", default="re-derived", help="where the labels come from, kept with the result")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--aggregators", default="gcn,mean,lstm,pool")
    parser.add_argument("--tasks", default="supervised,unsupervised")
    parser.add_argument("--out", type=Path, default=Path("results/ppi.json"))
    options = parser.parse_args()
    runs = []
    for settings in variants(options.tasks.split(","), options.aggregators.split(",")):
        label = " ".join(str(value) if name in NAMED else f"{name}={value}" for name, value in settings.items()
                         if name not in ("lr", "steps"))  # fmt: skip
        for seed in range(options.seeds):
            settled = {**settings, "seed": seed}
            runs.append(Run(label, options.data, "given", settled, options.device, threads(options.jobs)))
    command = (
        f"python -m graphsage.experiments.ppi PATH/ppi --tasks {options.tasks} --aggregators {options.aggregators} "
        f"--seeds {options.seeds}"
    )
    about = f"PPI test micro-F1, {options.labels} labels; the paper's column is on the released labels"

    before = earlier_rows(options.out)

    def keep(scores: list[Score]) -> None:
        """Written again after every run, so that an interrupted one leaves what it has."""
        table = rows(scores)
        for row in table:
            row["paper"] = PAPER[row["settings"]["task"]][row["settings"]["aggregator"]]
        made = {row["label"] for row in table}
        kept = [row for row in before if row["label"] not in made]
        write_result(options.out, about, command, {"labels": options.labels, "rows": kept + table})

    score_all(runs, options.jobs, keep)


if __name__ == "__main__":
    main()
