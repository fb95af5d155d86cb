"""The yardsticks below the result of unsupervised training, as `train` and `evaluate` print them."""

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any

from graphsage.cli.options import option
from graphsage.cli.output import block_progress, print_columns, say
from graphsage.errors import DataError

if TYPE_CHECKING:
    from graphsage.graph.graph import Graph
    from graphsage.graph.split import Split
    from graphsage.inference.model import Model

Yardsticks = Annotated[
    bool,
    option(
        "--yardsticks/--no-yardsticks",
        "Score unsupervised embeddings beside features, neighbor means, an untrained encoder and DeepWalk; regressions "
        "beside ridge regressions, links beside popularity, common neighbors, resource allocation and the vote of the "
        "nearest nodes.",
        default="on",
    ),
]


def yardstick_rows(
    model: "Model", graph: "Graph", split: "Split", inference: str | None = None
) -> list[dict[str, Any]] | None:
    """The rows, computed once for a run; None and one sentence if there is nothing to score."""
    from graphsage.baselines.yardsticks import yardsticks

    try:
        with block_progress("yardsticks (--no-yardsticks leaves them out)") as on_row:
            found = yardsticks(model, graph, split, inference=inference, keep_in=model.folder, on_row=on_row)
    except DataError as error:
        say(f"no yardsticks: {error}")
        return None
    return [dataclasses.asdict(row) for row in found]


def print_yardsticks(rows: list[dict[str, Any]], *parts: str) -> None:
    """Micro F1 by both probes, of the first of `parts` that has labeled nodes."""
    scored = [scores for row in rows for scores in (row["paper"], row["tuned"]) if scores is not None]
    part = next((part for part in parts if any(part in scores for scores in scored)), parts[0])

    def shown(scores: dict[str, float] | None) -> str:
        return "–" if scores is None or part not in scores else f"{scores[part]:.4f}"

    print()
    head = [f"micro F1 of {part} nodes", "paper's probe", "tuned probe"]
    print_columns([head, *([row["name"], shown(row["paper"]), shown(row["tuned"])] for row in rows)], right=(1, 2))
    for row in rows:
        if row["note"] is not None:
            print(f"{row['name']}: {row['note']}")


def link_rows(
    model: "Model", graph: "Graph", split: "Split", part: str, inference: str | None = None, *, yardsticks: bool = True
) -> list[dict[str, Any]]:
    """The scores of held-out links by the model and, below, by the yardsticks."""
    from graphsage.inference.links import evaluate_links

    with block_progress("embedding") as on_block:
        found = evaluate_links(model, graph, split, part, yardsticks=yardsticks, inference=inference, on_block=on_block)
    return [{"name": name, "sources": scores.sources, **scores.as_dict()} for name, scores in found.items()]


def print_links(rows: list[dict[str, Any]], part: str) -> None:
    print()
    names = [name for name in rows[0] if name not in ("name", "sources")]
    shown = {"mrr": "MRR", "auc": "AUC", "ap": "AP"}
    head = [f"{part} links of {rows[0]['sources']:,} nodes", *(shown.get(name, name) for name in names)]
    table = [head, *([row["name"], *(f"{row[name]:.4f}" for name in names)] for row in rows)]
    print_columns(table, right=range(1, len(head)))
