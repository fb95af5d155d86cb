"""`graphsage plan`: estimates what training and inference need before they start."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphsage.cli.options import Json, converted, option, shown, with_settings
from graphsage.cli.output import print_facts, print_json, working
from graphsage.errors import ConfigError, one_of
from graphsage.training.config import CHOICES, Config

if TYPE_CHECKING:
    from graphsage.cluster.plan import Estimate

GRAPH, MODEL, MACHINES = "Graph", "Model", "Machines"
DTYPES = CHOICES["feature_type"]
UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def _option(flag: str, help: str, panel: str, metavar: str | None = None, default: str | bool = True) -> Any:
    return option(flag, help, metavar, default, rich_help_panel=panel)


@with_settings(Config, {MODEL: ("aggregator", "sample_sizes", "dim", "hidden_dim", "batch_size")})
def command(
    nodes: Annotated[str, _option("--num-nodes", "Nodes, such as 3e9 or 10M.", GRAPH, "N")],
    edges: Annotated[str, _option("--num-edges", "Stored edges: an undirected edge counts twice.", GRAPH, "E")],
    feature_dim: Annotated[int, _option("--feature-dim", "Features per node.", GRAPH, "N")],
    feature_type: Annotated[
        str, _option("--feature-type", "Dtype of the features.", GRAPH, "|".join(DTYPES))
    ] = "float32",
    train_nodes: Annotated[
        str | None, _option("--train-nodes", "Training nodes.", GRAPH, "N", "70% of all nodes")
    ] = None,
    classes: Annotated[int, _option("--classes", "Classes, or labels per node.", GRAPH)] = 50,
    machines: Annotated[int, _option("--machines", "Machines like this one.", MACHINES)] = 1,
    workers: Annotated[int, _option("--workers", "Training processes per machine.", MACHINES)] = 1,
    memory: Annotated[
        str | None, _option("--memory", "Memory per machine, such as 64GB.", MACHINES, "SIZE", "as here")
    ] = None,
    disk: Annotated[str | None, _option("--disk", "Disk per machine.", MACHINES, "SIZE", "unlimited")] = None,
    network: Annotated[float, _option("--network", "Gbit/s per machine.", MACHINES, "GBIT")] = 10.0,
    measure: Annotated[bool, typer.Option("--measure", help="Measure this machine again; best when idle.")] = False,
    json: Json = False,
    **options: Any,
) -> None:
    """Estimate time, memory, disk and network of a supervised training epoch and of exact whole-graph inference.

    The first plan of a model measures it on this machine's CPU for a few seconds and caches the result. Times are
    scaled from there and are within a factor of 2 where docs/scale.md checked them.

    \b
    Examples:
      graphsage plan --num-nodes 10M --num-edges 200M --feature-dim 128 --feature-type float16
      graphsage plan --num-nodes 3e9 --num-edges 18e9 --feature-dim 256 --machines 100 --json
    """
    with working("loading"):
        import torch

        from graphsage.cluster import plan
        from graphsage.cluster.plan_rates import GraphSize, machine, rates_of
        from graphsage.graph.external.size import parse_size, shown_size
        from graphsage.graph.paging import memory_size
    one_of("--feature-type", feature_type, DTYPES)
    for flag, value in (("--feature-dim", feature_dim), ("--classes", classes)):
        if value < 1:
            raise ConfigError(f"{flag} must be at least 1; got {value}")
    config = Config(**converted(Config, options)).resolved()
    size = (_count("--num-nodes", nodes), _count("--num-edges", edges, 0), feature_dim)
    graph = GraphSize(*size, getattr(torch, feature_type), classes)
    targets = round(0.7 * graph.nodes) or 1 if train_nodes is None else _count("--train-nodes", train_nodes)
    if targets > graph.nodes:
        raise ConfigError(f"--train-nodes must be at most --num-nodes, {graph.nodes:,}; got {targets:,}")
    room = memory_size() if memory is None else parse_size(memory, "--memory")
    on = plan.Machines(machines, workers, room, None if disk is None else parse_size(disk, "--disk"), network * 1e9 / 8)
    with working("measuring this machine"):
        rates = rates_of(config, graph, again=measure)
    training = plan.training_epoch(graph, config, on, rates, targets)
    inference = plan.whole_graph(graph, config, on, rates)
    weights, steps = plan.num_weights(graph, config), plan.num_steps(config, targets)
    if json:
        sizes = {
            "nodes": graph.nodes,
            "edges": graph.edges,
            "dim": feature_dim,
            "precision": feature_type,
            "classes": classes,
            "folder_bytes": graph.folder_bytes,
        }
        print_json(
            {
                "graph": sizes,
                "targets": targets,
                "steps": steps,
                "parameters": weights,
                "machines": machines,
                "workers": workers,
                "measured_on": machine(),
                "error_factor": plan.ERROR_FACTOR,
                "training_epoch": training.as_dict(),
                "inference": inference.as_dict(),
            }
        )
        return
    here = machine()
    folder = shown_size(graph.folder_bytes)
    print(f"graph      {graph.nodes:,} nodes, {graph.edges:,} edges, {feature_dim} {feature_type} features: {folder}")
    sampled = f"sample sizes {shown(config.sample_sizes)}"
    print(f"model      {config.aggregator}, {sampled}, {config.dim} wide, {weights:,} weights")
    print(f"machines   {machines} x {workers} processes, {shown_size(room)} of memory, {network:g} Gbit/s")
    print(
        f"measured   on {here['name']}, {here['threads']} threads; expect times within a factor of {plan.ERROR_FACTOR}"
    )
    _show(f"one training epoch: {targets:,} targets, {steps:,} steps of {min(config.batch_size, targets):,}", training)
    _show(f"exact inference: {graph.nodes:,} nodes, {len(config.sample_sizes)} layers", inference)


def _show(title: str, found: "Estimate") -> None:
    from graphsage.graph.external.size import shown_size

    print(f"\n{title}" + ("   DOES NOT FIT" if found.problems else ""))
    largest = sorted(found.parts.items(), key=lambda part: -part[1])
    shares = [f"{name} {seconds / found.seconds:.0%}" for name, seconds in largest if seconds > 0.005 * found.seconds]
    facts = {
        "time": f"{duration(found.seconds)} ({', '.join(shares)})",
        "memory": f"{shown_size(found.memory)} per machine",
        "disk": f"{shown_size(found.disk_read)} read, {shown_size(found.disk_written)} written per machine",
        "network": f"{shown_size(found.network)} per machine",
        "note": "; ".join(found.problems + found.notes),
    }
    print_facts({f"  {name}": fact for name, fact in facts.items()})


def duration(seconds: float) -> str:
    for unit, length, least in (("days", 86400.0, 2), ("h", 3600.0, 2), ("min", 60.0, 2), ("s", 1.0, 1)):
        if seconds >= least * length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds * 1e3:.3g} ms"


def _count(flag: str, text: str, least: int = 1) -> int:
    unit = text[-1:].upper() if text[-1:].upper() in UNITS else ""
    try:
        value = float(text[: len(text) - len(unit)].replace(",", "").replace("_", "")) * UNITS[unit]
    except ValueError:
        value = float("nan")
    if not least <= value < float("inf") or value != int(value):
        raise ConfigError(f"{flag} must be an integer of at least {least}, such as 3e9 or 10M; got {text!r}")
    return int(value)
