"""SPDY: frames do not depend on where they are cut; what breaks the protocol ends the connection and nothing else."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakekube.net import spdy
from fakekube.net.spdy import DICTIONARY, Data, FrameError, FrameReader, FrameWriter, GoAway, Ping, RstStream, SynReply, SynStream
from tests.unit.net.streaming.peers import SPDYClient, cut, joined

IDS = st.integers(1, 0x7FFFFFFF)
TEXTS = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=12)
HEADERS = st.dictionaries(TEXTS.map(str.lower).filter(lambda name: name not in spdy._INVALID_HEADERS), TEXTS, max_size=4)
FRAMES = st.one_of(
    st.builds(Data, IDS, st.binary(max_size=200), st.booleans()),
    st.builds(SynStream, IDS, HEADERS, st.booleans()),
    st.builds(SynReply, IDS, HEADERS, st.booleans()),
    st.builds(spdy.HeaderBlock, IDS, HEADERS, st.booleans()),
    st.builds(RstStream, IDS, st.integers(1, 11)),
    st.builds(Ping, IDS),
    st.builds(GoAway, IDS, st.integers(0, 2)),
    st.builds(spdy.Unused, st.sampled_from([4, 9])),
)


@settings(max_examples=25, deadline=None)
@given(sent=st.lists(FRAMES, max_size=8), places=st.lists(st.integers(0, 2000), max_size=8))
def test_spdy_frames_are_independent_of_chunk_boundaries(sent: list[spdy.Frame], places: list[int]) -> None:
    writer, reader = FrameWriter(), FrameReader()
    stream = b"".join(writer.encode(frame) for frame in sent)
    found = [frame for piece in cut(stream, places) for frame in reader.feed(piece)]
    assert joined(found) == joined(sent)


def test_compression_dictionary_equals_the_specification() -> None:
    assert len(DICTIONARY) == 1423
    assert zlib.adler32(DICTIONARY) == 0xE3C6A7C2


def control(kind: int, payload: bytes, flags: int = 0) -> bytes:
    return struct.pack(">HHI", 0x8003, kind, flags << 24 | len(payload)) + payload


def compressed(plain: bytes) -> bytes:
    compressor = zlib.compressobj(zdict=DICTIONARY)
    return compressor.compress(plain) + compressor.flush(zlib.Z_SYNC_FLUSH)


def syn_stream(plain: bytes) -> bytes:
    return control(1, struct.pack(">IIBB", 1, 0, 0, 0) + compressed(plain))


def block(*pairs: tuple[bytes, bytes]) -> bytes:
    texts = b"".join(struct.pack(">I", len(text)) + text for pair in pairs for text in pair)
    return struct.pack(">I", len(pairs)) + texts


HOSTILE = {
    "stream zero": struct.pack(">II", 0, 1) + b"x",
    "unknown kind": control(5, b""),
    "too large": struct.pack(">HHI", 0x8003, 1, 0xFFFFFF),
    "no zlib": control(1, struct.pack(">IIBB", 1, 0, 0, 0) + b"no zlib"),
    "bomb": syn_stream(b"\0" * (8 << 20)),
    "too many headers": syn_stream(struct.pack(">I", 1001)),
    "header too short": syn_stream(struct.pack(">II", 1, 100)),
    "duplicate header": syn_stream(block((b"a", b"1"), (b"a", b"2"))),
    "upper case": syn_stream(block((b"A", b"1"))),
    "header of the connection": syn_stream(block((b"transfer-encoding", b"chunked"))),
    "short reset": control(3, b"\0\0"),
    "reset without status": control(3, struct.pack(">II", 1, 0)),
    "ping zero": control(6, bytes(4)),
    "ping with flags": control(6, struct.pack(">I", 1), 1),
    "long goaway": control(7, bytes(12)),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_malformed_frames_raise_frame_error(data: bytes) -> None:
    with pytest.raises(FrameError):
        list(FrameReader().feed(data))


class Events:
    """A handler that writes down what happens; streams with the header `reject` are not accepted."""

    def __init__(self) -> None:
        self.found: list[tuple[str, int, bytes]] = []

    def stream_opened(self, stream: spdy.Stream) -> bool:
        self.found.append(("open", stream.stream_id, b""))
        return "reject" not in stream.headers

    def stream_data(self, stream: spdy.Stream, data: bytes) -> None:
        self.found.append(("data", stream.stream_id, data))

    def stream_finished(self, stream: spdy.Stream, *, reset: bool) -> None:
        self.found.append(("reset" if reset else "end", stream.stream_id, b""))


class Both:
    """A connection, and its client."""

    def __init__(self) -> None:
        self.events = Events()
        self.connection = spdy.Connection(self.events)
        self.client = SPDYClient()

    def sent(self) -> list[spdy.Frame]:
        data, self.connection.outgoing = b"".join(self.connection.outgoing), []
        return self.client.read(data)


@pytest.fixture
def both() -> Both:
    return Both()


def test_stream_open_data_and_finish(both: Both) -> None:
    stream_id, opening = both.client.open(streamtype="stdin")
    both.connection.receive(opening + both.client.data(stream_id, b"in"))
    stream = both.connection.streams[stream_id]
    both.connection.write(stream, b"out")
    both.connection.receive(both.client.data(stream_id, b"", fin=True))
    both.connection.finish(stream)
    both.connection.finish(stream)
    both.connection.write(stream, b"late")
    assert both.events.found == [("open", 1, b""), ("data", 1, b"in"), ("end", 1, b"")]
    assert both.sent() == [SynReply(1, {}), Data(1, b"out", fin=True)]
    assert not both.connection.streams


def test_stream_reset_by_client_and_server(both: Both) -> None:
    (one, first), (two, second) = both.client.open(), both.client.open()
    both.connection.receive(first + second)
    both.connection.reset(both.connection.streams[one])
    both.connection.receive(both.client.encode(RstStream(two, spdy.CANCEL)) + both.client.data(two, b"late"))
    assert both.sent() == [SynReply(1, {}), SynReply(3, {}), RstStream(1, spdy.CANCEL)]
    assert both.events.found[-1] == ("reset", 3, b"")
    assert not both.connection.streams


def test_stream_ids_must_increase(both: Both) -> None:
    (_, first), (_, second) = both.client.open(), both.client.open()
    both.connection.receive(first + second + both.client.encode(SynStream(1, {})) + both.client.encode(SynStream(3, {})))
    assert both.sent()[2:] == [RstStream(1, spdy.PROTOCOL_ERROR), RstStream(3, spdy.PROTOCOL_ERROR)]
    assert not both.connection.closed


def test_rejected_stream_is_reset(both: Both) -> None:
    both.connection.receive(both.client.open(reject="1")[1])
    assert both.sent() == [RstStream(1, spdy.CANCEL)]


def test_client_pings_are_answered(both: Both) -> None:
    both.connection.receive(both.client.encode(Ping(7)) + both.client.encode(Ping(8)))
    assert both.sent() == [Ping(7)]


def test_close_resets_streams_and_sends_goaway(both: Both) -> None:
    (_, first), (_, second) = both.client.open(), both.client.open()
    both.connection.receive(first + second)
    both.connection.close()
    both.connection.close()
    assert both.sent()[2:] == [RstStream(1, spdy.CANCEL), RstStream(3, spdy.CANCEL), GoAway(3)]


@pytest.mark.parametrize("data", [*HOSTILE.values(), FrameWriter().encode(GoAway(0))])
def test_protocol_error_ends_the_connection(both: Both, data: bytes) -> None:
    both.connection.receive(data)
    both.connection.receive(both.client.open()[1])
    assert both.connection.closed
    assert both.events.found == []


def test_goaway_is_answered(both: Both) -> None:
    both.connection.receive(both.client.open()[1] + both.client.encode(GoAway(0)))
    assert both.sent() == [SynReply(1, {}), GoAway(1)]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=40), FRAMES), max_size=10))
def test_arbitrary_client_frames_do_not_raise(sent: list[bytes | spdy.Frame]) -> None:
    both, writer = Both(), FrameWriter()
    for one in sent:
        both.connection.receive(one if isinstance(one, bytes) else writer.encode(one))
