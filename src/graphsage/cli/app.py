"""Commands whose help shows its brackets as written and names no type for flags."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

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
        return _untyped_flags(super().get_params(ctx))


class _Group(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        _make_readable(self)

    def get_params(self, ctx: Any) -> Any:
        return _untyped_flags(super().get_params(ctx))


def _make_readable(command: Any) -> None:
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    lines = [each.removeprefix("\b\n") if each.startswith("\b") else each.replace("\n", " ") for each in paragraphs]
    command.help = _escaped("\n\n".join(lines))
    for param in command.params:
        param.help = _escaped(param.help or "")
        if isinstance(param.show_default, str):  # typer would put it in parentheses
            param.help += f" [dim]\\[default: {_escaped(param.show_default)}][/dim]"
            param.show_default = False


def _untyped_flags(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
            if not param.expose_value and param.default is None:
                param.default = False  # of --help: to convert None, typer would load pydantic
    return params


def _escaped(text: str) -> str:
    return _TAG.sub(r"\1\1\\\2", text)
