"""The tables of the documents, made from `results/`. Each function fills one. The pages have the sentences."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from graphsage.cli.plan import duration
from graphsage.cluster.plan import Machines, training_epoch, whole_graph
from graphsage.cluster.plan_rates import GraphSize, Rates
from graphsage.experiments.report import value
from graphsage.graph.external.size import shown_size
from graphsage.training.config import Config

ROOT = Path(__file__).resolve().parents[1]


def result(name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((ROOT / "results" / f"{name}.json").read_text(encoding="utf-8"))
    return record


def table(header: str, rows: Iterable[Iterable[object]]) -> str:
    """`header` has the columns' names, separated by ` | `."""
    lines = [header, " | ".join("---" for _ in header.split(" | ")), *(" | ".join(map(str, row)) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


def table1(*data: str) -> list[list[str]]:
    """Rows of Table 1: baselines, and supervised models in the paper's form. A dagger marks the old protocol."""
    found = {
        (row["row"], row["data"]): row
        for row in result("table1")["rows"]
        if (row["task"], row.get("form", "paper")) in (("both", "paper"), ("supervised", "paper"))
    }

    def cell(name: str, source: str, score: str) -> str:
        row = found.get((name, source), {})
        old = " †" if "runs" in row.get("old_protocol", ()) else ""
        return value(row[score]) + old if score in row else "–"

    models = [(f"GraphSAGE-{name}",) * 2 for name in ("GCN", "mean", "LSTM", "pool")]
    named = [
        ("features, the paper's probe", "Raw features"),
        ("features, tuned probe", "Raw features"),
        ("DeepWalk + features",) * 2,
        *models,
    ]
    return [
        [title, *(cell(name, source, f"{'tuned_' * ('tuned' in title)}test_micro_f1") for source in data)]
        for title, name in named
    ]


def readme() -> str:
    header = "test micro-F1 on unseen nodes | new theorems (set.mm) | new packages (Debian) | new proteins (PPI)"
    return table(header, table1("setmm", "debian", "ppi"))


def setmm() -> str:
    record = result("setmm")
    rows = {row["label"]: value(row["test_micro_f1"]) for row in record["rows"]}
    splits = ("random", "date")
    names = record["baselines"]["random"]
    body = [[name, *(f"{record['baselines'][split][name]:.3f}" for split in splits)] for name in names]
    for label in ("GraphSAGE-mean, the defaults", "GraphSAGE-mean, chosen on validation"):
        body.append([label, *(rows[f"{split}: {label}"] for split in splits)])
    return table("unseen theorems, test micro-F1 | split `random` | split `date`", body)


def debian() -> str:
    return table("section of new packages | accuracy", table1("debian"))


def small_graphs() -> str:
    rows = result("small-graphs")["rows"]
    graphs, methods = (list(dict.fromkeys(row[name] for row in rows)) for name in ("graph", "label"))
    cells = {(row["label"], row["graph"]): value(row["test_micro_f1"]) for row in rows}
    body = ([method, *(cells.get((method, graph), "–") for graph in graphs)] for method in reversed(methods))
    return table(" | ".join(["test accuracy", *graphs]), body)


def surroundings(where: dict[str, Any]) -> str:
    return f"{where['date']}, {where['cores']} cores, load {where['load_before']}"


def serve_load() -> str:
    record = result("serve/load")
    over, one, crowd, bulk = (record[n] for n in ("overload_x10", "one_client", "clients_32", "nodes_32_at_a_time"))
    many = f"{over['clients']} clients"
    rows = (
        ("1 client: p50", f"{one['p50_ms']} ms", "5 ms"),
        ("1 client: p99", f"{one['p99_ms']} ms", "25 ms"),
        ("1 client: processor time of a request", f"{one['service_cpu_ms']} ms", ""),
        ("32 clients: embeds per second", f"{crowd['per_second']:.0f}", "300"),
        ("32 clients: processor time of a request", f"{crowd['service_cpu_ms']} ms", ""),
        ("32 nodes per request: nodes per second", f"{bulk['nodes_per_second']:.0f}", "1,500"),
        (f"{many}: goodput, share of capacity", f"{over['goodput_share']:.0%}", "70%"),
        (f"{many}: accepted p99", f"{over['accepted']['p99_ms']} ms", "1,000 ms"),
        (f"{many}: rejected p50", f"{over['rejected']['p50_ms']} ms", "50 ms"),
        (f"{many}: health", f"{over['health']['ok']} of {over['health']['asked']} ok", "all"),
        (f"{many}: memory growth", f"{over['memory_mb']['growth']:.1%}", "10%"),
        ("measured", surroundings(record["surroundings"]), ""),
    )
    return table("one new node with 10 edges, setmm model | measured | aim", rows)


def serve_faults() -> str:
    crash, fuzz, soak = (result(f"serve/{name}") for name in ("crash", "fuzz", "soak"))
    kill, served, torn, again = (crash[name] for name in ("kill_9", "kill_9_over_http", "damaged_journals", "restart"))
    steps = crash["every_step"]
    damage = result("serve/damage")
    flips, opening = damage["bit_flips"], damage["opening"]
    outcomes = [flips["bundle"], flips["live graph"], flips["graph folder"], damage["journal"]]
    found = {
        word: sum(count for each in outcomes for name, count in each.items() if name.startswith(word))
        for word in ("WRONG", "TRACEBACK", "LOST")
    } | {"WAL": damage["journal"]["flips"]}

    def seen(some: dict[str, Any]) -> str:
        return f"{some['lost'] + some['came_back']} lost, {some['half_applied']} half applied"

    rows = (
        ("`kill -9` of a process that writes and compacts", f"{kill['kills']} kills: {seen(kill)}", "0, 0"),
        ("`kill -9` of the service during writes over HTTP", f"{served['kills']} kills: {seen(served)}", "0, 0"),
        (
            f"killed at each of {len(steps)} steps of write, compaction and reload",
            f"{sum(sum(each.values()) for each in steps.values())} lost or half applied",
            "0",
        ),
        (
            f"{torn['journals']:,} journals cut off or with a flipped bit",
            f"{torn['clean_prefix']} clean prefix, {torn['clear_refusal']} clear refusal, "
            f"{torn.get('WRONG', 0) + torn.get('UNCLEAR', 0)} other",
            "0 other",
        ),
        (
            f"reopening {again['nodes']:,} nodes and {again['journal_rows']:,} journaled changes",
            f"{again['cpu_seconds']} s of processor time, {again['seconds']} s beside other work",
            "5 s",
        ),
        (
            f"{flips['flips']:,} flipped bits in bundles, live graphs and graph folders, {found['WAL']:,} in journals",
            f"{found['WRONG']} wrong answers, {found['TRACEBACK']} tracebacks, {found['LOST']} lost silently",
            "0, 0, 0",
        ),
        (
            f"opening {opening['nodes']:,} nodes, processor time (commit 52bbd43 alternating)",
            f"{1000 * opening['new']['cpu_seconds']:.0f} ms ({1000 * opening['old']['cpu_seconds']:.0f} ms)",
            "1.5 times",
        ),
        (
            f"generated requests, {fuzz['cases_asked']:,} per operation",
            f"{len(fuzz['cases'])} operations: {'no 5xx' if fuzz['passed'] else 'failed'}",
            "no 5xx",
        ),
        (
            f"{soak['minutes']:.0f} minutes of mixed load, {sum(soak['requests'].values()):,} requests",
            ", ".join(f"{count} x {name}" for name, count in soak["errors"].items()) or "no errors",
            "none",
        ),
        (
            f"deleted nodes in {soak['searches_after_a_deletion']:,} searches after one of "
            f"{soak['deleted_nodes']:,} deletions",
            f"{soak['errors'].get('search returned a deleted node', 0)}",
            "0",
        ),
        ("memory slope meanwhile", f"{soak['memory_slope_mb_per_minute']} MB per minute", "below 1"),
        ("kills measured", surroundings(crash["surroundings"]), ""),
        ("requests measured", surroundings(fuzz["surroundings"]), ""),
        ("load measured", surroundings(soak["surroundings"]), ""),
    )
    return table("fault | seen | aim", rows)


def serve_large_changes() -> str:
    record = result("serve/large-changes")
    rows = (
        (
            f"`--cap {kind}`",
            f"{seen['longest_read_ms']} ms",
            f"{max(seen['apply_s'])} s",
            f"{seen['reopen_cpu_s']} s",
        )
        for kind, seen in record["caps"].items()
    )
    header = (
        "four changes of 256 nodes with 500 edges each | longest wait of a read | slowest change | "
        "processor time of a restart"
    )
    return table(header, rows) + f"\n\nMeasured {surroundings(record['surroundings'])}."


def serve_slow_clients() -> str:
    record = result("serve/slow-clients")
    rows = (
        (
            seen["about"],
            f"{seen['p50_ms']} ms",
            f"{seen['p99_ms']} ms",
            "" if name == "quiet" else f"{seen['p99_to_quiet']}",
            f"{sum(seen['errors'].values())} of {seen['requests']}",
            f"{seen['health']['ok']} of {seen['health']['asked']}",
        )
        for name, seen in record["clients"].items()
        if name != "memory_mb"
    )
    where = f"\n\nMeasured {surroundings(record['surroundings'])}."
    return table("beside the well-behaved clients | p50 | p99 | p99 to quiet | errors | health ok", rows) + where


def serve_refusal() -> str:
    record = result("serve/slow-clients")["refusal"]
    rows = (
        (
            f"refused {name.replace('_', ' ')}",
            f"{seen['cpu_ms_per_refusal']} ms",
            f"{seen['goodput_share']:.0%}",
            f"{seen['rejected_p50_ms']} ms",
            f"{seen['accepted_p99_ms']} ms",
        )
        for name, seen in record.items()
    )
    header = "640 clients | processor time of a refusal | goodput, share of capacity | rejected p50 | accepted p99"
    return table(header, rows)


def serve_commits() -> str:
    record = result("serve/commits")
    rows = (
        (
            row["about"],
            *(f"{row[what]['ratio']}" for what in ("p50_ms", "p99_ms", "nodes_per_second", "cpu_ms_per_node")),
        )
        for row in record["rows"].values()
    )
    old, new = (record["commits"][name][:7] for name in ("old", "new"))
    where = f"\n\n{new} against {old}, phases alternating; {surroundings(record['surroundings'])}."
    return table("new / old | p50 | p99 | nodes per second | processor time of a node", rows) + where


def serve_sizing() -> str:
    header = "nodes | disk | memory | open | new node alone | new node, 32 at a time | compaction | search"
    rows = (
        (
            f"{row['nodes']:,}",
            f"{row['disk_mb']:,} MB",
            f"{row['memory_mb']:,} MB",
            f"{row['open_s']} s",
            f"{row['embed_alone_ms']} ms",
            f"{row['embed_of_32_ms']} ms",
            f"{row['compaction_s']} s",
            f"{row['search_ms']} ms",
        )
        for row in result("serve/sizing")["rows"]
    )
    return table(header, rows)


CONTENDERS = {
    "ours": "**graphsage**",
    "plain": "**graphsage** without a compiler",
    "pyg": "PyG",
    "dgl": "DGL",
    "floor": "floor",
}


def bench_cpu() -> str:
    record = result("bench/cpu")
    rows = []
    for group, entries in record["groups"].items():
        for name, found in entries.items():
            who, task = name.split(": ")
            known = "GraphBolt" if "graphbolt" in task else CONTENDERS[who]
            what = f"{group}: {known}" + (f", {task}" if who == "floor" or group == "mean, half tables" else "")
            failed = ("failed", "-")
            times = (f"{found['seconds']:.4g}", f"{found['peak_bytes'] / 1e9:.2f} GB") if "seconds" in found else failed
            rows.append((what, *times))
    times = table("Reddit-shaped unless stated otherwise, 2 cores | seconds | peak memory", rows)
    ratios = (
        (
            row["ratio"],
            "-" if row["measured"] is None else f"{row['measured']:.2f}{' (missed)' if row['met'] is False else ''}",
            row["target"],
        )
        for row in record["targets"]
    )
    return f"{times}\n\n{table('ratio in that run | measured | target', ratios)}"


FLOORS = ("reading, float32 us", "reading, bfloat16 us", "products, TF32 us")


def bench_gpu() -> str:
    record = result("bench/gpu")
    rows = []
    for name, found in record["measured"].items():
        target = record["targets"].get(name)
        shown = f"{found:,.0f}" if isinstance(found, float) else "failed: " + found.partition(":")[0]
        missed = " (missed)" if name in record["missed"] else ""
        rows.append((name, shown + missed, "" if target is None else f"{target:,.0f}"))
    floors = record["floors"]
    rows += [(f"floor of the mean step: {name[:-3]}", f"{floors[name]:.0f}", "") for name in FLOORS]
    title = f"one {record['hardware']['gpu']}, {floors['copy TB/s']:.2f} TB/s, Reddit-shaped unless stated otherwise"
    return table(f"{title} | microseconds | target", rows)


def growth() -> str:
    rows = []
    for name, found in result("bench/growth")["axes"].items():
        for row in found:
            sizes = "x".join(map(str, row["sample_sizes"]))
            at = {"edges": f"{row['edges']:,}", "features D": row["dim"], "batch": row["batch_size"]}.get(name, sizes)
            memory = f"{(row['peak_bytes'] - row['graph_bytes']) / 1e6:,.0f} MB" if name == "edges" else ""
            rows.append((name, at, f"{row['seconds'] * 1e3:.1f}", memory))
    return table("what grows | size | milliseconds per step | peak memory, the graph's arrays excluded", rows)


def ranks() -> str:
    record = result("scale/ranks")
    count = str(record["workers"])
    rows = (
        (
            f"{part['data']}, {part['epochs']} epochs, {part['seeds']} seed{'s' * (part['seeds'] > 1)}",
            *(f"{part['test_micro_f1_mean'][each]:.4f}" for each in ("1", count)),
            f"{part['largest_score_difference']:.4f}",
        )
        for part in record["data"]
    )
    return table(f"data | 1 rank: test micro-F1 | {count} ranks | largest difference of a seed", rows)


def larger_than_memory() -> str:
    record = result("scale/larger-than-memory")
    rows = (
        (
            f"{record['limit_bytes'] / 1e6:.0f} MB" if way["limited"] else "not limited",
            "off" if way["no_read_ahead"] else "on",
            f"{way['steps_per_second']:.2f}",
            f"{way['bytes_read_per_step'] / 1e6:.1f} MB",
        )
        for way in record["ways"]
        if way.get("nodes", "shuffled") == "shuffled" and way.get("together", 1) == 1
    )
    title = f"memory allowed, table of {record['table_bytes'] / 1e9:.2f} GB"
    return table(f"{title} | read-ahead | steps per second | read from disk per step", rows)


def larger_graph() -> str:
    record = result("scale/larger-graph")
    named = {
        "build": "`data build tables`",
        "embed": "`embed`",
        "killed": "`embed`, killed with SIGKILL",
        "resumed": "the same command again",
    }
    rows = [
        (
            told,
            f"{taken['seconds'] / 60:.1f}",
            f"{taken['processor_seconds'] / 60:.1f}",
            f"{taken['peak_bytes'] / 1e9:.2f} GB",
            *(f"{taken[key] / 1e9:.1f} GB" for key in ("disk_read_bytes", "asked_bytes", "disk_written_bytes")),
        )
        for name, told in named.items()
        if (taken := record[name]) is not None
    ]
    header = "command | minutes | processor minutes | peak memory | read from disk | requested | written"
    same = {True: "the same", False: "OTHER", None: "not measured"}[record["same_bytes_after_kill"]]
    facts = {
        "nodes": f"{record['nodes']:,}",
        "stored edges": f"{record['stored_edges']:,}",
        "features": f"{record['features']} {record['feature_type']}",
        "layers": f"{record['layers']} of {record['aggregator']}, {record['dim']} wide, stored in {record['store']}",
        "blocks": ", ".join(f"{s['blocks']} of layer {s['name'][-1]}" for s in record["embed"]["stages"]),
        "bytes of the file after the kill": same,
        "disk, written in order": f"{record['disk']['write_bytes_per_second'] / 1e6:.0f} MB/s",
        "disk, read in order": f"{record['disk']['read_bytes_per_second'] / 1e6:.0f} MB/s",
        "disk, used by `embed`": f"{record['embed']['disk_bytes_per_second'] / 1e6:.0f} MB/s",
        "machine": f"{record['hardware']['cores']} cores, load {record['load']}",
    }
    return f"{table(header, rows)}\n\n{table('measured with | ', facts.items())}"


def ray_faults() -> str:
    record = result("scale/ray")
    again = record["all_nodes_lost"]["resumed_in_process"]
    named = {
        "two_nodes": "two Ray nodes",
        "worker_killed": "a worker killed in the middle of a block",
        "second_node_cut_off": "the second node cut off",
    }
    alone = record["in_process"]
    rows: list[tuple[object, ...]] = [("in-process", alone["blocks"], "–", alone["seconds"])]
    for name, told in named.items():
        found = record[name]
        by_node = " + ".join(map(str, found["blocks_by_node"]))
        rows.append((told, by_node, f"{found['max_difference']:g}", found["seconds"]))
    lost = "every node lost, then continued in-process"
    rows.append((lost, again["blocks"], f"{again['max_difference']:g}", again["seconds"]))
    return table("where | blocks by node | largest difference from in-process | seconds", rows)


def plan() -> str:
    record = result("scale/plan")
    rows = (
        (
            f"{row['what']}: {row['label']}",
            duration(row["predicted"]),
            duration(row["measured"]),
            f"{row['ratio']:.2f}{'' if row['within'] else ' (missed)'}",
        )
        for row in record["rows"]
    )
    title = f"{record['clock']}, {record['threads']} of {record['hardware']['cores']} cores"
    return table(f"{title} | predicted | measured | predicted / measured", rows)


SCALES = (
    (10**6, 20, 1, 64e9),
    (10**7, 20, 1, 64e9),
    (10**8, 20, 4, 256e9),
    (10**9, 20, 100, 512e9),
    (3 * 10**9, 12, 100, 512e9),
)


def scales() -> str:
    """The planner's estimates from 10^6 nodes to PinSage's 3 x 10^9."""
    rates = Rates(**result("scale/plan")["rates_of_scales"])
    rows = []
    for nodes, degree, machines, memory in SCALES:
        graph = GraphSize(nodes, nodes * degree, 256, torch.float16)
        on = Machines(machines, memory=memory, disk=8e12)
        epoch = training_epoch(graph, Config(batch_size=512 * machines), on, rates, nodes // 10)
        embed = whole_graph(graph, Config(), on, rates)
        rows.append(
            (
                f"{nodes:,}",
                f"{graph.edges:,}",
                f"{machines} x {memory / 1e9:.0f} GB",
                shown_size(graph.folder_bytes),
                duration(epoch.seconds),
                shown_size(epoch.memory) + (" (more than available)" if epoch.problems else ""),
                shown_size(epoch.network),
                duration(embed.seconds),
                shown_size(embed.disk_read),
            )
        )
    header = "nodes | edges | machines | folder | epoch: time | memory | network | inference: time | disk read"
    return table(header, rows)


TABLES: dict[str, Callable[[], str]] = {
    made.__name__: made
    for made in (
        readme,
        setmm,
        debian,
        small_graphs,
        serve_load,
        serve_faults,
        serve_large_changes,
        serve_slow_clients,
        serve_refusal,
        serve_commits,
        serve_sizing,
        bench_cpu,
        bench_gpu,
        growth,
        ranks,
        larger_than_memory,
        larger_graph,
        ray_faults,
        plan,
        scales,
    )
}
