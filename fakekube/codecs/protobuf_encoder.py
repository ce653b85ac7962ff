"""Writes objects as the messages that Kubernetes' generated code writes, byte for byte.

For each type a function is compiled once, from a plan in the order of the numbers. What Go holds as a value
is always written, zero or not; what it holds as a pointer only if it is there; lists and maps (keys sorted)
only if they have members; inlined structs always.

Specified by: k8s.io/api/*/generated.pb.go (gogo/protobuf, proto2) and the hand-written messages of meta/v1
(Time), api/resource (Quantity), util/intstr, runtime (RawExtension).
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any, Final

from fakekube.codecs import json
from fakekube.codecs.errors import EncodeError
from fakekube.codecs.protobuf_fields import Layout, is_wrapped, layout, varint
from fakekube.schema.model import Field, Shape, Type
from fakekube.schema.strings import bytes_of

__all__ = ["content_of"]

Write = Callable[[Any], bytes]
"""Makes the bytes of a value: of its content, or of a field with its tag."""

_LENGTHS: Final = [varint(length) for length in range(0x400)]


def _delimited(data: bytes) -> bytes:
    length = len(data)
    return (_LENGTHS[length] if length < 0x400 else varint(length)) + data


_contents: dict[Type, Write] = {}


def content_of(type_: Type) -> Write:
    """The function that writes the content of a message of this type (the bytes between tag and next tag).

    Raises:
        EncodeError: when called with something that the type does not hold.
    """
    known = _contents.get(type_)
    if known is None:
        known = _contents[type_] = _guarded(_compile(type_))
    return known


def _guarded(write: Write) -> Write:
    def guarded(value: Any) -> bytes:
        try:
            return write(value)
        except (AttributeError, TypeError, ValueError, KeyError, struct.error) as error:
            raise EncodeError(f"proto: {error}") from None

    return guarded


# ---------------------------------------------------------------- structs

_compiled: dict[Type, Write] = {}


def _compile(type_: Type) -> Write:
    """The content writer of a message type; made when it is first used, since types contain themselves."""
    known = _compiled.get(type_)
    if known is not None:
        return known
    if type_.shape is not Shape.STRUCT:
        known = _compiled[type_] = _message(type_)
        return known
    made: Write | None = None

    def write_struct(value: Any) -> bytes:
        nonlocal made
        if made is None:
            made = _struct(layout(type_))
        return made(value)

    _compiled[type_] = write_struct
    return write_struct


Step = tuple[str, Write, bytes]
"""How a field is written: its name, the writer of what is there, and what is written if it is not there."""


def _struct(members: Layout) -> Write:
    plan: list[Step] = []
    for number in members.numbers:
        if number in members.inlined:
            plan.append(("", _tagged(number, 2, _struct(members.inlined[number])), b""))
        else:
            field = members.fields[number]
            plan.append((field.name, _field(field), b"" if field.pointer else _zero(field)))
    if members.inlined:
        return lambda value: _write_members(plan, value)
    shapes: dict[tuple[str, ...], tuple[list[Step], bytes]] = {}

    def write(value: Any) -> bytes:
        shape = tuple(value.keys())
        known = shapes.get(shape)
        if known is None:
            if len(shapes) >= _SHAPES:
                shapes.clear()
            known = shapes[shape] = _for_shape(plan, value)
        steps, end = known
        parts = []
        for name, write_field, before in steps:
            member = value[name]
            if member is None:
                return _write_members(plan, value)
            parts.append(before)
            parts.append(write_field(member))
        parts.append(end)
        return b"".join(parts)

    return write


#: Of how many sets of fields a struct's writer remembers which ones are missing between them.
_SHAPES: Final = 64


def _for_shape(plan: list[Step], value: Any) -> tuple[list[Step], bytes]:
    """The steps for objects with these fields, each with what is written before it, and the end."""
    steps: list[Step] = []
    before = b""
    for name, write, zero in plan:
        if name in value:
            steps.append((name, write, before))
            before = b""
        else:
            before += zero
    return steps, before


def _write_members(plan: list[Step], value: Any) -> bytes:
    """The same for any object; inlined structs (no name) find their fields in the same one."""
    parts = []
    for name, write, zero in plan:
        member = value.get(name) if name else value
        parts.append(write(member) if member is not None else zero)
    return b"".join(parts)


def _tag(number: int, wire: int) -> bytes:
    return varint(number << 3 | wire)


def _tagged(number: int, wire: int, content: Write) -> Write:
    tag = _tag(number, wire)
    if wire != 2:
        return lambda value: tag + content(value)

    def write(value: Any) -> bytes:
        data = content(value)
        length = len(data)
        return tag + (_LENGTHS[length] if length < 0x400 else varint(length)) + data

    return write


def _field(field: Field) -> Write:
    """Writes a field that is there, with its tag."""
    type_, number = field.type, field.number
    if type_.shape is Shape.LIST and not is_wrapped(type_):
        items = type_.items
        assert items is not None
        return _repeated(_tagged(number, *_scalar(items)), partial(_zero_item, number, items))
    if type_.shape is Shape.MAP:
        items = type_.items
        assert items is not None
        return _map(_tag(number, 2), _tagged(2, *_scalar(items)), partial(_zero_item, 2, items))
    if type_.shape is Shape.STRING:
        return _string(_tag(number, 2))
    return _tagged(number, *_scalar(type_))


def _string(tag: bytes) -> Write:
    def write(value: str) -> bytes:
        data = value.encode("utf-8", "surrogateescape")
        length = len(data)
        return tag + (_LENGTHS[length] if length < 0x400 else varint(length)) + data

    return write


def _repeated(write: Write, zero: Callable[[], bytes]) -> Write:
    return lambda value: b"".join([write(item) if item is not None else zero() for item in value])


def _map(tag: bytes, write: Write, zero: Callable[[], bytes]) -> Write:
    key = _string(b"\x0a")

    def write_map(value: dict[str, Any]) -> bytes:
        parts = []
        for name in sorted(value):
            member = value[name]
            parts.append(tag + _delimited(key(name) + (write(member) if member is not None else zero())))
        return b"".join(parts)

    return write_map


def _zero(field: Field) -> bytes:
    """What is written for a field that is held by value and is not there."""
    if field.type.shape in (Shape.LIST, Shape.MAP, Shape.BYTES):
        return b""
    return _zero_item(field.number, field.type)


def _zero_item(number: int, type_: Type) -> bytes:
    if type_.shape is Shape.STRUCT:
        return _tagged(number, 2, _struct(layout(type_)))({})
    known = _ZEROS.get(type_.shape)
    wire, _ = _scalar(type_)
    return b"" if known is None else _tag(number, wire) + known


#: The content of zero values (with its length, where it has one).
_ZEROS: Final = {
    Shape.STRING: b"\0",
    Shape.INTEGER: b"\0",
    Shape.BOOLEAN: b"\0",
    Shape.NUMBER: b"\0" * 8,
    Shape.TIME: b"\0",
    Shape.MICRO_TIME: b"\0",
    Shape.QUANTITY: b"\x03\x0a\x010",
    Shape.INT_OR_STRING: b"\x06\x08\0\x10\0\x1a\0",
    Shape.RAW: b"\0",
    Shape.FIELDS_V1: b"\0",
    Shape.ANY: b"\0",
}

# ---------------------------------------------------------------- values


def _scalar(type_: Type) -> tuple[int, Write]:
    """The wire type of a value, and the writer of its content."""
    if type_.shape is Shape.INTEGER or type_.shape is Shape.BOOLEAN:
        return 0, varint
    if type_.shape is Shape.NUMBER:
        return 1, struct.Struct("<d").pack
    if type_.shape is Shape.STRING:
        return 2, bytes_of
    if type_.shape is Shape.BYTES:
        return 2, base64.b64decode
    return 2, _compile(type_)


def _message(type_: Type) -> Write:
    """The content writer of a type that is a message, but no struct with a layout."""
    if is_wrapped(type_):
        return _repeated(_string(b"\x0a"), lambda: b"\x0a\0")
    if type_.shape is Shape.UNION:
        return _union(type_)
    return _MESSAGES[type_.shape]


def _union(type_: Type) -> Write:
    """JSONSchemaPropsOrBool and its like: the struct is field 1 (of OrBool 2), the rest the other one."""
    assert type_.items is not None
    assert type_.alternative is not None
    schema, alternative = _compile(type_.items), type_.alternative
    if alternative.shape is Shape.BOOLEAN:
        with_schema = _tagged(2, 2, schema)
        allows = b"\x08\1"
        return lambda value: allows + with_schema(value) if type(value) is dict else b"\x08" + varint(value)
    assert alternative.items is not None
    with_schema = _tagged(1, 2, schema)
    items = _repeated(_tagged(2, *_scalar(alternative.items)), bytes)
    return lambda value: with_schema(value) if isinstance(value, dict) else items(value)


@lru_cache(maxsize=4096)
def _time(text: str) -> bytes:
    """Seconds and nanoseconds; a Time has whole seconds, a MicroTime six digits."""
    moment = datetime.fromisoformat(text)
    seconds = int((moment - _EPOCH).total_seconds() // 1)
    return b"\x08" + varint(seconds) + b"\x10" + varint(moment.microsecond * 1000)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _int_or_string(value: int | str) -> bytes:
    if isinstance(value, str):
        return b"\x08\1\x10\0\x1a" + _delimited(bytes_of(value))
    return b"\x08\0\x10" + varint(value) + b"\x1a\0"


def _raw(value: Any) -> bytes:
    return b"\x0a" + _delimited(json.dumps(value))


_MESSAGES: Final[dict[Shape, Write]] = {
    Shape.TIME: _time,
    Shape.MICRO_TIME: _time,
    Shape.QUANTITY: _string(b"\x0a"),
    Shape.INT_OR_STRING: _int_or_string,
    Shape.RAW: _raw,
    Shape.FIELDS_V1: _raw,
    Shape.ANY: _raw,
}
