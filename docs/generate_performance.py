"""Tables of docs/performance.md and the README's table of speed, from `results/bench/`."""

from generate_results import result


def bench_cpu() -> str:
    record = result("bench/cpu")
    lines = ["| Reddit-shaped unless it says otherwise, 2 cores | seconds | peak memory |", "| --- | --- | --- |"]
    for group, entries in record["groups"].items():
        for name, found in entries.items():
            who, task = name.split(": ")
            known = {
                "ours": "**graphsage**",
                "plain": "**graphsage** without a compiler",
                "pyg": "PyG",
                "dgl": "DGL",
                "floor": "floor",
            }[who]
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
    lines = [
        f"| one {record['hardware']['gpu']}, Reddit-shaped unless it says otherwise | microseconds | target |",
        "| --- | --- | --- |",
    ]
    for name, found in record["measured"].items():
        target = record["targets"].get(name)
        missed = " (missed)" if name in record["missed"] else ""
        shown = f"{found:,.0f}" if isinstance(found, float) else "not to be had: " + found.partition(":")[0]
        lines.append(f"| {name} | {shown}{missed} | {'' if target is None else f'{target:,.0f}'} |")
    floors = record["floors"]
    note = (
        f"Copy bandwidth {floors['copy TB/s']:.2f} TB/s. Floors of the mean step: reading its rows "
        f"{floors['reading, float32 us']:.0f} us in float32 and {floors['reading, bfloat16 us']:.0f} us in "
        f"bfloat16; its matrix products alone, captured, {floors['products, TF32 us']:.0f} us in TF32. "
        "[results/bench/gpu.json](../results/bench/gpu.json), `python -m benchmarks.gpu`."
    )
    return "\n".join([*lines, "", note])


def speed() -> str:
    """The README's few rows: one training step of the paper's configuration, and of what else beside peers."""
    cpu, gpu = result("bench/cpu")["groups"], result("bench/gpu")["measured"]
    lines = ["| Reddit's shape, the paper's configuration | graphsage | PyG | DGL |", "| --- | --- | --- | --- |"]
    for told, group, task in (
        ("training step, mean", "mean", "step mean"),
        ("training step, pool", "pool", "step pool"),
        ("training step, LSTM", "lstm", "step lstm"),
        ("training step, mean, neighbors given", "mean, neighbors given", "presampled mean"),
        ("drawing the neighbors of 512 nodes", "sampling", "sampling"),
        ("exact embeddings of all 232,965 nodes", "inference", "inference mean"),
    ):
        cells = []
        for who in ("ours", "pyg", "dgl"):
            found = cpu[group].get(f"{who}: {task}", {})
            cells.append(f"{found['seconds'] * 1e3:,.0f} ms" if "seconds" in found else "")
        lines.append(f"| {told}, 2 CPU cores | {' | '.join(cells)} |")
    ours, given = gpu["mean, float32 features, TF32"], gpu["PyG, neighbors given"]
    lines.append(f"| training step, mean, one H200 | {ours / 1e3:.3f} ms | {given / 1e3:.1f} ms, neighbors given | |")
    note = (
        "Milliseconds, medians of one run in which all take turns; where the machine has a C compiler. PyG draws "
        "with torch-sparse, as pyg-lib is not to be had from the registries; with neighbors given, no sampler has "
        "a say. [How, against which floor, and what is missed](docs/performance.md); `make bench-peers`, then "
        "`make bench`."
    )
    return "\n".join([*lines, "", note])


def same_f1() -> str:
    record = result("bench/same-f1")
    lines = ["| data | aggregator | device, form | test micro F1 |", "| --- | --- | --- | --- |"]
    for row in record["rows"]:
        lines.append(
            f"| {row['data']} | {row['aggregator']} | {row['device']}, {row['form']} | "
            f"{row['mean']:.4f} ± {row['spread']:.4f} |"
        )
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
    beside = " · ".join(
        f"{row['edges']:,}: {(row['peak_bytes'] - row['graph_bytes']) / 1e6:,.0f} MB" for row in record["axes"]["edges"]
    )
    lines += [
        "",
        "| what grows | memory at its peak, beside the graph's own arrays |",
        "| --- | --- |",
        f"| edges | {beside} |",
    ]
    note = "[results/bench/growth.json](../results/bench/growth.json), `python -m benchmarks.growth`."
    return "\n".join([*lines, "", note])
