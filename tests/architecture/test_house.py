"""Rules about the files themselves. Who may import whom is checked by `make imports`."""

import re
from collections.abc import Iterator
from pathlib import Path

import graphsage

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "graphsage"


def files_under(*folders: str) -> Iterator[Path]:
    """Files people wrote: no caches (compiled files hold machine paths), no build leftovers."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            parts = path.relative_to(ROOT).parts
            if path.is_file() and not any(p == "__pycache__" or p.endswith(".egg-info") for p in parts):
                yield path


def test_every_folder_with_python_files_is_a_package() -> None:
    folders = {
        parent
        for path in files_under("src/graphsage")
        if path.suffix == ".py"
        for parent in path.parents
        if parent.is_relative_to(PACKAGE)
    }
    assert PACKAGE in folders
    assert [str(f.relative_to(ROOT)) for f in sorted(folders) if not (f / "__init__.py").is_file()] == []


def test_newest_release_in_the_changelog_is_the_version() -> None:
    version = graphsage.__version__
    headings = re.findall(r"^## \[?([^\]\s]+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert headings[1:2] in ([], [version])


def names_a_place(path: Path) -> bool:
    """Whether a file depends on where the repository lies. A test that skips may look next door for data."""
    content = path.read_bytes()
    if path.is_relative_to(ROOT / "tests") and b"skip" in content:
        content = content.replace(b"../shared/data", b"")
    return b"/work/" in content or b"shared/" in content


def test_no_file_names_a_place_outside_the_repository() -> None:
    others = [p for p in files_under("src", "tests", "docs") if p != Path(__file__)]
    assert [str(p.relative_to(ROOT)) for p in others if names_a_place(p)] == []
