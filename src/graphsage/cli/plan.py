"""`graphsage plan`: what training and inference will take, before they are begun."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphsage.cli.options import Json
from graphsage.errors import ConfigError, one_of

if TYPE_CHECKING:
    from graphsage.cluster.plan.forecast import Forecast
    from graphsage.cluster.plan.profile import Profile

GRAPH, MODEL, MACHINES = "Graph", "Model", "Machines"
BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def _option(flag: str, help: str, panel: str, metavar: str | None = None, default: str | bool = True) -> Any:
    return typer.Option(flag, help=help, rich_help_panel=panel, metavar=metavar, show_default=default)


def command(
    nodes: Annotated[str | None, _option("--nodes", "Nodes, such as 3e9 or 10M.", GRAPH, "N", False)] = None,
    edges: Annotated[str | None, _option("--edges", "Stored edges: an undirected one counts twice.", GRAPH, "E",
                                         False)] = None,
    dim: Annotated[int, _option("--dim", "Features of a node.", GRAPH)] = 128,
    precision: Annotated[str, _option("--precision", "Of the features on disk.", GRAPH,
                                      "float32|float16|bfloat16")] = "float32",
    train_nodes: Annotated[str | None, _option("--train-nodes", "Targets of an epoch.", GRAPH, "N",
                                               "70% of all nodes")] = None,
    classes: Annotated[int, _option("--classes", "Classes, or labels of a node.", GRAPH)] = 50,
    aggregator: Annotated[str, _option("--aggregator", "mean, gcn, lstm, pool or meanpool.", MODEL, "NAME")] = "mean",
    sample_sizes: Annotated[str, _option("--sample-sizes", "Neighbors drawn in each layer, S_1 first; as many numbers "
                                         "as layers.", MODEL, "S1,S2")] = "25,10",
    width: Annotated[int, _option("--width", "Of the embeddings; `--dim` of graphsage train.", MODEL)] = 256,
    hidden_dim: Annotated[int | None, _option("--hidden-dim", "Width inside pool and LSTM aggregators.", MODEL,
                                              default="pool 512, LSTM 128")] = None,
    batch_size: Annotated[int, _option("--batch-size", "Targets in a step, of all ranks together.", MODEL)] = 512,
    machines: Annotated[int, _option("--machines", "Equal ones, each like the profile's.", MACHINES)] = 1,
    ranks: Annotated[int | None, _option("--ranks", "Training processes on all machines together.", MACHINES,
                                         default="one a machine")] = None,
    memory: Annotated[str | None, _option("--memory", "Of each machine, such as 64GB.", MACHINES, "SIZE",
                                          "the profile's machine")] = None,
    disk: Annotated[str | None, _option("--disk", "Of each machine.", MACHINES, "SIZE", "enough")] = None,
    network: Annotated[float, _option("--network", "Gigabits a second of each machine.", MACHINES, "GBIT")] = 10.0,
    profile: Annotated[Path, _option("--profile", "What a machine can do, as --calibrate measured it.", MACHINES,
                                     "FILE")] = Path("profile.json"),
    calibrate: Annotated[Path | None, typer.Option(
        "--calibrate", metavar="FILE", show_default=False,
        help="Measure this machine (less than a minute, best when idle) and write its profile to FILE.")] = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Predict time, memory, disk and network of a training epoch and of exact whole-graph inference.

    A simulation: bytes, products and draws are counted from the sizes and divided
    by rates measured on one machine. docs/scale.md says how far it was checked.

    \b
    Examples:
      graphsage plan --calibrate profile.json
      graphsage plan --nodes 10M --edges 200M --dim 128 --precision float16
      graphsage plan --nodes 3e9 --edges 18e9 --dim 256 --machines 100 --memory 512GB --disk 4TB --json
    """
    from graphsage.cli.output import working

    if calibrate is not None:
        _calibrate(calibrate, json)
        return
    if nodes is None or edges is None:
        raise ConfigError("say how large the graph is: --nodes N --edges E (or measure this machine: --calibrate FILE)")
    with working("loading"):
        from graphsage.cli.settings import from_flags
        from graphsage.cluster.plan.forecast import Cluster, training_epoch, whole_graph
        from graphsage.cluster.plan.profile import Profile
        from graphsage.cluster.plan.work import Graph, Model
        from graphsage.graph.external.size import parse_size, shown_size
        from graphsage.training.config import Config
    one_of("--precision", precision, BYTES)
    sizes = from_flags(sample_sizes=sample_sizes).values["sample_sizes"]
    Config(
        aggregator=aggregator, sample_sizes=sizes, dim=width, hidden_dim=hidden_dim, batch_size=batch_size
    ).resolved()
    graph = Graph(
        _count("--nodes", nodes), _count("--edges", edges, least=0), _positive("--dim", dim), BYTES[precision]
    )
    targets = round(0.7 * graph.nodes) or 1 if train_nodes is None else _count("--train-nodes", train_nodes)
    if targets > graph.nodes:
        raise ConfigError(f"--train-nodes must be at most --nodes, {graph.nodes:,}; got {targets:,}")
    model = Model(aggregator, sizes, width, hidden_dim, _positive("--classes", classes))
    known = Profile.load(profile)
    room = float(parse_size(memory, "--memory")) if memory is not None else float(known.about["memory_bytes"])
    cluster = Cluster(machines, ranks, room, None if disk is None else parse_size(disk, "--disk"), network * 1e9 / 8)
    training = training_epoch(graph, model, cluster, known, targets=targets, batch_size=batch_size)
    inference = whole_graph(graph, model, cluster, known)
    if json:
        from graphsage.cli.output import print_json

        print_json({"graph": {"nodes": graph.nodes, "edges": graph.edges, "dim": dim, "precision": precision,
                              "folder_bytes": graph.folder_bytes}, "targets": targets,
                    "parameters": model.parameters(dim), "machines": machines, "ranks": cluster.all_ranks,
                    "training_epoch": training.as_dict(), "inference": inference.as_dict()})  # fmt: skip
        return
    folder = shown_size(graph.folder_bytes)
    print(f"graph       {graph.nodes:,} nodes, {graph.edges:,} edges, {dim} {precision} features: {folder}")
    print(f"model       {aggregator}, sample sizes {sample_sizes}, {width} wide, {model.parameters(dim):,} weights")
    print(f"machines    {machines}, {cluster.all_ranks} ranks, {shown_size(room)} of memory, {network:g} Gbit/s; "
          f"rates of {_described(known)}")  # fmt: skip
    steps = int(training.counts["steps"])
    _show(f"one training epoch: {targets:,} targets, {steps:,} steps of {min(batch_size, targets):,}", training)
    _show(f"exact inference: {graph.nodes:,} nodes, {len(sizes)} layers", inference)


