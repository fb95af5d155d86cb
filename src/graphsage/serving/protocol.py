"""Connections: uvicorn's HTTP protocol with limits for slow clients, and a refusal before parsing under overload.

Only the protocol sees the time between two bytes of a head, so the limits for heads are here. A slow body is the
gate's matter (request_limits.py), because the request's key is known by then.
"""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from graphsage.serving.answers import AT_THE_LIMIT, problem_body
from graphsage.serving.request_limits import Gate


def _raw(status: bytes, headers: bytes, body: bytes) -> bytes:
    return b"HTTP/1.1 %b\r\ncontent-type: application/problem+json\r\n%bcontent-length: %d\r\n\r\n%b" % (
        status,
        headers,
        len(body),
        body,
    )


_ANSWER = _raw(b"429 Too Many Requests", b"retry-after: 1\r\n", problem_body(AT_THE_LIMIT.status, AT_THE_LIMIT.detail))
_LATE = problem_body(408, "the head of the request did not arrive in time")
LONGEST_HEAD = 1 << 16  # bytes of the request line and headers
LINGER = 0.1  # seconds to read requests that were sent before a shutdown
UNREAD = 30.0  # seconds that an answer may wait without the client reading any of it


def protocol_for(gate: Gate, max_connections: int, head_timeout: float) -> type[HttpToolsProtocol]:
    """uvicorn's protocol with limits.

    A head must be complete `head_timeout` seconds after the connection was made, or after its first byte on a
    connection that is kept alive. A connection beyond `max_connections` closes the one that has been idle longest,
    those without a whole head first. While the gate is full, a complete request to /v1 gets status 429 without being
    parsed.
    """

    class Protocol(HttpToolsProtocol):
        _between = True  # the last request is complete, and the next has not begun
        _head = 0  # bytes received of an incomplete head
        _asked = False  # sent a whole head
        _since = 0.0  # when the connection was made, or last answered
        _late = False  # refused a request since the keep-alive timer was set
        _leaving = False  # the next request is the last
        _patience: asyncio.TimerHandle | None = None  # for bytes that the client owes
        _unread: asyncio.TimerHandle | None = None  # for an answer that the client does not read

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._since = self.loop.time()
            if len(self.connections) > max_connections:
                _make_room(self)
            self._await_bytes()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            if self._unread is not None:
                self._unread.cancel()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if gate.full and self._is_idle() and is_whole_request(data):
                gate.turned_away()
                self._late = self._asked = True
                self._since = self.loop.time()
                self._stop_waiting()
                self.transport.write(_ANSWER)
                return
            super().data_received(data)
            if self._head:
                self._head += len(data)
                if self._patience is None:
                    self._await_bytes()
                if self._head > LONGEST_HEAD and not self.transport.is_closing():
                    self.send_400_response("The head of the request is too long.")

        def _is_idle(self) -> bool:
            """Whether no request is being read or answered, and no answer waits to be written."""
            return self.is_answered() and self._between and not self.flow.write_paused

        def is_answered(self) -> bool:
            """Whether no request is being answered."""
            return self.cycle is None or self.cycle.response_complete

        @property
        def rank(self) -> tuple[bool, float]:
            """The lowest of the answered connections is closed first."""
            return self._asked and not self._head, self._since

        def on_message_begin(self) -> None:
            self._between, self._head = False, 1
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self._head, self._asked = 0, True
            self._stop_waiting()
            super().on_headers_complete()
            if self._leaving:
                super().shutdown()  # after the answer

        def on_message_complete(self) -> None:
            self._between = True
            self._stop_waiting()
            super().on_message_complete()

        def on_response_complete(self) -> None:
            self._since = self.loop.time()
            super().on_response_complete()
            if not self._between:  # refused before its body came
                self._await_bytes()

        def _await_bytes(self) -> None:
            self._stop_waiting()
            self._patience = self.loop.call_later(head_timeout, self._give_up)

        def _stop_waiting(self) -> None:
            if self._patience is not None:
                self._patience.cancel()
                self._patience = None

        def _give_up(self) -> None:
            if self.transport.is_closing():
                return
            if self._head:
                self.transport.write(_raw(b"408 Request Timeout", b"connection: close\r\n", _LATE))
            self.transport.close()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._watch_reading(self.transport.get_write_buffer_size())

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._unread is not None:
                self._unread.cancel()

        def _watch_reading(self, size: int) -> None:
            """Close the connection in a while, unless the client reads some of the `size` bytes that wait for it."""

            def look() -> None:
                left = self.transport.get_write_buffer_size()
                if left < size:
                    self._watch_reading(left)
                else:
                    self.transport.abort()

            self._unread = self.loop.call_later(UNREAD, look)

        def timeout_keep_alive_handler(self) -> None:
            if self._late:  # the client sent a request meanwhile
                self._late = False
                self.timeout_keep_alive_task = self.loop.call_later(
                    self.timeout_keep_alive, self.timeout_keep_alive_handler
                )
            elif self.transport.get_write_buffer_size():
                self.transport.abort()  # closing would wait for the client
            else:
                super().timeout_keep_alive_handler()

        def shutdown(self) -> None:
            """Answer requests that were sent before the shutdown but not read yet; uvicorn alone would reset them."""
            if self.is_answered():
                self._leaving = True
                self.loop.call_later(LINGER, super().shutdown)
            else:
                super().shutdown()

        def send_400_response(self, msg: str) -> None:
            self.transport.write(_raw(b"400 Bad Request", b"connection: close\r\n", problem_body(400, msg)))
            self.transport.close()

    def _make_room(new: Protocol) -> None:
        others = (each for each in new.connections if isinstance(each, Protocol) and each is not new)
        oldest = min((each for each in others if each.is_answered()), key=lambda each: each.rank, default=new)
        gate.closed_early()
        new.connections.discard(oldest)
        oldest.transport.abort()

    return Protocol


def is_whole_request(data: bytes) -> bool:
    """Whether `data` is exactly one request to /v1 with its body."""
    end = data.find(b"\r\n\r\n", 0, LONGEST_HEAD)
    line = data[: data.find(b"\r\n")].split(b" ")
    if end < 0 or len(line) != 3 or not line[1].startswith(b"/v1/") or line[2] != b"HTTP/1.1":
        return False
    head = data[:end].lower() + b"\r\n"
    if b"\r\ntransfer-encoding:" in head or b"\r\nconnection:" in head or b"\r\nexpect:" in head:
        return False
    at = head.find(b"\r\ncontent-length:")
    length = head[at + 17 : head.find(b"\r\n", at + 2)].strip() if at >= 0 else b"0"
    return length.isdigit() and len(length) < 10 and len(data) == end + 4 + int(length)
