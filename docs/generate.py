"""Fill the generated parts of the documents: tables from `results/`, help texts from the command line.

python docs/generate.py          rewrite README.md, docs/help.md and the tables of other pages
python docs/generate.py --check  say which of them are stale and exit with 1
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import generate_plan
import generate_scale

from graphsage.experiments.section import value

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"(<!-- results: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
COMMANDS = ("", "demo", "train", "sweep", "evaluate", "embed", "predict", "search", "plot", "plan", "info", "data",
            "data list", "data convert", "serve", "live", "live create", "live backup", "live restore", "live compact",
            "live verify", "data build", "data build tables", "data build setmm", "data build debian",
            "data build reddit", "data build citation", "data build ppi", "reproduce")  # fmt: skip


def result(name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((ROOT / "results" / f"{name}.json").read_text(encoding="utf-8"))
    return record


def setmm() -> str:
    record = result("setmm")
    rows = {row["label"]: row for row in record["rows"]}
    names = list(record["baselines"]["random"])
    lines = ["| unseen theorems, test micro-F1 | split `random` | split `date` (new parts of mathematics appear) |",
             "| --- | --- | --- |"]  # fmt: skip
    for name in names:
        scores = [f"{record['baselines'][split][name]:.3f}" for split in ("random", "date")]
        lines.append(f"| {name} | {' | '.join(scores)} |")
    for kind in ("the defaults", "chosen on validation"):
        cells = [value(rows[f"{split}: GraphSAGE-mean, {kind}"]["test_micro_f1"]) for split in ("random", "date")]
        lines.append(f"| **GraphSAGE-mean, {kind}** | **{cells[0]}** | **{cells[1]}** |")
    seeds = len(record["rows"][0]["seeds"])
    chosen = {split: rows[f"{split}: GraphSAGE-mean, chosen on validation"]["settings"] for split in ("random", "date")}
    told = "; ".join(f"{split}: {', '.join(f'{k} {v}' for k, v in chosen[split].items())}" for split in chosen)
    note = (f"Mean ± deviation of {seeds} seeds, exact inference, all fitted on all training nodes. The defaults are "
            f"the paper's. Chosen on validation: {told}. "
            "[results/setmm.json](results/setmm.json), `make results-setmm`.")  # fmt: skip
    return "\n".join([*lines, "", note])


def ppi() -> str:
    record = result("table1")
    rows = {(row["task"], row["form"], row["aggregator"]): row for row in record["rows"]
            if row["data"] == "ppi" and "form" in row}  # fmt: skip
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
    machines = {one["machine"] for (task, form, _), row in rows.items() for one in row["made_on"]
                if (task, form) != ("unsupervised", "reference")}  # fmt: skip
    note = (f"Here: {record['data']['ppi']['note']}, made from public annotations by the paper's recipe. Settings "
            f"chosen on validation, {seeds} seeds, on {' and '.join(sorted(machines))}. "
            "[results/table1.json](results/table1.json), [how it is made](docs/reproduce.md).")  # fmt: skip
    return "\n".join([*lines, "", note])


def debian() -> str:
    record, cost, baselines = result("debian"), result("debian-cpu"), result("debian-baselines")["baselines"]
    (row,) = record["rows"]
    lines = ["| section of packages new in forky and sid | accuracy |", "| --- | --- |"]
    lines += [f"| {name} | {score:.3f} |" for name, score in baselines.items()]
    lines.append(f"| **GraphSAGE-mean, the command above** | **{value(row['test_micro_f1'])}** |")
    cores = cost["hardware"]["cores"]
    note = (f"Mean ± deviation of {len(row['seeds'])} seeds; the settings were chosen on packages new in trixie, with "
            "those up to bookworm for training. From CSV to the evaluated model it took "
            f"{cost['seconds'] / 60:.0f} minutes on {cores} CPU cores shared with other work "
            f"({cost['cpu_seconds'] / 60:.0f} minutes of processor time) and {cost['peak_gib']:.1f} GiB; reading and "
            f"features took at most {cost['reading_and_featurizing_seconds_at_most']:.0f} s. "
            "[results/debian.json](../results/debian.json), `make results-debian DEBIAN=debian`.")  # fmt: skip
    return "\n".join([*lines, "", note])


def small_graphs() -> str:
    record = result("small-graphs")
    graphs = list(dict.fromkeys(row["graph"] for row in record["rows"]))
    methods = list(dict.fromkeys(row["label"] for row in record["rows"]))
    cells = {(row["label"], row["graph"]): value(row["test_micro_f1"]) for row in record["rows"]}
    lines = [f"| test accuracy | {' | '.join(graphs)} |", "| --- |" + " --- |" * len(graphs)]
    lines += [f"| {m} | {' | '.join(cells.get((m, g), '–') for g in graphs)} |" for m in reversed(methods)]
    seeds = len(record["rows"][0]["seeds"])
    note = (f"Random inductive splits 60/20/20, mean ± deviation of {seeds} seeds, each with a split of its own, the "
            "same for all methods. For each method and graph the settings were chosen on validation. PyG's model has "
            "the same size and reads full neighborhoods. [results/small-graphs.json](../results/small-graphs.json), "
            "`make results-small-graphs DATA=path`.")  # fmt: skip
    return "\n".join([*lines, "", note])


def serve_load() -> str:
    record = result("serve/load")
    where, over = record["surroundings"], record["overload_x10"]
    one, crowd, bulk = record["one_client"], record["clients_32"], record["nodes_32_at_a_time"]
    lines = ["| one new node with 10 edges, setmm model | measured | aim |", "| --- | --- | --- |",
             f"| 1 client: p50 | {one['p50_ms']} ms | 5 ms |", f"| 1 client: p99 | {one['p99_ms']} ms | 25 ms |",
             f"| 32 clients: embeds a second | {crowd['per_second']:.0f} | 300 |",
             f"| 32 nodes a request: nodes a second | {bulk['nodes_per_second']:.0f} | 1,500 |",
             f"| {over['clients']} clients: goodput of capacity | {over['goodput_share']:.0%} | 70% |",
             f"| {over['clients']} clients: accepted p99 | {over['accepted']['p99_ms']} ms | 1,000 ms |",
             f"| {over['clients']} clients: rejected p50 | {over['rejected']['p50_ms']} ms | 50 ms |",
             f"| {over['clients']} clients: health | {over['health']['ok']} of {over['health']['asked']} ok | all |",
             f"| {over['clients']} clients: memory growth | {over['memory_mb']['growth']:.1%} | 10% |"]  # fmt: skip
    note = (f"{where['cores']} cores shared by the service, the load generator and whatever else ran (load average "
            f"{where['load_before']} before the start), {where['date']}. Processor time of the service: "
            f"{one['service_cpu_ms']} ms a request alone, {crowd['service_cpu_ms']} ms with 32 clients. "
            "[results/serve/load.json](../results/serve/load.json), `make load`.")  # fmt: skip
    return "\n".join([*lines, "", note])


def serve_faults() -> str:
    crash, fuzz, soak = (result(f"serve/{name}") for name in ("crash", "fuzz", "soak"))
    kill, served, torn, again = (crash[name] for name in ("kill_9", "kill_9_over_http", "damaged_journals", "restart"))
    least = min(count for count in fuzz["cases"].values() if count > 1)
    wrong = torn.get("WRONG", 0) + torn.get("UNCLEAR", 0)
    steps = crash["every_step"]

    def seen(some: dict[str, Any]) -> str:
        return f"{some['lost'] + some['came_back']} lost, {some['half_applied']} half applied"

    asked = sum(soak["requests"].values())
    rate = f", {soak['offered_per_second']:g} requests a second" if "offered_per_second" in soak else ""
    errors = ", ".join(f"{count} x {name}" for name, count in soak["errors"].items()) or "no errors"
    lines = ["| fault | seen | aim |", "| --- | --- | --- |",
             f"| kill -9 of a process that writes and compacts, {kill['kills']} times, {kill['acknowledged']:,} "
             f"acknowledgements | {seen(kill)} | 0, 0 |",
             f"| kill -9 of the service while clients write over HTTP, {served['kills']} times, "
             f"{served['acknowledged']:,} acknowledgements | {seen(served)} | 0, 0 |",
             f"| killed at each of {len(steps)} steps of write, compaction and reload | "
             f"{sum(sum(each.values()) for each in steps.values())} lost or half applied | 0 |",
             f"| {torn['journals']:,} journals cut off or with a flipped bit | {torn['clean_prefix']} clean prefix, "
             f"{torn['clear_refusal']} clear refusal, {wrong} other | 0 other |",
             f"| reopening {again['nodes']:,} nodes and {again['journal_rows']:,} journaled changes | "
             f"{again['seconds']} s ({again['cpu_seconds']} s of processor time) | 5 s |",
             f"| generated requests, {least:,} or more an operation with input, {len(fuzz['cases'])} operations | "
             f"{'no 5xx' if fuzz['passed'] else 'failed'} | no 5xx, 1,000 an operation |",
             f"| {soak['minutes']:.0f} minutes of mixed load{rate}, {asked:,} requests in all | {errors} | none |",
             f"| memory slope meanwhile | {soak['memory_slope_mb_per_minute']} MB a minute | below 1 |"]  # fmt: skip
    loads = ", ".join(f"{name} {record['surroundings']['load_before']}"
                      for name, record in (("crash", crash), ("fuzz", fuzz), ("soak", soak)))  # fmt: skip
    note = (f"{crash['surroundings']['date']}, on {crash['surroundings']['cores']} cores shared with other work (load "
            f"average before the start: {loads}). [results/serve/](../results/serve/), `make crash`, `make fuzz`, "
            "`make soak`.")  # fmt: skip
    return "\n".join([*lines, "", note])


def serve_sizing() -> str:
    record = result("serve/sizing")
    lines = ["| nodes | disk | memory | open | new node alone | new node, 32 at a time | compaction | search |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]  # fmt: skip
    for row in record["rows"]:
        lines.append(f"| {row['nodes']:,} | {row['disk_mb']:,} MB | {row['memory_mb']:,} MB | {row['open_s']} s | "
                     f"{row['embed_alone_ms']} ms | {row['embed_of_32_ms']} ms | {row['compaction_s']} s | "
                     f"{row['search_ms']} ms |")  # fmt: skip
    note = (f"{record['features']} float32 features, {record['degree']} neighbors a node, mean aggregator, two layers; "
            "processor time of one thread. Compaction needs room for a second copy on disk and, for a moment, in "
            "memory. "
            "[results/serve/sizing.json](../results/serve/sizing.json), `make sizing`.")  # fmt: skip
    return "\n".join([*lines, "", note])


def bench_cpu() -> str:
    record = result("bench/cpu")
    lines = ["| Reddit-shaped unless it says otherwise, 2 cores | seconds | peak memory |", "| --- | --- | --- |"]
    for group, entries in record["groups"].items():
        for name, found in entries.items():
            who, task = name.split(": ")
            known = {"ours": "**graphsage**", "plain": "**graphsage** without a compiler", "pyg": "PyG", "dgl": "DGL",
                     "floor": "floor"}[who]  # fmt: skip
            known = "GraphBolt" if "graphbolt" in task else known
            what = f"{group}: {known}" + (f", {task}" if who == "floor" or group == "mean, half tables" else "")
            told = "failed | -"
            if "seconds" in found:
                told = f"{found['seconds']:.4g} | {found['peak_bytes'] / 1e9:.2f} GB"
            lines.append(f"| {what} | {told} |")
    lines += ["", "| ratio in that run | measured | target |", "| --- | --- | --- |"]
    for row in record["targets"]:
        met = {True: "", False: " (missed)", None: ""}[row["met"]]
        measured = "-" if row["measured"] is None else f"{row['measured']:.2f}{met}"
        lines.append(f"| {row['ratio']} | {measured} | {row['target']} |")
    note = f"{record['note']}. [results/bench/cpu.json](../results/bench/cpu.json), `make bench-peers bench`."
    return "\n".join([*lines, "", note])


def bench_gpu() -> str:
    record = result("bench/gpu")
    lines = [f"| one {record['hardware']['gpu']}, Reddit-shaped unless it says otherwise | microseconds | target |",
             "| --- | --- | --- |"]  # fmt: skip
    for name, found in record["measured"].items():
        target = record["targets"].get(name)
        missed = " (missed)" if name in record["missed"] else ""
        shown = f"{found:,.0f}" if isinstance(found, float) else "not to be had: " + found.partition(":")[0]
        lines.append(f"| {name} | {shown}{missed} | {'' if target is None else f'{target:,.0f}'} |")
    floors = record["floors"]
    note = (f"Copy bandwidth {floors['copy TB/s']:.2f} TB/s. Floors of the mean step: reading its rows "
            f"{floors['reading, float32 us']:.0f} us in float32 and {floors['reading, bfloat16 us']:.0f} us in "
            f"bfloat16; its matrix products alone, captured, {floors['products, TF32 us']:.0f} us in TF32. "
            "[results/bench/gpu.json](../results/bench/gpu.json), `python -m benchmarks.gpu`.")  # fmt: skip
    return "\n".join([*lines, "", note])


def speed() -> str:
    """The README's few rows: one training step of the paper's configuration, and of what else beside peers."""
    cpu, gpu = result("bench/cpu")["groups"], result("bench/gpu")["measured"]
    lines = ["| Reddit's shape, the paper's configuration | graphsage | PyG | DGL |", "| --- | --- | --- | --- |"]
    for told, group, task in (("training step, mean", "mean", "step mean"),
                              ("training step, pool", "pool", "step pool"),
                              ("training step, LSTM", "lstm", "step lstm"),
                              ("training step, mean, neighbors given", "mean, neighbors given", "presampled mean"),
                              ("drawing the neighbors of 512 nodes", "sampling", "sampling"),
                              ("exact embeddings of all 232,965 nodes", "inference", "inference mean")):  # fmt: skip
        cells = []
        for who in ("ours", "pyg", "dgl"):
            found = cpu[group].get(f"{who}: {task}", {})
            cells.append(f"{found['seconds'] * 1e3:,.0f} ms" if "seconds" in found else "")
        lines.append(f"| {told}, 2 CPU cores | {' | '.join(cells)} |")
    ours, given = gpu["mean, float32 features, TF32"], gpu["PyG, neighbors given"]
    lines.append(f"| training step, mean, one H200 | {ours / 1e3:.3f} ms | {given / 1e3:.1f} ms, neighbors given | |")
    note = ("Milliseconds, medians of one run in which all take turns; where the machine has a C compiler. PyG draws "
            "with torch-sparse, as pyg-lib is not to be had from the registries; with neighbors given, no sampler has "
            "a say. [How, against which floor, and what is missed](docs/performance.md); `make bench-peers`, then "
            "`make bench`.")  # fmt: skip
    return "\n".join([*lines, "", note])


def same_f1() -> str:
    record = result("bench/same-f1")
    lines = ["| data | aggregator | device, form | test micro F1 |", "| --- | --- | --- | --- |"]
    for row in record["rows"]:
        lines.append(f"| {row['data']} | {row['aggregator']} | {row['device']}, {row['form']} | "
                     f"{row['mean']:.4f} ± {row['spread']:.4f} |")  # fmt: skip
    return "\n".join(
        [
            *lines,
            "",
            f"{len(record['rows'][0]['f1'])} seeds, {record['rows'][0]['epochs']} epochs. "
            "[results/bench/same-f1.json](../results/bench/same-f1.json), `python -m benchmarks.same_f1`.",
        ]
    )


def growth() -> str:
    record = result("bench/growth")
    lines = ["| what grows | milliseconds a step |", "| --- | --- |"]
    for name, rows in record["axes"].items():
        told = []
        for row in rows:
            sizes = "x".join(map(str, row["sample_sizes"]))
            at = {"edges": f"{row['edges']:,}", "features D": row["dim"], "batch": row["batch_size"]}.get(name, sizes)
            told.append(f"{at}: {row['seconds'] * 1e3:.1f}")
        lines.append(f"| {name} | {' · '.join(told)} |")
    beside = " · ".join(f"{row['edges']:,}: {(row['peak_bytes'] - row['graph_bytes']) / 1e6:,.0f} MB"
                        for row in record["axes"]["edges"])  # fmt: skip
    lines += ["", "| what grows | memory at its peak, beside the graph's own arrays |", "| --- | --- |",
              f"| edges | {beside} |"]  # fmt: skip
    note = "[results/bench/growth.json](../results/bench/growth.json), `python -m benchmarks.growth`."
    return "\n".join([*lines, "", note])


def help_page() -> str:
    parts = ["# Every command", "", "Generated by `make docs` from `--help`."]
    plain = {**os.environ, "COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1", "GRAPHSAGE_CACHE": ""}
    for command in COMMANDS:
        call = [sys.executable, "-m", "graphsage", *command.split(), "--help"]
        text = subprocess.run(call, capture_output=True, text=True, check=True, env=plain).stdout
        title = f"graphsage {command}".strip()
        parts += ["", f"## {title}", "", "```", *[line.rstrip() for line in text.strip("\n").splitlines()], "```"]
    return "\n".join(parts) + "\n"


def ranks() -> str:
    record = result("scale/ranks")
    workers = str(record["workers"])
    lines = [f"| data | 1 rank: test micro-F1 | {workers} ranks | largest difference of a seed |",
             "| --- | --- | --- | --- |"]  # fmt: skip
    for part in record["data"]:
        means = part["test_micro_f1_mean"]
        lines.append(f"| {part['data']} | {means['1']:.4f} | {means[workers]:.4f} | "
                     f"{part['largest_score_difference']:.4f} |")  # fmt: skip
    made = ", ".join(f"{part['data']} {part['epochs']} epochs, seeds: {part['seeds']}" for part in record["data"])
    note = (f"GraphSAGE-mean with the defaults ({made}). "
            "[results/scale/ranks.json](../results/scale/ranks.json), "
            "`make results-ranks PPI=path/to/ppi`.")  # fmt: skip
    return "\n".join([*lines, "", note])


def larger_than_memory() -> str:
    record = result("scale/larger-than-memory")
    lines = ["| nodes | batches | read-ahead | steps/s | read from disk a step |", "| --- | --- | --- | --- | --- |"]
    for way in record["ways"]:
        name = {"shuffled": "as they come", "communities": "by communities"}[way["nodes"]]
        batch = "any nodes" if way["together"] == 1 else f"runs of {way['together']} rows"
        ahead = ("off" if way["no_read_ahead"] else "on") + ("" if way["limited"] else "; memory not limited")
        lines.append(f"| {name} | {batch} | {ahead} | {way['steps_per_second']:.2f} | "
                     f"{way['bytes_read_per_step'] / 1e6:.1f} MB |")  # fmt: skip
    note = (f"{record['nodes']:,} nodes with {record['features']} float16 features "
            f"({record['table_bytes'] / 1e9:.2f} GB), {record['limit_bytes'] / 1e6:.0f} MB of memory allowed, "
            f"{record['batch']} targets a step, sample sizes {', '.join(map(str, record['sample_sizes']))}, on a disk "
            f"that delivers {record['disk_bytes_per_second_in_order'] / 1e6:.0f} MB/s in order; cores shared with "
            "other work. [results/scale/larger-than-memory.json](../results/scale/larger-than-memory.json), "
            "`python -m benchmarks.larger_than_memory --folder DISK`.")  # fmt: skip
    return "\n".join([*lines, "", note])


TABLES: dict[str, Callable[[], str]] = {"setmm": setmm, "ppi": ppi, "debian": debian, "small_graphs": small_graphs,
                                        "serve_load": serve_load, "serve_faults": serve_faults,
                                        "serve_sizing": serve_sizing, "bench_cpu": bench_cpu, "bench_gpu": bench_gpu,
                                        "same_f1": same_f1, "speed": speed, "growth": growth, "ranks": ranks,
                                        "larger_than_memory": larger_than_memory,
                                        "larger_graph": lambda: generate_scale.larger_graph(result),
                                        "ray_faults": lambda: generate_scale.ray_faults(result),
                                        "plan": lambda: generate_plan.plan(result),
                                        "scales": lambda: generate_plan.scales(ROOT)}  # fmt: skip
PAGES = ("README.md", "docs/tables.md", "docs/tutorial.md", "docs/serving.md", "docs/performance.md", "docs/scale.md")


def results_page() -> str:
    """What `graphsage reproduce` found."""
    from graphsage.experiments.report import markdown

    made = "Generated by `make docs` from the results; [reproduce.md](reproduce.md) has the commands."
    return markdown(ROOT / "results", "../results", made)


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
