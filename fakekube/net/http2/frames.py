"""The frames of HTTP/2: types, flags, error codes and encoding.

Specified by: RFC 9113, sections 4, 6 and 7.
"""

from __future__ import annotations

import struct
from enum import IntEnum

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""The bytes that a client sends before its first frame."""
HEADER_BYTES = 9
INITIAL_WINDOW = 65535
INITIAL_FRAME_BYTES = 16384
LARGEST_WINDOW = (1 << 31) - 1
MAX_FRAME_BYTES = 256 << 10
"""The largest frame that is accepted (resourceBody99Percentile in secure_serving.go)."""

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
PRIORITY_UPDATE = 16
"""RFC 9218, section 7.1."""

END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITY_FLAG = 0x20

FRAME_HEADER = struct.Struct(">BHBBI")
"""The first bits of the length and the other ones, type, flags, stream identifier."""
_STREAM_AND_VALUE = struct.Struct(">BHBBII")


class ErrorCode(IntEnum):
    """The error codes of RFC 9113, section 7."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


class Setting(IntEnum):
    """The settings of RFC 9113, section 6.5.2, and of RFC 9218 (the last one)."""

    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6
    NO_RFC7540_PRIORITIES = 9


class ConnectionFailure(Exception):
    """An error of the client that ends the connection."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


class StreamFailure(Exception):
    """An error of the client that ends one stream."""

    def __init__(self, stream_id: int, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.stream_id = stream_id
        self.code = code


def frame(kind: int, flags: int, stream_id: int, payload: bytes | memoryview = b"") -> bytes:
    """Encodes a frame."""
    length = len(payload)
    return FRAME_HEADER.pack(length >> 16, length & 0xFFFF, kind, flags, stream_id) + payload


def settings(values: list[tuple[Setting, int]]) -> bytes:
    """Encodes a SETTINGS frame."""
    return frame(SETTINGS, 0, 0, b"".join([struct.pack(">HI", name, value) for name, value in values]))


def rst_stream(stream_id: int, code: int) -> bytes:
    """Encodes a RST_STREAM frame."""
    return _STREAM_AND_VALUE.pack(0, 4, RST_STREAM, 0, stream_id, code)


def window_update(stream_id: int, increment: int) -> bytes:
    """Encodes a WINDOW_UPDATE frame; stream 0 is the connection."""
    return _STREAM_AND_VALUE.pack(0, 4, WINDOW_UPDATE, 0, stream_id, increment)


def goaway(last_stream_id: int, code: int) -> bytes:
    """Encodes a GOAWAY frame."""
    return frame(GOAWAY, 0, 0, struct.pack(">II", last_stream_id, code))


def remove_padding(payload: bytes) -> bytes:
    """Returns a payload without its padding. Raises ConnectionFailure if the padding is longer than the payload."""
    if not payload or payload[0] >= len(payload):
        raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
    return payload[1 : len(payload) - payload[0]]
