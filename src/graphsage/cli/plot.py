"""`graphsage plot`: a 2-D map of a model's embeddings, as a picture or as a page to move around in."""

from pathlib import Path
from typing import Annotated, Any

import typer

from graphsage.cli.options import MAP_HELP, Device, Inference, Json, OtherData, Part, Run, option
from graphsage.cli.output import block_progress, print_json, working
from graphsage.cli.runs import Opened, open_run
from graphsage.errors import ConfigError


def command(
    run: Run,
    out: Annotated[Path, option("--out", "File to write: .png, or .html to move around in, offline.", "FILE")],
    data: OtherData = None,
    part: Part = "all",
    method: Annotated[str, typer.Option("--method", help=MAP_HELP, metavar="auto|pca|tsne")] = "auto",
    inference: Inference = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Draw the embeddings in two dimensions, colored by class (by prediction where the class is unknown).

    \b
    Examples:
      graphsage plot run --out map.png
      graphsage plot run --part test --out map.html --method pca
    """
    if out.suffix.lower() not in (".png", ".html"):
        raise ConfigError(f"{out}: the file must end in .png or .html; got {out.suffix or 'no ending'!r}")
    from graphsage.cli.pictures import draw_map
    from graphsage.inference.projection import NAMES, method_for, project

    method = method_for(method, "--method")
    opened = open_run(run, data, device)
    rows = opened.split(None)[1].nodes(part)
    if len(rows) < 3:
        raise ConfigError(f"a map needs at least 3 nodes; the {part} part has {len(rows)}")
    with block_progress("embedding") as on_block:
        z = opened.model.embed(opened.graph, rows, inference=inference, on_block=on_block)
    with working("placing"):
        places = project(z.numpy(), method, n_jobs=-1)
    names = _classes(opened, rows, z)
    title = f"{len(rows):,} nodes of {opened.data.name}"
    with working("drawing"):
        if out.suffix.lower() == ".png":
            draw_map(out, places, names, title=title, subtitle=f"GraphSAGE embeddings, {NAMES[method]}")
        else:
            from graphsage.cli.pictures import write_page

            ids = [str(opened.graph.id_of(row)) for row in rows.tolist()]
            write_page(out, places, names, ids, title=title, subtitle=f"GraphSAGE embeddings, {NAMES[method]}")
    if json:
        print_json({"nodes": len(rows), "method": method, "file": str(out)})
    else:
        print(f"map of {len(rows):,} nodes: {out}")


def _classes(opened: "Opened", rows: Any, z: Any) -> list[str]:
    """The class of each node: its own where known, else the predicted one; one name for all where there is neither."""
    from graphsage.inference.export import class_names

    graph, model = opened.graph, opened.model
    truth = None if graph.labels is None or graph.labels.dim() > 1 else graph.labels[rows]
    if truth is not None and bool((truth >= 0).all()):
        names = class_names(model, graph.num_classes) if graph.class_names is None else graph.class_names
        return [names[label] for label in truth.tolist()]
    if model.head is None or model.multilabel or model.regression:
        return ["node"] * len(rows)
    probabilities = model.probabilities(z)
    names = class_names(model, probabilities.shape[1])
    decided = model.decide(probabilities)
    if truth is not None:
        decided = truth.where(truth >= 0, decided)
    return [names[label] for label in decided.tolist()]
