"""`graphsage evaluate`: F1, or the errors of a regression, on nodes that training did not see."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphsage.cli.options import Device, Inference, Json, OtherData, Part, Run, option
from graphsage.cli.output import block_progress, print_columns, print_facts, print_json, say, shortened, working
from graphsage.cli.runs import Opened, open_run
from graphsage.cli.yardsticks import Yardsticks, link_rows, print_links, print_yardsticks, yardstick_rows
from graphsage.errors import ConfigError
from graphsage.evaluation.metrics import METRICS

if TYPE_CHECKING:
    from graphsage.evaluation.class_report import ClassScores
    from graphsage.evaluation.regression import RegressionScores
    from graphsage.graph.graph import Graph
    from graphsage.graph.split import Split

ERRORS = ("mae", "rmse", "r2")
HEADER = ["class", "precision", "recall", "F1", "support", "predicted"]


def command(
    run: Run,
    data: OtherData = None,
    part: Part = "test",
    split_name: Annotated[str | None, option("--split", "Which of the data's splits.", "NAME", "the run's own")] = None,
    inference: Inference = None,
    device: Device = "auto",
    yardsticks: Yardsticks = True,
    per_class: Annotated[
        bool, typer.Option("--per-class", help="Also print precision, recall, F1 and support of each class.")
    ] = False,
    picture: Annotated[
        Path | None,
        option("--picture", "Draw the scores of each class, and how well probabilities are calibrated.", "FILE.png"),
    ] = None,
    json: Json = False,
) -> None:
    """Score the model in RUN: micro and macro F1, MAE, RMSE and R2 of a regression,
    or ranks of held-out links.

    The nodes are attached to the full graph, as if they had just arrived.
    A model trained without labels is scored as in the paper: by a logistic
    regression on the embeddings of the training nodes, beside the scores of
    features, neighbor means, an untrained encoder and DeepWalk. A regression
    is shown beside the mean of the training targets and ridge regressions.
    Links are ranked among all candidates, beside four yardsticks.

    \b
    Examples:
      graphsage evaluate run
      graphsage evaluate run --part val --json
      graphsage evaluate run --per-class --picture classes.png
      graphsage evaluate run other-graph --part all
    """
    from graphsage.evaluation.f1 import F1
    from graphsage.evaluation.regression import RegressionScores
    from graphsage.inference.model import quality, scores_of, with_known_classes

    if split_name in ("train", "val", "test", "all"):
        raise ConfigError(f"--split was renamed --part, and --split-name --split; write --part {split_name}")
    opened = open_run(run, data, device)
    if opened.model.links is not None:
        for flag, given in (("--per-class", per_class), ("--picture", picture)):
            if given:
                raise ConfigError(f"{flag} shows classes, and the model in {run} predicts links; leave it out")
        _evaluate_links(opened, split_name, part, inference, yardsticks=yardsticks, json=json)
        return
    name, split = opened.split(split_name)
    graph, unknown = with_known_classes(opened.model, opened.graph, opened.data.name)
    what, result = ("target", "is left out") if graph.regression else ("class", "counts as wrong")
    for label, count in unknown.items():
        say(f"warning: the model does not know the {what} {label!r} of {count:,} nodes; it {result}")
    if picture is not None and picture.suffix.lower() != ".png":
        raise ConfigError(f"{picture}: the file must end in .png; got {picture.suffix or 'no ending'!r}")
    if opened.model.regression and (per_class or picture is not None):
        flag = "--per-class" if per_class else "--picture"
        raise ConfigError(f"{flag} shows classes, and the model in {run} predicts numbers; leave it out")
    with block_progress("embedding") as on_block:
        made = opened.model.answers(graph, split, (part,), inference=inference, on_block=on_block)[part]
    scores = scores_of(made)
    facts: dict[str, Any] = {
        "split": part,
        "nodes": scores.nodes,
        "seed": opened.model.seed,
        "data": opened.spec,
        "split_name": name,
        "inference": inference or opened.model.inference,
        "classifier": "logistic probe" if opened.model.head is None else "head",
    }
    nodes = {"split": f"{part} of {name}", "nodes": f"{scores.nodes:,}", "split_name": None}
    if opened.model.regression:
        assert isinstance(scores, RegressionScores)
        found = {"model": scores} | (_yardsticks(graph, split, part) if yardsticks else {})
        facts.pop("classifier")
        if json:
            others = {name: _numbers(each, graph) for name, each in found.items() if name != "model"}
            print_json(facts | _numbers(scores, graph) | {"yardsticks": others})
        else:
            print_facts({**facts, **nodes})
            _print_errors(found, graph.class_names or tuple(map(str, range(graph.num_classes))))
        return
    assert isinstance(scores, F1)
    f1 = {"micro_f1": scores.micro, "macro_f1": scores.macro}
    each = quality(made, graph)
    if each.calibration_error is not None:
        f1["ece"] = each.calibration_error
    rows = None
    if yardsticks and opened.model.head is None and part in ("val", "test"):
        rows = yardstick_rows(opened.model, graph, split, inference)
    if picture is not None:
        from graphsage.cli.pictures import draw_quality

        title = f"{scores.nodes:,} {part} nodes of {opened.data.name}"
        draw_quality(picture, each.classes, each.reliability, each.calibration_error, title=title)
    if json:
        more = {} if rows is None else {"yardsticks": rows}
        more |= {"classes": [dataclasses.asdict(one) for one in each.classes]} if per_class else {}
        print_json(facts | f1 | more | ({} if picture is None else {"picture": str(picture)}))
        return
    print_facts({**facts, **nodes, **{name: f"{score:.4f}" for name, score in f1.items()}, "picture": picture})
    if per_class:
        print()
        print_columns([HEADER, *map(_row, each.classes)], right=range(1, len(HEADER)))
    if rows is not None:
        print_yardsticks(rows, part)


def _evaluate_links(
    opened: "Opened", split_name: str | None, part: str, inference: str | None, *, yardsticks: bool, json: bool
) -> None:
    from graphsage.datasets.dataset import LINK_SPLIT

    model, how = opened.model, opened.model.about["config"]["link_split"]
    if how == "nodes" or opened.stored is not None:
        name, split = opened.split(split_name)
    else:
        name, split = LINK_SPLIT, opened.data.with_all_nodes().splits[LINK_SPLIT]
    rows = link_rows(model, opened.graph, split, part, inference, yardsticks=yardsticks)
    facts = {"part": part, "seed": model.seed, "data": opened.spec, "link_split": how}
    if how == "nodes":
        facts["split_name"] = name
    facts["inference"] = inference or model.inference
    if json:
        own, *others = [{key: value for key, value in row.items() if key != "name"} for row in rows]
        print_json(facts | own | {"yardsticks": dict(zip([row["name"] for row in rows[1:]], others, strict=True))})
        return
    print_facts(facts)
    print_links(rows, part)


def _row(scores: "ClassScores") -> list[str]:
    numbers = [f"{each:.4f}" for each in (scores.precision, scores.recall, scores.f1)]
    return [shortened(scores.name, 60), *numbers, f"{scores.support:,}", f"{scores.predicted:,}"]


def _yardsticks(graph: "Graph", split: "Split", part: str) -> "dict[str, RegressionScores]":
    """What needs no GraphSAGE; nothing for features that may be larger than memory."""
    from graphsage.baselines.ridge import regression_yardsticks
    from graphsage.inference.model import KEEP_BYTES, graph_bytes

    if graph_bytes(graph) > KEEP_BYTES:
        say("no yardsticks: the graph is above 2 GiB")
        return {}
    with working("fitting ridge regressions"):
        return {name: found.scores for name, found in regression_yardsticks(graph, split, part).items()}


def _numbers(scores: "RegressionScores", graph: "Graph") -> dict[str, Any]:
    """As JSON, with the scores of each of several targets."""
    own: dict[str, Any] = {name: getattr(scores, name) for name in ERRORS}
    if scores.targets:
        names = graph.class_names or tuple(map(str, range(graph.num_classes)))
        each = zip(names, scores.targets, strict=True)
        own["targets"] = {target: _numbers(one, graph) for target, one in each if one.nodes}
    return own


def _print_errors(found: "dict[str, RegressionScores]", targets: tuple[str, ...]) -> None:
    """A table for each target."""
    several = bool(next(iter(found.values())).targets)
    for place, target in enumerate(targets):
        own = {name: scores.targets[place] if several else scores for name, scores in found.items()}
        rows = [[target, *(METRICS[name].title for name in ERRORS)]]
        for name, scores in own.items():
            cells = [METRICS[error].shown(getattr(scores, error)) for error in ERRORS] if scores.nodes else ["-"] * 3
            rows.append([name, *cells])
        print()
        print_columns(rows, right=(1, 2, 3))
