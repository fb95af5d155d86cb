"""The planner's tables of docs/scale.md: estimates beside measured times, and estimates for graphs of many sizes."""

from generate_results import result


def plan() -> str:
    """Estimates beside measured times."""
    record = result("scale/plan")
    lines = [
        "| not measured by the planner | predicted | measured | predicted / measured |",
        "| --- | --- | --- | --- |",
    ]
    for row in record["rows"]:
        lines.append(
            f"| {row['what']}: {row['label']} | {_time(row['predicted'])} | {_time(row['measured'])} | "
            f"{row['ratio']:.2f}{'' if row['within'] else ' (missed)'} |"
        )
    note = (
        f"{record['within']} of {len(record['rows'])} within a factor of {record['factor']}; {record['clock']}, "
        f"{_threads(record)} of {record['hardware']['cores']} cores. "
        f"[results/scale/plan.json](../results/scale/plan.json), `{record['command']}`."
    )
    return "\n".join([*lines, "", note])


SCALES = (
    (10**6, 20, 1, 64e9),
    (10**7, 20, 1, 64e9),
    (10**8, 20, 4, 256e9),
    (10**9, 20, 100, 512e9),
    (3 * 10**9, 12, 100, 512e9),
)


def scales() -> str:
    """The planner's estimates from 10^6 nodes to PinSage's 3 x 10^9."""
    import torch

    from graphsage.cluster.plan import Machines, training_epoch, whole_graph
    from graphsage.cluster.plan_rates import GraphSize, Rates
    from graphsage.graph.external.size import shown_size as size
    from graphsage.training.config import Config

    record = result("scale/plan")
    rates = Rates(**record["rates_of_scales"])
    lines = [
        "| nodes | edges | machines | folder | epoch: time | memory | network | inference: time | disk read |",
        "|" + " --- |" * 9,
    ]
    for nodes, degree, machines, memory in SCALES:
        graph = GraphSize(nodes, nodes * degree, 256, torch.float16)
        on = Machines(machines, memory=memory, disk=8e12)
        epoch = training_epoch(graph, Config(batch_size=512 * machines), on, rates, nodes // 10)
        embed = whole_graph(graph, Config(), on, rates)
        too_much = " (more than available)" if epoch.problems else ""
        lines.append(
            f"| {nodes:,} | {graph.edges:,} | {machines} x {memory / 1e9:.0f} GB | "
            f"{size(graph.folder_bytes)} | {_time(epoch.seconds)} | {size(epoch.memory)}{too_much} | "
            f"{size(epoch.network)} | {_time(embed.seconds)} | {size(embed.disk_read)} |"
        )
    note = (
        f"**Estimates, not measured**, by `graphsage plan` with the rates of {_threads(record)} of a small virtual "
        "machine. 256 float16 features, mean, sample sizes 25 and 10, width 256, 10% of the nodes are training "
        "nodes, 512 targets per machine and step, 10 Gbit/s, 8 TB of disk. Memory, network and disk are per "
        "machine."
    )
    return "\n".join([*lines, "", note])


def _threads(record: dict[str, int]) -> str:
    return f"{record['threads']} thread{'s' if record['threads'] > 1 else ''}"


def _time(seconds: float) -> str:
    from graphsage.cli.plan import duration

    return duration(seconds)
