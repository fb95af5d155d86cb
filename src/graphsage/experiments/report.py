"""The report: what holds of the paper and what does not, as a page to look at and as a page of the documentation."""

import base64
import html
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphsage.atomic import atomic_file
from graphsage.errors import DataError
from graphsage.experiments.claims import FAILS, HOLDS, PENDING, UNTESTED
from graphsage.experiments.record import EXPERIMENTS, read_result
from graphsage.experiments.section import Section, Table
from graphsage.experiments.sections import sections

Records = Mapping[str, dict[str, Any] | None]


def read_records(folder: Path) -> dict[str, dict[str, Any] | None]:
    """What the experiments wrote into a folder; None for those that were not made."""
    found: dict[str, dict[str, Any] | None] = {}
    for name in EXPERIMENTS:
        found[name] = read_result(folder / f"{name}.json")
    if not any(found.values()):
        raise DataError(f"{folder} holds no result; run `graphsage reproduce all --out {folder}` first")
    return found


def write_report(folder: Path) -> Path:
    """Write the pictures and `report.html`, which needs no other file."""
    from graphsage.experiments.plots import pictures

    records = read_records(folder)
    drawn = pictures(records)
    for name, png in drawn.items():
        with atomic_file(folder / f"{name}.png") as temporary:
            temporary.write_bytes(png)
    with atomic_file(folder / "report.html") as temporary:
        temporary.write_text(page(records, drawn), encoding="utf-8")
    return folder / "report.html"


def markdown(folder: Path, pictures: str, made: str) -> str:
    """The same as a page of the documentation; `pictures` is the path from that page to the folder, and `made` says how
    the page came about."""
    records = read_records(folder)
    parts = ["# Results: what holds of the paper", "", made, "", summary(records)]
    for section in sections(records):
        parts += ["", f"## {section.title}", "", section.text]
        if section.picture is not None:
            parts += ["", f"![{section.title}]({pictures}/{section.picture}.png)"]
        for table in section.tables:
            parts += ["", *_markdown_table(table)]
    return "\n".join(parts) + "\n"


def summary(records: Records) -> str:
    """For somebody in a hurry."""
    claims = records["claims"]
    made = f"{_profiles(records)}; {_machine(records)}."
    if claims is None:
        return made
    count = claims["counts"]
    later = f", {count[PENDING]} wait for experiments that have not been made" if count[PENDING] else ""
    return (f"Of {len(claims['rows'])} claims of the paper **{count[HOLDS]} hold** on our data, "
            f"**{count[FAILS]} do not**, {count[UNTESTED]} cannot be tested here{later}. {made}")  # fmt: skip


def _profiles(records: Records) -> str:
    """One profile, or who was made by which: pieces of the long one may stand beside the rest of the short one."""
    by: dict[str, list[str]] = {}
    for name, record in records.items():
        if record is not None and name != "claims":
            by.setdefault(record["profile"], []).append(name)
    if len(by) < 2:
        return f"Profile `{next(iter(by), 'quick')}`"
    return "; ".join(f"profile `{profile}`: {', '.join(names)}" for profile, names in by.items()).capitalize()


def page(records: Records, drawn: Mapping[str, bytes]) -> str:
    body = [f"<h1>GraphSAGE: what holds of the paper</h1><p class=lead>{_bold(summary(records))}</p>"]
    for section in sections(records):
        body.append(f"<h2>{html.escape(section.title)}</h2><p>{_bold(section.text)}</p>")
        body.append(_picture(section, drawn))
        body += [_html_table(table) for table in section.tables]
    return _PAGE.replace("BODY", "\n".join(body))


def _machine(records: Records) -> str:
    found: dict[str, None] = {}
    for record in records.values():
        if record is not None:
            found |= dict.fromkeys(record["trials_on"])
    return "measured on: " + "; ".join(found)


def _picture(section: Section, drawn: Mapping[str, bytes]) -> str:
    if section.picture is None or section.picture not in drawn:
        return ""
    data = base64.b64encode(drawn[section.picture]).decode()
    return f'<img alt="{html.escape(section.title)}" src="data:image/png;base64,{data}">'


def _html_table(table: Table) -> str:
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in table.head)
    rows = []
    for row in table.rows:
        kind = next((name for name, mark in (("good", "✓ "), ("bad", "✗ ")) if row[0].startswith(mark)), "")
        rows.append(f"<tr class='{kind}'>" + "".join(f"<td>{_bold(cell)}</td>" for cell in row) + "</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _markdown_table(table: Table) -> list[str]:
    def line(cells: tuple[str, ...]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [line(table.head), line(("---",) * len(table.head)), *[line(row) for row in table.rows]]


def _bold(text: str) -> str:
    """Escaped, with **bold** and `code` as in the documentation."""
    parts = html.escape(text).split("**")
    bold = "".join(f"<b>{part}</b>" if number % 2 else part for number, part in enumerate(parts))
    pieces = bold.split("`")
    return "".join(f"<code>{piece}</code>" if number % 2 else piece for number, piece in enumerate(pieces))


_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>GraphSAGE reproduced</title>
<meta name="viewport" content="width=device-width">
<style>
body{font:15px/1.5 system-ui,sans-serif;color:#222;max-width:1080px;margin:32px auto;padding:0 20px}
h1{font-size:26px;margin-bottom:4px}h2{font-size:19px;margin:34px 0 4px}.lead{font-size:17px}
table{border-collapse:collapse;margin:12px 0;font-size:13.5px;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:4px 12px 4px 0;border-bottom:1px solid #e4e4e4;vertical-align:top}
th{color:#666;font-weight:600}.good td:first-child{color:#1b7f5c}.bad td:first-child{color:#c8372d}
img{max-width:100%;margin:8px 0}code{background:#f3f3f3;padding:0 3px}
</style>
BODY
</html>
"""
