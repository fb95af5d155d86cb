"""Mutants break a line and leave the rest of a file as it is."""

import ast
from pathlib import Path

import pytest

from benchmarks import mutation

SOURCE = '''"""A text."""

LIMIT: int = 3
__all__ = ["f"]


def f(x: int, flag: bool = True) -> int:
    """Another text."""
    if x < LIMIT and flag:
        raise ValueError(f"{x} is below {LIMIT}")
    y = x * 2
    print(y)
    return y
'''


@pytest.fixture
def mutants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[mutation.Mutant]:
    monkeypatch.setattr(mutation, "SOURCE", tmp_path)
    (tmp_path / "file.py").write_text(SOURCE)
    return mutation.mutants_of(tmp_path / "file.py")


def test_each_line_of_code_is_broken_once(mutants: list[mutation.Mutant]) -> None:
    assert [(mutant.line, mutant.before, mutant.after) for mutant in mutants] == [
        (3, "3", "2"),
        (7, "True", "False"),
        (9, "x < LIMIT", "x <= LIMIT"),
        (10, "raise ValueError(f'{x} is below {LIMIT}')", "pass"),
        (11, "x * 2", "x / 2"),
        (12, "print(y)", "pass"),
        (13, "return y", "return None"),
    ]


@pytest.mark.parametrize(("file", "line"), mutation.EQUIVALENT)
def test_what_is_called_equivalent_is_a_line_of_its_file(file: str, line: str) -> None:
    assert line in {each.strip() for each in (mutation.ROOT / "src/graphsage" / file).read_text("utf-8").splitlines()}


def test_a_mutant_differs_from_the_file_in_its_own_line(mutants: list[mutation.Mutant]) -> None:
    plain = ast.unparse(ast.parse(SOURCE)).splitlines()
    for mutant in mutants:
        broken = ast.unparse(mutant.tree).splitlines()
        assert sum(old != new for old, new in zip(plain, broken, strict=True)) == 1
        compile(mutant.tree, "file.py", "exec")
