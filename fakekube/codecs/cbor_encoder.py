"""Writes CBOR as Kubernetes profiles it.

All strings are byte strings, []byte fields are byte strings under tag 22 (the client shall think of base64),
floats take the fewest bytes, integers beyond int64 are floats. The real server shuffles the members of maps
on purpose; here they stand in the order of the object.

Specified by: k8s.io/apimachinery/pkg/runtime/serializer/cbor/internal/modes (encode.go).
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from fakekube.codecs.cbor_items import INT64_MAXIMUM, head
from fakekube.codecs.errors import EncodeError
from fakekube.schema.model import Shape, Type
from fakekube.schema.strings import bytes_of

__all__ = ["encoded", "holds_bytes", "with_bytes"]

_STRING_HEADS: Final = [head(2, length) for length in range(256)]
_keys: dict[str, bytes] = {}
_KEYS_KEPT: Final = 20_000


def encoded(value: Any) -> bytes:
    """The item of a value: plain JSON data, and bytes.

    Raises:
        EncodeError: NaN, an infinity, or surrogates.
    """
    chunks: list[bytes] = []
    try:
        _write(value, chunks.append)
    except (struct.error, OverflowError, UnicodeEncodeError) as error:
        raise EncodeError(f"cbor: {error}") from None
    return b"".join(chunks)


def _write(value: Any, emit: Callable[[bytes], None]) -> None:
    kind = value.__class__
    if kind is str:
        data = value.encode("utf-8", "surrogateescape")
        length = len(data)
        emit(_STRING_HEADS[length] if length < 256 else head(2, length))
        emit(data)
    elif kind is dict:
        emit(head(5, len(value)))
        for key, member in value.items():
            emit(_keys.get(key) or _key(key))
            _write(member, emit)
    elif kind is list:
        emit(head(4, len(value)))
        for item in value:
            _write(item, emit)
    elif kind is int:
        if -INT64_MAXIMUM - 1 <= value <= INT64_MAXIMUM:
            emit(head(0, value) if value >= 0 else head(1, -1 - value))
        else:
            emit(_float(float(value)))
    elif kind is bool:
        emit(b"\xf5" if value else b"\xf4")
    elif value is None:
        emit(b"\xf6")
    elif kind is bytes:
        emit(b"\xd6" + head(2, len(value)) + value)
    elif isinstance(value, float):
        emit(_float(value))
    else:
        raise EncodeError(f"cbor: {kind.__name__} has no form")


def _key(key: str) -> bytes:
    data = bytes_of(key)
    encoded = head(2, len(data)) + data
    if len(_keys) < _KEYS_KEPT:
        _keys[key] = encoded
    return encoded


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


_CHANGED: Final = frozenset({Shape.BYTES, Shape.NUMBER})


def holds_bytes(type_: Type) -> bool:
    """Is there a []byte somewhere in this type?"""
    return _holds(type_, frozenset({Shape.BYTES}))


def _changes(type_: Type) -> bool:
    """Is there something in this type that plain data does not tell?"""
    return _holds(type_, _CHANGED)


@cache
def _holds(type_: Type, shapes: frozenset[Shape]) -> bool:
    """Is there something of these shapes somewhere in this type?"""
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
    """The value with bytes in the place of base64, and floats where there must be floats."""
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
