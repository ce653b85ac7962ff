"""The items of CBOR: encodes objects in Kubernetes' profile, and checks that a document is one well-formed item.

`check` runs before any other error is reported, as in the real server's library, and has its messages. When objects are encoded,
all strings become byte strings, []byte fields become byte strings with tag 22 (expected conversion to base64), floats take the
fewest bytes, and integers beyond int64 become floats. The real server shuffles the members of maps deliberately; this encoder
keeps the order of the object.

Specified by: RFC 8949; github.com/fxamacker/cbor/v2 (valid.go) with the limits of Kubernetes' decode mode;
k8s.io/apimachinery/pkg/runtime/serializer/cbor/internal/modes (encode.go).
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from fakekube.apimachinery.codecs import EncodeError
from fakekube.apimachinery.codecs.document import cached_encoder
from fakekube.apimachinery.schema.model import Shape, Type
from fakekube.base.caches import forgettable
from fakekube.base.golang.strconv import MAX_INT64
from fakekube.base.golang.strings import bytes_of

#: Tag 55799 (self-described CBOR), with which every document begins.
SELF_DESCRIBED: Final = b"\xd9\xd9\xf7"

MAXIMUM_DEPTH: Final = 10_000
_MAXIMUM_PAIRS: Final = 2_097_152
_MAXIMUM_ELEMENTS: Final = 2_147_483_647

MAJOR_NAMES: Final = (
    "positive integer", "negative integer", "byte string", "UTF-8 text string",
    "array", "map", "tag", "primitives",
)  # fmt: skip


class CBORError(Exception):
    """A document is malformed, or contains an item that is not accepted. The message is the library's."""


#: The length of the argument in bytes, by the low bits of the first byte.
SIZES: Final = {24: 1, 25: 2, 26: 4, 27: 8}

#: The struct format of floats by their first byte.
FLOATS: Final = {0xF9: ">e", 0xFA: ">f", 0xFB: ">d"}


def head(major: int, argument: int) -> bytes:
    """Encodes the head of an item: its major type (0 to 7) and its argument in the fewest bytes."""
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


# --- Messages ---------------------------------------------------------------------------------------------------------


def not_accepted(kind: str, what: str) -> str:
    """Returns the error for an item of a CBOR type that Kubernetes' profile excludes."""
    return f"cbor: data item of cbor type {kind} is not accepted by protocol: {what}"


def wrong_content(tag: int, first: int) -> str:
    """Returns the error for an item with this first byte as the content of a tag; "" if there is none."""
    major = first >> 5
    if tag == 0 and major != 3:
        expected = "text string"
    elif tag == 1 and major > 1 and not 0xF9 <= first <= 0xFB:
        expected = "integer or floating-point number"
    else:
        return ""
    return f"cbor: tag number {tag} must be followed by {expected}, got {MAJOR_NAMES[major]}"


# --- Well-formedness --------------------------------------------------------------------------------------------------


def skip(body: bytes, at: int) -> int:
    """Returns the end of the item at `at` in a well-formed document."""
    checker = Checker(body)
    checker.at = at
    checker.item()
    return checker.at


def check(body: bytes) -> None:
    """Raises CBORError if the body is not exactly one well-formed item."""
    if not body:
        raise CBORError("EOF")
    checker = Checker(body)
    checker.item()
    if checker.at != len(body):
        extra = len(body) - checker.at
        raise CBORError(f"cbor: {extra} bytes of extraneous data starting at index {checker.at}")


@dataclass(slots=True)
class _Container:
    """An array or map whose elements are being checked."""

    major: int
    depth: int
    left: int
    """The number of remaining parts; for an indefinite length, minus the number of parts so far."""


