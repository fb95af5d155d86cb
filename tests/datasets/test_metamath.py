"""A small Metamath database, written by hand."""

from datetime import date

import pytest

from graphsage.datasets.metamath import Assertion, parse_metamath
from graphsage.errors import DataError

DATABASE = """\
$( mini.mm - a database for tests, Version of 1-Jan-2000 $)
$( Declare the symbols. $)
  $c ( ) -> |- wff $.
  $v ph ps ch $.
  wph $f wff ph $.  wps $f wff ps $.  wch $f wff ch $.

$(
###############################################################################
            FIRST
            PART
###############################################################################

  What the part is about.
$)

$(
#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#
        A section
#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#*#
$)

  $( If ` ph ` and ` ps ` are wffs, so is the implication.  (Contributed by NM, 1-Jan-1990.) $)
  wi $a wff ( ph -> ps ) $.

  ${
    $( Minor premise. $)
    min $e |- ph $.
    maj $e |- ( ph -> ps ) $.
    $( Rule of _Modus Ponens_ (see ~ wi ).
       (Contributed by NM, 5-Aug-1993.)  (Revised by Mario Carneiro
       (MC), 2-Feb-2015.) $)
    ax-mp $a |- ps $.
  $}

  $( Axiom _Simp_.  (Contributed by NM,
     10-Jan-1993.)  (New usage is discouraged.) $)
  ax-1 $a |- ( ph -> ( ps -> ph ) ) $.

$(
=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=
        A subsection
=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=-=
$)

  ${
    a1i.1 $e |- ph $.
    $( Compressed proof.  (Contributed by O'Cat, 29-Feb-2004.)  (Proof shortened by X, 3-Mar-2005.) $)
    a1i $p |- ( ps -> $( why not $) ph ) $=
      ( wi ax-1 ax-mp ) ABADCABEF $.
  $}

$(
####################
        SECOND PART
####################
$)

  ${
    b.1 $e |- ph $.
    $( Normal proof. Proved by Y on 4-Apr-2006. (Moved from elsewhere, 5-May-2007.) (Not a credit.) $)
    b $p |- ( ps -> ph ) $= wps wph b.1 a1i wps wph b.1 a1i $.
  $}
  nocomment $p |- ch $= ? $.
  $( Contributed by nobody, but the words are here.  (Contributed by NM, 31-Feb-2001.) $)
  baddate $a |- ph $.
"""


@pytest.fixture
def parsed() -> dict[str, Assertion]:
    return {assertion.label: assertion for assertion in parse_metamath(DATABASE)}


def day(year: int, month: int, of_month: int) -> int:
    return (date(year, month, of_month) - date(1970, 1, 1)).days


def test_only_provable_assertions_are_nodes_in_file_order(parsed: dict[str, Assertion]) -> None:
    assert list(parsed) == ["ax-mp", "ax-1", "a1i", "b", "nocomment", "baddate"]


def test_dates_are_those_of_contribution(parsed: dict[str, Assertion]) -> None:
    assert {label: assertion.day for label, assertion in parsed.items()} == {
        "ax-mp": day(1993, 8, 5),
        "ax-1": day(1993, 1, 10),
        "a1i": day(2004, 2, 29),
        "b": None,
        "nocomment": None,
        "baddate": None,
    }


def test_parts_and_sections_come_from_headings(parsed: dict[str, Assertion]) -> None:
    assert {(a.part, a.section) for a in parsed.values() if a.label in ("ax-mp", "ax-1", "a1i")} == {
        ("FIRST PART", "A section")
    }
    assert (parsed["b"].part, parsed["b"].section) == ("SECOND PART", "")


def test_comments_are_free_of_credits_and_dates(parsed: dict[str, Assertion]) -> None:
    assert {label: assertion.comment for label, assertion in parsed.items()} == {
        "ax-mp": "Rule of _Modus Ponens_ (see ~ wi ).",
        "ax-1": "Axiom _Simp_.",
        "a1i": "Compressed proof.",
        "b": "Normal proof. Proved by Y on . (Not a credit.)",
        "nocomment": "",
        "baddate": "Contributed by nobody, but the words are here.",
    }


def test_formulas_lack_the_sign_and_comments_inside(parsed: dict[str, Assertion]) -> None:
    assert parsed["a1i"].formula == "( ps -> ph )"
    assert parsed["ax-1"].formula == "( ph -> ( ps -> ph ) )"


def test_proofs_cite_each_label_once(parsed: dict[str, Assertion]) -> None:
    assert parsed["a1i"].cites == ("wi", "ax-1", "ax-mp")
    assert parsed["b"].cites == ("wps", "wph", "b.1", "a1i")
    assert parsed["ax-1"].cites == ()
    assert parsed["nocomment"].cites == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a $p |- ph $= ( b", "ends inside the statement a"),
        ("a $p |- ph $.", "theorem a has no proof"),
        ("a $p |- ph $= ( b c $.", "proof of a opens a list"),
    ],
)
def test_a_database_that_is_not_whole_is_an_error(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(parse_metamath(text))
