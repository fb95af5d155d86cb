"""Without labels, one whole pass over the walks instead of the 4,000 steps of Table 1: does more training help?

python -m benchmarks.whole_pass --data setmm --out results/whole-pass.json

Takes the settings that Table 1 chose, in the paper's form, and trains them with one seed on all pairs of the walks.
"""

import argparse
import sys
from pathlib import Path

from graphsage.experiments.data import opened, parse_data
from graphsage.experiments.record import read_result, write_result
from graphsage.experiments.trial_runners import BATCH, Evaluate, make_trial, num_pairs


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", required=True, help="setmm, debian=PATH or another single graph of Table 1")
    options.add_argument("--table", type=Path, default=Path("results/table1.json"))
    options.add_argument("--aggregators", nargs="+", default=["gcn", "mean"])
    options.add_argument("--device", default="cpu")
    options.add_argument("--out", type=Path, default=Path("results/whole-pass.json"))
    asked = options.parse_args()
    (source,) = parse_data([asked.data])
    table = read_result(asked.table)
    if table is None:
        options.error(f"there is no {asked.table}; make it with `graphsage reproduce table1`")
    steps = -(-num_pairs(opened(source)) // BATCH)
    rows = []
    for aggregator in asked.aggregators:
        cell = {"data": source.name, "aggregator": aggregator, "task": "unsupervised", "form": "paper"}
        row = next((row for row in table["rows"] if all(row.get(name) == cell[name] for name in cell)), None)
        if row is None:
            options.error(f"{asked.table} has no row of {', '.join(cell.values())}")
        settings = {**row["settings"], "task": "unsupervised", "form": "paper", "aggregator": aggregator}
        trial = make_trial("whole-pass", "graphsage", "whole pass", source, **settings, steps=steps, seed=0)
        result = Evaluate((source,), asked.device)(trial)
        before = row["test_micro_f1"]["values"][row["seeds"].index(0)]
        rows.append(
            {
                **cell,
                "settings": row["settings"],
                "seed": 0,
                "steps": steps,
                "test_micro_f1": result["test"],
                "table1_steps": row["steps"],
                "table1_test_micro_f1": before,
            }
        )
        print(rows[-1], file=sys.stderr, flush=True)
        write_result(
            asked.out,
            "Unsupervised training on a whole pass over the walks, one seed",
            f"python -m benchmarks.whole_pass --data {source.name}",
            {"rows": rows},
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
