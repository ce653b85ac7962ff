"""CBOR as Kubernetes profiles it.

Writing: all strings are byte strings, []byte fields are byte strings under tag 22 (the client shall think
of base64), floats take the fewest bytes, the document begins with the tag that says "CBOR". The real server
shuffles the members of maps on purpose; here they stand in the order of the object.

Reading: a quick reader takes what nobody could object to. If it stumbles, `_check` tells whether the bytes
are well formed (else nothing can be said of them), and the error found is of the content. What a byte
string means depends on the tags around it; times under tags become text; integers beyond int64, NaN,
infinities, undefined, other simple values, bignums and members given twice are refused.

Specified by: k8s.io/apimachinery/pkg/runtime/serializer/cbor (internal/modes), github.com/fxamacker/cbor/v2.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from fakekube.codecs.errors import ContentError, DecodeError, EncodeError
from fakekube.codecs.json import utf8
from fakekube.errors.field import go_quote
from fakekube.schema.model import Shape

if TYPE_CHECKING:
    from fakekube.schema.model import Type

__all__ = ["SELF_DESCRIBED", "dumps", "head", "joined", "loads", "part"]

#: Tag 55799, with which every document begins.
SELF_DESCRIBED: Final = b"\xd9\xd9\xf7"

_MAXIMUM_DEPTH: Final = 10_000
_MAXIMUM_PAIRS: Final = 2_097_152
_MAXIMUM_ELEMENTS: Final = 2_147_483_647
_INT64_MAXIMUM: Final = 2**63 - 1

# ---------------------------------------------------------------- writing

_pack = struct.pack


def head(major: int, argument: int) -> bytes:
    """The head of an item: its major type (0 to 7) and its argument in the fewest bytes."""
    first = major << 5
    if argument < 24:
        return bytes((first | argument,))
    if argument < 0x100:
        return bytes((first | 24, argument))
    if argument < 0x10000:
        return _pack(">BH", first | 25, argument)
    if argument < 0x100000000:
        return _pack(">BI", first | 26, argument)
    return _pack(">BQ", first | 27, argument)


_STRING_HEADS: Final = [head(2, length) for length in range(256)]
_keys: dict[str, bytes] = {}
_KEYS_KEPT: Final = 20_000


def dumps(value: Any, type: Type | None = None) -> bytes:
    """One document.

    Args:
        value: plain JSON data.
        type: of a built-in object, so that []byte fields are written as bytes.

    Raises:
        EncodeError: an integer beyond 64 bits, NaN, an infinity, or nesting too deep.
    """
    return SELF_DESCRIBED + part(value, type)


def part(value: Any, type: Type | None = None) -> bytes:
    """The same without the tag in front: what stands in a list."""
    if type is not None and _has_bytes(type):
        value = _with_bytes(type, value)
    chunks: list[bytes] = []
    try:
        _write(value, chunks.append)
    except (struct.error, RecursionError, OverflowError) as error:
        raise EncodeError(f"cbor: {error}") from None
    return b"".join(chunks)


def joined(container: bytes, members: bytes, count: int) -> bytes:
    """A map with further members in front: their bytes, and how many they are."""
    low = container[0] & 31
    size = _SIZES.get(low, 0)
    number = low if not size else int.from_bytes(container[1 : 1 + size], "big")
    return head(5, number + count) + members + container[1 + size :]


def _write(value: Any, write: Callable[[bytes], None]) -> None:
    kind = value.__class__
    if kind is str:
        data = value.encode()
        length = len(data)
        write(_STRING_HEADS[length] if length < 256 else head(2, length))
        write(data)
    elif kind is dict:
        write(head(5, len(value)))
        for key, member in value.items():
            write(_keys.get(key) or _key(key))
            _write(member, write)
    elif kind is list:
        write(head(4, len(value)))
        for item in value:
            _write(item, write)
    elif kind is int:
        write(head(0, value) if value >= 0 else head(1, -1 - value))
    elif kind is bool:
        write(b"\xf5" if value else b"\xf4")
    elif value is None:
        write(b"\xf6")
    elif kind is bytes:
        write(b"\xd6" + head(2, len(value)) + value)
    elif isinstance(value, float):
        write(_float(value))
    else:
        raise EncodeError(f"cbor: {kind.__name__} has no form")


def _key(key: str) -> bytes:
    data = key.encode()
    encoded = head(2, len(data)) + data
    if len(_keys) < _KEYS_KEPT:
        _keys[key] = encoded
    return encoded


def _float(number: float) -> bytes:
    if not math.isfinite(number):
        raise EncodeError(f"cbor: unsupported value: {'NaN' if math.isnan(number) else 'Inf'}")
    for first, form in ((b"\xf9", ">e"), (b"\xfa", ">f")):
        try:
            packed = _pack(form, number)
        except OverflowError:
            continue
        if struct.unpack(form, packed)[0] == number:
            return first + packed
    return b"\xfb" + _pack(">d", number)


_bytes_within: dict[Type, bool] = {}


def _has_bytes(type: Type) -> bool:
    """Is there a []byte or a float somewhere in this type?"""
    known = _bytes_within.get(type)
    if known is None:
        _bytes_within[type] = False  # for types within themselves
        known = type.shape in _CHANGED or any(_has_bytes(inner) for inner in _inner(type))
        _bytes_within[type] = known
    return known


_CHANGED: Final = (Shape.BYTES, Shape.NUMBER)


def _inner(type: Type) -> list[Type]:
    if type.shape is Shape.STRUCT:
        return [field.type for field in type.fields.values()]
    return [type.items] if type.items is not None else []


def _with_bytes(type: Type, value: Any) -> Any:
    """The value with bytes in the place of base64, and floats where there must be floats."""
    if value is None or not _has_bytes(type):
        return value
    shape = type.shape
    if shape is Shape.STRUCT:
        fields = type.fields
        known = ((name, member, fields.get(name)) for name, member in value.items())
        return {name: _with_bytes(field.type, member) if field else member for name, member, field in known}
    if type.items is not None:
        items = type.items
        if shape is Shape.MAP:
            return {key: _with_bytes(items, member) for key, member in value.items()}
        return [_with_bytes(items, item) for item in value]
    return base64.b64decode(value) if shape is Shape.BYTES else float(value)


# ---------------------------------------------------------------- reading

def loads(body: bytes) -> Any:
    """Read one document.

    Raises:
        ContentError: well formed, but with something in it that is not accepted; its kind, if it tells one.
        DecodeError: not well formed, or no object.
    """
    try:
        return _quick(body)
    except (_StumbledError, LookupError, ValueError, TypeError, struct.error, RecursionError):
        pass
    try:
        _check(body)
        return _Reader(body).document()
    except RecursionError:
        raise DecodeError(f"{_UNKNOWN_KIND}cbor: exceeded max nested level {_MAXIMUM_DEPTH}") from None


_UNKNOWN_KIND: Final = "unable to determine group/version/kind: "
_MAJOR_NAMES: Final = (
    "positive integer", "negative integer", "byte string", "UTF-8 text string",
    "array", "map", "tag", "primitives",
)  # fmt: skip


class _StumbledError(Exception):
    """Something that is not accepted; the words are for the error if the document is well formed."""


def _quick(body: bytes) -> Any:
    """Read a document of the usual items. Raises anything if it is not one of these."""
    at = 3 if body.startswith(SELF_DESCRIBED) else 0

    def read() -> Any:
        nonlocal at
        first = body[at]
        at += 1
        argument = first & 31
        if argument > 23 and first < 0xE0:
            size = _SIZES[argument]
            argument = int.from_bytes(body[at : at + size], "big")
            at += size
        major = first >> 5
        if major in (2, 3):
            begin = at
            at += argument
            return body[begin:at].decode()
        if major == 5:
            members = {}
            for _ in range(argument):
                first = body[at]
                if 0x40 < first < 0x58:  # a short byte string, the usual key
                    begin = at + 1
                    at = begin + (first & 31)
                    key = body[begin:at].decode()
                else:
                    key = read()
                    if key.__class__ is not str:
                        raise _StumbledError
                first = body[at]
                if 0x40 <= first < 0x58:  # and the usual value
                    begin = at + 1
                    at = begin + (first & 31)
                    members[key] = body[begin:at].decode()
                else:
                    members[key] = read()
            if len(members) != argument:
                raise _StumbledError
            return members
        if major == 4:
            return [read() for _ in range(argument)]
        if first == 0xF5:
            return True
        if first == 0xF4:
            return False
        if argument > _INT64_MAXIMUM:
            raise _StumbledError
        if major == 0:
            return argument
        if major == 1:
            return -1 - argument
        value, at = _Reader(body).value(at - 1)
        return value

    value = read()
    if at != len(body) or not (value is None or value.__class__ is dict):
        raise _StumbledError
    return value


_SIZES: Final = {24: 1, 25: 2, 26: 4, 27: 8}


class _Reader:
    """Reads any value: `at` is where an item begins, the second result where it ends."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._later: list[int] = []
        """The tags 21 to 23 around what is being read: how byte strings shall be written as text."""

    def document(self) -> Any:
        """Read what `_check` has found well formed, and raise what is wrong with it."""
        at = 0
        while self._body[at : at + 3] == SELF_DESCRIBED:
            at += 3
        major = self._body[at] >> 5
        kind = api_version = ""
        if major == 5:
            api_version, kind = self._type_meta(at)
        elif self._body[at] not in (0xF6, 0xF7):
            note = " (cannot decode CBOR array to struct without toarray option)" if major == 4 else ""
            what = f"{_MAJOR_NAMES[major]} into Go value of type v1.TypeMeta{note}"
            raise DecodeError(f"{_UNKNOWN_KIND}cbor: cannot unmarshal {what}")
        try:
            return self.value(at)[0]
        except _StumbledError as problem:
            raise ContentError(str(problem), api_version, kind) from None

    def _type_meta(self, at: int) -> tuple[str, str]:
        """The apiVersion and kind of the map at this place, whatever else is wrong with it."""
        found = {"apiVersion": "", "kind": ""}
        count, at = self._argument(at)
        while count and self._body[at] != 0xFF:
            name_at, at = at, _skip(self._body, at)
            value_at, at = at, _skip(self._body, at)
            count -= 1
            name = self._name(name_at)
            if name in found:
                try:
                    value = self.value(value_at)[0]
                except _StumbledError as problem:
                    raise DecodeError(f"{_UNKNOWN_KIND}{problem}") from None
                if value is not None and not isinstance(value, str):
                    what = f"{self._major(value_at)} into Go struct field v1.TypeMeta.{name} of type string"
                    raise DecodeError(f"{_UNKNOWN_KIND}cbor: cannot unmarshal {what}")
                found[name] = value or ""
        return found["apiVersion"], found["kind"]

    def _major(self, at: int) -> str:
        return _MAJOR_NAMES[self._body[at] >> 5]

    def _name(self, at: int) -> str:
        try:
            name = self.value(at)[0]
        except _StumbledError:
            return ""
        return name if isinstance(name, str) else ""

    def _argument(self, at: int) -> tuple[int, int]:
        """The argument of the head at this place (-1: indefinite length), and where the head ends."""
        low = self._body[at] & 31
        if low < 24:
            return low, at + 1
        if low == 31:
            return -1, at + 1
        size = 1 << (low - 24)
        end = at + 1 + size
        if size > 8 or end > len(self._body):
            raise _StumbledError
        return int.from_bytes(self._body[at + 1 : end], "big"), end

    def value(self, at: int) -> tuple[Any, int]:
        """The item at this place."""
        return _READERS[self._body[at] >> 5](self, at)

    def _positive(self, at: int) -> tuple[int, int]:
        number, at = self._argument(at)
        if number > _INT64_MAXIMUM:
            raise _StumbledError(_overflow(0, number))
        return number, at

    def _negative(self, at: int) -> tuple[int, int]:
        number, at = self._argument(at)
        if number > _INT64_MAXIMUM:
            raise _StumbledError(_overflow(1, -1 - number))
        return -1 - number, at

    def _chunks(self, at: int) -> tuple[bytes, int]:
        """The bytes of a string."""
        length, at = self._argument(at)
        if length >= 0:
            end = at + length
            if end > len(self._body):
                raise _StumbledError
            return self._body[at:end], end
        chunks = []
        while self._body[at] != 0xFF:
            chunk, at = self._chunks(at)
            chunks.append(chunk)
        return b"".join(chunks), at + 1

    def _octets(self, at: int) -> tuple[str, int]:
        data, at = self._chunks(at)
        if self._later:
            return _LATER[self._later[-1]](data), at
        return utf8(data), at

    def _text(self, at: int) -> tuple[str, int]:
        data, end = self._chunks(at)
        try:
            return data.decode(), end
        except UnicodeDecodeError:
            raise _StumbledError("cbor: invalid UTF-8 string") from None

    def _array(self, at: int) -> tuple[list[Any], int]:
        count, at = self._argument(at)
        items: list[Any] = []
        read, body = self.value, self._body
        while count:
            if count < 0 and body[at] == 0xFF:
                return items, at + 1
            item, at = read(at)
            items.append(item)
            count -= 1
        return items, at

    def _map(self, at: int) -> tuple[dict[str, Any], int]:
        count, at = self._argument(at)
        members: dict[str, Any] = {}
        body, read = self._body, self.value
        while count:
            if count < 0 and body[at] == 0xFF:
                return members, at + 1
            key, at = self._map_key(at)
            if key in members:
                where = f"{go_quote(key)} at map element index {len(members)}"
                raise _StumbledError(f"cbor: found duplicate map key {where}")
            members[key], at = read(at)
            count -= 1
        return members, at

    def _map_key(self, at: int) -> tuple[str, int]:
        key, end = self.value(at)
        if not isinstance(key, str):
            what = f"{self._major(at)} into Go value of type string"
            raise _StumbledError(f"cbor: cannot unmarshal {what}")
        return key, end

    def _tag(self, at: int) -> tuple[Any, int]:
        number, content = self._argument(at)
        if number in (0, 1):
            return self._time(number, content)
        if number in (2, 3):
            raise _StumbledError(_not_accepted("tag", "bignum"))
        if number in _LATER:
            self._later.append(number)
            try:
                return self.value(content)
            finally:
                self._later.pop()
        return self.value(content)

    def _time(self, number: int, at: int) -> tuple[str, int]:
        major = self._body[at] >> 5
        if number == 0 and major != 3:
            raise _StumbledError(_wrong_content(0, "text string", major))
        if number == 1 and major > 1 and not 0xF9 <= self._body[at] <= 0xFB:
            raise _StumbledError(_wrong_content(1, "integer or floating-point number", major))
        value, end = self.value(at)
        if number == 0:
            return value, end
        try:
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=value)
        except OverflowError:
            raise _StumbledError(
                "cbor: decoded time cannot be represented in RFC3339 format with sub-second precision: "
                "Time.MarshalText: year outside of range [0,9999]"
            ) from None
        fraction = f".{moment.microsecond:06d}".rstrip("0") if moment.microsecond else ""
        return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z", end

    def _primitive(self, at: int) -> tuple[Any, int]:
        first = self._body[at]
        if 0xF4 <= first <= 0xF6:
            return (False, True, None)[first - 0xF4], at + 1
        form = _FLOATS.get(first)
        if form is None:
            number, _ = self._argument(at)
            what = f"simple value {number} is not recognized"
            raise _StumbledError(_not_accepted("primitives", what))
        number = struct.unpack_from(form, self._body, at + 1)[0]
        if not math.isfinite(number):
            raise _StumbledError
        return number, at + 1 + struct.calcsize(form)


