"""`graphsage recommend`: the nodes that a node is most likely linked to."""

from typing import Annotated, Any

import typer

from graphsage.cli.options import Device, Inference, Json, NewEdges, NewNodes, NewVectors, OtherData, Run, argument
from graphsage.cli.output import block_progress, print_columns, print_json, say
from graphsage.cli.runs import open_run
from graphsage.errors import ConfigError


def command(
    run: Run,
    id: Annotated[str | None, argument("ID", "The node that asks.", "the new nodes")] = None,
    data: OtherData = None,
    k: Annotated[int, typer.Option("-k", "--count", help="How many nodes to show.", min=1)] = 10,
    new_nodes: NewNodes = None,
    new_edges: NewEdges = None,
    new_vectors: NewVectors = None,
    inference: Inference = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Show the nodes that ID is most likely linked to, by a model trained with --task links.

    Known links are left out. With --new-nodes, the answers are for each new node.
    Exact up to 100,000 nodes. Above, an index (faiss) answers and its measured
    recall is printed.

    \b
    Examples:
      graphsage recommend run 0ad
      graphsage recommend run 0ad -k 3 --json
      graphsage recommend run --new-nodes new.csv
    """
    from graphsage.inference.links import head_of

    if (id is None) == (new_nodes is None):
        raise ConfigError("give the ID of a node, or a table of --new-nodes; one of them")
    opened = open_run(run, data, device)
    model, graph = opened.model, opened.graph
    head_of(model)
    rows, grown = None if id is None else graph.rows_of([id]), graph
    if new_nodes is not None or new_edges is not None:
        attached = model.attach(graph, new_nodes, new_edges, new_vectors)
        if attached.dropped_edges:
            say(f"warning: {attached.dropped_edges:,} new edges to unknown nodes are dropped")
        grown, rows = attached.graph, attached.rows if rows is None else rows
    assert rows is not None
    from graphsage.inference.links import recommend

    with block_progress("embedding") as on_block:
        import torch

        old = torch.arange(graph.num_nodes)
        found = recommend(model, grown, rows, k, candidates=old, inference=inference, on_block=on_block)
    names = graph.class_names
    labels = None if names is None or graph.labels is None or graph.labels.dim() > 1 else graph.labels

    def shown(place: int) -> list[dict[str, Any]]:
        each = zip(found.rows[place].tolist(), found.scores[place].tolist(), strict=True)
        kept = [(row, score) for row, score in each if row >= 0]
        known = [None if labels is None or names is None or labels[row] < 0 else names[labels[row]] for row, _ in kept]
        return [
            {"id": graph.id_of(row), "score": round(score, 6), "class": label}
            for (row, score), label in zip(kept, known, strict=True)
        ]

    ids = [grown.id_of(row) for row in rows.tolist()]
    answers = [shown(place) for place in range(len(ids))]
    if json:
        each = [{"id": asked, "recommended": answer} for asked, answer in zip(ids, answers, strict=True)]
        print_json({"recall": found.recall, **(each[0] if id is not None else {"nodes": each})})
        return
    if found.recall < 1:
        say(f"approximate search: it finds {found.recall:.1%} of the best nodes")
    lines = [
        [*([] if id is not None else [str(asked)]), f"{one['score']:.4f}", str(one["id"]), one["class"] or ""]
        for asked, answer in zip(ids, answers, strict=True)
        for one in answer
    ]
    print_columns(lines, right=(0 if id is not None else 1,))
