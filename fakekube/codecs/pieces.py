"""Large bodies of parts that exist already, joined while they are sent.

Megabytes are not in memory as a whole, and the client reads the first piece while the next one is made. Only what is
sent a second time is likely to be sent again and again: from then on `Items` keep their pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

__all__ = ["PIECE_BYTES", "Items", "Pieces", "enclosed"]

PIECE_BYTES = 64 * 1024
"""How long pieces are, about; what is no longer than one is not worth cutting."""


class Items:
    """Parts with something between them, in pieces. Iterating gives the pieces."""

    __slots__ = ("_between", "_pieces", "_was_sent", "count", "length")

    def __init__(self, parts: Sequence[bytes], between: bytes = b"") -> None:
        self.count = len(parts)
        """How many parts there are."""
        self.length = sum(map(len, parts)) + len(between) * max(0, self.count - 1)
        """How many bytes the pieces have together."""
        self._between = between
        step = max(1, self.count * PIECE_BYTES // max(1, self.length))
        self._pieces: list[bytes | Sequence[bytes]] = [
            parts[start : start + step] for start in range(0, self.count, step)
        ]
        """Joined, or the parts of each."""
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


class Pieces:
    """Items, and what stands around them. Iterating gives the pieces, `len` all bytes."""

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


def enclosed(opening: bytes, items: Items, closing: bytes) -> bytes | Pieces:
    """Items between an opening and a closing; large ones in pieces."""
    pieces = Pieces(opening, items, closing)
    return pieces if len(pieces) > PIECE_BYTES else b"".join(pieces)
