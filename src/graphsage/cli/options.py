"""Options: those that several commands share, those generated from settings dataclasses, and how help shows them."""

import ast
import dataclasses
import inspect
import itertools
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from graphsage.errors import ConfigError
from graphsage.tables.spec import (
    DIRECTIONS,
    EDGE_ROLES,
    FEATURES,
    ID,
    LABEL_TYPES,
    SOURCE,
    TARGET,
    TEXT_METHODS,
    UNKNOWN_NODES,
    TableSpec,
)

_METAVARS = {int: "N", float: "NUMBER", str: "NAME"}
_TAG = re.compile(r"(\\*)(\[[a-z#/@][^[]*?])")  # as in rich.markup.escape, which takes 14 ms to import


class App(typer.Typer):
    """A group of commands with such help."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"cls": _Group, "add_completion": False, **settings})

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        return super().command(name, cls=_Command, **settings)


class _Command(TyperCommand):
    def __init__(self, *names: Any, **settings: Any) -> None:
        super().__init__(*names, **settings)
        _make_readable(self)

    def get_params(self, ctx: Any) -> Any:
        return _readable_types(super().get_params(ctx))


class _Group(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        _make_readable(self)

    def get_params(self, ctx: Any) -> Any:
        return _readable_types(super().get_params(ctx))


def _make_readable(command: Any) -> None:
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    lines = [each.removeprefix("\b\n") if each.startswith("\b") else each.replace("\n", " ") for each in paragraphs]
    command.help = _escaped("\n\n".join(lines))
    for param in command.params:
        param.help = _escaped(param.help or "")
        if isinstance(param.show_default, str):  # typer would put it in parentheses
            param.help += f" [dim]\\[default: {_escaped(param.show_default)}][/dim]"
            param.show_default = False


def _readable_types(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
            if not param.expose_value and param.default is None:
                param.default = False  # of --help: to convert None, typer would load pydantic
        elif param.metavar is None:
            param.metavar = _METAVARS.get(param.type_descriptor.annotation)
    return params


def _escaped(text: str) -> str:
    return _TAG.sub(r"\1\1\\\2", text)


def option(flag: str, help: str, metavar: str | None = None, default: str | bool = False, **settings: Any) -> Any:
    """An option whose help names no default, or `default`."""
    return typer.Option(flag, help=help, metavar=metavar, show_default=default, **settings)


def argument(metavar: str, help: str, default: str | bool = False) -> Any:
    return typer.Argument(help=help, metavar=metavar, show_default=default)


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Device = Annotated[str, typer.Option("--device", help="Where to compute.", metavar="auto|cpu|cuda")]
Inference = Annotated[
    str | None, option("--inference", "Embed from all neighbors or from a sample.", "exact|sampled", "the model's own")
]
MAP_HELP = "Layout of the map: t-SNE, or principal components. auto: t-SNE if openTSNE is installed."
Run = Annotated[Path, argument("RUN", "Folder that `graphsage train` wrote.")]
OtherData = Annotated[str | None, argument("DATA", "Data to use, also data the model never saw.", "the run's own")]
NodeIds = Annotated[
    str | None, option("--node-ids", "File with one node id per line; - reads stdin.", "FILE", "all nodes")
]
NewNodes = Annotated[
    str | None, option("--new-nodes", "Table of nodes that arrived after training; only they are written.", "FILE")
]
NewEdges = Annotated[
    str | None, option("--new-edges", "Table of their edges, to old nodes and among themselves.", "FILE")
]
NewVectors = Annotated[
    list[str] | None,
    option(
        "--new-vectors",
        "A .npy or sparse .npz file with one row per new node, for each vector file of the training. May be repeated.",
        "FILE",
    ),
]
NewOnly = Annotated[bool, typer.Option("--new-only", help="Make a graph of the new rows only.")]
AsOf = Annotated[
    str | None,
    option("--as-of", "Read only edges dated strictly before this time, as written in the column of times.", "TIME"),
]
Part = Annotated[
    str, typer.Option("--part", help="Nodes of one part of the split, or all.", metavar="test|val|train|all")
]

RENAMED = {
    "train": {
        "--date": "--dates",
        "--multilabel": "--label-type labels",
        "--no-multilabel": "--label-type class",
        "--directed": "--direction in",
        "--no-directed": "--direction merged",
    },
    "tables": {"--directed": "--direction in", "--no-directed": "--direction merged"},
    "embed": {
        "--alone": "--new-only",
        "--nodes": "--node-ids",
        "--store": "--layer-dtype",
        "--work": "--resume-dir",
        "--graph": "the argument DATA",
    },
    "predict": {"--alone": "--new-only", "--nodes": "--node-ids", "--graph": "the argument DATA"},
    "evaluate": {"--split-name": "--split"},
    "plot": {"--split": "--part"},
    "plan": {"--nodes": "--num-nodes", "--edges": "--num-edges", "--width": "--dim", "--precision": "--feature-type"},
    "sweep": {"--prune": "--pruner"},
    "serve": {"--keys": "--api-keys"},
    "reddit": {"--vectors": "--text-model"},
    "citation": {"--dim": "--text-dim"},
}
"""Options that a command had under another name: one name means one thing in all commands."""


def with_settings(
    of: Any,
    panels: Mapping[str, Sequence[str]],
    *,
    rest: str | None = None,
    choices: Mapping[str, Sequence[str]] | None = None,
    defaults: Mapping[str, str] | None = None,
    metavars: Mapping[str, str] | None = None,
    repeated: Collection[str] = (),
) -> Callable[[Any], Any]:
    """Replace a command's `**options` by one option per field of the dataclass `of`.

    `panels` lists the fields of each help panel; all other fields go to the panel `rest`, or get no option without one.
    `defaults` describes the defaults of fields that are None. Fields in `repeated` take a value each time; other tuples
    are comma lists. A command gets None for an option that was not given; `converted` makes values of the right types.
    """
    panel_of = {name: panel for panel, names in panels.items() for name in names}
    docs, hints, made = field_docs(of), get_type_hints(of), []
    for field in dataclasses.fields(of):
        panel = panel_of.pop(field.name, rest)
        if panel is None:
            continue
        of_type, flag = _types(hints[field.name])[0], option_name(field.name)
        known = (choices or {}).get(field.name, ())
        metavar = "NAME" if field.name in repeated else _metavar(hints[field.name], field.default)
        made_option = typer.Option(
            f"{flag}/--no-{flag[2:]}" if of_type is bool else flag,
            help=docs[field.name],
            rich_help_panel=panel,
            metavar=(metavars or {}).get(field.name, metavar),
            show_default=(defaults or {}).get(field.name) or _default(field.default, docs[field.name]),
            autocompletion=_completion(known) if known else None,
        )
        annotation: Any = Annotated[str | None, made_option]
        if of_type is bool:
            annotation = Annotated[bool | None, made_option]
        elif field.name in repeated:
            annotation = Annotated[list[str] | None, made_option]
        made.append(inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation))
    assert not panel_of, f"{of.__name__} has no field {', '.join(panel_of)}"

    def decorate(command: Any) -> Any:
        signature = inspect.signature(command)
        own = [p.replace(kind=p.KEYWORD_ONLY) for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        command.__signature__ = signature.replace(parameters=[*made, *own])
        return command

    return decorate


def field_docs(of: Any) -> dict[str, str]:
    """The docstring below each field of a dataclass."""
    module = ast.parse(inspect.getsource(sys.modules[of.__module__]))
    (body,) = (node.body for node in module.body if isinstance(node, ast.ClassDef) and node.name == of.__name__)
    docs = {}
    for field, below in itertools.pairwise(body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                docs[name] = inspect.cleandoc(text)
    return docs


def option_name(field: str) -> str:
    return f"--{field.replace('_', '-')}"


def shown(value: Any) -> str:
    """A default as help shows it; nothing for an empty list or a field without a default."""
    if value is None:
        return "unset"
    if value is dataclasses.MISSING:
        return ""
    if isinstance(value, bool):
        return "on" if value else "off"
    return ",".join(map(shown, value)) if isinstance(value, tuple) else f"{value:g}" if value == 0 else str(value)


def _default(value: Any, doc: str) -> str | bool:
    """The default beside a field's help text, unless that says what the option does if it is unset."""
    return False if value is None and "Unset:" in doc else shown(value) or False


