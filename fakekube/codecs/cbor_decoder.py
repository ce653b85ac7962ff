"""Reads CBOR as Kubernetes profiles it.

A quick reader takes what nobody could object to. Where it stumbles, `Reader` reads again: it takes the rest
of what is accepted (tags, items of indefinite length, floats), or knows what is wrong. What a byte string
means depends on the tags around it; times under tags become text; integers beyond int64, NaN, infinities,
undefined, other simple values, bignums and members given twice are refused.

Specified by: k8s.io/apimachinery/pkg/runtime/serializer/cbor/internal/modes (decode.go),
github.com/fxamacker/cbor/v2 (decode.go).
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fakekube.codecs.cbor_items import (
    FLOATS,
    INT64_MAXIMUM,
    MAJOR_NAMES,
    SELF_DESCRIBED,
    SIZES,
    UNKNOWN_KIND,
    StumbledError,
    not_accepted,
    overflow,
    skip,
    wrong_content,
)  # fmt: skip
from fakekube.codecs.errors import ContentError, DecodeError
from fakekube.errors.field import go_quote
from fakekube.schema.strings import text_of

__all__ = ["Reader", "duplicate", "quick"]


def quick(body: bytes) -> Any:
    """Read a document of the usual items. Raises anything if it is not one of these."""
    at = 3 if body.startswith(SELF_DESCRIBED) else 0

    def read() -> Any:
        nonlocal at
        first = body[at]
        at += 1
        argument = first & 31
        if argument > 23 and first < 0xE0:
            size = SIZES[argument]
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
                elif first >> 5 in (2, 3):
                    key = read()
                else:
                    raise StumbledError
                first = body[at]
                if 0x40 <= first < 0x58:  # and the usual value
                    begin = at + 1
                    at = begin + (first & 31)
                    members[key] = body[begin:at].decode()
                else:
                    members[key] = read()
            if len(members) != argument:
                raise StumbledError
            return members
        if major == 4:
            return [read() for _ in range(argument)]
        if first == 0xF5:
            return True
        if first == 0xF4:
            return False
        if argument > INT64_MAXIMUM or (major == 6 and first & 31 > 23):
            raise StumbledError
        if major == 0:
            return argument
        if major == 1:
            return -1 - argument
        value, at = Reader(body).value(at - 1)
        return value

    value = read()
    if at != len(body) or not (value is None or value.__class__ is dict):
        raise StumbledError
    if value and not value.get("apiVersion", "").__class__ is value.get("kind", "").__class__ is str:
        raise StumbledError
    return value


class Reader:
    """Reads any value: `at` is where an item begins, the second result where it ends.

    `leniently`: what is not accepted is null; a key that is none is empty.
    """

    def __init__(self, body: bytes, *, leniently: bool = False) -> None:
        self._body = body
        self._leniently = leniently
        self._later: list[int] = []
        """The tags 21 to 23 around what is being read: how byte strings shall be written as text."""

    def document(self, *, untyped: bool = False) -> Any:
        """Read what `check` has found well formed, and raise what is wrong with it.

        Kind and version are looked for as a struct has them, first of all; of what is `untyped`, only if there
        is something wrong with it.
        """
        if untyped:
            try:
                found = self.value(0)[0]
            except StumbledError:
                found = None
            if isinstance(found, dict):
                return found
        at = 0
        kind = api_version = ""
        try:
            while self._body[at] >> 5 == 6:
                number, at = self.argument(at)
                self.check_time(number, at)
            major = self._body[at] >> 5
            if major == 5:
                api_version, kind = self._type_meta(at)
            elif major != 7 or self.value(at)[0] is not None:
                note = " (cannot decode CBOR array to struct without toarray option)" if major == 4 else ""
                what = f"{MAJOR_NAMES[major]} into Go value of type v1.TypeMeta{note}"
                raise StumbledError(f"cbor: cannot unmarshal {what}")
        except StumbledError as problem:
            raise DecodeError(f"{UNKNOWN_KIND}{problem}") from None
        try:
            return self.value(at)[0]
        except StumbledError as problem:
            raise ContentError(str(problem), api_version, kind) from None

    def _type_meta(self, at: int) -> tuple[str, str]:
        """The apiVersion and kind of the map at this place, whatever the other members hold."""
        found = {"apiVersion": "", "kind": ""}
        names: set[str] = set()
        count, at = self.argument(at)
        while count and self._body[at] != 0xFF:
            name_at, at = at, skip(self._body, at)
            value_at, at = at, skip(self._body, at)
            count -= 1
            name = self.field(name_at)
            if name in names:
                raise StumbledError(duplicate(name, len(names)))
            names.add(name)
            if name in found:
                value = self.value(value_at)[0]
                if value is not None and not isinstance(value, str):
                    what = f"{self._major(value_at)} into Go struct field v1.TypeMeta.{name} of type string"
                    raise StumbledError(f"cbor: cannot unmarshal {what}")
                found[name] = value or ""
        return found["apiVersion"], found["kind"]

    def field(self, at: int) -> str:
        """The key at this place, where fields of a struct are looked for."""
        major = self._body[at] >> 5
        if major not in (2, 3):
            if major > 1:
                note = f"(map key is of type {MAJOR_NAMES[major]} and cannot be used to match struct field name)"
                raise StumbledError(f"cbor: cannot unmarshal {MAJOR_NAMES[major]} into Go value of type string {note}")
            return str(self.argument(at)[0])
        if major == 3:
            return self._text(at)[0]
        return text_of(self._chunks(at)[0])

    def _major(self, at: int) -> str:
        return MAJOR_NAMES[self._body[at] >> 5]

    def name(self, at: int) -> str:
        """The text at this place; "" if there is something else."""
        try:
            name = self.value(at)[0]
        except StumbledError:
            return ""
        return name if isinstance(name, str) else ""

    def argument(self, at: int) -> tuple[int, int]:
        """The argument of the head at this place (-1: indefinite length), and where the head ends."""
        low = self._body[at] & 31
        if low < 24:
            return low, at + 1
        if low == 31:
            return -1, at + 1
        size = 1 << (low - 24)
        end = at + 1 + size
        if size > 8 or end > len(self._body):
            raise StumbledError
        return int.from_bytes(self._body[at + 1 : end], "big"), end

    def value(self, at: int) -> tuple[Any, int]:
        """The item at this place."""
        return _READERS[self._body[at] >> 5](self, at)

    def _positive(self, at: int) -> tuple[int, int]:
        number, at = self.argument(at)
        if number > INT64_MAXIMUM:
            raise StumbledError(overflow(0, number))
        return number, at

    def _negative(self, at: int) -> tuple[int, int]:
        number, at = self.argument(at)
        if number > INT64_MAXIMUM:
            raise StumbledError(overflow(1, -1 - number))
        return -1 - number, at

    def _chunks(self, at: int) -> tuple[bytes, int]:
        """The bytes of a string."""
        length, at = self.argument(at)
        if length >= 0:
            end = at + length
            if end > len(self._body):
                raise StumbledError
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
        return text_of(data), at

    def _text(self, at: int) -> tuple[str, int]:
        data, end = self._chunks(at)
        try:
            return data.decode(), end
        except UnicodeDecodeError:
            raise StumbledError("cbor: invalid UTF-8 string") from None

    def _array(self, at: int) -> tuple[list[Any], int]:
        count, at = self.argument(at)
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
        count, at = self.argument(at)
        members: dict[str, Any] = {}
        body, read = self._body, self.value
        while count:
            if count < 0 and body[at] == 0xFF:
                return members, at + 1
            key = ""
            try:
                key, value_at = self.map_key(at)
                if key in members:
                    raise StumbledError(duplicate(key, len(members)))
                members[key], at = read(value_at)
            except StumbledError:
                if not self._leniently:
                    raise
                members.setdefault(key)
                at = skip(body, skip(body, at))
            count -= 1
        return members, at

    def map_key(self, at: int) -> tuple[str, int]:
        """The key of a member at this place, and where it ends."""
        key, end = self.value(at)
        if key is None:
            return "", end
        if not isinstance(key, str):
            what = f"{self._major(at)} into Go value of type string"
            raise StumbledError(f"cbor: cannot unmarshal {what}")
        return key, end

    def _tag(self, at: int) -> tuple[Any, int]:
        number, content = self.argument(at)
        if number in (0, 1):
            return self._time(number, content)
        if number in (2, 3):
            raise StumbledError(not_accepted("tag", "bignum"))
        if number in _LATER:
            self._later.append(number)
            try:
                return self.value(content)
            finally:
                self._later.pop()
        return self.value(content)

    def check_time(self, number: int, at: int) -> None:
        """What stands under a tag must be what a time is made of, if it is the tag of a time."""
        major = self._body[at] >> 5
        if number == 0 and major != 3:
            raise StumbledError(wrong_content(0, "text string", major))
        if number == 1 and major > 1 and not 0xF9 <= self._body[at] <= 0xFB:
            raise StumbledError(wrong_content(1, "integer or floating-point number", major))

    def _time(self, number: int, at: int) -> tuple[str, int]:
        self.check_time(number, at)
        value, end = self.value(at)
        if number == 0:
            return value, end
        try:
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=value)
        except OverflowError:
            raise StumbledError(
                "cbor: decoded time cannot be represented in RFC3339 format with sub-second precision: "
                "Time.MarshalText: year outside of range [0,9999]"
            ) from None
        fraction = f".{moment.microsecond:06d}".rstrip("0") if moment.microsecond else ""
        return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z", end

    def _primitive(self, at: int) -> tuple[Any, int]:
        first = self._body[at]
        if 0xF4 <= first <= 0xF6:
            return (False, True, None)[first - 0xF4], at + 1
        form = FLOATS.get(first)
        if form is None:
            number, _ = self.argument(at)
            what = f"simple value {number} is not recognized"
            raise StumbledError(not_accepted("primitives", what))
        number = struct.unpack_from(form, self._body, at + 1)[0]
        if not math.isfinite(number):
            raise StumbledError
        return number, at + 1 + struct.calcsize(form)


def duplicate(key: str, index: int) -> str:
    return f"cbor: found duplicate map key {go_quote(key)} at map element index {index}"


_READERS: Final = (
    Reader._positive, Reader._negative, Reader._octets, Reader._text,
    Reader._array, Reader._map, Reader._tag, Reader._primitive,
)  # fmt: skip
_LATER: Final[dict[int, Callable[[bytes], str]]] = {
    21: lambda data: base64.urlsafe_b64encode(data).rstrip(b"=").decode(),
    22: lambda data: base64.b64encode(data).decode(),
    23: bytes.hex,
}


