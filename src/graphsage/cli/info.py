"""`graphsage info`: what is in a run or in data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from graphsage.cli.options import Json, argument
from graphsage.cli.output import print_columns, print_facts, print_json, shortened, working
from graphsage.cli.runs import holds_run
from graphsage.cli.settings import RUN_FILE, from_file
from graphsage.cli.table_summary import described, target_facts
from graphsage.evaluation.metrics import METRICS

if TYPE_CHECKING:
    from graphsage.datasets.dataset import Dataset

TOP = 10


def command(
    what: Annotated[str, argument("RUN|DATA", "A run's folder, or data as in `graphsage train`.")], json: Json = False
) -> None:
    """Describe a trained model or a data set.

    \b
    Examples:
      graphsage info setmm
      graphsage info run --json
    """
    folder = Path(what)
    if holds_run(folder) and not (folder / "graph.json").exists():
        with working(f"reading {what}"):
            facts = run_facts(folder)
        show = show_run
    else:
        with working(f"reading {what}"):
            from graphsage.datasets.open import open_data

            facts = data_facts(open_data(what))
        show = show_data
    if json:
        print_json(facts)
    else:
        show(facts)


def run_facts(folder: Path) -> dict[str, Any]:
    from graphsage.inference.bundle import read_config
    from graphsage.inference.model import load

    if not (folder / "config.json").exists():
        remembered = from_file(folder / RUN_FILE)
        return {
            "kind": "run",
            "run": str(folder),
            "finished": False,
            "data": remembered.data
            or " + ".join(str(remembered.tables[n]) for n in ("nodes", "edges") if n in remembered.tables),
            "split": remembered.split,
            "settings": remembered.values,
        }
    model, bundle = load(folder), read_config(folder)
    parameters = [*model.encoder.parameters(), *([] if model.head is None else model.head.parameters())]
    return {
        "kind": "run",
        "run": str(folder),
        "finished": True,
        "data": model.about.get("data"),
        "split": model.about.get("split"),
        "bundle_format": bundle["format"],
        "graphsage": bundle["graphsage"],
        "parameters": sum(p.numel() for p in parameters),
        "features": model.encoder.in_dim,
        "dim": model.dim,
        "columns": None if model.features is None else model.features.describe(),
        "classifier": "logistic probe" if model.head is None else "head",
        "multilabel": model.multilabel,
        "regression": model.regression,
        "num_classes": 0 if model.head is None else model.head.linear.out_features,
        "classes": None if model.class_names is None else list(model.class_names),
        "training": model.about.get("training"),
        "settings": model.about.get("config"),
    }


def data_facts(data: "Dataset") -> dict[str, Any]:
    import numpy as np
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    from graphsage.graph.graph import known_labels

    graph = data.graph
    n = graph.num_nodes
    degrees = graph.degrees.numpy()
    indices, indptr = graph.indices.numpy(), graph.indptr.numpy()
    matrix = csr_array((np.ones(len(indices), np.int8), indices, indptr), shape=(n, n))
    components = connected_components(matrix, directed=graph.directed, connection="weak")[0] if n else 0
    return {
        "kind": "data",
        "data": data.name,
        "nodes": n,
        "edges": graph.num_edges,
        "directed": any(each.directed for each in graph.by_relation),
        "relations": {name: each.num_edges for name, each in graph.relations.items()},
        "isolated_nodes": int((degrees == 0).sum()),
        "self_loops": graph.num_self_loops,
        "degree": {
            "min": int(degrees.min()),
            "median": float(np.median(degrees)),
            "mean": float(degrees.mean()),
            "max": int(degrees.max()),
        }
        if n
        else None,
        "components": int(components),
        "features": graph.num_features,
        "columns": None if data.plan is None else list(data.plan.columns),
        "multilabel": graph.multilabel,
        "targets": target_facts(graph) if graph.regression else None,
        "num_classes": 0 if graph.regression else graph.num_classes,
        "unlabeled_nodes": None if graph.labels is None else int((~known_labels(graph.labels)).sum()),
        "classes": _class_counts(data),
        "splits": {name: data.split(name).sizes() for name in data.split_names},
        "default_split": data.default_split,
    }


def _class_counts(data: "Dataset") -> list[dict[str, Any]] | None:
    """Every class with its number of nodes, the largest first."""
    graph = data.graph
    if graph.labels is None or graph.regression:
        return None
    counts = graph.class_counts()
    names = graph.class_names or tuple(map(str, range(len(counts))))
    listed = [{"name": name, "nodes": count} for name, count in zip(names, counts, strict=True)]
    return sorted(listed, key=lambda one: -one["nodes"])


def show_run(facts: dict[str, Any]) -> None:
    shared = {name: facts[name] for name in ("run", "data", "split")}
    if not facts["finished"]:
        print_facts({**shared, "state": f"not finished; graphsage train --out {facts['run']} --resume"})
    else:
        training = facts["training"] or {}
        best, metric = training.get("best_val_score"), METRICS.get(training.get("metric") or "")
        classes = facts["classes"] or []
        shown = f"{facts['num_classes'] or len(classes)} ({shortened(', '.join(classes), 80)})" if classes else None
        steps = [f"{' + '.join(each['columns'])} ({each['kind']}, {each['width']})" for each in facts["columns"] or ()]
        print_facts(
            {
                **shared,
                "bundle": f"format {facts['bundle_format']}, written by graphsage {facts['graphsage']}",
                "parameters": f"{facts['parameters']:,}",
                "input": f"{facts['features']} features" + (f" from {', '.join(steps)}" if steps else ""),
                "output": f"{facts['dim']} numbers per node",
                "targets" if facts["regression"] else "labels" if facts["multilabel"] else "classes": shown,
                "training": f"{training['steps']:,} steps, {training['seconds']:.1f} s" if training else None,
                f"best val {metric.title if metric else ''}": None
                if best is None or metric is None
                else metric.shown(best),
            }
        )
    print("\nsettings")
    settings = (facts["settings"] or {}).items()
    print_facts({f"  {name}": ", ".join(map(str, x)) if isinstance(x, list | tuple) else x for name, x in settings})


def show_data(facts: dict[str, Any]) -> None:
    degree = facts["degree"]
    features = f"{facts['features']}" if facts["features"] else None
    if facts["columns"]:
        features = f"from {', '.join(facts['columns'])}"
    print_facts(
        {
            "data": facts["data"],
            "nodes": f"{facts['nodes']:,} ({facts['isolated_nodes']:,} isolated)",
            "edges": f"{facts['edges']:,} {'directed' if facts['directed'] else 'undirected'}, "
            f"{facts['self_loops']:,} self loops",
            "degree": degree
            and f"min {degree['min']:,}, median {degree['median']:,g}, mean {degree['mean']:.1f}, "
            f"max {degree['max']:,}",
            "components": f"{facts['components']:,}",
            "features": features or "none",
            "labels" if facts["multilabel"] else "classes": facts["num_classes"]
            or (None if facts["targets"] else "none"),
        }
    )
    for target in facts["targets"] or []:
        print(f"target  {described(target)}")
    classes = facts["classes"] or []
    print_columns([[shortened(c["name"], 60), f"{c['nodes']:,}"] for c in classes[:TOP]], indent="  ", right=(1,))
    if len(classes) > TOP:
        print(f"  and {len(classes) - TOP} more")
    print("splits")
    marked = {name: " (default)" if name == facts["default_split"] else "" for name in facts["splits"]}
    sizes = {name: [f"{part} {size:,}" for part, size in parts.items()] for name, parts in facts["splits"].items()}
    print_columns([[name + marked[name], *sizes[name]] for name in sizes], indent="  ")
