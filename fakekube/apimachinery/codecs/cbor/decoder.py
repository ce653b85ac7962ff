"""Decodes CBOR in Kubernetes' profile.

A fast decoder (`quick`) handles the common items. When it fails, `Reader` decodes the document again: it supports
all that the profile accepts (tags, items of indefinite length, floats) and reports errors. The tags around a byte
string determine its text; tagged times become text; integers beyond int64, NaN, infinities, undefined, other simple
values, bignums and duplicate members are rejected.

Like the real server's library, the reader continues after an error and reports the first one; a duplicate member of
a map takes precedence. So each item is consumed exactly once, even if it is invalid.

Specified by: k8s.io/apimachinery/pkg/runtime/serializer/cbor/internal/modes (decode.go),
github.com/fxamacker/cbor/v2 (decode.go).
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

from fakekube.apimachinery.codecs.cbor.items import (
    FLOATS,
    MAJOR_NAMES,
    SELF_DESCRIBED,
    SIZES,
    CBORError,
    not_accepted,
    skip,
    wrong_content,
)
from fakekube.apimachinery.codecs.json import float_text
from fakekube.base.golang.strconv import MAX_INT64, go_quote
from fakekube.base.golang.strings import json_text, text_of
from fakekube.base.golang.timestamps import TimeError, parse_nanosecond_time

V = TypeVar("V")


def quick(body: bytes) -> Any:
    """Decodes a document of common items. Raises any exception if it contains others."""
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
                if 0x40 < first < 0x58:  # a short byte string, the common form of a key
                    begin = at + 1
                    at = begin + (first & 31)
                    key = body[begin:at].decode()
                elif first >> 5 in (2, 3):
                    key = read()
                else:
                    raise CBORError
                first = body[at]
                if 0x40 <= first < 0x58:  # a value in the same form
                    begin = at + 1
                    at = begin + (first & 31)
                    members[key] = body[begin:at].decode()
                else:
                    members[key] = read()
            if len(members) != argument:
                raise CBORError
            return members
        if major == 4:
            return [read() for _ in range(argument)]
        if first == 0xF5:
            return True
        if first == 0xF4:
            return False
        if argument > MAX_INT64 or (major == 6 and argument != _BASE64):
            raise CBORError
        if major == 0:
            return argument
        if major == 1:
            return -1 - argument
        reader = Reader(body)
        reader.at = at - 1
        value = reader.value()
        at = reader.at
        return value

    value = read()
    if at != len(body) or not (value is None or value.__class__ is dict):
        raise CBORError
    if value and not value.get("apiVersion", "").__class__ is value.get("kind", "").__class__ is str:
        raise CBORError
    return value


class MismatchError(CBORError):
    """An item does not fit a Go type; `field` is the outermost struct field that contains it."""

    def __init__(self, major: int, go_type: str, note: str = "") -> None:
        super().__init__()
        self.field = ""
        self._what, self._go_type, self._note = MAJOR_NAMES[major], go_type, note

    def __str__(self) -> str:
        into = f"struct field {self.field} of" if self.field else "value of"
        note = f" ({self._note})" if self._note else ""
        return f"cbor: cannot unmarshal {self._what} into Go {into} type {self._go_type}{note}"


class DuplicateError(CBORError):
    """A map has a duplicate member; this takes precedence over earlier errors in the map."""

    def __init__(self, key: Any, index: int) -> None:
        shown = go_quote(key) if isinstance(key, str) else "<nil>" if key is None else json_text(key)
        super().__init__(f"cbor: found duplicate map key {shown} at map element index {index}")


class Reader:
    """Decodes any value; `at` is the offset of the next item, also after an error.

    Args:
        body: the document.
        leniently: values that are not accepted become null, keys that are not strings become empty.
    """

    def __init__(self, body: bytes, *, leniently: bool = False) -> None:
        self.at = 0
        self.body = body
        self._leniently = leniently
        self.later: list[int] = []
        """The enclosing tags 21 to 23: the expected text encoding of byte strings."""

    # --- Heads --------------------------------------------------------------------------------------------------------

    @property
    def first(self) -> int:
        """The first byte of the next item."""
        return self.body[self.at]

    @property
    def major(self) -> int:
        """The major type of the next item."""
        return self.body[self.at] >> 5

    def argument(self) -> int:
        """Consumes the head and returns its argument (-1: indefinite length)."""
        low = self.body[self.at] & 31
        self.at += 1
        if low < 24:
            return low
        if low == 31:
            return -1
        begin, self.at = self.at, self.at + SIZES[low]
        return int.from_bytes(self.body[begin : self.at], "big")

    def indexes(self) -> Iterator[int]:
        """Counts the elements of a container; consumes its head and its end."""
        count = self.argument()
        index = 0
        while index != count:
            if count < 0 and self.first == _BREAK:
                self.at += 1
                return
            yield index
            index += 1

    def skip(self) -> None:
        """Skips an item."""
        self.at = skip(self.body, self.at)

    def skip_members(self, indexes: Iterator[int]) -> None:
        """Skips the remaining members of a map."""
        for _ in indexes:
            self.skip()
            self.skip()

    def check_tags(self) -> None:
        """Checks that the content of a time tag has a type that a time can have."""
        begin = self.at
        while self.major == 6:
            problem = wrong_content(self.argument(), self.first)
            if problem:
                self.skip()
                raise CBORError(problem)
        self.at = begin

    @contextmanager
    def below_tags(self) -> Iterator[None]:
        """Consumes tags; those that select the text encoding of byte strings apply to the content."""
        before = len(self.later)
        if self.major == 6:
            self.check_tags()
        while self.major == 6:
            number = self.argument()
            if number in _LATER:
                self.later.append(number)
        try:
            yield
        finally:
            del self.later[before:]

    # --- Values without a type ----------------------------------------------------------------------------------------

    def value(self) -> Any:
        """Decodes the next item without a type."""
        return _READERS[self.major](self)

    def content(self) -> dict[str, Any] | None:
        """Decodes the next item, which must be a map or null."""
        with self.below_tags():
            if self.major == 5:
                return self._map()
            self.refuse("map[string]interface {}")
            return None

    def _positive(self) -> int:
        number = self.argument()
        if number > MAX_INT64:
            raise MismatchError(0, "int64", f"{number} overflows Go's int64")
        return number

    def _negative(self) -> int:
        number = -1 - self.argument()
        if number < -MAX_INT64 - 1:
            raise MismatchError(1, "int64", f"{number} overflows Go's int64")
        return number

    def _array(self) -> list[Any]:
        items: list[Any] = []
        problem: CBORError | None = None
        for _ in self.indexes():
            try:
                items.append(self.value())
            except CBORError as found:
                items.append(None)
                problem = problem or found
        return self._raise_or_return(problem, items)

    def _map(self) -> dict[str, Any]:
        members: dict[str, Any] = {}
        problem: CBORError | None = None
        key = ""
        indexes = self.indexes()
        for index in indexes:
            try:
                key = self.text(key)
            except CBORError as found:
                problem = problem or found
                members.setdefault("")
                self.skip()
                continue
            try:
                value = self.value()
            except CBORError as found:
                problem = problem or found
                value = None
                if not self._leniently:
                    continue
            if key in members and not self._leniently:
                self.skip_members(indexes)
                raise DuplicateError(key, index)
            members.setdefault(key, value)
        return self._raise_or_return(problem, members)

    def _raise_or_return(self, problem: CBORError | None, value: V) -> V:
        if problem is not None and not self._leniently:
            raise problem
        return value

    def _tag(self) -> Any:
        self.check_tags()
        begin = self.at
        number = self.argument()
        if number in (0, 1):
            return self._time()
        if number in (2, 3):
            raise CBORError(not_accepted("tag", "bignum"))
        if number not in _LATER:
            return self.value()
        self.at = begin
        with self.below_tags():
            return self.value()

    def _time(self) -> str:
        if self.major == 3:
            text = self.unicode()
            try:
                return parse_nanosecond_time(text)
            except TimeError as problem:
                raise CBORError(f"cbor: cannot set {text} for time.Time: {problem}") from None
        number = self._primitive() if self.major == 7 else self._seconds()
        try:
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=number)
        except OverflowError:
            raise CBORError(
                "cbor: decoded time cannot be represented in RFC3339 format with sub-second precision: "
                "Time.MarshalText: year outside of range [0,9999]"
            ) from None
        fraction = f".{moment.microsecond:06d}".rstrip("0") if moment.microsecond else ""
        return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"

    def _seconds(self) -> int:
        major = self.major
        number = self.argument()
        if number > MAX_INT64:
            raise MismatchError(major, "time.Time", f"{number if major == 0 else -1 - number} overflows Go's int64")
        return number if major == 0 else -1 - number

    def _primitive(self) -> Any:
        first = self.first
        if 0xF4 <= first <= 0xF6:
            self.at += 1
            return (False, True, None)[first - 0xF4]
        form = FLOATS.get(first)
        if form is None:
            raise CBORError(not_accepted("primitives", f"simple value {self.argument()} is not recognized"))
        number = struct.unpack_from(form, self.body, self.at + 1)[0]
        self.at += 1 + struct.calcsize(form)
        if not math.isfinite(number):
            raise CBORError
        return number

    # --- Texts --------------------------------------------------------------------------------------------------------

    def text(self, before: str = "", go_type: str = "string") -> str:
        """Decodes the next item, which must be a string; null keeps the value `before`."""
        with self.below_tags():
            if self.major == 2:
                return self.octets()
            if self.major == 3:
                return self.unicode()
            self.refuse(go_type)
            return before

    def octets(self) -> str:
        """Decodes a byte string to its text."""
        data = b"".join(self._chunks())
        return _LATER[self.later[-1]](data) if self.later else text_of(data)

    def unicode(self) -> str:
        """Decodes a text string."""
        chunks = self._chunks()
        try:
            return "".join([chunk.decode() for chunk in chunks])
        except UnicodeDecodeError:
            raise CBORError("cbor: invalid UTF-8 string") from None

    def _chunks(self) -> list[bytes]:
        if self.first & 31 == 31:
            return [self._chunks()[0] for _ in self.indexes()]
        length = self.argument()
        begin, self.at = self.at, self.at + length
        return [self.body[begin : self.at]]

    def refuse(self, go_type: str, note: str = "") -> None:
        """Skips the next item, whose major type does not fit the Go type.

        Raises:
            CBORError: always, except for null.
        """
        major = self.major
        number = self.argument() if major == 1 else 0
        if number > MAX_INT64:
            raise MismatchError(1, go_type, f"{-1 - number} overflows Go's int64")
        if major == 7:
            if self._primitive() is None:
                return
        elif major == 3:
            self.unicode()
        elif major != 1:
            self.skip()
        raise MismatchError(major, go_type, note)


_BREAK: Final = 0xFF
#: The tag that Kubernetes itself encodes.
_BASE64: Final = 22
_READERS: Final = (
    Reader._positive, Reader._negative, Reader.octets, Reader.unicode,
    Reader._array, Reader._map, Reader._tag, Reader._primitive,
)  # fmt: skip
_LATER: Final[dict[int, Callable[[bytes], str]]] = {
    21: lambda data: base64.urlsafe_b64encode(data).rstrip(b"=").decode(),
    22: lambda data: base64.b64encode(data).decode(),
    23: bytes.hex,
}


# --- Diagnostic notation, for errors that contain the body: `{'kind': "x", 1: [_ 2.0]}` ------------------------------
# Specified by: RFC 8949, section 8; github.com/fxamacker/cbor/v2 (diagnose.go), with byte strings as text where
# they are UTF-8.


def diagnosis(body: bytes) -> str:
    """Returns the notation of a well-formed document; hexadecimal digits if it contains invalid UTF-8."""
    try:
        return _Writer(body).item()
    except UnicodeDecodeError:
        return body.hex()


#: Primitives by their first byte.
_WORDS: Final = {0xF4: "false", 0xF5: "true", 0xF6: "null", 0xF7: "undefined"}
_ESCAPED: Final = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"}


class _Writer:
    """Formats items in sequence; `at` is the offset of the next one."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def item(self) -> str:
        first = self._body[self._at]
        major, low = first >> 5, first & 31
        if low == 31:
            self._at += 1
            return self._indefinite(major)
        argument = self._head(low)
        if major == 0:
            return str(argument)
        if major == 1:
            return str(-1 - argument)
        if major in (2, 3):
            self._at += argument
            return _string(self._body[self._at - argument : self._at], is_text=major == 3)
        if major == 4:
            return f"[{', '.join(self.item() for _ in range(argument))}]"
        if major == 5:
            return f"{{{', '.join(self._member() for _ in range(argument))}}}"
        if major == 6:
            return f"{argument}({self.item()})"
        return _primitive(first, argument)

    def _head(self, low: int) -> int:
        """Consumes the head and returns its argument."""
        begin = self._at + 1
        self._at = begin + SIZES.get(low, 0)
        return int.from_bytes(self._body[begin : self._at], "big") if low in SIZES else low

    def _member(self) -> str:
        key = self.item()
        return f"{key}: {self.item()}"

    def _indefinite(self, major: int) -> str:
        parts = []
        while self._body[self._at] != 0xFF:
            parts.append(self._member() if major == 5 else self.item())
        self._at += 1
        text = ", ".join(parts)
        if major in (2, 3):
            empty = "''_" if major == 2 else '""_'
            return f"(_ {text})" if parts else empty
        return f"[_ {text}]" if major == 4 else f"{{_ {text}}}"


def _string(data: bytes, *, is_text: bool) -> str:
    if is_text:
        return _quote(data.decode(), '"')
    try:
        return _quote(data.decode(), "'") if data else "h''"
    except UnicodeDecodeError:
        return f"h'{data.hex()}'"


def _quote(text: str, quote: str) -> str:
    return quote + "".join(_character(character, quote) for character in text) + quote


def _character(character: str, quote: str) -> str:
    if character == quote:
        return "\\" + quote
    if " " <= character <= "~" and character != "\\":
        return character
    known = _ESCAPED.get(character)
    if known is not None:
        return known
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _primitive(first: int, argument: int) -> str:
    form = FLOATS.get(first)
    if form is None:
        return _WORDS.get(first, f"simple({argument})")
    size = struct.calcsize(form)
    text = float_text(struct.unpack(form, argument.to_bytes(size, "big"))[0])
    if "." in text:
        return text
    mantissa, exponent, rest = text.partition("e")
    return f"{mantissa}.0{exponent}{rest}"
