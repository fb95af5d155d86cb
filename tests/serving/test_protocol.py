"""The protocol's shortcut: a full gate turns whole requests away unread, and nothing else is mistaken for one."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from graphsage.serving import protocol as module
from graphsage.serving.protocol import LINGER, LONGEST_HEAD, is_whole_request, protocol_for


@pytest.mark.parametrize(
    ("data", "whole"),
    [
        (b"POST /v1/embed HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", True),
        (b"GET /v1/model HTTP/1.1\r\nhost: x\r\n\r\n", True),
        (b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n", False),
        (b"POST /v1/embed HTTP/1.1\r\nContent-Length: 3\r\n\r\n{}", False),
        (b"POST /v1/embed HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}GET", False),
        (b"POST /v1/embed HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", False),
        (b"POST /v1/embed HTTP/1.1\r\nContent-Length: x\r\n\r\n{}", False),
        (b"POST /v1/embed HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n{}", False),
        (b"POST /v1/embed HTTP/1.1\r\nContent-Le", False),
        (b"", False),
    ],
)
def test_the_shortcut_takes_whole_plain_requests_only(data: bytes, whole: bool) -> None:
    assert is_whole_request(data) is whole


class Wire:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.sent, self.closed, self.aborted, self.unread = b"", False, False, 0

    def write(self, data: bytes) -> None:
        self.sent += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True

    def get_write_buffer_size(self) -> int:
        return self.unread

    def get_extra_info(self, name: str) -> None:
        return None


class Door:
    """A gate that is full, or not."""

    full, away, closed = True, 0, 0

    def turned_away(self) -> None:
        self.away += 1

    def closed_early(self) -> None:
        self.closed += 1


HEAD_TIMEOUT = 0.2
WHOLE = b"POST /v1/embed HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"


@contextmanager
def wired(gate: Door) -> Iterator[tuple[Any, Wire, list[str]]]:
    """A connection of the service's protocol to an application that answers 200, and the paths that came to that."""
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    config = uvicorn.Config(app, log_level="critical", access_log=False, server_header=False, date_header=False)
    config.load()
    loop, wire = asyncio.new_event_loop(), Wire()
    try:
        kind = protocol_for(gate, 3, HEAD_TIMEOUT)  # type: ignore[arg-type]
        protocol: Any = kind(config, ServerState(), {}, loop)
        protocol.connection_made(wire)
        protocol.settle = lambda: loop.run_until_complete(asyncio.sleep(0.001))
        yield protocol, wire, seen
        protocol.connection_lost(None)
    finally:
        loop.close()


def after(protocol: Any, seconds: float) -> None:
    protocol.loop.run_until_complete(asyncio.sleep(seconds))


def another(protocol: Any, sent: bytes = b"") -> tuple[Any, Wire]:
    """A second connection to the same service."""
    made, wire = type(protocol)(protocol.config, protocol.server_state, {}, protocol.loop), Wire()
    made.connection_made(wire)
    if sent:
        made.data_received(sent)
    after(protocol, 0.002)
    return made, wire


def test_a_full_gate_answers_whole_requests_without_reading_them() -> None:
    gate = Door()
    with wired(gate) as (protocol, wire, seen):
        for turn in range(1, 4):
            protocol.data_received(WHOLE)
            assert (wire.sent.count(b"HTTP/1.1 429"), gate.away, seen) == (turn, turn, [])
        assert b"retry-after: 1" in wire.sent
        gate.full = False
        protocol.data_received(WHOLE)
        protocol.settle()
        assert seen == ["/v1/embed"]


