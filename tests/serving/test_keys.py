"""Keys are stored as digests, found by their secret, and read again when the file changes."""

import logging
import stat
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from graphsage.errors import ConfigError
from graphsage.serving import keys as keys_module
from graphsage.serving.app import make_app
from graphsage.serving.keys import ApiKeys, add_key, load_keys, read_keys, remove_key
from graphsage.serving.service import Service
from small_service import api_key, write_keys

SECRET = "s" * 40


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys_module, "CHECKED_EVERY", 0.0)


def found(keys: ApiKeys, secret: str) -> str | None:
    key = keys.find(b"", secret.encode())
    return key and key.name


def test_a_key_is_made_once_and_only_its_digest_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    reader = add_key(path, "reader", ["read"])
    loader = add_key(path, "loader", ["read", "write"], date(2999, 1, 1))
    assert reader != loader
    assert min(len(reader), len(loader)) >= 40
    text = path.read_text()
    assert reader not in text
    assert sha256(reader.encode()).hexdigest() in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    keys = load_keys(path)
    assert (found(keys, reader), found(keys, loader), found(keys, reader + "x")) == ("reader", "loader", None)
    assert [(key.scopes, key.expires) for key in keys.keys] == [
        (("read",), None),
        (("read", "write"), date(2999, 1, 1)),
    ]


def test_changes_to_the_file_keep_comments_and_permissions(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    add_key(path, "a", ["read"])
    path.write_text(path.read_text() + "# kept\n\n")
    path.chmod(0o640)
    add_key(path, "b", ["admin"])
    remove_key(path, "a")
    assert "# kept" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [key.name for key in read_keys(path)] == ["b"]
    link = tmp_path / "link"
    link.symlink_to(path)
    add_key(link, "c", ["read"])
    assert link.is_symlink()
    assert [key.name for key in read_keys(path)] == ["b", "c"]
    with pytest.raises(ConfigError, match="has a key of that name"):
        add_key(path, "b", ["read"])
    with pytest.raises(ConfigError, match="has no key of that name"):
        remove_key(path, "a")


def test_a_running_service_follows_the_file(service: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "keys"
    first = add_key(path, "first", ["read"])
    client = TestClient(make_app(service, load_keys(path)), raise_server_exceptions=False)

    def status(secret: str) -> int:
        return client.get("/v1/model", headers={"X-API-Key": secret}).status_code

    assert status(first) == 200
    second = add_key(path, "second", ["read"])
    assert (status(first), status(second)) == (200, 200)
    good = path.read_text()
    for damage in ("", "garbage", good + "one two\n"):
        path.write_text(damage)
        assert (status(first), status(second)) == (200, 200), "a damaged file changes nothing"
        assert caplog.records[-1].levelno == logging.ERROR
        assert "the keys stay as they were" in caplog.records[-1].message
    path.unlink()
    assert status(first) == 200
    path.write_text(good)
    remove_key(path, "first")
    assert (status(first), status(second)) == (401, 200)
    remove_key(path, "second")
    assert (status(first), status(second), client.get("/v1/model").status_code) == (401, 401, 401), "open to everyone"
    assert not any(secret in caplog.text for secret in (first, second))


def test_a_key_expires_at_the_beginning_of_its_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = api_key(SECRET, "read", expires=date(2030, 5, 17))
    for moment, expired in (
        (datetime(2030, 5, 16, 23, 59, 59, tzinfo=UTC), False),
        (datetime(2030, 5, 17, tzinfo=UTC), True),
    ):
        monkeypatch.setattr("time.time", lambda moment=moment: moment.timestamp())
        assert key.expired is expired
    monkeypatch.undo()
    with pytest.raises(ConfigError, match="would be refused already"):
        add_key(tmp_path / "keys", "late", ["read"], datetime.now(UTC).date())
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize(("mode", "warned"), [(0o600, False), (0o640, False), (0o644, True), (0o602, True)])
def test_a_file_that_all_users_can_open_is_one_warning(
    tmp_path: Path, mode: int, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_keys(tmp_path / "keys", api_key(SECRET, "read"))
    path.chmod(mode)
    load_keys(path)
    assert caplog.text.count("is open to all users of this machine") == warned


LINE = api_key(SECRET, "read").line()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f"read {SECRET}\nwrite {SECRET}x\n", "is no file of keys of format 2"),
        ("", "is no file of keys of format 2"),
        ("graphsage-keys 2\n", "has no keys; add one"),
        (f"graphsage-keys 2\n{LINE}\n{LINE}\n", "line 3 has a name that another line has"),
        *(
            (f"graphsage-keys 2\n{LINE.replace(old, new)}\n", "line 2 must be NAME SCOPES EXPIRES SHA-256")
            for old, new in (
                ("read read", "read all"),
                ("never", "soon"),
                (LINE[-9:], ""),
                (
                    "read ",
                    "",
                ),
                ("read", "/"),
            )
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_without_repeating_it(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "keys"
    path.write_text(text)
    with pytest.raises(ConfigError, match=sentence) as caught:
        load_keys(path)
    assert SECRET not in str(caught.value)
    assert LINE[-20:] not in str(caught.value)


def test_keys_in_the_environment_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignored without a word, they would leave a service open."""
    monkeypatch.setenv("GRAPHSAGE_WRITE_KEYS", SECRET)
    with pytest.raises(ConfigError, match="is no longer read; unset it") as caught:
        load_keys(None)
    assert SECRET not in str(caught.value)
