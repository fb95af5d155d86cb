"""The paper map stays true: what it names exists, its defaults are the code's, and no aggregator is forgotten."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAP = (ROOT / "docs" / "paper-map.md").read_text("utf-8")
IN_CODE = sorted(set(re.findall(r"`(src/graphsage/[\w/]+\.py)(?::([\w.]+))?`", MAP)))
IN_TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", MAP)))
DEFAULTS = sorted(set(re.findall(r"`(src/graphsage/[\w/]+\.py):([\w.]+)` = `([^`]+)`", MAP)))


@cache
def names_in(path: str) -> dict[str, str]:
    """Functions, classes and constants of a file, methods and fields as `Class.name`; with the value each is given."""
    found: dict[str, str] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found[prefix + node.name] = ""
                if isinstance(node, ast.ClassDef):
                    visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        found[prefix + target.id] = "" if node.value is None else ast.unparse(node.value)

    visit(ast.parse((ROOT / path).read_text("utf-8")).body, "")
    return found


def missing(named: list[tuple[str, str]]) -> list[str]:
    return [
        f"{path}:{name}" for path, name in named if not (ROOT / path).is_file() or (name and name not in names_in(path))
    ]


def test_the_map_names_code_tests_and_defaults() -> None:
    assert min(len(IN_CODE), len(IN_TESTS), len(DEFAULTS)) > 10


def test_every_name_of_the_code_exists() -> None:
    assert missing(IN_CODE) == []


def test_every_test_exists() -> None:
    assert missing(IN_TESTS) == []


def test_no_mention_escapes_the_checks() -> None:
    """A path that is written in another way than these tests read would never be checked."""
    checked = {f"{path}:{name}" if name else path for path, name in IN_CODE}
    checked |= {f"{path}::{name}" if name else path for path, name in IN_TESTS}
    written = re.findall(r"(?:src/graphsage|tests)/[^\s`|,;()]*", MAP)
    assert sorted(set(written) - checked) == []


@pytest.mark.parametrize(("path", "name", "value"), DEFAULTS)
def test_defaults_are_those_of_the_code(path: str, name: str, value: str) -> None:
    assert names_in(path).get(name) == value


def test_every_aggregator_file_is_in_the_map() -> None:
    folder = ROOT / "src" / "graphsage" / "model" / "aggregators"
    files = {path.relative_to(ROOT).as_posix() for path in folder.glob("*.py")}
    assert files
    assert files - {path for path, _ in IN_CODE} == set()


def test_links_of_the_map_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", MAP)
    assert links
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []
