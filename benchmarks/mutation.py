"""Which faults the tests catch: break each line of the core once and run the tests of the core.

    PYTHONPATH=src python -m benchmarks.mutation --out results/mutation.json

Each line of model/, sampling/ and losses.py gets one mutant: a comparison, an operator or a constant changed, a
condition negated, or a statement removed. A mutant exists only in the memory of a forked process. The tests named after
its file run first, then those of STAGES, up to the first failure. A mutant that no test catches survives; EQUIVALENT
names the survivors that cannot change a result, with the reason. A second pass runs each test file that was never the
first to fail alone, on TRIED mutants that others caught, until it catches one. After new tests, `--again` judges the
other survivors once more.
"""

import argparse
import ast
import contextlib
import copy
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "graphsage"
SUBJECTS = ("model", "sampling", "losses.py")
STAGES = (("tests/test_losses.py", "tests/sampling", "tests/model"), ("tests/contracts", "tests/golden"))
PRELOADED = (
    "torch",
    "torch.testing",
    "numpy",
    "scipy.sparse",
    "sklearn.linear_model",
    "hypothesis",
    "networkx",
    "pyarrow",
    "torch_geometric.nn",
    "graphsage.kernels.compiled.bindings",
    "graphsage.graph.storage",
)
LIMIT_SECONDS = 600.0
EXAMPLES = 10  # of a Hypothesis test
TRIED = 24
SKIPPED = "not compiled"  # golden cases run with torch kernels only: the mutants are not in kernels
PROGRESS = ROOT / "build" / "mutation.jsonl"
"""Finished mutants, so that an interrupted run continues."""

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}

EQUIVALENT = {
    (
        "model/aggregators/base.py",
        "def __init__(self, in_dim: int, hidden_dim: int | None = None, depth: int = 1) -> None:",
    ): "the base class has no hidden layers, so it ignores `depth`",
    ("model/aggregators/lstm.py", 'reduction = "sequence"'): "the base class declares the same",
    (
        "model/encoder.py",
        "for layer, hoods in zip(self.layers, neighborhoods, strict=True):",
    ): "`forward` has compared the lengths before it zips them",
    (
        "sampling/negatives.py",
        "return nodes.clamp_max(len(self.cumulative) - 1)",
    ): "a draw is below 1, so its product with the total is below the total; the limit guards against other rounding",
    (
        "sampling/walks.py",
        "only_itself = (degrees == 1) & (graph.indices[first] == nodes) if graph.num_stored_edges else degrees == 0",
    ): "without any edge no node has a degree above 0, so none starts a walk",
    (
        "model/layer.py",
        "return self.training and self.dropout > 0",
    ): "a dropout of 0 keeps every entry; the condition only saves time",
}
"""Survivors that change no result, by file and line, and why."""


@dataclass(frozen=True)
class Mutant:
    file: str
    line: int
    kind: str
    before: str
    after: str
    text: str
    """The line as it is in the file."""
    tree: ast.Module

    @property
    def name(self) -> str:
        return f"{self.file}: {self.before} -> {self.after}"


def broken(node: ast.AST) -> tuple[int, str, ast.AST] | None:
    """The rank (the lowest wins on a line), the kind and the replacement of a node, if it can be broken."""
    made: Any = copy.deepcopy(node)
    match made:
        case ast.Compare(ops=[op]) if type(op) in SWAPS:
            made.ops = [SWAPS[type(op)]()]
            return 0, "comparison", made
        case ast.BoolOp(op=op):
            made.op = SWAPS[type(op)]()
            return 1, "operator", made
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            return 2, "operator", made.operand
        case ast.BinOp(op=op) if type(op) in SWAPS:
            made.op = SWAPS[type(op)]()
            return 3, "operator", made
        case ast.IfExp():
            made.body, made.orelse = made.orelse, made.body
            return 4, "branches", made
        case ast.Constant(value=bool(value)):
            made.value = not value
            return 5, "constant", made
        case ast.Constant(value=int() | float() as value):
            made.value = value - 1 if value > 0 else 1
            return 6, "constant", made
        case ast.If(test=test):
            made.test = ast.UnaryOp(ast.Not(), test)
            return 7, "condition", made
        case ast.Assign(targets=[ast.Name("__all__")]):
            return None
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.Break() | ast.Assign() | ast.AugAssign():
            return 8, "removed", ast.Pass()
        case ast.Return(value=ast.AST()):
            return 9, "removed", ast.Return(ast.Constant(None))
        case _:
            return None


def code_of(tree: ast.Module) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Where each node of the code is held: parent, field and place in a list. No annotations, imports or texts."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        parent = waiting.pop()
        for field, value in ast.iter_fields(parent):
            if field in ("annotation", "returns", "decorator_list", "exc", "msg"):
                continue
            for place, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(child, ast.AST) and not isinstance(child, ast.Import | ast.ImportFrom | ast.JoinedStr):
                    yield parent, field, place
                    waiting.append(child)


