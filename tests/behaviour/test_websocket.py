"""Watches by WebSocket: each event is a message."""

from __future__ import annotations

import base64
import http.client
import json
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.behaviour.conftest import Api

TEXT, BINARY, CLOSE = 1, 2, 8
HANDSHAKE = {
    "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version": "13", "Origin": "http://localhost",
}  # fmt: skip


class Conversation:
    """One WebSocket, read message by message."""

    def __init__(self, api: Api, path: str, headers: dict[str, str]) -> None:
        self._connection = api.connect(timeout=60)
        self._connection.putrequest("GET", path)
        for name, value in {**api.headers(), **HANDSHAKE, **headers}.items():
            if value:
                self._connection.putheader(name, value)
        self._connection.endheaders()
        socket = self._connection.sock
        assert socket is not None
        self._file = socket.makefile("rb")
        self.status = int(self._file.readline().split()[1])
        self.headers = http.client.parse_headers(self._file)

    def message(self) -> tuple[int, bytes]:
        """Opcode and content of the next frame."""
        opcode, length = struct.unpack(">BB", self._file.read(2))
        if length == 126:
            (length,) = struct.unpack(">H", self._file.read(2))
        elif length == 127:
            (length,) = struct.unpack(">Q", self._file.read(8))
        return opcode & 0x0F, self._file.read(length)

    def close(self) -> None:
        self._file.close()
        self._connection.close()


Converse = Callable[[str, dict[str, str]], Conversation]


@pytest.fixture
def watched(api: Api) -> Iterator[str]:
    """The path of a watch that sees two events and ends after a second."""
    before = api.get(api.path("configmaps")).at("metadata", "resourceVersion")
    api.post(api.path("configmaps"), {"metadata": {"name": "one"}, "data": {"a": "é"}})
    api.delete(api.path("configmaps", "one"))
    query = f"watch=1&resourceVersion={before}&timeoutSeconds=1&fieldSelector=metadata.name%3Done"
    yield f"{api.path('configmaps')}?{query}"


@pytest.fixture
def converse(api: Api) -> Iterator[Converse]:
    """Begins conversations, and ends them with the test."""
    with ExitStack() as stack:

        def begin(path: str, headers: dict[str, str]) -> Conversation:
            conversation = Conversation(api, path, headers)
            stack.callback(conversation.close)
            return conversation

        yield begin


def test_json_events_are_websocket_text_messages(api: Api, watched: str, converse: Converse) -> None:
    conversation = converse(watched, {})
    assert conversation.status == 101
    assert conversation.headers["Sec-WebSocket-Accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    messages = [conversation.message() for _ in range(2)]
    api.elapse(1.1)
    messages.append(conversation.message())
    assert [opcode for opcode, _ in messages] == [TEXT, TEXT, CLOSE]
    assert all(text.endswith(b"}\n") for _, text in messages[:2])
    assert [json.loads(text)["type"] for _, text in messages[:2]] == ["ADDED", "DELETED"]
    assert messages[2][1] == struct.pack(">H", 1000)


def test_protobuf_events_are_binary_messages_without_length_prefix(watched: str, converse: Converse) -> None:
    conversation = converse(watched, {"Accept": "application/vnd.kubernetes.protobuf;stream=watch"})
    opcode, content = conversation.message()
    assert opcode == BINARY
    assert content.startswith(b"\n\x05ADDED\x12")


def test_any_offered_subprotocol_is_accepted(watched: str, converse: Converse) -> None:
    conversation = converse(watched, {"Sec-WebSocket-Protocol": "base64.binary.k8s.io"})
    assert conversation.headers["Sec-WebSocket-Protocol"] == "base64.binary.k8s.io"
    assert conversation.message()[0] == TEXT


def test_bearer_token_in_a_websocket_subprotocol(watched: str, converse: Converse) -> None:
    token = base64.urlsafe_b64encode(b"admin-token").decode().rstrip("=")
    offered = f"base64url.bearer.authorization.k8s.io.{token}, binary.k8s.io"
    conversation = converse(watched, {"Sec-WebSocket-Protocol": offered, "Authorization": ""})
    assert conversation.status == 101
    assert conversation.headers["Sec-WebSocket-Protocol"] == "binary.k8s.io"


def test_websocket_without_origin_returns_403(watched: str, converse: Converse) -> None:
    conversation = converse(watched, {"Origin": ""})
    assert conversation.status == 403


def test_invalid_watch_requests_fail_before_the_websocket_handshake(api: Api, converse: Converse) -> None:
    conversation = converse(f"{api.path('configmaps')}?watch=1&resourceVersion=abc", {})
    assert conversation.status == 500
