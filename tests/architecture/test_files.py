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


ACROSS = {"architecture", "browser", "contracts", "docs", "golden", "helpers"}  # test folders without a twin in src


def test_tests_mirror_the_source_and_are_named_after_their_subject() -> None:
    """`tests/x/test_y.py` and `tests/x/test_y_aspect.py` test `x/y.py`, the folder `x/y`, or `x` itself."""
    strays = []
    for path in (ROOT / "tests").rglob("test_*.py"):
        folder = path.parent.relative_to(ROOT / "tests")
        if folder.parts and folder.parts[0] in ACROSS:
            continue
        twin = ROOT / folder if folder.parts[:1] == ("benchmarks",) else PACKAGE / folder
        subjects = {twin.name, *(p.stem for p in twin.glob("*.py")), *(p.name for p in twin.glob("*/"))}
        name = path.stem.removeprefix("test_")
        if not any(name == subject or name.startswith(f"{subject}_") for subject in subjects):
            strays.append(str(path.relative_to(ROOT)))
    assert strays == []


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
