"""What is wrong with a well-formed CBOR document of a built-in type, in the words of the real server's
library.

The library decodes straight into Go types and complains in its own way; here documents are decoded to plain
data first, and types are checked as for JSON. Only when that fails is the document read once more along its
type, to find what the library would have found first. It names the field of the outermost struct, whatever
the depth.

Specified by: github.com/fxamacker/cbor/v2 (decode.go: parseToValue, parseMapToStruct, fill…).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fakekube.codecs.cbor_decoder import Reader, duplicate
from fakekube.codecs.cbor_items import MAJOR_NAMES, StumbledError, skip
from fakekube.schema import base64
from fakekube.schema.model import Field, Shape, Type

__all__ = ["explain"]


def explain(body: bytes, type_: Type) -> tuple[str, str]:
    """Why a document does not fit its type.

    Args:
        body: a well-formed document, a map.
        type_: the struct that it shall be decoded into.

    Returns:
        The error ("" if there is none), and what a strict reader complains of ("" if nothing): the first of
        each.
    """
    walk = _Walk(body)
    at = 0
    while body[at] >> 5 == 6:
        _, at = walk.reader.argument(at)
    walk.document(at, type_)
    return walk.error, walk.finding


class _MismatchError(Exception):
    """`what` cannot be read into the Go type."""

    def __init__(self, what: str, go_type: str, note: str = "") -> None:
        super().__init__(what)
        self.what, self.go_type, self.note = what, go_type, note


#: Majors that each shape takes; what is missing here takes anything (it reads JSON).
_ACCEPTED: Final = {
    Shape.STRUCT: (5,), Shape.MAP: (5,), Shape.LIST: (4,), Shape.STRING: (2, 3), Shape.BYTES: (2,),
    Shape.INTEGER: (0, 1), Shape.NUMBER: (0, 1, 7), Shape.BOOLEAN: (7,),
}  # fmt: skip
_LIMITS: Final = {"int32": 2**31, "int64": 2**63}
_UNDEFINED: Final = 0xF7
#: Tags that say how bytes shall be written as text.
_TEXTS: Final = (21, 22, 23)
_NULL: Final = (0xF6, _UNDEFINED)
_TIMES: Final = (Shape.TIME, Shape.MICRO_TIME)


def _unknown(index: int) -> str:
    return f"cbor: found unknown field at map element index {index}"


class _Walk:
    """One walk along a type; collects the first error, and what is found.

    An unknown field ends the reading of its struct: it is told, not what was found in the fields before it.
    """

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.reader = Reader(body)
        self.error = ""
        self.finding = ""

    def document(self, at: int, type_: Type) -> None:
        own = nested = ""
        try:
            for index, key_at, value_at in self._entries(at):
                name = self.reader.field(key_at)
                field = type_.fields.get(name)
                if field is not None:
                    found = self._field(f"{type_.go}.{name}", field, value_at)
                    nested = nested or found
                elif name not in ("kind", "apiVersion"):
                    own = own or _unknown(index)
        except StumbledError as problem:
            self._wrong(str(problem))
        self.finding = own or nested

    def _field(self, name: str, field: Field, at: int) -> str:
        try:
            return self._member(field, at)
        except _MismatchError as found:
            note = f" ({found.note})" if found.note else ""
            into = f"{found.what} into Go struct field {name} of type {found.go_type}{note}"
            self._wrong(f"cbor: cannot unmarshal {into}")
        except StumbledError as problem:
            self._wrong(str(problem))
        return ""

    def _wrong(self, problem: str) -> None:
        self.error = self.error or problem

    def _entries(self, at: int) -> Iterator[tuple[int, int, int]]:
        """Of each member of a map its index, and the places of its key and its value."""
        count, at = self.reader.argument(at)
        index = 0
        while count and not (count < 0 and self._body[at] == 0xFF):
            value_at = skip(self._body, at)
            yield index, at, value_at
            at = skip(self._body, value_at)
            count, index = count - 1, index + 1

    def _member(self, field: Field, at: int) -> str:
        """The value of a field; what is undefined is nil where there can be nil."""
        if self._body[at] == _UNDEFINED and (field.pointer or field.type.shape in _TIMES):
            return ""
        return self._value(field.type, at)

    def _value(self, type_: Type, at: int) -> str:
        is_text = False
        while self._body[at] >> 5 == 6:
            tag, at = self.reader.argument(at)
            self.reader.check_time(tag, at)
            is_text = is_text or tag in _TEXTS
        first = self._body[at]
        major = first >> 5
        accepted = _ACCEPTED.get(type_.shape)
        if first in _NULL or accepted is None:
            self.reader.value(at)
            return ""
        fits = major in accepted and (type_.shape is not Shape.BOOLEAN or first in (0xF4, 0xF5))
        if not fits or (type_.shape is Shape.NUMBER and first in (0xF4, 0xF5)):
            is_array = major == 4 and type_.shape is Shape.STRUCT
            note = "cannot decode CBOR array to struct without toarray option" if is_array else ""
            raise _MismatchError(MAJOR_NAMES[major], type_.go, note)
        if type_.shape is Shape.STRUCT:
            return self._struct(type_, at)
        if type_.shape is Shape.MAP:
            return self._map(type_, at)
        if type_.shape is Shape.LIST:
            return self._list(type_, at)
        if type_.shape is Shape.BYTES and not is_text:
            self._base64(at)
        self._scalar(type_, major, at)
        return ""

    def _base64(self, at: int) -> None:
        """Bytes under no tag are text already."""
        try:
            base64.canonical(self.reader.field(at))
        except base64.Base64Error as problem:
            raise StumbledError(f"cbor: failed to decode base64 from byte string: {problem}") from None

    def _struct(self, type_: Type, at: int) -> str:
        own = nested = ""
        names: set[str] = set()
        for index, key_at, value_at in self._entries(at):
            major = self._body[key_at] >> 5
            if major > 3:
                note = f"map key is of type {MAJOR_NAMES[major]} and cannot be used to match struct field name"
                raise _MismatchError(MAJOR_NAMES[major], "string", note)
            name = self.reader.field(key_at)
            if name in names:
                raise StumbledError(duplicate(name, index))
            names.add(name)
            field = type_.fields.get(name)
            if field is None:
                own = own or _unknown(index)
            else:
                found = self._member(field, value_at)
                nested = nested or found
        return own or nested

    def _map(self, type_: Type, at: int) -> str:
        assert type_.items is not None
        found = ""
        names: set[str] = set()
        for _, key_at, value_at in self._entries(at):
            if self._body[key_at] >> 5 not in (2, 3):
                raise _MismatchError(MAJOR_NAMES[self._body[key_at] >> 5], "string")
            name, _ = self.reader.map_key(key_at)
            if name in names:
                self.reader.value(at)  # stumbles over the same
            names.add(name)
            inner = self._value(type_.items, value_at)
            found = found or inner
        return found

    def _list(self, type_: Type, at: int) -> str:
        assert type_.items is not None
        found = ""
        count, at = self.reader.argument(at)
        while count and not (count < 0 and self._body[at] == 0xFF):
            inner = self._value(type_.items, at)
            found = found or inner
            at = skip(self._body, at)
            count -= 1
        return found

    def _scalar(self, type_: Type, major: int, at: int) -> None:
        value, _ = self.reader.value(at)
        if type_.shape is Shape.INTEGER:
            limit = _LIMITS.get(type_.format, 2**63)
            if not -limit <= value < limit:
                raise _MismatchError(MAJOR_NAMES[major], type_.go, f"{value} overflows {type_.go}")
