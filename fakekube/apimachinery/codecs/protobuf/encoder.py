"""Encodes objects to the same bytes as Kubernetes' generated code.

Fields that Go holds by value are always encoded, also if zero; pointers only if set; lists and maps (with sorted
keys) only if not empty; inlined structs always.

For each set of present fields of a struct the encoders are made once, in the order of the field numbers; the zero
values of absent fields are part of the preceding tag bytes. Small values occur often ("Always", 80, "100m"), so
their bytes, including the tag, are cached (`_ValueCache`). Field encoders are compiled on first use, since types may be
recursive.

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

from fakekube.apimachinery.codecs import EncodeError, json
from fakekube.apimachinery.codecs.document import cached_encoder
from fakekube.apimachinery.codecs.protobuf.wire import Layout, encode_varint, is_wrapped, layout
from fakekube.apimachinery.schema.model import Field, Shape, Type
from fakekube.base.caches import BoundedCache, forgettable
from fakekube.base.golang.json_writer import RawObject
from fakekube.base.golang.strings import bytes_of

Write = Callable[[Any], bytes]
"""Encodes a value, without or with its tag. Raises an exception for None, which is an absent value."""


def content_of(type_: Type) -> Write:
    """Returns the function that encodes the content of a message of this type, without the tag.

    Raises:
        EncodeError: raised by the returned function for a value that does not fit the type.
    """
    known = _guarded_encoders.get(type_)
    if known is None:
        known = _guarded_encoders[type_] = _guard(_content(type_))
    return known


_guarded_encoders: dict[Type, Write] = {}


def _guard(write: Write) -> Write:
    def write_guarded(value: Any) -> bytes:
        try:
            return write(value)
        except (AttributeError, TypeError, ValueError, KeyError, struct.error) as error:
            raise EncodeError(f"proto: {error}") from None

    return write_guarded


class _ValueCache(dict[Any, bytes]):
    """Caches encoded values with their tag: the first ones that are short."""

    __slots__ = ("_content", "_tag")

    def __init__(self, tag: bytes, content: Write) -> None:
        super().__init__()
        self._tag = tag
        self._content = content

    def __missing__(self, value: Any) -> bytes:
        made = self._tag + self._content(value)
        if len(made) <= _MAX_CACHED_BYTES and len(self) < _MAX_CACHED_VALUES:
            self[value] = made
        return made


class _TextCache(_ValueCache):
    """Caches encoded texts, and is fast for others: most texts differ (names, uids, revisions)."""

    __slots__ = ()

    def __missing__(self, value: Any) -> bytes:
        try:
            data = value.encode()
        except UnicodeEncodeError:
            data = bytes_of(value)
        length = len(data)
        made: bytes = self._tag + (_LENGTHS[length] if length < 0x400 else encode_varint(length)) + data
        if length <= _MAX_CACHED_BYTES and len(self) < _MAX_CACHED_VALUES:
            self[value] = made
        return made


_MAX_CACHED_BYTES: Final = 96
_MAX_CACHED_VALUES: Final = 64

_LENGTHS: Final = [encode_varint(length) for length in range(0x400)]


def _delimit(data: bytes) -> bytes:
    length = len(data)
    return (_LENGTHS[length] if length < 0x400 else encode_varint(length)) + data


# --- Structs ----------------------------------------------------------------------------------------------------------

Steps = tuple[list[tuple[str, Write]], bytes]
"""The present members: name ("" for the object itself) and encoder of each, and the bytes that follow."""

#: The maximum number of field sets for which a struct caches its steps.
_MAX_CACHED_STEPS: Final = 64


def _struct(members: Layout) -> Write:
    """Makes the encoder of a struct's content."""
    shapes: BoundedCache[tuple[str, ...], Steps] = BoundedCache(_MAX_CACHED_STEPS)

    def write(value: dict[str, Any]) -> bytes:
        names = tuple(value.keys())
        known = shapes.get(names)
        if known is None:
            known = shapes.add(names, _steps(members, names))
        steps, end = known
        try:
            return b"".join([step(value[name]) if name else step(value) for name, step in steps]) + end
        except Exception:
            if None not in value.values():
                raise
            return write({name: member for name, member in value.items() if member is not None})

    return write