def test_what_is_half_read_is_not_mistaken_for_a_request() -> None:
    gate = Door()
    with wired(gate) as (protocol, wire, seen):
        gate.full = False
        protocol.data_received(b"POST /v1/embed HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(WHOLE))
        protocol.settle()  # answered before the body came
        gate.full = True
        protocol.data_received(WHOLE)  # a body that looks like a request
        assert (gate.away, seen) == (0, ["/v1/embed"])
        assert wire.sent.count(b"HTTP/1.1") == 1
        protocol.data_received(WHOLE)
        assert gate.away == 1


def test_who_does_not_read_is_not_written_to_without_end() -> None:
    gate = Door()
    with wired(gate) as (protocol, wire, seen):
        protocol.pause_writing()
        protocol.data_received(WHOLE)
        assert (gate.away, wire.sent) == (0, b"")
        protocol.resume_writing()
        protocol.settle()
        assert seen == ["/v1/embed"]


def test_a_head_without_end_is_cut_off() -> None:
    gate = Door()
    with wired(gate) as (protocol, wire, seen):
        protocol.data_received(b"GET /v1/model HTTP/1.1\r\n")
        for _ in range(LONGEST_HEAD // 1000):
            protocol.data_received(b"x-filler: " + b"y" * 988 + b"\r\n")
        assert not wire.closed
        protocol.data_received(b"x-filler: " + b"y" * 988 + b"\r\n")
        assert wire.closed
        assert wire.sent.startswith(b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json")
        assert seen == []


def test_a_client_that_is_turned_away_again_and_again_keeps_its_connection() -> None:
    gate = Door()
    with wired(gate) as (protocol, wire, _):
        protocol.data_received(WHOLE)
        protocol.timeout_keep_alive_handler()
        assert not wire.closed
        protocol.timeout_keep_alive_handler()
        assert wire.closed


def test_what_was_sent_before_a_shutdown_is_answered_and_then_the_connection_ends() -> None:
    gate = Door()
    gate.full = False
    with wired(gate) as (protocol, wire, seen):
        protocol.data_received(WHOLE)
        protocol.settle()
        protocol.shutdown()
        assert not wire.closed
        protocol.data_received(WHOLE)  # it lay in the socket's buffer
        protocol.settle()
        assert (seen, wire.sent.count(b"HTTP/1.1 200"), wire.closed) == (["/v1/embed"] * 2, 2, True)


def test_a_shutdown_closes_a_silent_connection_after_a_moment() -> None:
    gate = Door()
    with wired(gate) as (protocol, wire, _):
        protocol.shutdown()
        protocol.settle()
        assert not wire.closed
        protocol.loop.run_until_complete(asyncio.sleep(2 * LINGER))
        assert wire.closed


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"", b""),
        (b"GET /healthz HT", b"HTTP/1.1 408"),
        (WHOLE + b"GET /v1/mo", b"HTTP/1.1 200"),
        (WHOLE[:-1], b"HTTP/1.1 200"),  # answered before the body came, which never comes
    ],
    ids=["nothing", "half a head", "half a second head", "no body"],
)
def test_a_client_that_owes_bytes_is_not_waited_for(sent: bytes, answer: bytes) -> None:
    gate = Door()
    gate.full = False
    with wired(gate) as (protocol, wire, _):
        for at in range(0, len(sent), 5):  # a byte now and then does not help
            protocol.data_received(sent[at : at + 5])
        after(protocol, HEAD_TIMEOUT / 2)
        assert not wire.closed
        if sent == b"GET /healthz HT":
            protocol.data_received(b"T")
        after(protocol, HEAD_TIMEOUT)
        assert wire.closed
        assert wire.sent.startswith(answer)
        assert bool(wire.sent) == bool(answer)


def test_a_connection_that_is_kept_alive_may_be_silent() -> None:
    gate = Door()
    gate.full = False
    with wired(gate) as (protocol, wire, _):
        protocol.data_received(WHOLE)
        after(protocol, 2 * HEAD_TIMEOUT)
        assert not wire.closed
        protocol.data_received(WHOLE)
        after(protocol, 0.002)
        assert wire.sent.count(b"HTTP/1.1 200") == 2


def test_one_connection_too_many_closes_the_idlest() -> None:
    gate = Door()
    gate.full = False
    with wired(gate) as (protocol, wire, _):  # has sent nothing
        protocol.data_received(WHOLE)
        after(protocol, 0.002)
        half, half_wire = another(protocol, b"GET /v1/mo")
        good, good_wire = another(protocol, WHOLE)
        assert not any(each.closed for each in (wire, half_wire, good_wire))
        _, fourth = another(protocol, WHOLE)
        assert half_wire.aborted  # it has never asked for anything
        half.connection_lost(None)
        another(protocol, WHOLE)
        assert wire.aborted  # answered before the others
        assert not any(each.closed for each in (good_wire, fourth))
        assert gate.closed == 2
        assert len(good.connections) == 3


def test_an_answer_that_nobody_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNREAD", 0.1)
    with wired(Door()) as (protocol, wire, _):
        protocol.data_received(WHOLE)
        wire.unread = 100
        protocol.pause_writing()
        for _ in range(25):  # slow, but it reads
            wire.unread -= 1
            after(protocol, 0.01)
            assert not wire.closed
        after(protocol, 0.3)
        assert wire.aborted