_READERS: Final = (
    _Reader._positive, _Reader._negative, _Reader._octets, _Reader._text,
    _Reader._array, _Reader._map, _Reader._tag, _Reader._primitive,
)  # fmt: skip
_FLOATS: Final = {0xF9: ">e", 0xFA: ">f", 0xFB: ">d"}
_LATER: Final[dict[int, Callable[[bytes], str]]] = {
    21: lambda data: base64.urlsafe_b64encode(data).rstrip(b"=").decode(),
    22: lambda data: base64.b64encode(data).decode(),
    23: bytes.hex,
}


def _overflow(major: int, number: int) -> str:
    what = f"{_MAJOR_NAMES[major]} into Go value of type int64"
    return f"cbor: cannot unmarshal {what} ({number} overflows Go's int64)"


def _not_accepted(kind: str, what: str) -> str:
    return f"cbor: data item of cbor type {kind} is not accepted by protocol: {what}"


def _wrong_content(tag: int, expected: str, major: int) -> str:
    return f"cbor: tag number {tag} must be followed by {expected}, got {_MAJOR_NAMES[major]}"


def _skip(body: bytes, at: int) -> int:
    """Where the item at this place ends; the document is well formed."""
    checker = _Checker(body)
    checker.at = at
    checker.item(0)
    return checker.at