class Checker:
    """Checks an item without decoding it. Raises CBORError.

    It does not recurse, and limits the nesting depth before any recursive decoder runs.
    """

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.at = 0

    def item(self) -> None:
        """Consumes the item at `at`."""
        pile: list[_Container] = []
        while True:
            begun = self._begin(pile[-1].depth if pile else 0)
            if begun is not None:
                pile.append(begun)
            while pile and self._at_end(pile[-1]):
                pile.pop()
            if not pile:
                return
            pile[-1].left -= 1

    def _begin(self, depth: int) -> _Container | None:
        """Consumes an item's tags and head, and the whole item unless it is a container, which is returned."""
        major, argument = self._head()
        while major == 6:
            if self.at >= len(self._body):
                raise _unexpected_end()
            if argument in (2, 3):
                raise CBORError(not_accepted("tag", "bignum"))
            major, argument = self._head()
            depth = self._deeper(depth) if major == 6 else depth
        if major in (2, 3):
            self._string(major, argument)
        elif major in (4, 5):
            depth = self._deeper(depth)
            return _Container(major, depth, -1 if argument is None else _count_items(major, argument))
        return None

    def _deeper(self, depth: int) -> int:
        if depth >= MAXIMUM_DEPTH:
            raise CBORError(f"cbor: exceeded max nested level {MAXIMUM_DEPTH}")
        return depth + 1

    def _at_end(self, container: _Container) -> bool:
        if container.left >= 0 or not self._take_break():
            return container.left == 0
        if container.major == 5 and container.left % 2 == 0:
            raise CBORError('cbor: unexpected "break" code')
        return True

    def _head(self) -> tuple[int, int | None]:
        """Consumes the head at `at`; returns the major type and the argument (None: indefinite length)."""
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
                raise CBORError('cbor: unexpected "break" code')
            return major, None
        raise CBORError(f"cbor: invalid additional information {low} for type {MAJOR_NAMES[major]}")

    def _primitive(self, low: int, argument: int, at: int) -> None:
        if low == 24:
            if argument < 32:
                raise CBORError(f"cbor: invalid simple value {argument} for type primitives")
            return
        number = struct.unpack_from(FLOATS[0xE0 | low], self._body, at + 1)[0]
        if not math.isfinite(number):
            what = "floating-point NaN" if math.isnan(number) else "floating-point infinity"
            raise CBORError(not_accepted("primitives", what))

    def _string(self, major: int, length: int | None) -> None:
        if length is not None:
            if length > MAX_INT64:
                what = f"{MAJOR_NAMES[major]} length {length} is too large, causing integer overflow"
                raise CBORError(f"cbor: {what}")
            if length > len(self._body) - self.at:
                raise _unexpected_end()
            self.at += length
            return
        while not self._take_break():
            first = self._body[self.at]
            if first >> 5 != major:
                found, name = MAJOR_NAMES[first >> 5], MAJOR_NAMES[major]
                raise CBORError(f"cbor: wrong element type {found} for indefinite-length {name}")
            if first & 31 == 31:
                name = MAJOR_NAMES[major]
                raise CBORError(f"cbor: indefinite-length {name} chunk is not definite-length")
            self._string(*self._head())

    def _take_break(self) -> bool:
        """Consumes the "break" of an item of indefinite length, and reports whether there was one."""
        if self.at >= len(self._body):
            raise _unexpected_end()
        if self._body[self.at] != 0xFF:
            return False
        self.at += 1
        return True


def _count_items(major: int, count: int) -> int:
    """Returns the number of items in a container with `count` elements or pairs."""
    if count > MAX_INT64:
        what = f"{MAJOR_NAMES[major]} length {count} is too large, it would cause integer overflow"
        raise CBORError(f"cbor: {what}")
    if major == 4 and count > _MAXIMUM_ELEMENTS:
        raise CBORError(_too_many("elements", _MAXIMUM_ELEMENTS, "array"))
    if major == 5 and count > _MAXIMUM_PAIRS:
        raise CBORError(_too_many("key-value pairs", _MAXIMUM_PAIRS, "map"))
    return count * (major - 3)


def _too_many(what: str, maximum: int, container: str) -> str:
    return f"cbor: exceeded max number of {what} {maximum} for CBOR {container}"


def _unexpected_end() -> CBORError:
    return CBORError("unexpected EOF")


# --- The encoder, in Kubernetes' profile -----------------------------------------------------------------------------


def encode(value: Any) -> bytes:
    """Encodes a value: plain JSON data, and bytes.

    Raises:
        EncodeError: the value contains NaN, an infinity, or surrogates.
    """
    try:
        return _item(value)
    except (struct.error, OverflowError, UnicodeEncodeError) as error:
        raise EncodeError(f"cbor: {error}") from None


def _item(value: Any) -> bytes:
    return _WRITERS[value.__class__](value)


def _map(value: dict[str, Any]) -> bytes:
    length = len(value)
    members = [_TEXTS[key] + _WRITERS[member.__class__](member) for key, member in value.items()]
    return (_MAP_HEADS[length] if length < 256 else head(5, length)) + b"".join(members)


