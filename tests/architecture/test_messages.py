"""Messages name settings by `errors.setting`, which knows the interface in use, and never by a literal name."""

import ast
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import graphsage
from graphsage.tables.spec import TableSpec
from graphsage.training.config import Config

ROOT = Path(graphsage.__file__).parent
# Used from the command line alone, or from Python alone.
ONE_INTERFACE = ("cli/", "cluster/launch", "experiments/", "graph/convert/", "estimator")
SETTINGS = {field.name for of in (Config, TableSpec) for field in dataclasses.fields(of)}
FLAG = re.compile(r"(?<![\w./`-])--(?!head|long)[a-z][a-z-]+")  # --head is Ray's, --long zstd's
NAME = re.compile(rf"\b({'|'.join(name for name in SETTINGS if '_' in name)})\b(?!\.npy)")
FIRST = re.compile(rf"^({'|'.join(SETTINGS - {'nodes', 'edges', 'vectors'})}) (must|needs|takes)\b")


def literals(path: Path) -> Iterator[tuple[int, str]]:
    """The texts in raised errors and warnings that are not whole names, as arguments of `setting` are."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Raise(exc=ast.Call() as message) | (ast.Call(func=ast.Attribute(attr="warn")) as message):
                texts = [each for each in ast.walk(message) if isinstance(each, ast.Constant)]
                yield from ((each.lineno, each.value) for each in texts if isinstance(each.value, str))


def test_no_message_of_the_library_spells_a_setting_by_hand() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in ROOT.rglob("*.py")
        if not str(path.relative_to(ROOT)).startswith(ONE_INTERFACE)
        for line, text in literals(path)
        if text not in SETTINGS and (FLAG.search(text) or NAME.search(text) or FIRST.search(text))
    ]
    assert found == []
