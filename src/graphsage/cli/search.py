"""`graphsage search`: the nodes closest to a node, by name."""

from typing import Annotated

import typer

from graphsage.cli.options import Device, Inference, Json, OtherData, Run, argument
from graphsage.cli.output import block_progress, print_columns, print_json, say, working
from graphsage.cli.runs import open_run


def command(
    run: Run,
    id: Annotated[str, argument("ID", "The node to look around.")],
    data: OtherData = None,
    k: Annotated[int, typer.Option("-k", "--count", help="How many nodes to show.", min=1)] = 10,
    inference: Inference = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Show the nodes whose embeddings are closest to that of ID (cosine).

    Exact up to 100,000 nodes. Above, an index (faiss) answers and its measured
    recall is printed.

    \b
    Examples:
      graphsage search run pythag
      graphsage search run ppncan -k 3 --json
    """
    from graphsage.inference.nearest import NearestIndex

    opened = open_run(run, data, device)
    graph = opened.graph
    row = int(graph.rows_of([id])[0])
    with block_progress("embedding") as on_block:
        z = opened.model.embed(graph, inference=inference, on_block=on_block)
    with working("searching"):
        index = NearestIndex.build(z.numpy())
        rows, cosines = index.search(index.unit[row : row + 1], k + 1)
    pairs = [(v, c) for v, c in zip(rows[0].tolist(), cosines[0].tolist(), strict=True) if v not in (row, -1)][:k]
    names = opened.data.graph.class_names
    labels = None if names is None or graph.labels is None or graph.labels.dim() > 1 else graph.labels

    def part(v: int) -> str:
        return "" if labels is None or names is None or int(labels[v]) < 0 else names[int(labels[v])]

    if json:
        near = [{"id": graph.id_of(v), "cosine": round(c, 6), "class": part(v) or None} for v, c in pairs]
        print_json({"id": graph.id_of(row), "class": part(row) or None, "recall": index.recall, "nearest": near})
        return
    if index.recall < 1:
        say(f"approximate search: it finds {index.recall:.1%} of the true neighbors")
    print_columns([(f"{c:.4f}", str(graph.id_of(v)), part(v)) for v, c in pairs], right=(0,))
