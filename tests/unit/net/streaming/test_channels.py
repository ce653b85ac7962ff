"""Messages of WebSocket channels, wherever the network cuts them."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakekube.net import websocket
from fakekube.net.streaming.channels import ChannelConnection, UnsupportedProtocolError, handshake
from tests.unit.net.streaming.peers import BINARY, CLOSE, CONTINUATION, PING, TEXT, cut, masked, messages

ASKED = {
    "upgrade": "websocket",
    "connection": "Upgrade",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-version": "13",
}


class Heard:
    """What a connection has received."""

    def __init__(self, protocol: str = "v5.channel.k8s.io") -> None:
        self.data: list[tuple[int, bytes]] = []
        self.closed: list[int] = []
        self.connection = ChannelConnection(
            protocol, 5, lambda channel, data: self.data.append((channel, data)), self.closed.append
        )


@settings(max_examples=50, deadline=None)
@given(
    sent=st.lists(st.tuples(st.integers(0, 4), st.binary(max_size=300)), max_size=6),
    places=st.lists(st.integers(0, 3000), max_size=8),
    is_base64=st.booleans(),
)
def test_channel_messages_are_independent_of_chunk_boundaries(
    sent: list[tuple[int, bytes]], places: list[int], is_base64: bool
) -> None:
    heard = Heard("v4.base64.channel.k8s.io" if is_base64 else "v4.channel.k8s.io")
    if is_base64:
        stream = b"".join(masked(TEXT, b"%d" % channel + base64.b64encode(data)) for channel, data in sent)
    else:
        stream = b"".join(masked(BINARY, bytes([channel]) + data) for channel, data in sent)
    for piece in cut(stream, places):
        assert heard.connection.feed(piece) == b""
    assert heard.data == sent
    assert not heard.connection.closed


def test_close_message_is_supported_since_v5() -> None:
    heard = Heard()
    heard.connection.feed(masked(BINARY, b"\xff\x00"))
    assert heard.closed == [0]
    older = Heard("v4.channel.k8s.io")
    older.connection.feed(masked(BINARY, b"\xff\x00"))
    assert (older.closed, older.data, older.connection.closed) == ([], [], False)


@pytest.mark.parametrize("message", [b"\xff", b"\xff\x00\x00", b"\xff\x05"])
def test_malformed_close_message_ends_the_connection(message: bytes) -> None:
    heard = Heard()
    heard.connection.feed(masked(BINARY, message) + masked(BINARY, b"\x00late"))
    assert heard.connection.closed
    assert heard.data == heard.closed == []


def test_messages_for_unknown_channels_are_dropped() -> None:
    heard = Heard()
    heard.connection.feed(masked(BINARY, b"") + masked(BINARY, b"\x09x") + masked(BINARY, b"\x00y"))
    assert heard.data == [(0, b"y")]
    encoded = Heard("base64.channel.k8s.io")
    encoded.connection.feed(masked(TEXT, b"0%%%") + masked(TEXT, b"/aGk=") + masked(TEXT, b"0aG\nk="))
    assert encoded.data == [(0, b"hi")]


def test_every_data_frame_is_a_message_regardless_of_opcode() -> None:
    heard = Heard()
    heard.connection.feed(masked(BINARY, b"\x00a", final=False) + masked(CONTINUATION, b"\x01b") + masked(0x3, b"\x00c"))
    assert heard.data == [(0, b"a"), (1, b"b"), (0, b"c")]


def test_pings_are_answered_and_an_unmasked_frame_ends_the_connection() -> None:
    heard = Heard()
    assert messages(heard.connection.feed(masked(PING, b"p"))) == [(0xA, b"p")]
    assert messages(heard.connection.feed(b"\x82\x01\x00")) == [(CLOSE, b"\x03\xea")]
    assert heard.connection.closed


def test_oversized_frame_ends_the_connection() -> None:
    heard = Heard()
    heard.connection.feed(bytes([0x82, 0xFF]) + (33 << 20).to_bytes(8, "big") + bytes(4))
    assert heard.connection.closed


@settings(max_examples=80, deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=10))
def test_arbitrary_client_input_does_not_raise(pieces: list[bytes]) -> None:
    heard = Heard()
    for piece in pieces:
        heard.connection.feed(piece)


def test_encoding_of_messages_to_the_client() -> None:
    assert messages(Heard().connection.message(1, b"hi")) == [(BINARY, b"\x01hi")]
    assert messages(Heard("v4.base64.channel.k8s.io").connection.message(3, b"hi")) == [(TEXT, b"3aGk=")]


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [("v4.channel.k8s.io", "v4.channel.k8s.io"), ("foo, v4.channel.k8s.io", "v4.channel.k8s.io"), (None, ""), ("v3", None)],
)
def test_the_first_supported_subprotocol_is_chosen(offered: str | None, chosen: str | None) -> None:
    headers = ASKED | ({"sec-websocket-protocol": offered} if offered is not None else {})
    supported = ("", "v4.channel.k8s.io")
    if chosen is None:
        with pytest.raises(UnsupportedProtocolError):
            handshake("GET", headers, supported)
        return
    protocol, answer = handshake("GET", headers, supported)
    assert protocol == chosen
    assert answer[-1] == ("Sec-WebSocket-Protocol", chosen)


def test_invalid_handshake_is_rejected() -> None:
    with pytest.raises(websocket.Refused, match="405"):
        handshake("POST", ASKED, ("",))
    with pytest.raises(websocket.Refused, match="400"):
        handshake("GET", ASKED | {"sec-websocket-version": "8"}, ("",))
