"""`graphsage score`: how likely the links in a table are."""

from pathlib import Path
from typing import Annotated

from graphsage.cli.options import Device, Inference, Json, OtherData, Run, argument, option
from graphsage.cli.output import block_progress, print_json, say, working
from graphsage.cli.runs import open_run


def command(
    run: Run,
    pairs: Annotated[Path, argument("PAIRS", "Table with the columns source and target, one link per row.")],
    data: OtherData = None,
    out: Annotated[Path | None, option("--out", "File to write: .csv or .parquet.", "FILE", "stdout, as CSV")] = None,
    inference: Inference = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Score the links in PAIRS by a model trained with --task links: the higher, the more likely.

    A link that is in the graph is scored as if it were not, in either direction.
    All pairs are scored, or none if a row is wrong.

    \b
    Examples:
      graphsage score run pairs.csv
      graphsage score run pairs.csv --out scores.parquet
    """
    from graphsage.inference.export import Column, check_suffix, write_table
    from graphsage.inference.links import head_of, read_pairs, score_pairs
    from graphsage.sampling.hidden import EdgePlaces

    if out is not None:
        check_suffix(out, (".csv", ".parquet"))
    opened = open_run(run, data, device)
    head_of(opened.model)
    graph = opened.graph
    with working(f"reading {pairs}"):
        rows = read_pairs(pairs, graph)
    with block_progress("scoring") as on_block:
        scores = score_pairs(opened.model, graph, rows, inference, on_block)
    places = EdgePlaces.of(graph)
    joined = int(((places.find(*rows.unbind(1)) >= 0) | (places.find(*rows.flip(1).unbind(1)) >= 0)).sum())
    if joined:
        say(f"{joined:,} of the {len(rows):,} pairs are linked in the graph; each is scored as if it were not")
    ids = [[graph.id_of(row) for row in end.tolist()] for end in rows.unbind(1)]
    columns: dict[str, Column] = {"source": ids[0], "target": ids[1], "score": scores.numpy()}
    if out is not None:
        files = list(map(str, write_table(out, columns)))
        facts = {"pairs": len(rows), "linked": joined, "files": files}
        if json:
            print_json(facts)
        else:
            print(f"scores of {len(rows):,} pairs: {out}")
        return
    made = [round(score, 6) for score in scores.tolist()]
    if json:
        each = [{"source": a, "target": b, "score": score} for a, b, score in zip(*ids, made, strict=True)]
        print_json({"pairs": len(rows), "linked": joined, "scores": each})
        return
    import csv
    import sys

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*ids, made, strict=True))
