"""Encodes CBOR in Kubernetes' profile.

All strings become byte strings, []byte fields become byte strings with tag 22 (expected conversion to base64),
floats take the fewest bytes, and integers beyond int64 become floats. The real server shuffles the members of maps
deliberately; this encoder keeps the order of the object.

Specified by: k8s.io/apimachinery/pkg/runtime/serializer/cbor/internal/modes (encode.go).
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from fakekube.apimachinery.codecs import EncodeError
from fakekube.apimachinery.codecs.cbor.items import INT64_MAXIMUM, head
from fakekube.apimachinery.codecs.document import cached_encoder
from fakekube.apimachinery.schema.model import Shape, Type
from fakekube.base.golang.strings import bytes_of


def encoded(value: Any) -> bytes:
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
    return head(4, len(value)) + b"".join([_LISTED[item.__class__](item) for item in value])


def _integer(value: int) -> bytes:
    if -INT64_MAXIMUM - 1 <= value <= INT64_MAXIMUM:
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


class _Texts(dict[str, bytes]):
    """Caches the items of short texts, since keys and most values occur often."""

    def __missing__(self, text: str) -> bytes:
        data = bytes_of(text)
        made = head(2, len(data)) + data
        if len(made) <= _SHORT:
            if len(self) >= _TEXTS_KEPT:
                self.clear()
            self[text] = made
        return made


_SHORT: Final = 64
_TEXTS_KEPT: Final = 16_384
_TEXTS: Final = _Texts()

_MAP_HEADS: Final = [head(5, length) for length in range(256)]


class _Writers(dict[type, Callable[[Any], bytes]]):
    """The encoders of values by Python type."""

    def __missing__(self, kind: type) -> Callable[[Any], bytes]:
        if issubclass(kind, float):
            return _float
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
_LISTED: Final = _Writers({**_WRITERS, dict: cached_encoder(_map)})


_CHANGED: Final = frozenset({Shape.BYTES, Shape.NUMBER})


def holds_bytes(type_: Type) -> bool:
    """Reports whether a type contains a []byte field at any depth."""
    return _holds(type_, frozenset({Shape.BYTES}))


def _changes(type_: Type) -> bool:
    """Reports whether encoding a value of this type needs the type."""
    return _holds(type_, _CHANGED)


@cache
def _holds(type_: Type, shapes: frozenset[Shape]) -> bool:
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
    if value is None or not _changes(type_):
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
