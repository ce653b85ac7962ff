"""A large body of parts that exist already, joined while it is sent.

Megabytes are never in memory as a whole, and the client reads the first piece while the next one is made.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["PIECE_BYTES", "Pieces"]

PIECE_BYTES = 64 * 1024
"""How long pieces are, about; what is no longer than one is not worth cutting."""


class Pieces:
    """Parts with commas between them, and what stands around them. Iterating gives the pieces, `len` all bytes."""

    __slots__ = ("_closing", "_length", "_opening", "_parts")

    def __init__(self, opening: bytes, parts: list[bytes], closing: bytes) -> None:
        """There is at least one of `parts`."""
        self._opening = opening
        self._parts = parts
        self._closing = closing
        self._length = len(opening) + sum(map(len, parts)) + len(parts) - 1 + len(closing)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[bytes]:
        parts, between = self._parts, self._opening
        step = max(1, len(parts) * PIECE_BYTES // self._length)
        for start in range(0, len(parts), step):
            run = parts[start : start + step]
            run[0] = between + run[0]
            between = b","
            if start + step >= len(parts):
                run[-1] += self._closing
            yield b",".join(run)
