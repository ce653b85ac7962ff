"""The client's side of HTTP/2 for tests, by the package h2: without sockets, and over TLS."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    InformationalResponseReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)

__all__ = ["Answer", "Client", "Side"]

TIMEOUT = 60.0
Fields = list[tuple[str, str]]


def request_fields(target: str = "/", method: str = "GET", *extra: tuple[str, str]) -> Fields:
    return [(":method", method), (":scheme", "https"), (":authority", "localhost"), (":path", target), *extra]


class Answer:
    """What came on one stream."""

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self.informational: list[dict[str, str]] = []
        self.data = b""
        self.ended = False
        self.reset: int | None = None

    @property
    def status(self) -> str:
        return self.fields[":status"]


class Side:
    """The client's side of a connection, free of sockets. `acknowledges` gives back what was received at once."""

    def __init__(self, *, checks: bool = True, acknowledges: bool = True) -> None:
        config = H2Configuration(client_side=True, header_encoding="utf-8")
        if not checks:
            config.validate_outbound_headers = False
            config.normalize_outbound_headers = False
        self.h2 = H2Connection(config)
        self.h2.initiate_connection()
        self.acknowledges = acknowledges
        self.answers: dict[int, Answer] = {}
        self.goaway: int | None = None

    def ask(self, target: str = "/", method: str = "GET", *extra: tuple[str, str], ends: bool = True) -> int:
        stream_id = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream_id, request_fields(target, method, *extra), end_stream=ends)
        self.answers[stream_id] = Answer()
        return stream_id

    def take(self, data: bytes) -> list[Event]:
        events = self.h2.receive_data(data)
        for event in events:
            self._note(event)
        return events

    def _note(self, event: Any) -> None:
        if isinstance(event, ConnectionTerminated):
            self.goaway = int(event.error_code)
            return
        answer = self.answers.setdefault(getattr(event, "stream_id", 0) or 0, Answer())
        match event:
            case ResponseReceived():
                answer.fields = dict(event.headers)
            case InformationalResponseReceived():
                answer.informational.append(dict(event.headers))
            case DataReceived():
                answer.data += event.data
                if self.acknowledges:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case StreamEnded():
                answer.ended = True
            case StreamReset():
                answer.reset = int(event.error_code)


class Client(Side):
    """A connection over TLS."""

    def __init__(self, port: int, context: ssl.SSLContext, **options: Any) -> None:
        super().__init__(**options)
        connected = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT)
        self.socket = context.wrap_socket(connected, server_hostname="localhost")
        assert self.socket.selected_alpn_protocol() == "h2"

    def flush(self) -> None:
        self.socket.sendall(self.h2.data_to_send())

    def receive(self) -> bool:
        """Take in what comes next; false at the end."""
        self.flush()
        data = self.socket.recv(65536)
        self.take(data)
        self.flush()
        return bool(data)

    def until(self, condition: Callable[[], bool]) -> None:
        self.flush()
        while not condition():
            assert self.receive(), "the server has closed"

    def answer(self, stream_id: int) -> Answer:
        """The whole answer."""
        answer = self.answers[stream_id]
        self.until(lambda: answer.ended or answer.reset is not None)
        return answer

    def get(self, target: str = "/", method: str = "GET", *extra: tuple[str, str]) -> Answer:
        return self.answer(self.ask(target, method, *extra))

    def rest(self) -> None:
        """Receive until the server closes."""
        try:
            while self.receive():
                pass
        except ConnectionError:
            pass

    def close(self) -> None:
        self.socket.close()
