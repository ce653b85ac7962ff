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

from fakekube.codecs.cbor_decoder import Reader
from fakekube.codecs.cbor_items import MAJOR_NAMES, SELF_DESCRIBED, StumbledError, skip
from fakekube.schema.model import Shape, Type

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
    while body[at : at + 3] == SELF_DESCRIBED:
        at += 3
    walk.document(at, type_)
    return walk.error, walk.finding


class _MismatchError(Exception):
    """`what` cannot be read into the Go type."""

    def __init__(self, what: str, go_type: str, note: str = "") -> None:
        super().__init__(what)
        self.what, self.go_type, self.note = what, go_type, note


#: Majors that each shape takes; what is missing here takes anything (it reads JSON).
_ACCEPTED: Final = {
    Shape.STRUCT: (5,), Shape.MAP: (5,), Shape.LIST: (4,), Shape.STRING: (2, 3), Shape.BYTES: (2, 3),
    Shape.INTEGER: (0, 1), Shape.NUMBER: (0, 1, 7), Shape.BOOLEAN: (7,),
}  # fmt: skip
_LIMITS: Final = {"int32": 2**31, "int64": 2**63}
_NULL: Final = (0xF6, 0xF7)


class _Walk:
    """One walk along a type; collects the first error and the first finding."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._reader = Reader(body)
        self.error = ""
        self.finding = ""

    def document(self, at: int, type_: Type) -> None:
        try:
            for index, key_at, value_at in self._entries(at):
                name = self._reader.name(key_at)
                field = type_.fields.get(name)
                if field is None and name not in ("kind", "apiVersion"):
                    self._found(index)
                elif field is not None:
                    self._field(f"{type_.go}.{name}", field.type, value_at)
        except StumbledError as problem:
            self._wrong(str(problem))

    def _field(self, name: str, type_: Type, at: int) -> None:
        try:
            self._value(type_, at)
        except _MismatchError as found:
            note = f" ({found.note})" if found.note else ""
            into = f"{found.what} into Go struct field {name} of type {found.go_type}{note}"
            self._wrong(f"cbor: cannot unmarshal {into}")
        except StumbledError as problem:
            self._wrong(str(problem))

    def _wrong(self, problem: str) -> None:
        self.error = self.error or problem

    def _found(self, index: int) -> None:
        self.finding = self.finding or f"cbor: found unknown field at map element index {index}"

    def _entries(self, at: int) -> Iterator[tuple[int, int, int]]:
        """Of each member of a map its index, and the places of its key and its value."""
        count, at = self._reader.argument(at)
        index = 0
        while count and not (count < 0 and self._body[at] == 0xFF):
            value_at = skip(self._body, at)
            yield index, at, value_at
            at = skip(self._body, value_at)
            count, index = count - 1, index + 1

    def _value(self, type_: Type, at: int) -> None:
        while self._body[at] >> 5 == 6:
            _, at = self._reader.argument(at)
        first = self._body[at]
        major = first >> 5
        accepted = _ACCEPTED.get(type_.shape)
        if first in _NULL or accepted is None:
            self._reader.value(at)
            return
        fits = major in accepted and (type_.shape is not Shape.BOOLEAN or first in (0xF4, 0xF5))
        if not fits or (type_.shape is Shape.NUMBER and first in (0xF4, 0xF5)):
            is_array = major == 4 and type_.shape is Shape.STRUCT
            note = "cannot decode CBOR array to struct without toarray option" if is_array else ""
            raise _MismatchError(MAJOR_NAMES[major], type_.go, note)
        if type_.shape is Shape.STRUCT:
            self._struct(type_, at)
        elif type_.shape is Shape.MAP:
            self._map(type_, at)
        elif type_.shape is Shape.LIST:
            self._list(type_, at)
        else:
            self._scalar(type_, major, at)

    def _struct(self, type_: Type, at: int) -> None:
        for index, key_at, value_at in self._entries(at):
            field = type_.fields.get(self._reader.name(key_at))
            if field is None:
                self._found(index)
            else:
                self._value(field.type, value_at)

    def _map(self, type_: Type, at: int) -> None:
        assert type_.items is not None
        names: set[str] = set()
        for _, key_at, value_at in self._entries(at):
            if self._body[key_at] >> 5 not in (2, 3):
                raise _MismatchError(MAJOR_NAMES[self._body[key_at] >> 5], "string")
            name, _ = self._reader.map_key(key_at)
            if name in names:
                self._reader.value(at)  # stumbles over the same
            names.add(name)
            self._value(type_.items, value_at)

    def _list(self, type_: Type, at: int) -> None:
        assert type_.items is not None
        count, at = self._reader.argument(at)
        while count and not (count < 0 and self._body[at] == 0xFF):
            self._value(type_.items, at)
            at = skip(self._body, at)
            count -= 1

    def _scalar(self, type_: Type, major: int, at: int) -> None:
        value, _ = self._reader.value(at)
        if type_.shape is Shape.INTEGER:
            limit = _LIMITS.get(type_.format, 2**63)
            if not -limit <= value < limit:
                raise _MismatchError(MAJOR_NAMES[major], type_.go, f"{value} overflows {type_.go}")
