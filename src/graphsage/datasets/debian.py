"""The Debian package graph: from a mirror's package indexes to a table of packages and a table of their relations.

A mirror keeps, for each release, `dists/RELEASE/main/binary-amd64/Packages.xz` (one paragraph a package) and
`dists/RELEASE/main/i18n/Translation-en.bz2` (the long descriptions). Releases are given oldest first: a package belongs
to the first release that has it and is described as it was there, so that no information from a later release leaks.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphsage.atomic import atomic_folder
from graphsage.datasets.sources import lines
from graphsage.errors import DataError
from graphsage.tables.spec import TableSpec

RELEASES = ("bullseye", "bookworm", "trixie", "forky", "sid")
KINDS = {"Pre-Depends": "depends", "Depends": "depends", "Recommends": "recommends", "Suggests": "suggests"}
_NAME = re.compile(r"\s*([a-z0-9][a-z0-9+.\-]*)")


@dataclass(frozen=True)
class Release:
    """One release's index files; without `translations` only the one-line descriptions are known."""

    name: str
    packages: Path
    translations: Path | None = None


def build_debian(releases: Sequence[Release], out: Path) -> tuple[int, int]:
    """Write `nodes.csv` and `edges.csv` into the folder `out`; return how many of each there are."""
    if not releases:
        raise DataError("give at least one release, oldest first")
    nodes: dict[str, dict[str, str]] = {}
    relations: dict[tuple[str, str, str], str] = {}
    for release in releases:
        texts = paragraphs(release.translations) if release.translations else ()
        key, text = "Description-md5", "Description-en"
        long = {fields[key]: fields[text] for fields in texts if key in fields and text in fields}
        for fields in paragraphs(release.packages):
            name = fields.get("Package")
            if name is None:
                raise DataError(f"{release.packages} has a paragraph without a Package field; it is no package index")
            nodes.setdefault(name, _row(name, release.name, fields, long))
            for field, kind in KINDS.items():
                for target in targets(fields.get(field, "")):
                    relations.setdefault((name, target, kind), release.name)
    edges = [
        (*relation, release)
        for relation, release in relations.items()
        if relation[1] in nodes and relation[0] != relation[1]
    ]
    with atomic_folder(out, is_debian_folder) as folder:
        _write(folder / "nodes.csv", list(_COLUMNS), (row.values() for row in nodes.values()))
        _write(folder / "edges.csv", ["source", "target", "kind", "release"], edges)
    return len(nodes), len(edges)


def is_debian_folder(path: Path) -> bool:
    """Whether `path` holds the two tables and nothing else, so that it can be replaced."""
    return path.is_dir() and {file.name for file in path.iterdir()} == {"nodes.csv", "edges.csv"}


def debian_tables(folder: Path, train_until: str, val_until: str | None = None) -> TableSpec:
    """The two tables with packages' sections to learn, split by release."""
    return TableSpec(
        nodes=str(folder / "nodes.csv"),
        edges=str(folder / "edges.csv"),
        label="section",
        text=("description",),
        time="release",
        edge_time="release",
        time_order=RELEASES,
        train_until=train_until,
        val_until=val_until,
    )


_COLUMNS = ("id", "release", "section", "installed_kb", "tags", "description")


def _row(name: str, release: str, fields: Mapping[str, str], long: Mapping[str, str]) -> dict[str, str]:
    tags = [tag.strip() for tag in fields.get("Tag", "").split(",") if tag.strip()]
    description = long.get(fields.get("Description-md5", "")) or fields.get("Description", "")
    section = fields.get("Section", "unknown").rsplit("/", 1)[-1]
    values = (name, release, section, fields.get("Installed-Size", ""), ";".join(tags), plain(description))
    return dict(zip(_COLUMNS, values, strict=True))


def targets(relation: str) -> Iterator[str]:
    """Names in a relation field, alternatives included: `a (>= 1), b | c [amd64]` -> a, b, c."""
    for alternative in relation.replace("|", ",").split(","):
        found = _NAME.match(alternative)
        if found:
            yield found[1]


def plain(description: str) -> str:
    """One line: the short description, then the long one without the dots that stand for empty lines."""
    stripped = (line.strip() for line in description.splitlines())
    return " ".join(line for line in stripped if line not in ("", "."))


def paragraphs(path: Path) -> Iterator[dict[str, str]]:
    """The paragraphs of an index, one at a time: field -> value, continuation lines joined by newlines."""
    fields: dict[str, str] = {}
    last = None
    for number, text in enumerate(lines(path), start=1):
        if not text.strip():
            if fields:
                yield fields
            fields, last = {}, None
        elif text[0] in " \t":
            if last is None:
                raise DataError(f"{path}, line {number}: a continuation without a field; this is no index")
            fields[last] += "\n" + text
        else:
            last, colon, value = text.partition(":")
            if not colon:
                raise DataError(f"{path}, line {number}: expected `Field: value`; got {text[:40]!r}")
            fields[last] = value.strip()
    if fields:
        yield fields


def _write(path: Path, header: Sequence[str], rows: Iterable[Iterable[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