def _steps(members: Layout, names: tuple[str, ...]) -> Steps:
    """Makes the steps that encode objects with these fields."""
    steps: list[tuple[str, Write]] = []
    before = b""
    for number in members.numbers:
        if number in members.inlined:  # its fields are members of the same object
            steps.append(("", _message(before + _tag(number, 2), _struct(members.inlined[number]))))
            before = b""
            continue
        field = members.fields[number]
        if field.name in names:
            steps.append((field.name, _field(field, before)))
            before = b""
        elif not field.pointer:
            before += _zero(field)
    return steps, before


def _message(tag: bytes, content: Write) -> Write:
    def write(value: Any) -> bytes:
        data = content(value)
        length = len(data)
        return tag + (_LENGTHS[length] if length < 0x400 else encode_varint(length)) + data

    return write


# --- Fields -----------------------------------------------------------------------------------------------------------

#: Structs that are equal in many objects: those of replicas, and of an object whose metadata changes.
_OFTEN_EQUAL: Final = frozenset({"spec", "status", "template"})


def _tag(number: int, wire: int) -> bytes:
    return encode_varint(number << 3 | wire)


def _field(field: Field, before: bytes) -> Write:
    """Makes the encoder of a present field with its tags, prefixed by `before`."""
    type_, number = field.type, field.number
    if type_.shape is Shape.LIST and not is_wrapped(type_):
        assert type_.items is not None
        write = _value(number, type_.items)
        if type_.items.shape is Shape.STRUCT:
            write = cached_encoder(write)
        return _repeat(before, write, partial(_zero_item, number, type_.items))
    if type_.shape is Shape.MAP:
        assert type_.items is not None
        return _map(before, _tag(number, 2), type_.items)
    write = _value(number, type_, before)
    return cached_encoder(write) if type_.shape is Shape.STRUCT and field.name in _OFTEN_EQUAL else write


def _repeat(before: bytes, write: Write, zero: Callable[[], bytes]) -> Write:
    def write_list(value: list[Any]) -> bytes:
        try:
            return before + b"".join([write(item) for item in value])
        except Exception:
            if None not in value:
                raise
            return before + b"".join([zero() if item is None else write(item) for item in value])

    return write_list


def _map(before: bytes, tag: bytes, items: Type) -> Write:
    member, zero = _value(2, items), partial(_zero_item, 2, items)

    def content(entry: tuple[str, Any]) -> bytes:
        name, value = entry
        return _delimit(b"\x0a" + _text(name) + (zero() if value is None else member(value)))

    # No other type can be a key.
    write: Write = _ValueCache(tag, content).__getitem__ if items.shape in _SIMPLE else lambda entry: tag + content(entry)
    return lambda value: before + b"".join([write(entry) for entry in sorted(value.items())])


def _value(number: int, type_: Type, before: bytes = b"") -> Write:
    """Makes the encoder of a value (not a list or map) with its tag, prefixed by `before`."""
    shape = type_.shape
    if shape in _SIMPLE:
        wire, content = _SIMPLE[shape]
        cache = _TextCache if shape is Shape.STRING else _ValueCache
        return cache(before + _tag(number, wire), content).__getitem__
    if shape is Shape.NUMBER:  # 0.0 and -0.0 are equal keys
        tag, pack = before + _tag(number, 1), struct.Struct("<d").pack
        return lambda value: tag + pack(value)
    return _message(before + _tag(number, 2), base64.b64decode if shape is Shape.BYTES else _content(type_))


def _zero(field: Field) -> bytes:
    """Encodes the zero value of an absent field that Go holds by value."""
    if field.type.shape in (Shape.LIST, Shape.MAP, Shape.BYTES):
        return b""
    return _zero_item(field.number, field.type)


