"""What the documents show works, and what is generated is fresh."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from graphsage.model.aggregators import AGGREGATORS

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ALONE = [page for page in PAGES if page.name != "tutorial.md"]  # the tutorial's parts need each other: test_tutorial
EXAMPLES = [(page, number) for page in ALONE for number in range(len(BLOCK.findall(page.read_text())))]


@pytest.mark.parametrize(("page", "number"), EXAMPLES, ids=lambda value: getattr(value, "name", str(value)))
def test_python_in_the_documents_runs(page: Path, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    known = dict(AGGREGATORS)
    try:
        exec(compile(BLOCK.findall(page.read_text())[number], str(page), "exec"), {"__name__": "documents"})
    finally:
        AGGREGATORS.clear()
        AGGREGATORS.update(known)


def test_the_readme_and_the_aggregator_page_have_examples() -> None:
    assert {page.name for page, _ in EXAMPLES} >= {"README.md", "aggregators.md"}


def test_generated_pages_are_fresh() -> None:
    done = subprocess.run([sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_relative_links_in_the_documents_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.slow
def test_the_commands_of_the_readme_work(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    block = re.findall(r"^```bash\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[1]
    commands = [line.split("#")[0].split() for line in block.splitlines()]
    assert commands[0][:2] == ["graphsage", "train"]
    for command in commands:
        subprocess.run([sys.executable, "-m", *command], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "z.parquet").exists()
    assert (tmp_path / "p.csv").exists()


def test_the_files_and_names_that_contributing_gives_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    table = text[text.index("| new |") : text.index("Paths are relative")]
    source = {path: path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py")}
    for word in re.findall(r"`([^`]+)`", table):
        if "/" in word:
            assert any((base / word).exists() for base in (ROOT, ROOT / "src" / "graphsage")), word
        elif word.isidentifier() and word != "command":
            assert any(re.search(rf"^(class |def )?{word}\b", text, re.MULTILINE) for text in source.values()), word
