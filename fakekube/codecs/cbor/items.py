"""Items of CBOR: their heads, and whether a document is one well-formed item.

Of bytes that are not well formed nothing can be said, whatever is in them; so `check` comes before any other
error is told. The words are those of the real server's library.

Specified by: RFC 8949; github.com/fxamacker/cbor/v2 (valid.go) with the limits of Kubernetes' decode mode.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Final

__all__ = [
    "FLOATS", "INT64_MAXIMUM", "MAJOR_NAMES", "MAXIMUM_DEPTH", "SELF_DESCRIBED", "SIZES",
    "Checker", "StumbledError", "check", "head", "not_accepted", "skip", "wrong_content",
]

#: Tag 55799, with which every document begins.
SELF_DESCRIBED: Final = b"\xd9\xd9\xf7"

MAXIMUM_DEPTH: Final = 10_000
_MAXIMUM_PAIRS: Final = 2_097_152
_MAXIMUM_ELEMENTS: Final = 2_147_483_647
INT64_MAXIMUM: Final = 2**63 - 1

MAJOR_NAMES: Final = (
    "positive integer", "negative integer", "byte string", "UTF-8 text string",
    "array", "map", "tag", "primitives",
)  # fmt: skip


class StumbledError(Exception):
    """Something that is not accepted; the words are for the error if the document is well formed."""


#: Bytes of the argument by the low bits of the first byte.
SIZES: Final = {24: 1, 25: 2, 26: 4, 27: 8}

#: The form of floats by their first byte.
FLOATS: Final = {0xF9: ">e", 0xFA: ">f", 0xFB: ">d"}


def head(major: int, argument: int) -> bytes:
    """The head of an item: its major type (0 to 7) and its argument in the fewest bytes."""
    first = major << 5
    if argument < 24:
        return bytes((first | argument,))
    if argument < 0x100:
        return bytes((first | 24, argument))
    if argument < 0x10000:
        return struct.pack(">BH", first | 25, argument)
    if argument < 0x100000000:
        return struct.pack(">BI", first | 26, argument)
    return struct.pack(">BQ", first | 27, argument)


# ---------------------------------------------------------------- what is wrong

def not_accepted(kind: str, what: str) -> str:
    return f"cbor: data item of cbor type {kind} is not accepted by protocol: {what}"


def wrong_content(tag: int, first: int) -> str:
    """What is wrong with an item that begins so under a tag; "" if nothing is."""
    major = first >> 5
    if tag == 0 and major != 3:
        expected = "text string"
    elif tag == 1 and major > 1 and not 0xF9 <= first <= 0xFB:
        expected = "integer or floating-point number"
    else:
        return ""
    return f"cbor: tag number {tag} must be followed by {expected}, got {MAJOR_NAMES[major]}"


# ---------------------------------------------------------------- is it well formed?

def skip(body: bytes, at: int) -> int:
    """Where the item at this place ends; the document is well formed."""
    checker = Checker(body)
    checker.at = at
    checker.item()
    return checker.at


def check(body: bytes) -> None:
    """Raises StumbledError if the body is not exactly one well-formed item."""
    if not body:
        raise StumbledError("EOF")
    checker = Checker(body)
    checker.item()
    if checker.at != len(body):
        extra = len(body) - checker.at
        raise StumbledError(f"cbor: {extra} bytes of extraneous data starting at index {checker.at}")


@dataclass(slots=True)
class _Container:
    """An array or map that is being walked over."""

    major: int
    depth: int
    left: int
    """How many parts are still to come; below zero those that have come, if only its end tells."""


class Checker:
    """Walks over an item without making values of it; raises StumbledError with the real server's words.

    Without recursion: what is nested too deep is found out before anybody else walks over it.
    """

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.at = 0

    def item(self) -> None:
        """Pass the item at `at`."""
        pile: list[_Container] = []
        while True:
            begun = self._begin(pile[-1].depth if pile else 0)
            if begun is not None:
                pile.append(begun)
            while pile and self._ended(pile[-1]):
                pile.pop()
            if not pile:
                return
            pile[-1].left -= 1

    def _begin(self, depth: int) -> _Container | None:
        """Pass the head of an item, its tags included, and all of it unless it has parts."""
        major, argument = self._head()
        while major == 6:
            if self.at >= len(self._body):
                raise _unexpected_end()
            if argument in (2, 3):
                raise StumbledError(not_accepted("tag", "bignum"))
            major, argument = self._head()
            depth = self._deeper(depth) if major == 6 else depth
        if major in (2, 3):
            self._string(major, argument)
        elif major in (4, 5):
            depth = self._deeper(depth)
            return _Container(major, depth, -1 if argument is None else _parts(major, argument))
        return None

    def _deeper(self, depth: int) -> int:
        if depth >= MAXIMUM_DEPTH:
            raise StumbledError(f"cbor: exceeded max nested level {MAXIMUM_DEPTH}")
        return depth + 1

    def _ended(self, container: _Container) -> bool:
        if container.left >= 0 or not self._broken():
            return container.left == 0
        if container.major == 5 and container.left % 2 == 0:
            raise StumbledError('cbor: unexpected "break" code')
        return True

    def _head(self) -> tuple[int, int | None]:
        """The major type and the argument (None: indefinite length) of the head at `at`, which is passed."""
        body, at = self._body, self.at
        if at >= len(body):
            raise _unexpected_end()
        major, low = body[at] >> 5, body[at] & 31
        self.at = at + 1
        if low < 24:
            return major, low
        if low < 28:
            end = at + 1 + (1 << (low - 24))
            if end > len(body):
                raise _unexpected_end()
            self.at = end
            argument = int.from_bytes(body[at + 1 : end], "big")
            if major == 7:
                self._primitive(low, argument, at)
            return major, argument
        if low == 31 and major not in (0, 1, 6):
            if major == 7:
                raise StumbledError('cbor: unexpected "break" code')
            return major, None
        raise StumbledError(f"cbor: invalid additional information {low} for type {MAJOR_NAMES[major]}")

    def _primitive(self, low: int, argument: int, at: int) -> None:
        if low == 24:
            if argument < 32:
                raise StumbledError(f"cbor: invalid simple value {argument} for type primitives")
            return
        number = struct.unpack_from(FLOATS[0xE0 | low], self._body, at + 1)[0]
        if not math.isfinite(number):
            what = "floating-point NaN" if math.isnan(number) else "floating-point infinity"
            raise StumbledError(not_accepted("primitives", what))

    def _string(self, major: int, length: int | None) -> None:
        if length is not None:
            if length > INT64_MAXIMUM:
                what = f"{MAJOR_NAMES[major]} length {length} is too large, causing integer overflow"
                raise StumbledError(f"cbor: {what}")
            if length > len(self._body) - self.at:
                raise _unexpected_end()
            self.at += length
            return
        while not self._broken():
            first = self._body[self.at]
            if first >> 5 != major:
                found, name = MAJOR_NAMES[first >> 5], MAJOR_NAMES[major]
                raise StumbledError(f"cbor: wrong element type {found} for indefinite-length {name}")
            if first & 31 == 31:
                name = MAJOR_NAMES[major]
                raise StumbledError(f"cbor: indefinite-length {name} chunk is not definite-length")
            self._string(*self._head())

    def _broken(self) -> bool:
        """Is here the end of an item of indefinite length? Then pass it."""
        if self.at >= len(self._body):
            raise _unexpected_end()
        if self._body[self.at] != 0xFF:
            return False
        self.at += 1
        return True


def _parts(major: int, count: int) -> int:
    """How many parts a container of so many elements or pairs has."""
    if count > INT64_MAXIMUM:
        what = f"{MAJOR_NAMES[major]} length {count} is too large, it would cause integer overflow"
        raise StumbledError(f"cbor: {what}")
    if major == 4 and count > _MAXIMUM_ELEMENTS:
        raise StumbledError(_too_many("elements", _MAXIMUM_ELEMENTS, "array"))
    if major == 5 and count > _MAXIMUM_PAIRS:
        raise StumbledError(_too_many("key-value pairs", _MAXIMUM_PAIRS, "map"))
    return count * (major - 3)


def _too_many(what: str, maximum: int, container: str) -> str:
    return f"cbor: exceeded max number of {what} {maximum} for CBOR {container}"


def _unexpected_end() -> StumbledError:
    return StumbledError("unexpected EOF")
