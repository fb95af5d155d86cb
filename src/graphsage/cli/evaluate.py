"""`graphsage evaluate`: F1 on nodes that training did not see."""

from typing import Annotated

from graphsage.cli.options import Device, Inference, Json, OtherData, Part, Run, option
from graphsage.cli.output import block_progress, print_facts, print_json, say
from graphsage.cli.runs import open_run
from graphsage.cli.yardsticks import Yardsticks, print_yardsticks, yardstick_rows
from graphsage.errors import ConfigError


def command(
    run: Run,
    data: OtherData = None,
    part: Part = "test",
    split_name: Annotated[str | None, option("--split", "Which of the data's splits.", "NAME", "the run's own")] = None,
    inference: Inference = None,
    device: Device = "auto",
    yardsticks: Yardsticks = True,
    json: Json = False,
) -> None:
    """Score the model in RUN: micro and macro F1.

    The nodes are attached to the full graph, as if they had just arrived.
    A model trained without labels is scored as in the paper: by a logistic
    regression on the embeddings of the training nodes, beside the scores of
    features, neighbor means, an untrained encoder and DeepWalk.

    \b
    Examples:
      graphsage evaluate run
      graphsage evaluate run --part val --json
      graphsage evaluate run other-graph --part all
    """
    from graphsage.inference.model import with_known_classes

    if split_name in ("train", "val", "test", "all"):
        raise ConfigError(f"--split was renamed --part, and --split-name --split; write --part {split_name}")
    opened = open_run(run, data, device)
    name, split = opened.split(split_name)
    graph, unknown = with_known_classes(opened.model, opened.graph, opened.data.name)
    for label, count in unknown.items():
        say(f"warning: the model does not know the class {label!r} of {count:,} nodes; it counts as wrong")
    with block_progress("embedding") as on_block:
        f1 = opened.model.evaluate(graph, split, part, inference=inference, on_block=on_block)
    facts = {
        "split": part,
        "nodes": f1.nodes,
        "micro_f1": f1.micro,
        "macro_f1": f1.macro,
        "seed": opened.model.seed,
        "data": opened.spec,
        "split_name": name,
        "inference": inference or opened.model.inference,
        "classifier": "logistic probe" if opened.model.head is None else "head",
    }
    rows = None
    if yardsticks and opened.model.head is None and part in ("val", "test"):
        rows = yardstick_rows(opened.model, graph, split, inference)
    if json:
        print_json(facts if rows is None else facts | {"yardsticks": rows})
    else:
        scores = {"micro_f1": f"{f1.micro:.4f}", "macro_f1": f"{f1.macro:.4f}"}
        nodes = {"split": f"{part} of {name}", "nodes": f"{f1.nodes:,}", "split_name": None}
        print_facts({**facts, **nodes, **scores})
        if rows is not None:
            print_yardsticks(rows, part)
