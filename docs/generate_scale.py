"""Tables of docs/scale.md, from `results/scale/`."""

from typing import Any

from generate_results import result

GB = 1e9


def larger_graph() -> str:
    """Times, memory and disk of the graph that is larger than the memory allowed."""
    record = result("scale/larger-graph")
    lines = [
        "| command | minutes | processor minutes | peak memory | read from disk | asked for | written |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    named = {
        "build": "`data build tables`",
        "embed": "`embed`",
        "killed": "`embed`, killed with SIGKILL",
        "resumed": "the same command again",
    }
    for name, told in named.items():
        taken = record[name]
        if taken is None:
            continue
        disk = [f"{taken[key] / GB:.1f} GB" for key in ("disk_read_bytes", "asked_bytes", "disk_written_bytes")]
        lines.append(
            f"| {told} | {taken['seconds'] / 60:.1f} | {taken['processor_seconds'] / 60:.1f} | "
            f"{taken['peak_bytes'] / GB:.2f} GB | {' | '.join(disk)} |"
        )
    stages = ", ".join(f"{s['blocks']} blocks of layer {s['name'][-1]}" for s in record["embed"]["stages"])
    disk, embed = record["disk"], record["embed"]
    note = (
        f"{record['nodes']:,} nodes, {record['stored_edges']:,} stored edges (a power law), {record['features']} "
        f"{record['feature_type']} features; {record['layers']} layers of {record['aggregator']}, {record['dim']} "
        f"wide, all neighbors, layers between in {record['store']}; `--memory {record['memory_flag']}`, "
        f"{record['hardware']['cores']} cores shared with other work (a load of {record['load']} when this was "
        f"written), so processor minutes say more than minutes. {stages}. {_killed(record)} One long write just "
        f"before went to the disk at {disk['write_bytes_per_second'] / 1e6:.0f} MB/s, reading it back came at "
        f"{disk['read_bytes_per_second'] / 1e6:.0f} MB/s; `embed` used {embed['disk_bytes_per_second'] / 1e6:.0f} "
        "MB/s on average: what is asked for again often comes from the system's file cache, which the limit does "
        "not include. Peak memory is the kernel's high-water mark of resident pages. "
        "[results/scale/larger-graph.json](../results/scale/larger-graph.json), "
        "`make results-larger-graph`."
    )
    return "\n".join([*lines, "", note])


def _killed(record: dict[str, Any]) -> str:
    killed, resumed = record["killed"], record["resumed"]
    if resumed is None:
        return "What a kill half way does at this size has not been measured yet."
    same = "the same bytes as" if record["same_bytes_after_kill"] else "OTHER BYTES THAN"
    return (
        f"Killed after {killed['share_done']:.0%} of the blocks and resumed, the file had {same} an undisturbed run's."
    )


def ray_faults() -> str:
    """Ray beside in-process, and what faults do."""
    record = result("scale/ray")
    lines = ["| where | blocks by node | largest difference from in-process | seconds |", "| --- | --- | --- | --- |"]
    lines.append(f"| in-process | {record['in_process']['blocks']} | – | {record['in_process']['seconds']} |")
    named = {
        "two_nodes": "two Ray nodes",
        "worker_killed": "a worker killed in the middle of a block",
        "second_node_cut_off": "the second node cut off",
    }
    for name, told in named.items():
        found = record[name]
        by_node = " + ".join(map(str, found["blocks_by_node"]))
        lines.append(f"| {told} | {by_node} | {found['max_difference']:g} | {found['seconds']} |")
    again = record["all_nodes_lost"]["resumed_in_process"]
    lines.append(
        f"| every node lost, then continued in-process | {again['blocks']} | {again['max_difference']:g} | "
        f"{again['seconds']} |"
    )
    note = (
        f"{record['nodes']:,} nodes of degree {record['degree']}, two layers of mean, {record['dim']} wide; two "
        f"Ray nodes with one core each on one machine of {record['hardware']['cores']}, so times show overhead, "
        "not speed-up. [results/scale/ray.json](../results/scale/ray.json), `make results-ray`."
    )
    return "\n".join([*lines, "", note])


def ranks() -> str:
    record = result("scale/ranks")
    workers = str(record["workers"])
    lines = [
        f"| data | 1 rank: test micro-F1 | {workers} ranks | largest difference of a seed |",
        "| --- | --- | --- | --- |",
    ]
    for part in record["data"]:
        means = part["test_micro_f1_mean"]
        lines.append(
            f"| {part['data']} | {means['1']:.4f} | {means[workers]:.4f} | {part['largest_score_difference']:.4f} |"
        )
    made = ", ".join(f"{part['data']} {part['epochs']} epochs, seeds: {part['seeds']}" for part in record["data"])
    note = (
        f"GraphSAGE-mean with the defaults ({made}). "
        "[results/scale/ranks.json](../results/scale/ranks.json), "
        "`make results-ranks PPI=path/to/ppi`."
    )
    return "\n".join([*lines, "", note])


def larger_than_memory() -> str:
    record = result("scale/larger-than-memory")
    lines = ["| nodes | batches | read-ahead | steps/s | read from disk a step |", "| --- | --- | --- | --- | --- |"]
    for way in record["ways"]:
        name = {"shuffled": "as they come", "communities": "by communities"}[way["nodes"]]
        batch = "any nodes" if way["together"] == 1 else f"runs of {way['together']} rows"
        ahead = ("off" if way["no_read_ahead"] else "on") + ("" if way["limited"] else "; memory not limited")
        lines.append(
            f"| {name} | {batch} | {ahead} | {way['steps_per_second']:.2f} | "
            f"{way['bytes_read_per_step'] / 1e6:.1f} MB |"
        )
    note = (
        f"{record['nodes']:,} nodes with {record['features']} float16 features "
        f"({record['table_bytes'] / 1e9:.2f} GB), {record['limit_bytes'] / 1e6:.0f} MB of memory allowed, "
        f"{record['batch']} targets a step, sample sizes {', '.join(map(str, record['sample_sizes']))}, on a disk "
        f"that delivers {record['disk_bytes_per_second_in_order'] / 1e6:.0f} MB/s in order; cores shared with "
        "other work. [results/scale/larger-than-memory.json](../results/scale/larger-than-memory.json), "
        "`python -m benchmarks.larger_than_memory --folder DISK`."
    )
    return "\n".join([*lines, "", note])