def held(parent: ast.AST, field: str, place: int | None) -> ast.AST:
    value = getattr(parent, field)
    found: ast.AST = value if place is None else value[place]
    return found


def mutants_of(path: Path) -> list[Mutant]:
    """One mutant for each line, in the order of the lines."""
    text = path.read_text("utf-8")
    lines = text.splitlines()
    best: dict[int, tuple[int, int]] = {}
    for number, where in enumerate(code_of(ast.parse(text))):
        node = held(*where)
        found = broken(node)
        if found is not None:
            line = node.lineno  # type: ignore[attr-defined]
            best[line] = min(best.get(line, (99, 0)), (found[0], number))
    made = []
    for line, (_, number) in sorted(best.items()):
        tree = ast.parse(text)
        parent, field, place = list(code_of(tree))[number]
        node = held(parent, field, place)
        change = broken(node)
        assert change is not None
        if place is None:
            setattr(parent, field, change[2])
        else:
            getattr(parent, field)[place] = change[2]
        shown = [ast.unparse(ast.fix_missing_locations(part)).split("\n")[0] for part in (node, change[2])]
        ast.fix_missing_locations(ast.copy_location(change[2], node))
        file = str(path.relative_to(SOURCE))
        made.append(Mutant(file, line, change[1], *shown, lines[line - 1].strip(), ast.fix_missing_locations(tree)))
    return made


class _Finder(importlib.abc.MetaPathFinder):
    """Imports the mutant in place of its file."""

    def __init__(self, mutant: Mutant) -> None:
        path = SOURCE / mutant.file
        self.name = module_name(mutant.file)
        code = compile(mutant.tree, str(path), "exec")

        class Loader(importlib.machinery.SourceFileLoader):
            def get_code(self, fullname: str) -> Any:
                return code

        self.loader = Loader(self.name, str(path))
        self.path = path

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self.name:
            return None
        folder = [str(self.path.parent)] if self.path.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            name, self.path, loader=self.loader, submodule_search_locations=folder
        )


class _Watch:
    """A pytest plugin: few examples, no shrinking of failed ones, and the first test that fails."""

    first = ""

    def pytest_sessionstart(self) -> None:
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutation", settings(), phases=phases, max_examples=EXAMPLES, database=None)
        settings.load_profile("mutation")

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.first:
            self.first = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self.first:
            self.first = report.nodeid


