"""Fill the generated parts of the documents: tables from `results/`, help texts from the command line.

python docs/generate.py          rewrite README.md, docs/help.md and the tables of other pages
python docs/generate.py --check  say which of them are stale and exit with 1
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import generate_performance
import generate_plan
import generate_scale
import generate_serving
from generate_results import ROOT, result

from graphsage.experiments.report import value

BLOCK = re.compile(r"(<!-- results: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
COMMANDS = (
    "",
    "demo",
    "train",
    "sweep",
    "evaluate",
    "embed",
    "predict",
    "search",
    "plot",
    "plan",
    "info",
    "data",
    "data list",
    "data convert",
    "serve",
    "live",
    "live create",
    "live backup",
    "live restore",
    "live compact",
    "live verify",
    "data build",
    "data build tables",
    "data build setmm",
    "data build debian",
    "data build reddit",
    "data build citation",
    "data build ppi",
    "reproduce",
)


COMPLETION = """\
`graphsage --install-completion` installs completion for the current shell: bash, zsh, fish or PowerShell. Open a new
terminal afterwards. Tab then completes commands, option names, and values such as `--task unsupervised`.
`graphsage --show-completion` prints the script instead, for `/etc/bash_completion.d/graphsage` or a container."""


def setmm(root: str = "") -> str:
    """Both splits of set.mm. By date, test nodes shift to classes that are rare in training."""
    record = result("setmm")
    rows = {row["label"]: row for row in record["rows"]}
    names = list(record["baselines"]["random"])
    lines = [
        "| unseen theorems, test micro-F1 | split `random` | split `date` (new parts of mathematics appear) |",
        "| --- | --- | --- |",
    ]
    for name in names:
        scores = [f"{record['baselines'][split][name]:.3f}" for split in ("random", "date")]
        lines.append(f"| {name} | {' | '.join(scores)} |")
    for kind in ("the defaults", "chosen on validation"):
        cells = [value(rows[f"{split}: GraphSAGE-mean, {kind}"]["test_micro_f1"]) for split in ("random", "date")]
        lines.append(f"| **GraphSAGE-mean, {kind}** | **{cells[0]}** | **{cells[1]}** |")
    seeds = len(record["rows"][0]["seeds"])
    chosen = {split: rows[f"{split}: GraphSAGE-mean, chosen on validation"]["settings"] for split in ("random", "date")}
    told = "; ".join(f"{split}: {', '.join(f'{k} {v}' for k, v in chosen[split].items())}" for split in chosen)
    note = (
        f"Mean ± deviation of {seeds} seeds, exact inference, all fitted on all training nodes. The defaults are "
        f"the paper's. Chosen on validation: {told}. "
        f"[results/setmm.json]({root}results/setmm.json), `make results-setmm`."
    )
    return "\n".join([*lines, "", note])


def ppi() -> str:
    record = result("table1")
    rows = {
        (row["task"], row["form"], row["aggregator"]): row
        for row in record["rows"]
        if row["data"] == "ppi" and "aggregator" in row
    }
    names = ("gcn", "mean", "lstm", "pool")
    lines = ["| test micro-F1 | gcn | mean | lstm | pool |", "| --- | --- | --- | --- | --- |"]
    for task, forms in (("supervised", ("reference", "paper")), ("unsupervised", ("paper",))):
        paper = [f"{rows[task, forms[0], name]['paper'][task]:.3f}" for name in names]
        lines.append(f"| the paper, {task} (released labels) | {' | '.join(paper)} |")
        for form in forms:
            for kind, cell in (("sampled", "sampled_test_micro_f1"), ("exact", "test_micro_f1")):
                found = [rows[task, form, name].get(cell) for name in names]
                if all(found):
                    cells = [value(each) for each in found]
                    lines.append(f"| ours, {task}, `--form {form}`, {kind} inference | {' | '.join(cells)} |")
    seeds = len(rows["supervised", "paper", "mean"]["seeds"])
    machines = {
        one["machine"]
        for (task, form, _), row in rows.items()
        for one in row["made_on"]
        if (task, form) != ("unsupervised", "reference")
    }
    named = sorted({name.removesuffix(", TF32") for name in machines})
    rounded = {name for name in machines if name.endswith(", TF32")}
    named += ["in TF32" if rounded == machines else "some trials in TF32"] if rounded else []
    note = (
        f"Here: {record['data']['ppi']['note']}, made from public annotations by the paper's recipe. Settings "
        f"chosen on validation, {seeds} seeds, on {', '.join(named)}. "
        "[results/table1.json](results/table1.json), [how it is made](docs/reproduce.md)."
    )
    return "\n".join([*lines, "", note])


def debian() -> str:
    record, cost, baselines = result("debian"), result("debian-cpu"), result("debian-baselines")["baselines"]
    (row,) = record["rows"]
    lines = ["| section of packages new in forky and sid | accuracy |", "| --- | --- |"]
    lines += [f"| {name} | {score:.3f} |" for name, score in baselines.items()]
    lines.append(f"| **GraphSAGE-mean, the command above** | **{value(row['test_micro_f1'])}** |")
    cores = cost["hardware"]["cores"]
    note = (
        f"Mean ± deviation of {len(row['seeds'])} seeds; the settings were chosen on packages new in trixie, with "
        "those up to bookworm for training. From CSV to the evaluated model it took "
        f"{cost['seconds'] / 60:.0f} minutes on {cores} CPU cores shared with other work "
        f"({cost['cpu_seconds'] / 60:.0f} minutes of processor time) and {cost['peak_gib']:.1f} GiB; reading and "
        f"features took at most {cost['reading_and_featurizing_seconds_at_most']:.0f} s. "
        "[results/debian.json](../results/debian.json), `make results-debian DEBIAN=debian`."
    )
    return "\n".join([*lines, "", note])


def small_graphs() -> str:
    record = result("small-graphs")
    graphs = list(dict.fromkeys(row["graph"] for row in record["rows"]))
    methods = list(dict.fromkeys(row["label"] for row in record["rows"]))
    cells = {(row["label"], row["graph"]): value(row["test_micro_f1"]) for row in record["rows"]}
    lines = [f"| test accuracy | {' | '.join(graphs)} |", "| --- |" + " --- |" * len(graphs)]
    lines += [f"| {m} | {' | '.join(cells.get((m, g), '–') for g in graphs)} |" for m in reversed(methods)]
    seeds = len(record["rows"][0]["seeds"])
    note = (
        f"Random inductive splits 60/20/20, mean ± deviation of {seeds} seeds, each with a split of its own, the "
        "same for all methods. For each method and graph the settings were chosen on validation. PyG's model has "
        "the same size and reads full neighborhoods. [results/small-graphs.json](../results/small-graphs.json), "
        "`make results-small-graphs DATA=path`."
    )
    return "\n".join([*lines, "", note])


def help_page() -> str:
    parts = [
        "# Every command",
        "",
        "Generated by `make docs` from `--help`.",
        "",
        "## Shell completion",
        "",
        COMPLETION,
    ]
    plain = {**os.environ, "COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1", "GRAPHSAGE_CACHE": ""}
    for command in COMMANDS:
        call = [sys.executable, "-m", "graphsage", *command.split(), "--help"]
        text = subprocess.run(call, capture_output=True, text=True, check=True, env=plain).stdout
        title = f"graphsage {command}".strip()
        parts += ["", f"## {title}", "", "```", *[line.rstrip() for line in text.strip("\n").splitlines()], "```"]
    return "\n".join(parts) + "\n"


TABLES: dict[str, Callable[[], str]] = {
    "setmm": setmm,
    "ppi": ppi,
    "debian": debian,
    "small_graphs": small_graphs,
    "serve_load": generate_serving.serve_load,
    "serve_faults": generate_serving.serve_faults,
    "serve_sizing": generate_serving.serve_sizing,
    "bench_cpu": generate_performance.bench_cpu,
    "bench_gpu": generate_performance.bench_gpu,
    "same_f1": generate_performance.same_f1,
    "speed": generate_performance.speed,
    "growth": generate_performance.growth,
    "ranks": generate_scale.ranks,
    "larger_than_memory": generate_scale.larger_than_memory,
    "larger_graph": generate_scale.larger_graph,
    "ray_faults": generate_scale.ray_faults,
    "plan": generate_plan.plan,
    "scales": generate_plan.scales,
}
PAGES = ("README.md", "docs/tables.md", "docs/tutorial.md", "docs/serving.md", "docs/performance.md", "docs/scale.md")


def results_page() -> str:
    """What `graphsage reproduce` found."""
    from graphsage.experiments.report import markdown

    made = "Generated by `make docs` from the results; [reproduce.md](reproduce.md) has the commands."
    return markdown(ROOT / "results", "../results", made) + f"\n## set.mm by date and at random\n\n{setmm('../')}\n"


def generated() -> dict[Path, str]:
    """What each generated file should hold."""
    made = {ROOT / "docs" / "help.md": help_page(), ROOT / "docs" / "results.md": results_page()}
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        made[ROOT / page] = BLOCK.sub(lambda found: f"{found[1]}{TABLES[found[2]]()}\n{found[3]}", text)
    return made


def main() -> None:
    pages = generated()
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is stale; run make docs", file=sys.stderr)
        sys.exit(bool(stale))
    for path in stale:
        path.write_text(pages[path], encoding="utf-8")


if __name__ == "__main__":
    main()
