"""Turning requests away before they are even parsed: under ten times the load there is no time for more."""

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from graphsage.serving.gate import Gate
from graphsage.serving.problem import problem_body, retry

_WAY_OUT = retry(429, "the service is at its limit; try again after a pause")
_BODY = problem_body(_WAY_OUT.status, _WAY_OUT.detail)
_ANSWER = (
    b"HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/problem+json\r\nretry-after: 1\r\n"
    b"content-length: " + str(len(_BODY)).encode() + b"\r\n\r\n" + _BODY
)
_LONGEST_HEAD = 8192


def protocol_for(gate: Gate) -> type[H11Protocol]:
    """uvicorn's protocol with a shortcut: a whole request to /v1 that comes while the gate is full is answered with
    429 by its first line and its length alone. Whatever looks unusual goes the long way, to the same answer."""

    class Protocol(H11Protocol):
        def data_received(self, data: bytes) -> None:
            if gate.full and self._is_idle() and is_whole_request(data):
                gate.turned_away()
                self.transport.write(_ANSWER)
            else:
                super().data_received(data)

        def _is_idle(self) -> bool:
            answered = self.cycle is None or self.cycle.response_complete
            return answered and self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]

    return Protocol


def is_whole_request(data: bytes) -> bool:
    """Whether `data` is just one request to /v1, with its body."""
    end = data.find(b"\r\n\r\n", 0, _LONGEST_HEAD)
    line = data[: data.find(b"\r\n")].split(b" ")
    if end < 0 or len(line) != 3 or not line[1].startswith(b"/v1/") or line[2] != b"HTTP/1.1":
        return False
    head = data[:end].lower() + b"\r\n"
    if b"\r\ntransfer-encoding:" in head or b"\r\nconnection:" in head or b"\r\nexpect:" in head:
        return False
    at = head.find(b"\r\ncontent-length:")
    length = head[at + 17 : head.find(b"\r\n", at + 2)].strip() if at >= 0 else b"0"
    return length.isdigit() and len(data) == end + 4 + int(length)