def _zero_item(number: int, type_: Type) -> bytes:
    if type_.shape is Shape.STRUCT:
        return _message(_tag(number, 2), _content(type_))({})
    known = _ZEROS.get(type_.shape)
    if known is None:
        return b""
    wire = 1 if type_.shape is Shape.NUMBER else _SIMPLE[type_.shape][0] if type_.shape in _SIMPLE else 2
    return _tag(number, wire) + known


#: The content of zero values (with its length, if it is length-delimited).
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

# --- Values -----------------------------------------------------------------------------------------------------------


def _text(value: str) -> bytes:
    data = bytes_of(value)
    length = len(data)
    return (_LENGTHS[length] if length < 0x400 else encode_varint(length)) + data


def _wrapped_text(value: str) -> bytes:
    return _delimit(b"\x0a" + _text(value))


def _int_or_string(value: int | str) -> bytes:
    if isinstance(value, str):
        return _delimit(b"\x08\1\x10\0\x1a" + _text(value))
    return _delimit(b"\x08\0\x10" + encode_varint(value) + b"\x1a\0")


#: The types with cacheable values: the wire type, and the encoder of the content.
_SIMPLE: Final[dict[Shape, tuple[int, Write]]] = {
    Shape.STRING: (2, _text),
    Shape.INTEGER: (0, encode_varint),
    Shape.BOOLEAN: (0, encode_varint),
    Shape.QUANTITY: (2, _wrapped_text),
    Shape.INT_OR_STRING: (2, _int_or_string),
}


_contents: dict[Type, Write] = {}


def _content(type_: Type) -> Write:
    """Returns the cached content encoder of a message type."""
    known = _contents.get(type_)
    if known is None:
        known = _contents[type_] = _compile_content(type_)
    return known


def _compile_content(type_: Type) -> Write:
    if type_.shape is Shape.STRUCT:
        return _struct(layout(type_))
    if type_.shape is Shape.UNION:
        return _union(type_)
    if is_wrapped(type_):
        return _repeat(b"", lambda text: b"\x0a" + _text(text), lambda: b"\x0a\0")
    return _MESSAGES[type_.shape]


def _union(type_: Type) -> Write:
    """Makes the encoder of JSONSchemaPropsOrBool and similar types: the struct is field 1 (in OrBool field 2), the
    alternative is the other field.
    """
    assert type_.items is not None
    assert type_.alternative is not None
    schema, alternative = _content(type_.items), type_.alternative
    if alternative.shape is Shape.BOOLEAN:
        with_schema = _message(_tag(2, 2), schema)
        allows = b"\x08\1"
        return lambda value: allows + with_schema(value) if type(value) is dict else b"\x08" + encode_varint(value)
    assert alternative.items is not None
    with_schema = _message(_tag(1, 2), schema)
    items = _repeat(b"", _value(2, alternative.items), bytes)
    return lambda value: with_schema(value) if isinstance(value, dict) else items(value)


@forgettable
@lru_cache(maxsize=4096)
def encode_time(text: str) -> bytes:
    """Encodes seconds and nanoseconds; a Time has whole seconds, a MicroTime microseconds."""
    moment = datetime.fromisoformat(text)
    seconds = int((moment - _EPOCH).total_seconds() // 1)
    return b"\x08" + encode_varint(seconds) + b"\x10" + encode_varint(moment.microsecond * 1000)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _raw(value: Any) -> bytes:
    if value is None:
        raise TypeError("it is absent")
    return b"\x0a" + _delimit(value.text if isinstance(value, RawObject) else json.dumps(value))


_MESSAGES: Final[dict[Shape, Write]] = {
    Shape.TIME: encode_time,
    Shape.MICRO_TIME: encode_time,
    Shape.RAW: _raw,
    Shape.FIELDS_V1: _raw,
    Shape.ANY: _raw,
}
