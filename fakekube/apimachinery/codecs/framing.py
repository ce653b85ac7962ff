"""Frames the events of a watch stream.

A frame contains one event: JSON appends a newline; Protobuf prepends the length as four bytes, most significant
first; the items of a CBOR sequence (RFC 8742) delimit themselves. Watches do not support YAML, whose documents
begin with `---`.

Specified by: the framers of k8s.io/apimachinery/pkg/runtime/serializer/{json,protobuf,cbor}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final


def json_frame(event: bytes) -> bytes:
    """Frames an event as a line."""
    return event + b"\n"


def yaml_frame(document: bytes) -> bytes:
    """Frames a document, which ends with a newline, for a stream of documents."""
    return b"---\n" + document


def protobuf_frame(event: bytes) -> bytes:
    """Prepends the length of an event."""
    return len(event).to_bytes(4, "big") + event


def cbor_frame(event: bytes) -> bytes:
    """Returns the event unchanged: items of a sequence delimit themselves."""
    return event


#: The framers by the name of the format (`MediaType.format`).
FRAMES: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "json": json_frame,
    "yaml": yaml_frame,
    "protobuf": protobuf_frame,
    "cbor": cbor_frame,
}


# Joins the parts of large response bodies while they are sent.
#
# A large body is never in memory as a whole, and the client receives the first piece while the next one is joined.
# `Items` cache their pieces when they are sent for the second time, since they are then likely to be sent again.


CHUNK_BYTES = 64 * 1024
"""The approximate length of a piece in bytes; shorter bodies are not split."""


class Items:
    """Parts with a separator. Iteration yields pieces of about CHUNK_BYTES bytes."""

    __slots__ = ("_between", "_pieces", "_was_sent", "count", "length")

    def __init__(self, parts: Sequence[bytes], between: bytes = b"") -> None:
        self.count = len(parts)
        """The number of parts."""
        self.length = sum(map(len, parts)) + len(between) * max(0, self.count - 1)
        """The total number of bytes."""
        self._between = between
        step = max(1, self.count * CHUNK_BYTES // max(1, self.length))
        self._pieces: list[bytes | Sequence[bytes]] = [parts[start : start + step] for start in range(0, self.count, step)]
        """The pieces, each joined or still a sequence of parts."""
        self._was_sent = False

    def __iter__(self) -> Iterator[bytes]:
        keeps, self._was_sent = self._was_sent, True
        pieces, last = self._pieces, len(self._pieces) - 1
        for place, piece in enumerate(pieces):
            if isinstance(piece, bytes):
                yield piece
                continue
            joined = self._between.join(piece if place == last else [*piece, b""])
            if keeps:
                pieces[place] = joined
            yield joined


class Chunks:
    """Items between an opening and a closing. Iteration yields pieces, `len` is the total number of bytes."""

    __slots__ = ("_closing", "_items", "_length", "_opening")

    def __init__(self, opening: bytes, items: Items, closing: bytes) -> None:
        self._opening = opening
        self._items = items
        self._closing = closing
        self._length = len(opening) + items.length + len(closing)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[bytes]:
        piece = self._opening
        for following in self._items:
            yield piece
            piece = following
        yield piece + self._closing


def enclose(opening: bytes, items: Items, closing: bytes) -> bytes | Chunks:
    """Returns items between an opening and a closing: joined bytes, or Chunks for large bodies."""
    pieces = Chunks(opening, items, closing)
    return pieces if len(pieces) > CHUNK_BYTES else b"".join(pieces)
