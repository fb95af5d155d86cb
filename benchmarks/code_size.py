"""Size of the code at two commits: files, lines and statements per folder, tests, public names, options and targets.

    python -m benchmarks.code_size OLD NEW [--out results/code-size.json]

OLD and NEW are commits, or folders such as `.`. Of each, a second column counts the same code after today's
`ruff format`, without `# fmt: skip`, so that the lines of two commits can be compared.
"""

import argparse
import ast
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphsage.experiments.record import write_result

ROOT = Path(__file__).resolve().parents[1]
Row = tuple[int, int, int]
"""Files, lines, statements."""
INTERFACE = """
import graphsage, typer.main
from graphsage.cli.main import app

def total(command):
    names = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
    return len(names - {"--help"}) + sum(map(total, getattr(command, "commands", {}).values()))

print(len(graphsage.__all__), total(typer.main.get_command(app)))
"""


def copied(what: str, to: Path) -> Path:
    """The files of a commit, or the tracked and new files of a folder, below `to`."""
    to.mkdir()
    if Path(what).is_dir():
        named = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=what, capture_output=True
        ).stdout.split(b"\0")
        for name in (each.decode() for each in named if each):
            if name.endswith((".py", ".toml", "Makefile")) and (source := Path(what) / name).is_file():
                (to / name).parent.mkdir(parents=True, exist_ok=True)
                (to / name).write_bytes(source.read_bytes())
        return to
    archive = subprocess.run(["git", "archive", what], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", to], input=archive, check=True)
    return to


def formatted(folder: Path) -> None:
    for path in folder.rglob("*.py"):
        path.write_text(re.sub(r"[ \t]*# fmt: (skip|off|on)", "", path.read_text("utf-8")), "utf-8")
    ruff = [Path(sys.executable).with_name("ruff"), "format", "--quiet", "--no-cache"]
    subprocess.run([*ruff, "--config", ROOT / "pyproject.toml", folder], check=True)


def rows(folder: Path) -> Iterator[tuple[str, Row]]:
    """The folders of src, of the tests and of the other code."""
    package = folder / "src" / "graphsage"
    for part in ("src", "tests", "benchmarks", "docs"):
        yield part, size(sorted((folder / part).rglob("*.py")))
    yield "src: top", size(sorted(package.glob("*.py")))
    for inside in sorted(path for path in package.iterdir() if path.is_dir()):
        yield f"src: {inside.name}", size(sorted(inside.rglob("*.py")))


def size(paths: list[Path]) -> Row:
    texts = [path.read_text("utf-8") for path in paths]
    statements = sum(isinstance(node, ast.stmt) for text in texts for node in ast.walk(ast.parse(text)))
    return len(paths), sum(len(text.splitlines()) for text in texts), statements


def counts(folder: Path) -> dict[str, int]:
    """Test files and functions, public names, options of all commands together, generators of docs, make targets."""
    trees = [ast.parse(path.read_text("utf-8")) for path in (folder / "tests").rglob("*.py")]
    tests = sum(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
        for tree in trees
        for node in ast.walk(tree)
    )
    asked = subprocess.run(
        [sys.executable, "-c", INTERFACE],
        env=os.environ | {"PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    names, options = map(int, asked.stdout.split())
    makefile = (folder / "Makefile").read_text("utf-8")
    return {
        "test files": len(list((folder / "tests").rglob("test_*.py"))),
        "test functions": tests,
        "public names": names,
        "options of all commands": options,
        "files that generate documents": len(list((folder / "docs").rglob("*.py"))),
        "make targets": len(re.findall(r"^[a-z-]+:.*## ", makefile, re.MULTILINE)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--out", type=Path, help="also write the numbers as JSON")
    asked = parser.parse_args()
    found, numbers = [], []
    with tempfile.TemporaryDirectory() as scratch:
        for side, what in (("old", asked.old), ("new", asked.new)):
            folder = copied(what, Path(scratch) / side)
            numbers.append(counts(folder))
            written = dict(rows(folder))
            formatted(folder)
            alike = dict(rows(folder))
            found.append({name: (*row[:2], written[name][1], row[2]) for name, row in alike.items()})
    if asked.out is not None:
        body = {side: _body(*each) for side, *each in zip(("old", "new"), found, numbers, strict=True)}
        commits = {"commits": {"old": _revision(asked.old), "new": _revision(asked.new)}}
        command = f"python -m benchmarks.code_size {asked.old} {asked.new}"
        write_result(asked.out, "size of the code at two commits", command, commits | body)
    print("| folder | files | lines, formatted alike | lines as written | statements |\n" + "| --- " * 5 + "|")
    for name in {**found[0], **found[1]}:
        pairs = zip(*(side.get(name, (0, 0, 0, 0)) for side in found), strict=True)
        print(f"| {name} | " + " | ".join(f"{old:,} -> {new:,}" for old, new in pairs) + " |")
    for name, old in numbers[0].items():
        print(f"| {name} | {old:,} -> {numbers[1][name]:,} | | | |")


def _body(folders: dict[str, tuple[int, ...]], numbers: dict[str, int]) -> dict[str, Any]:
    columns = ("files", "lines_formatted_alike", "lines", "statements")
    return {"folders": {name: dict(zip(columns, row, strict=True)) for name, row in folders.items()}, **numbers}


def _revision(what: str) -> str:
    if Path(what).is_dir():
        return what
    asked = subprocess.run(["git", "rev-parse", what], cwd=ROOT, capture_output=True, text=True, check=True)
    return asked.stdout.strip()


if __name__ == "__main__":
    main()
