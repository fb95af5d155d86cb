"""`graphsage keys` makes keys that a service knows, and shows each once."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from command_line import Command
from graphsage.serving.keys import load_keys


def test_keys_are_added_listed_and_removed(graphsage: Command, tmp_path: Path) -> None:
    path = tmp_path / "keys.txt"
    printed = graphsage("keys", "add", path, "dashboard").out.strip()
    made = graphsage("keys", "add", path, "loader", "--scope", "read,write", "--expires", "90d", "--json").json
    day = (datetime.now(UTC).date() + timedelta(days=90)).isoformat()
    assert (made["name"], made["scopes"], made["expires"]) == ("loader", ["read", "write"], day)
    keys = load_keys(path)
    for secret, name in ((printed, "dashboard"), (made["key"], "loader")):
        key = keys.find(b"Bearer " + secret.encode(), b"")
        assert key is not None
        assert key.name == name
    listed = graphsage("keys", "list", path)
    assert [line.split() for line in listed.out.splitlines()] == [
        ["name", "scopes", "expires"],
        ["dashboard", "read", "never"],
        ["loader", "read,write", day],
    ]
    assert graphsage("keys", "list", path, "--json").json["keys"][0]["expires"] is None
    assert printed not in listed.out + path.read_text()
    assert graphsage("keys", "remove", path, "dashboard", "--json").json == {"removed": "dashboard"}
    assert [key.name for key in load_keys(path).keys] == ["loader"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("add", "NEW", "a b"), "the name of a key has 1 to 64"),
        (("add", "NEW", "a", "--scope", "all"), "one or more of read, write, admin"),
        (("add", "NEW", "a", "--scope", "read,read"), "one or more of read, write, admin"),
        (("add", "NEW", "a", "--expires", "soon"), "--expires must be a day such as 2027-01-31"),
        (("add", "NEW", "a", "--expires", "2020-01-01"), "would be refused already"),
        (("list", "NEW"), "cannot be read as a file of keys"),
        (("list", "OLD"), "is no file of keys of format 2"),
        (("remove", "OLD", "a"), "is no file of keys of format 2"),
        (("list", "FOLDER"), "is a folder"),
    ],
)
def test_mistakes_are_one_sentence(graphsage: Command, tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    (tmp_path / "old").write_text("read " + "r" * 24)
    named = {"NEW": tmp_path / "new", "OLD": tmp_path / "old", "FOLDER": tmp_path}
    assert sentence in graphsage("keys", *(named.get(word, word) for word in words)).error
    assert not (tmp_path / "new").exists()
