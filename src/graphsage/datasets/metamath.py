"""Metamath databases (`.mm`) -> a dated citation graph: a theorem cites the statements that its proof uses.

What is read of the format (Metamath book, chapter 4):

    $( comment $)                  the last one before an assertion describes it and says when it was contributed;
                                   one that begins with a ruled title is a heading: #### for a part, #*#* for a section
    label $a symbols $.            an axiom or a definition
    label $p symbols $= proof $.   a theorem; a compressed proof begins with the labels it uses, in parentheses
    label $e ... $.  label $f ... $.  $c $v $d ... $.  ${ $}   hypotheses, declarations and scopes: no node

Only assertions that something is provable (`|-`) become nodes; the others say how formulas are written.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from graphsage.errors import DataError

_TOKEN = re.compile(r"\$\((?:\s.*?)?\s\$\)|\S+", re.DOTALL)
_HEADING = re.compile(r"\$\(\s*?\n(####|#\*#\*)\S*\n(.+?)\n\1\S*(?:\n|\s*\$\)|$)", re.DOTALL)
_DAY = r"(\d{1,2})-(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)-(\d{4})"
_INSIDE = r"(?:[^()]|\([^()]*\))"  # of a parenthesis, which may hold another
_CONTRIBUTED = re.compile(rf"\(Contributed\s+by\s{_INSIDE}*?{_DAY}\.?\s*\)")
_CREDIT = re.compile(
    rf"\((?:Contributed|Revised|Revision|Proof\s+(?:shortened|revised|modified))\s{_INSIDE}*\)"
    r"|\((?:New\s+usage|Proof\s+modification)\s+is\s+discouraged\.\)"
    rf"|\({_INSIDE}*?{_DAY}{_INSIDE}*\)"
    rf"|{_DAY}"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EPOCH = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Assertion:
    """An axiom, definition or theorem: days since 1970 (or None), plain comment, formula without `|-`, citations."""

    label: str
    day: int | None
    part: str
    section: str
    comment: str
    formula: str
    cites: tuple[str, ...]


def parse_metamath(text: str) -> Iterator[Assertion]:
    """The provable assertions of a database in file order. What they cite may be any label, also a hypothesis."""
    part = section = comment = ""
    words: list[str] = []  # of the statement being read
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token.startswith("$("):
            heading = _HEADING.match(token)
            if heading is None:
                if not words:
                    comment = token
            elif heading.group(1) == "####":
                part, section = _one_line(heading.group(2)), ""
            else:
                section = _one_line(heading.group(2))
        elif token in ("${", "$}") and not words:
            continue
        elif token == "$.":
            assertion = _assertion(words, comment, part, section)
            if assertion is not None:
                yield assertion
            if len(words) > 1 and words[1] in ("$a", "$p"):
                comment = ""
            words = []
        else:
            words.append(token)
    if words:
        raise DataError(f"the database ends inside the statement {' '.join(words[:4])}...; it is not whole")


def _assertion(words: list[str], comment: str, part: str, section: str) -> Assertion | None:
    if len(words) < 3 or words[1] not in ("$a", "$p") or words[2] != "|-":
        return None
    formula, proof = words[3:], []
    if words[1] == "$p":
        if "$=" not in words:
            raise DataError(f"theorem {words[0]} has no proof; it must have the form: label $p symbols $= proof $.")
        end = words.index("$=")
        formula, proof = words[3:end], words[end + 1 :]
    return Assertion(
        label=words[0],
        day=_day(comment),
        part=part,
        section=section,
        comment=_plain(comment),
        formula=" ".join(formula),
        cites=_cited(words[0], proof),
    )


def _cited(label: str, proof: list[str]) -> tuple[str, ...]:
    if proof[:1] == ["("]:
        if ")" not in proof:
            raise DataError(f"the proof of {label} opens a list of labels and does not close it")
        proof = proof[1 : proof.index(")")]
    return tuple(dict.fromkeys(step for step in proof if step != "?"))  # `?` is a step still to be proved


def _day(comment: str) -> int | None:
    match = _CONTRIBUTED.search(comment)
    if match is None:
        return None
    day, month, year = match.groups()
    try:
        return date(int(year), _MONTHS.index(month) + 1, int(day)).toordinal() - _EPOCH
    except ValueError:
        return None


def _plain(comment: str) -> str:
    """The comment on one line, without credits and dates: features made of it must not tell when it was written."""
    inside = comment.removeprefix("$(").removesuffix("$)")
    return _one_line(_CREDIT.sub(" ", inside))


def _one_line(text: str) -> str:
    return " ".join(text.split())