def _list(value: list[Any]) -> bytes:
    return head(4, len(value)) + b"".join([_ITEM_WRITERS[item.__class__](item) for item in value])


def _integer(value: int) -> bytes:
    if -MAX_INT64 - 1 <= value <= MAX_INT64:
        return head(0, value) if value >= 0 else head(1, -1 - value)
    return _float(float(value))


def _float(number: float) -> bytes:
    if not math.isfinite(number):
        raise EncodeError(f"cbor: unsupported value: {'NaN' if math.isnan(number) else 'Inf'}")
    for first, form in ((b"\xf9", ">e"), (b"\xfa", ">f")):
        try:
            packed = struct.pack(form, number)
        except OverflowError:
            continue
        if struct.unpack(form, packed)[0] == number:
            return first + packed
    return b"\xfb" + struct.pack(">d", number)


class _TextCache(dict[str, bytes]):
    """Caches the items of short texts, since keys and most values occur often."""

    def __missing__(self, text: str) -> bytes:
        data = bytes_of(text)
        made = head(2, len(data)) + data
        if len(made) <= _MAX_CACHED_BYTES:
            if len(self) >= _MAX_CACHED_TEXTS:
                self.clear()
            self[text] = made
        return made


_MAX_CACHED_BYTES: Final = 64
_MAX_CACHED_TEXTS: Final = 16_384
_TEXTS: Final = _TextCache()

_MAP_HEADS: Final = [head(5, length) for length in range(256)]


class _Writers(dict[type, Callable[[Any], bytes]]):
    """The encoders of values by Python type."""

    def __missing__(self, kind: type) -> Callable[[Any], bytes]:
        if issubclass(kind, float):
            return _float
        if issubclass(kind, dict):  # a RawObject, of which no text is told
            return _map
        raise EncodeError(f"cbor: {kind.__name__} has no form")


_WRITERS: Final = _Writers(
    {
        str: _TEXTS.__getitem__,
        dict: _map,
        list: _list,
        int: _integer,
        bool: {True: b"\xf5", False: b"\xf4"}.__getitem__,
        type(None): {None: b"\xf6"}.__getitem__,
        bytes: lambda value: b"\xd6" + head(2, len(value)) + value,
        float: _float,
    }
)
#: The same for the items of lists.
_ITEM_WRITERS: Final = _Writers({**_WRITERS, dict: cached_encoder(_map)})


#: The shapes whose plain values are not what CBOR holds.
_CONVERTED_SHAPES: Final = frozenset({Shape.BYTES, Shape.NUMBER})
_STRICT_SHAPES: Final = frozenset({Shape.BYTES, Shape.QUANTITY})


def is_stricter(type_: Type) -> bool:
    """Reports whether CBOR that does not fit the type may fit it as JSON: []byte takes no strings, a quantity no number."""
    return _contains_shape(type_, _STRICT_SHAPES)


@forgettable
@cache
def _contains_shape(type_: Type, shapes: frozenset[Shape]) -> bool:
    """Reports whether a type contains one of these shapes at any depth."""
    seen = {type_}
    todo = [type_]
    while todo:
        found = todo.pop()
        if found.shape in shapes:
            return True
        new = set(_inner(found)) - seen
        seen |= new
        todo += new
    return False


def _inner(type_: Type) -> list[Type]:
    if type_.shape is Shape.STRUCT:
        return [field.type for field in type_.fields.values()]
    return [inner for inner in (type_.items, type_.alternative) if inner is not None]


def with_bytes(type_: Type, value: Any) -> Any:
    """Returns the value with base64 texts of []byte fields replaced by bytes, and numbers of float fields by floats."""
    if value is None or not _contains_shape(type_, _CONVERTED_SHAPES):
        return value
    shape, items = type_.shape, type_.items
    if shape is Shape.STRUCT:
        fields = type_.fields
        known = ((name, member, fields.get(name)) for name, member in value.items())
        return {name: with_bytes(field.type, member) if field else member for name, member, field in known}
    if shape is Shape.UNION:
        chosen = items if isinstance(value, dict) else type_.alternative
        return value if chosen is None else with_bytes(chosen, value)
    if items is not None:
        if shape is Shape.MAP:
            return {key: with_bytes(items, member) for key, member in value.items()}
        return [with_bytes(items, item) for item in value]
    return base64.b64decode(value) if shape is Shape.BYTES else float(value)