# ---------------------------------------------------------------- is it well formed?

def _check(body: bytes) -> None:
    """Raises DecodeError if the body is not exactly one well-formed item."""
    if not body:
        raise DecodeError(f"{_UNKNOWN_KIND}EOF")
    checker = _Checker(body)
    try:
        checker.item(0)
        if checker.at != len(body):
            extra = len(body) - checker.at
            raise _StumbledError(f"cbor: {extra} bytes of extraneous data starting at index {checker.at}")
    except _StumbledError as problem:
        raise DecodeError(f"{_UNKNOWN_KIND}{problem}") from None


class _Checker:
    """Walks over an item without making values of it; raises _StumbledError with the real server's words."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.at = 0

    def item(self, depth: int) -> None:
        """Pass the item at `at`."""
        major, argument = self._head()
        if major in (2, 3):
            self._string(major, argument)
        elif major in (4, 5):
            if depth >= _MAXIMUM_DEPTH:
                raise _StumbledError(f"cbor: exceeded max nested level {_MAXIMUM_DEPTH}")
            self._container(major, argument, depth + 1)
        elif major == 6:
            if self.at >= len(self._body):
                raise _unexpected_end()
            if argument in (2, 3):
                raise _StumbledError(_not_accepted("tag", "bignum"))
            self.item(depth + (self._body[self.at] >> 5 == 6))

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
                raise _StumbledError('cbor: unexpected "break" code')
            return major, None
        raise _StumbledError(f"cbor: invalid additional information {low} for type {_MAJOR_NAMES[major]}")

    def _primitive(self, low: int, argument: int, at: int) -> None:
        if low == 24:
            if argument < 32:
                raise _StumbledError(f"cbor: invalid simple value {argument} for type primitives")
            return
        number = struct.unpack_from(_FLOATS[0xE0 | low], self._body, at + 1)[0]
        if not math.isfinite(number):
            what = "floating-point NaN" if math.isnan(number) else "floating-point infinity"
            raise _StumbledError(_not_accepted("primitives", what))

    def _string(self, major: int, length: int | None) -> None:
        if length is not None:
            if length > _INT64_MAXIMUM:
                what = f"{_MAJOR_NAMES[major]} length {length} is too large, causing integer overflow"
                raise _StumbledError(f"cbor: {what}")
            if length > len(self._body) - self.at:
                raise _unexpected_end()
            self.at += length
            return
        while not self._broken():
            first = self._body[self.at]
            if first >> 5 != major:
                found, name = _MAJOR_NAMES[first >> 5], _MAJOR_NAMES[major]
                raise _StumbledError(f"cbor: wrong element type {found} for indefinite-length {name}")
            if first & 31 == 31:
                name = _MAJOR_NAMES[major]
                raise _StumbledError(f"cbor: indefinite-length {name} chunk is not definite-length")
            self._string(*self._head())

    def _container(self, major: int, count: int | None, depth: int) -> None:
        if count is None:
            number = 0
            while not self._broken():
                self.item(depth)
                number += 1
            if major == 5 and number % 2:
                raise _StumbledError('cbor: unexpected "break" code')
            return
        if count > _INT64_MAXIMUM:
            what = f"{_MAJOR_NAMES[major]} length {count} is too large, it would cause integer overflow"
            raise _StumbledError(f"cbor: {what}")
        if major == 4 and count > _MAXIMUM_ELEMENTS:
            raise _StumbledError(_too_many("elements", _MAXIMUM_ELEMENTS, "array"))
        if major == 5 and count > _MAXIMUM_PAIRS:
            raise _StumbledError(_too_many("key-value pairs", _MAXIMUM_PAIRS, "map"))
        for _ in range(count * (major - 3)):
            self.item(depth)

    def _broken(self) -> bool:
        """Is here the end of an item of indefinite length? Then pass it."""
        if self.at >= len(self._body):
            raise _unexpected_end()
        if self._body[self.at] != 0xFF:
            return False
        self.at += 1
        return True


def _too_many(what: str, maximum: int, container: str) -> str:
    return f"cbor: exceeded max number of {what} {maximum} for CBOR {container}"


def _unexpected_end() -> _StumbledError:
    return _StumbledError("unexpected EOF")
