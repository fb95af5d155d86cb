"""What was understood of two tables, said before training starts."""

from typing import TYPE_CHECKING, Any

from graphsage.cli.output import split_line
from graphsage.tables.spec import MERGED

if TYPE_CHECKING:
    from graphsage.datasets.dataset import Dataset
    from graphsage.graph.graph import Graph
    from graphsage.graph.split import Split
    from graphsage.tables.spec import TableSpec

SHOWN = 8


def table_summary(data: "Dataset", spec: "TableSpec", split_name: str, split: "Split") -> list[str]:
    """Lines: nodes, edges, degrees, what each column became, class balance, split sizes, warnings."""
    graph = data.graph
    lines = [f"nodes   {graph.num_nodes:,} from {spec.nodes or spec.edges}"]
    kind = "undirected" if spec.direction == MERGED else "directed"
    hint = "; --direction in, out or both keeps their direction" if spec.direction == MERGED else ""
    read = f", read {spec.direction}" if spec.direction != MERGED else ""
    lost = f", {data.dropped_edges:,} dropped (unknown nodes)" if data.dropped_edges else ""
    lines.append(f"edges   {graph.num_edges:,} {kind} from {spec.edges}{read}{lost}{hint}")
    if graph.relations:
        counts = ", ".join(f"{name} {each.num_edges:,}" for name, each in graph.relations.items())
        lines.append(f"relations {counts}; each has weights of its own")
    if graph.edge_weight is not None and len(graph.edge_weight):
        least, largest = float(graph.edge_weight.min()), float(graph.edge_weight.max())
        same = "; all are equal, and a mean is the same without them" if least == largest else ""
        lines.append(f"weights {spec.edge_weight}: min {least:g}, max {largest:g}{same}")
    lines.append(f"degree  {_degrees(data)}")
    lines += _columns(data, split)
    lines += _classes(data, spec)
    return [*lines, *split_line(split_name, split), *_warnings(data, split_name, split)]


def _degrees(data: "Dataset") -> str:
    import numpy as np

    degrees = data.graph.degrees.numpy()
    least, middle, most, largest = np.quantile(degrees, [0, 0.5, 0.9, 1]).tolist()
    return (
        f"min {least:g}, median {middle:g}, mean {degrees.mean():.1f}, 90% {most:g}, max {largest:,g}; "
        f"{int((degrees == 0).sum()):,} isolated"
    )


def _columns(data: "Dataset", split: "Split") -> list[str]:
    _, fitted = data.with_features(split)
    if fitted is None:
        return ["columns none; the node's degree is the feature"]
    return [f"column  {' + '.join(one['columns'])}: {one['kind']}, {one['width']} wide" for one in fitted.describe()]


def _classes(data: "Dataset", spec: "TableSpec") -> list[str]:
    from graphsage.graph.graph import known_labels

    graph = data.graph
    if graph.labels is None or graph.class_names is None:
        return ["classes none"]
    unknown = int((~known_labels(graph.labels)).sum())
    if graph.regression:
        return [f"target  {described(one)}" for one in target_facts(graph)]
    ranked = sorted(zip(graph.class_names, graph.class_counts(), strict=True), key=lambda one: -one[1])
    what = "labels" if graph.multilabel else "classes"
    shown = ", ".join(f"{name} {count:,}" for name, count in ranked[:SHOWN])
    rest = f", {len(ranked) - SHOWN} more down to {ranked[-1][1]:,}" if len(ranked) > SHOWN else ""
    empty = int((graph.labels == 0).all(dim=1).sum()) if graph.multilabel else 0
    none = f"; {empty:,} nodes without labels" if empty else ""
    none += f"; unknown for {unknown:,} nodes, which are not trained on or scored" if unknown else ""
    return [f"{what:<7} {len(ranked)} in {spec.label}: {shown}{rest}{none}"]


def target_facts(graph: "Graph") -> list[dict[str, Any]]:
    """Name, known values, and the spread of each target."""
    import numpy as np

    assert graph.labels is not None
    names = graph.class_names or tuple(map(str, range(graph.num_classes)))
    made = []
    for name, column in zip(names, graph.labels.numpy().T, strict=True):
        known = column[~np.isnan(column)]
        spread = (known.mean(), known.std(), known.min(), known.max()) if len(known) else (None,) * 4
        facts = dict(
            zip(("mean", "deviation", "min", "max"), (x if x is None else float(x) for x in spread), strict=True)
        )
        made.append({"name": name, "nodes": len(known), "unknown": len(column) - len(known), **facts})
    return made


def described(target: dict[str, Any]) -> str:
    """A target in a line."""
    if not target["nodes"]:
        return f"{target['name']}: unknown for all nodes"
    numbers = ", ".join(f"{name} {target[name]:,.5g}" for name in ("mean", "deviation", "min", "max"))
    unknown = f"; unknown for {target['unknown']:,} nodes, which are not trained on or scored"
    return f"{target['name']}: {numbers}{unknown if target['unknown'] else ''}"


def _warnings(data: "Dataset", split_name: str, split: "Split") -> list[str]:
    from graphsage.datasets.dataset import LINK_SPLIT
    from graphsage.datasets.tables import new_labels_only_in

    lines = []
    if data.graph.edge_time is not None and split.cutoff is None:
        by_time = "--link-split time" if split_name == LINK_SPLIT else "a split by time"
        lines.append(f"note    only {by_time} leaves later edges out of training; --as-of does in predict and embed")
    for part in ("val", "test"):
        for name, count in new_labels_only_in(data, split, part).items():
            nodes = "1 node" if count == 1 else f"{count:,} nodes"
            lines.append(f"warning: class {name!r} of {nodes} in {part} has no training node; it counts as wrong")
    return lines
