"""The planner's tables of docs/scale.md: predictions beside the clock, and a simulation of graphs of many sizes."""

from generate_results import ROOT, result


def plan() -> str:
    """The planner beside the clock."""
    record = result("scale/plan")
    lines = ["| not calibrated on | predicted | measured | predicted / measured |", "| --- | --- | --- | --- |"]
    for row in record["rows"]:
        lines.append(f"| {row['what']}: {row['label']} | {_time(row['predicted'])} | {_time(row['measured'])} | "
                     f"{row['ratio']:.2f}{'' if row['within_2x'] else ' (missed)'} |")  # fmt: skip
    note = (f"{record['within_2x']} of {len(record['rows'])} within 2 x; {record['clock']}, {record['threads']} "
            f"thread{'s' if record['threads'] > 1 else ''} of {record['hardware']['cores']} cores. "
            "[results/scale/plan.json](../results/scale/plan.json), `make results-plan`.")  # fmt: skip
    return "\n".join([*lines, "", note])


SCALES = ((10**6, 20, 1, 64e9), (10**7, 20, 1, 64e9), (10**8, 20, 4, 256e9), (10**9, 20, 100, 512e9),
          (3 * 10**9, 12, 100, 512e9))  # fmt: skip


def scales() -> str:
    """The planner's answers from 10^6 nodes to PinSage's 3 x 10^9: a simulation."""
    from graphsage.cluster.plan.forecast import Cluster, training_epoch, whole_graph
    from graphsage.cluster.plan.profile import Profile
    from graphsage.cluster.plan.work import Graph, Model
    from graphsage.graph.external.size import shown_size as size

    profile, model = Profile.load(ROOT / "results" / "scale" / "profile.json"), Model()
    lines = ["| nodes | edges | machines | folder | epoch: bytes gathered | products | time | memory | network | "
             "inference: time | disk read |", "|" + " --- |" * 11]  # fmt: skip
    for nodes, degree, machines, memory in SCALES:
        graph = Graph(nodes, nodes * degree, 256, 2)
        cluster = Cluster(machines, memory=memory, disk=8e12)
        epoch = training_epoch(graph, model, cluster, profile, targets=nodes // 10, batch_size=512 * machines)
        embed = whole_graph(graph, model, cluster, profile)
        no = "" if epoch.fits else " (more than there is)"
        lines.append(f"| {nodes:,} | {graph.edges:,} | {machines} x {memory / 1e9:.0f} GB | "
                     f"{size(graph.folder_bytes)} | {size(epoch.counts['bytes_gathered'])} | "
                     f"{epoch.counts['flops'] / 1e12:,.0f} TFLOP | {_time(epoch.seconds)} | {size(epoch.memory)}{no} | "
                     f"{size(epoch.network)} | {_time(embed.seconds)} | {size(embed.disk_read)} |")  # fmt: skip
    note = ("**Simulation, not measured**, by `graphsage plan` with [results/scale/profile.json]"
            f"(../results/scale/profile.json), rates of {profile.about['threads']} thread"
            f"{'s' if profile.about['threads'] > 1 else ''} of a small virtual machine on every machine. 256 float16 "
            "features, mean, sample sizes 25 and 10, 256 wide, a tenth of the nodes as targets, 512 targets a machine "
            "and step, 10 Gbit/s, 8 TB of disk. Bytes, products, memory, network and disk are of one machine."
            )  # fmt: skip
    return "\n".join([*lines, "", note])


def _time(seconds: float) -> str:
    from graphsage.cli.plan import duration

    return duration(seconds)
