"""Command-line options generated from settings dataclasses: a field's name, type, default and docstring."""

import ast
import dataclasses
import inspect
import itertools
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from graphsage.errors import ConfigError


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
        option = typer.Option(
            f"{flag}/--no-{flag[2:]}" if of_type is bool else flag,
            help=docs[field.name],
            rich_help_panel=panel,
            metavar=(metavars or {}).get(field.name, metavar),
            show_default=(defaults or {}).get(field.name) or shown(field.default) or False,
            autocompletion=_completion(known) if known else None,
        )
        annotation: Any = Annotated[str | None, option]
        if of_type is bool:
            annotation = Annotated[bool | None, option]
        elif field.name in repeated:
            annotation = Annotated[list[str] | None, option]
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
    return lambda: list(known)


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