def _calibrate(path: Path, json: bool) -> None:
    import dataclasses

    from graphsage.cli.output import print_facts, print_json, say, working

    with working("loading torch"):
        from graphsage.cluster.plan.calibrate import calibrate
    found = calibrate(path.parent if path.parent.is_dir() else None, lambda text: say(f"measuring: {text}"))
    found.save(path)
    if json:
        print_json({"profile": str(path), **dataclasses.asdict(found)})
        return
    mean = found.gather["mean"]
    print_facts({
        "machine": _described(found), "gathering": f"{_rate(mean[0])} in cache, {_rate(mean[-1])} in memory",
        "products": f"{found.product_flops / 1e9:.0f} GFLOP/s",
        "drawing": f"{1e-6 / _draw(found):.1f} million neighbors/s",
        "disk": f"{found.disk_bytes / 1e9:.2f} GB/s in order, {found.disk_reads:,.0f} random reads/s",
        "all_reduce": f"{found.reduce_bytes / 1e9:.2f} GB/s on loopback", "profile": path,
    })  # fmt: skip


def _rate(rate: Any) -> str:
    """Of rows of 512 bytes."""
    return f"{512 / (rate.row_seconds + 512 * rate.byte_seconds) / 1e9:.1f} GB/s"


def _draw(found: "Profile") -> float:
    return found.draw_row_seconds / 25 + found.draw_seconds + 25 * found.compare_seconds


def _described(found: "Profile") -> str:
    about = found.about
    return f"{about.get('cores', '?')} cores ({about.get('machine', '?')}), torch {about.get('torch', '?')}"


def _show(title: str, found: "Forecast") -> None:
    from graphsage.cli.output import print_facts
    from graphsage.graph.external.size import shown_size

    print(f"\n{title}" + ("" if found.fits else "   DOES NOT FIT"))
    shares = sorted(found.parts.items(), key=lambda part: -part[1])
    told = ", ".join(
        f"{name} {seconds / found.seconds:.0%}" for name, seconds in shares if seconds > 0.005 * found.seconds
    )
    print_facts({
        "  time": f"{duration(found.seconds)} ({told})", "  memory": f"{shown_size(found.memory)} a machine",
        "  disk": f"{shown_size(found.disk_read)} read, {shown_size(found.disk_written)} written a machine",
        "  network": f"{shown_size(found.network)} a machine", "  note": "; ".join(found.notes),
    })  # fmt: skip


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


def _positive(flag: str, value: int) -> int:
    if value < 1:
        raise ConfigError(f"{flag} must be at least 1; got {value}")
    return value
