"""Refuses requests before they are parsed while the service is overloaded: parsing would use up the CPU."""

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
LONGEST_HEAD = 1 << 16  # bytes of the request line and headers
LINGER = 0.1  # seconds to read requests that were sent before a shutdown


def protocol_for(gate: Gate) -> type[HttpToolsProtocol]:
    """uvicorn's protocol, but a complete request to /v1 while the gate is full gets status 429 without being parsed."""

    class Protocol(HttpToolsProtocol):
        _between = True  # the last request is complete, and the next has not begun
        _head = 0  # bytes received of an incomplete head
        _late = False  # refused a request since the keep-alive timer was set
        _leaving = False  # the next request is the last

        def data_received(self, data: bytes) -> None:
            if gate.full and self._is_idle() and is_whole_request(data):
                gate.turned_away()
                self._late = True
                self.transport.write(_ANSWER)
                return
            super().data_received(data)
            if self._head:
                self._head += len(data)
                if self._head > LONGEST_HEAD and not self.transport.is_closing():
                    self.send_400_response("The head of the request is too long.")

        def _is_idle(self) -> bool:
            """Whether no request is being read or answered, and no answer waits to be written."""
            answered = self.cycle is None or self.cycle.response_complete
            return answered and self._between and not self.flow.write_paused

        def on_message_begin(self) -> None:
            self._between, self._head = False, 1
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self._head = 0
            super().on_headers_complete()
            if self._leaving:
                super().shutdown()  # after the answer

        def on_message_complete(self) -> None:
            self._between = True
            super().on_message_complete()

        def timeout_keep_alive_handler(self) -> None:
            if self._late:  # the client sent a request meanwhile
                self._late = False
                self.timeout_keep_alive_task = self.loop.call_later(
                    self.timeout_keep_alive, self.timeout_keep_alive_handler
                )
            else:
                super().timeout_keep_alive_handler()

        def shutdown(self) -> None:
            """Answer requests that were sent before the shutdown but not read yet; uvicorn alone would reset them."""
            if self.cycle is None or self.cycle.response_complete:
                self._leaving = True
                self.loop.call_later(LINGER, super().shutdown)
            else:
                super().shutdown()

        def send_400_response(self, msg: str) -> None:
            self.transport.write(_raw(b"400 Bad Request", b"connection: close\r\n", problem_body(400, msg)))
            self.transport.close()

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
