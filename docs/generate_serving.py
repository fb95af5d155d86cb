"""Tables of docs/serving.md, from `results/serve/`."""

from typing import Any

from generate_results import result


def serve_load() -> str:
    record = result("serve/load")
    where, over = record["surroundings"], record["overload_x10"]
    one, crowd, bulk = record["one_client"], record["clients_32"], record["nodes_32_at_a_time"]
    lines = [
        "| one new node with 10 edges, setmm model | measured | aim |",
        "| --- | --- | --- |",
        f"| 1 client: p50 | {one['p50_ms']} ms | 5 ms |",
        f"| 1 client: p99 | {one['p99_ms']} ms | 25 ms |",
        f"| 32 clients: embeds a second | {crowd['per_second']:.0f} | 300 |",
        f"| 32 nodes a request: nodes a second | {bulk['nodes_per_second']:.0f} | 1,500 |",
        f"| {over['clients']} clients: goodput of capacity | {over['goodput_share']:.0%} | 70% |",
        f"| {over['clients']} clients: accepted p99 | {over['accepted']['p99_ms']} ms | 1,000 ms |",
        f"| {over['clients']} clients: rejected p50 | {over['rejected']['p50_ms']} ms | 50 ms |",
        f"| {over['clients']} clients: health | {over['health']['ok']} of {over['health']['asked']} ok | all |",
        f"| {over['clients']} clients: memory growth | {over['memory_mb']['growth']:.1%} | 10% |",
    ]
    note = (
        f"{where['cores']} cores shared by the service, the load generator and whatever else ran (load average "
        f"{where['load_before']} before the start), {where['date']}. Processor time of the service: "
        f"{one['service_cpu_ms']} ms a request alone, {crowd['service_cpu_ms']} ms with 32 clients. "
        "[results/serve/load.json](../results/serve/load.json), `make load`."
    )
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
    lines = [
        "| fault | seen | aim |",
        "| --- | --- | --- |",
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
        f"| memory slope meanwhile | {soak['memory_slope_mb_per_minute']} MB a minute | below 1 |",
    ]
    loads = ", ".join(
        f"{name} {record['surroundings']['load_before']}"
        for name, record in (("crash", crash), ("fuzz", fuzz), ("soak", soak))
    )
    note = (
        f"{crash['surroundings']['date']}, on {crash['surroundings']['cores']} cores shared with other work (load "
        f"average before the start: {loads}). [results/serve/](../results/serve/), `make crash`, `make fuzz`, "
        "`make soak`."
    )
    return "\n".join([*lines, "", note])


def serve_sizing() -> str:
    record = result("serve/sizing")
    lines = [
        "| nodes | disk | memory | open | new node alone | new node, 32 at a time | compaction | search |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in record["rows"]:
        lines.append(
            f"| {row['nodes']:,} | {row['disk_mb']:,} MB | {row['memory_mb']:,} MB | {row['open_s']} s | "
            f"{row['embed_alone_ms']} ms | {row['embed_of_32_ms']} ms | {row['compaction_s']} s | "
            f"{row['search_ms']} ms |"
        )
    note = (
        f"{record['features']} float32 features, {record['degree']} neighbors a node, mean aggregator, two layers; "
        "processor time of one thread. Compaction needs room for a second copy on disk and, for a moment, in "
        "memory. "
        "[results/serve/sizing.json](../results/serve/sizing.json), `make sizing`."
    )
    return "\n".join([*lines, "", note])