def first_failure(mutant: Mutant | None, stages: tuple[tuple[str, ...], ...], limit: float) -> str | None:
    """The test that catches `mutant` first, in a forked process; None if none does, "timeout" after `limit` seconds."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.close(here)
        caught = "crash"
        try:
            sink = os.open(os.devnull, os.O_WRONLY)
            os.dup2(sink, 1)
            os.dup2(sink, 2)
            caught = _caught(mutant, stages)
        finally:
            os.write(there, caught.encode())
            os._exit(0)
    os.close(there)
    ready, _, _ = select.select([here], [], [], limit)
    answer = os.read(here, 10_000).decode() if ready else "timeout"
    os.close(here)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return (answer or "crash") if answer != "survived" else None


def _caught(mutant: Mutant | None, stages: tuple[tuple[str, ...], ...]) -> str:
    import pytest

    if mutant is not None:
        sys.meta_path.insert(0, _Finder(mutant))
    for stage in filter(None, stages):
        watch = _Watch()
        code = pytest.main(
            ["-x", "-q", "-n", "0", "-k", SKIPPED, "--assert=plain", "-p", "no:cacheprovider", "--no-header", *stage],
            plugins=[watch],
        )
        if code != pytest.ExitCode.OK:
            return watch.first or f"exit code {int(code)}"
    return "survived"


def files_of(path: Path, pattern: str) -> list[Path]:
    return sorted(path.rglob(pattern)) if path.is_dir() else [path]


def module_name(file: str) -> str:
    """`model/__init__.py` -> `graphsage.model`."""
    return "graphsage." + file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def preload() -> None:
    """Import what mutants have in common, once: everything but the mutated modules and those that import them."""
    for name in PRELOADED:
        try:
            importlib.import_module(name)
        except ImportError:
            print(f"{name} is not installed; tests that need it are skipped", file=sys.stderr)
    loaded = [name for name in sys.modules if name.startswith(tuple(module_name(subject) for subject in SUBJECTS))]
    assert loaded == [], loaded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "mutation.json")
    parser.add_argument("--only", default="", help="break only files whose name contains this text; writes no result")
    parser.add_argument("--again", action="store_true", help="judge mutants again that no test caught")
    parser.add_argument("--list", action="store_true", help="print the mutants and stop")
    asked = parser.parse_args()
    paths = [path for subject in SUBJECTS for path in files_of(SOURCE / subject, "*.py")]
    mutants = [mutant for path in paths for mutant in mutants_of(path) if asked.only in mutant.file]
    if asked.list:
        for mutant in mutants:
            print(f"{mutant.file}:{mutant.line} {mutant.kind}: {mutant.before} -> {mutant.after}")
        print(f"{len(mutants)} mutants")
        return
    os.chdir(ROOT)
    preload()
    if asked.again and PROGRESS.exists():
        same = {key(mutant) for mutant in mutants if (mutant.file, mutant.text) in EQUIVALENT}
        kept = PROGRESS.read_text("utf-8").splitlines(keepends=True)
        kept = [line for line in kept if json.loads(line)[1] or json.loads(line)[0] in same]
        PROGRESS.write_text("".join(kept), "utf-8")
    begin = time.monotonic()
    failed = first_failure(None, STAGES, LIMIT_SECONDS)
    if failed is not None:
        sys.exit(f"the tests must pass before a line is broken; {failed} fails")
    print(f"unbroken: all tests pass in {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    caught = judged(mutants)
    if not asked.only:
        asked.out.write_text(json.dumps(summary(mutants, caught), indent=1) + "\n", "utf-8")


def judged(mutants: list[Mutant]) -> dict[str, str | None]:
    """What catches each mutant, by its key."""
    PROGRESS.parent.mkdir(exist_ok=True)
    known: dict[str, str | None] = {}
    if PROGRESS.exists():
        known = dict(json.loads(line) for line in PROGRESS.read_text("utf-8").splitlines())
    for number, mutant in enumerate(mutants, 1):
        if key(mutant) not in known:
            begin = time.monotonic()
            known[key(mutant)] = found = first_failure(mutant, (own_tests(mutant), *STAGES), LIMIT_SECONDS)
            with PROGRESS.open("a", encoding="utf-8") as file:
                file.write(json.dumps([key(mutant), found]) + "\n")
            print(
                f"{number}/{len(mutants)} {time.monotonic() - begin:5.1f} s {mutant.file}:{mutant.line} "
                f"{mutant.before} -> {mutant.after}: {found or 'SURVIVED'}",
                file=sys.stderr,
                flush=True,
            )
    return known


def own_tests(mutant: Mutant) -> tuple[str, ...]:
    """The test files that are named after the mutant's file: they run first, because they are likely to catch it."""
    path = Path(mutant.file)
    found = (ROOT / "tests" / path.parent).glob(f"test_{path.stem}*.py")
    contract = ["tests/contracts/test_aggregators.py"] if "aggregators" in mutant.file else []
    return (*(str(each.relative_to(ROOT)) for each in sorted(found)), *contract)


def key(mutant: Mutant) -> str:
    """A mutant of a source file as it is now; another content of the file is another mutant."""
    digest = hashlib.sha256((SOURCE / mutant.file).read_bytes()).hexdigest()[:12]
    return f"{digest} {mutant.line} {mutant.name}"


def summary(mutants: list[Mutant], caught: dict[str, str | None]) -> dict[str, Any]:
    found = [(mutant, caught[key(mutant)]) for mutant in mutants]
    first = Counter(test.split("::")[0] for _, test in found if test)
    files = [
        str(path.relative_to(ROOT)) for stage in STAGES for each in stage for path in files_of(ROOT / each, "test_*.py")
    ]
    killed = [mutant for mutant, test in found if test]
    later = {file: catches(file, killed) for file in files if not first[file]}
    survivors = [
        {
            "line": f"{mutant.file}:{mutant.line}",
            "kind": mutant.kind,
            "before": mutant.before,
            "after": mutant.after,
            "equivalent": EQUIVALENT.get((mutant.file, mutant.text)),
        }
        for mutant, test in found
        if not test
    ]
    return {
        "command": "python -m benchmarks.mutation",
        "mutants": len(found),
        "killed": len(killed),
        "survivors": survivors,
        "first to fail": {file: first[file] for file in files if first[file]},
        "never first, but catches": {file: mutant for file, mutant in later.items() if mutant},
        "tried in the second pass": TRIED,
        "catches none of these": [file for file, mutant in later.items() if not mutant],
    }


def catches(file: str, mutants: list[Mutant]) -> str | None:
    """The first that the tests of one file catch alone, of TRIED of the `mutants`: some of all files."""
    some = mutants[:: -(-len(mutants) // TRIED) or 1]
    return next((mutant.name for mutant in some if first_failure(mutant, ((file,),), LIMIT_SECONDS)), None)


if __name__ == "__main__":
    main()