def shown_by(values: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Defaults that depend on a choice: that of the first choice, and those of others that differ."""
    first, *others = values
    return {
        name: "; ".join([shown(value), *(f"{o} {shown(values[o][name])}" for o in others if values[o][name] != value)])
        for name, value in values[first].items()
    }


def converted(of: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, as values of the fields' types; the dataclass checks their ranges."""
    from pydantic import TypeAdapter, ValidationError

    hints, values = get_type_hints(of), {}
    for field in dataclasses.fields(of):
        name, text = field.name, options.get(field.name)
        if text is None or text == []:
            continue
        of_type, takes_none = _types(hints[name])
        several = get_origin(of_type) is tuple
        value = [part.strip() for part in text.split(",")] if several and isinstance(text, str) else text
        try:
            values[name] = None if takes_none and text == "none" else TypeAdapter(of_type).validate_python(value)
        except ValidationError as error:
            what = error.errors()[0]["msg"].partition(",")[0].removeprefix("Input should be ")
            what = f"numbers separated by commas, such as {shown(field.default)}" if several else what
            raise ConfigError(f"{option_name(name)} must be {what}{' or none' * takes_none}; got {text!r}") from None
    return values


def _completion(known: Sequence[str]) -> Callable[[], list[str]]:
    return lambda: list(known)  # typer refuses a partial


def _types(hint: Any) -> tuple[Any, bool]:
    """X of `X` or `X | None`, and whether the word none stands for None: for a number, not for a name."""
    if NoneType not in get_args(hint):
        return hint, False
    (of_type,) = (part for part in get_args(hint) if part is not NoneType)
    return of_type, of_type in (int, float)


def _metavar(hint: Any, default: Any) -> str:
    of_type, takes_none = _types(hint)
    words = {bool: "", int: "N", float: "NUMBER", str: "NAME", tuple[str, ...]: "NAME,NAME,..."}
    word = words.get(of_type, "N,N,...")
    return f"{word}|none" if takes_none and default is not None else word


PANELS = {
    "Your tables": ("edges", "nodes", "id", "source", "target", "unknown_nodes", "delimiter"),
    "Columns": (
        "label",
        "label_type",
        "label_separator",
        "text_method",
        "text_dim",
        "text_model",
        *FEATURES,
        "missing",
    ),
    "Relations": ("direction", "edge_type", "edge_weight", "edge_time"),
    "Splits of tables": (
        "time",
        "time_order",
        "split_column",
        "train_until",
        "val_until",
        "fractions",
        "split_seed",
    ),
}
COLUMNS = ("id", "source", "target", "label", "time", *EDGE_ROLES, "split_column", *FEATURES)


def with_tables(only: Collection[str] | None = None) -> Callable[[Any], Any]:
    """Options for the fields of TableSpec, or for `only` some of them."""
    panels = {panel: [name for name in names if only is None or name in only] for panel, names in PANELS.items()}
    return with_settings(
        TableSpec,
        panels,
        choices={
            "direction": DIRECTIONS,
            "unknown_nodes": UNKNOWN_NODES,
            "label_type": LABEL_TYPES,
            "text_method": TEXT_METHODS,
        },
        defaults={
            "id": ", ".join(ID),
            "source": ", ".join(SOURCE),
            "target": ", ".join(TARGET),
            "delimiter": ",",
            "text_dim": "256; word2vec 300",
        },
        metavars={
            "nodes": "FILE",
            "edges": "FILE",
            "text_model": "PATH",
            "delimiter": "CHARACTER",
            "train_until": "TIME",
            "label_separator": "CHARACTER",
            "val_until": "TIME",
            **dict.fromkeys(COLUMNS, "COLUMN"),
            "vectors": "COLUMN|FILE",
            "label_type": "class|labels|number",
            "missing": "WORD",
        },
        repeated=(*FEATURES, "missing"),
    )
