"""Parses the bytes of a client into frames, and joins header blocks that are split into several frames.

Invariant: the result depends on the bytes, not on the sizes of the pieces; at most one frame and one header block are buffered.

Specified by: RFC 9113, sections 3.4 and 4; golang.org/x/net/http2 (frame.go: ReadFrame, checkFrameOrder, readMetaFrame).
"""

from __future__ import annotations

from collections.abc import Iterator

from fakekube.net.http2 import frames
from fakekube.net.http2.frames import ConnectionFailure, ErrorCode
from fakekube.net.http2.header_blocks import MAX_LIST_BYTES

MAX_FRAME_BYTES = 256 << 10
"""The largest frame that is accepted (resourceBody99Percentile in secure_serving.go)."""
_MAX_CONTINUATIONS = 10_000
_OF_BLOCKS = frozenset({frames.HEADERS, frames.CONTINUATION})

Frame = tuple[int, int, int, bytes]
"""Type, flags, stream identifier, payload."""


class FrameReader:
    """The reader of one connection."""

    def __init__(self) -> None:
        self.wrong_preface = False
        """Whether the client did not send the preface of HTTP/2."""
        self._buffer = bytearray()
        self._preface_seen = False
        self._block: bytearray | None = None
        self._block_head: Frame = (0, 0, 0, b"")
        self._continuations = 0

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yields complete frames; HEADERS have their whole header blocks and no padding.

        Raises ConnectionFailure for an invalid frame, or one that may not follow the previous one.
        """
        buffer = self._buffer
        buffer += data
        if not self._preface_seen and not self._see_preface():
            return
        start, end = 0, len(buffer)
        try:
            while end - start >= frames.HEADER_BYTES:
                length = buffer[start] << 16 | buffer[start + 1] << 8 | buffer[start + 2]
                if length > MAX_FRAME_BYTES:
                    raise ConnectionFailure(ErrorCode.FRAME_SIZE_ERROR)
                begin = start + frames.HEADER_BYTES
                if end - begin < length:
                    break
                kind, flags = buffer[start + 3], buffer[start + 4]
                stream_id = int.from_bytes(buffer[start + 5 : begin], "big") & frames.LARGEST_WINDOW
                start = begin + length
                payload = bytes(buffer[begin:start])
                if self._block is None and kind not in _OF_BLOCKS:
                    yield kind, flags, stream_id, payload
                elif (whole := self._part_of_block(kind, flags, stream_id, payload)) is not None:
                    yield whole
        finally:
            del buffer[:start]

    def _see_preface(self) -> bool:
        expected, buffer = frames.PREFACE, self._buffer
        if not buffer.startswith(expected[: len(buffer)]):
            self.wrong_preface = True
        elif len(buffer) >= len(expected):
            del buffer[: len(expected)]
            self._preface_seen = True
        return self._preface_seen

    def _part_of_block(self, kind: int, flags: int, stream_id: int, payload: bytes) -> Frame | None:
        """Adds a frame to a header block; returns the HEADERS if it is complete, else None."""
        if self._block is None:
            if kind == frames.CONTINUATION or stream_id == 0:
                raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
            if flags & frames.PADDED:
                payload = frames.remove_padding(payload)
            if flags & frames.END_HEADERS:
                return kind, flags, stream_id, payload
            self._block, self._continuations = bytearray(payload), 0
            self._block_head = (kind, flags, stream_id, b"")
            return None
        if kind != frames.CONTINUATION or stream_id != self._block_head[2]:
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
        self._block += payload
        self._continuations += 1
        if len(self._block) > 2 * MAX_LIST_BYTES or self._continuations > _MAX_CONTINUATIONS:
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
        if not flags & frames.END_HEADERS:
            return None
        block, self._block = bytes(self._block), None
        return *self._block_head[:3], block
