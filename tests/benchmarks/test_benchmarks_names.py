"""Benchmarks use names of the product that it has: most of them run too rarely to notice."""

import ast
import importlib
import pkgutil
from pathlib import Path

import pytest
import torch

from benchmarks.ours import Ours
from graphsage.training.config import Config
from planted import planted_graph, planted_split

OURS = ("graphsage", "benchmarks")
ROOT = Path(__file__).parents[2]
SCRIPTS = sorted([*(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "docs").glob("*.py")])


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_script_imports_from_us_is_there(script: Path) -> None:
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for name in (alias.name for alias in node.names if alias.name.split(".")[0] in OURS):
                importlib.import_module(name)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OURS:
            module = importlib.import_module(node.module or "")
            inside = {found.name for found in pkgutil.iter_modules(getattr(module, "__path__", []))}
            absent = [
                alias.name for alias in node.names if not hasattr(module, alias.name) and alias.name not in inside
            ]
            assert absent == [], f"{script.name}, line {node.lineno}, of {module.__name__}"


@pytest.mark.parametrize("task", ["supervised", "unsupervised"])
def test_the_step_that_benchmarks_time_learns(task: str) -> None:
    graph = planted_graph()
    nodes = planted_split(graph).nodes("train")
    ours = Ours(graph, nodes, Config(task=task, dim=8, sample_sizes=(4, 3), batch_size=16), "cpu")
    before = [weight.detach().clone() for weight in ours.module.parameters()]
    ours.run()
    assert torch.isfinite(ours.step.take_loss())
    assert all(not torch.equal(old, new) for old, new in zip(before, ours.module.parameters(), strict=True))
