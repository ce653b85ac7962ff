"""Decodes the messages of Kubernetes' types into plain JSON objects.

Each struct has a table from field numbers to decoders. Unknown fields are skipped, repeated occurrences of a
message field are merged, and of a repeated scalar field the last value is kept. Zero values that JSON omits are
dropped; `schema.decode` then establishes the order of fields and the zero values that are always printed.

Specified by: k8s.io/api/*/generated.pb.go (Unmarshal of gogo/protobuf), including the error messages.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fakekube.codecs import json
from fakekube.codecs.errors import DecodeError
from fakekube.codecs.protobuf.fields import Layout, is_wrapped, layout
from fakekube.codecs.protobuf.names import go_name
from fakekube.golang.strings import text_of
from fakekube.schema.model import Field, Shape, Type

__all__ = ["Member", "Table", "read_struct", "scan"]

Read = Callable[[Any], Any]
"""Converts the content of a field (bytes, or the number of a varint) to a value."""


def _end() -> DecodeError:
    return DecodeError("unexpected EOF")


def _negative_length() -> DecodeError:
    """The error for a length beyond int64, or one that ends beyond it."""
    return DecodeError("proto: negative length found during unmarshaling")


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Decodes a number of at most 64 bits. Returns it and its end."""
    if at < end and data[at] < 0x80:
        return data[at], at + 1
    number = shift = 0
    while shift < 64:
        if at >= end:
            raise _end()
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
    raise DecodeError("proto: integer overflow")


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _delimited(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Returns the start and the end of length-delimited content."""
    length, at = _varint(data, at, end)
    after = at + length
    if after >> 63:
        raise _negative_length()
    if after > end:
        raise _end()
    return at, after


@dataclass(slots=True)
class Member:
    """The decoder of one field."""

    wire: int
    go_name: str
    store: Callable[[dict[str, Any], Any], None]
    """Stores the content (bytes, or the number of a varint) in an object: called with (object, content)."""


#: The wire type of map entries in a `Member`: the low bits are those on the wire. The decoder of an entry also gets
#: the enclosing message, since the generated code does not check that key and value end within the entry.
_ENTRY: Final = 8 | 2

Fields = dict[int, Member]


class Table:
    """The members of a message by number, and by their usual tag byte."""

    __slots__ = ("by_number", "by_tag")

    def __init__(self, fields: Fields) -> None:
        self.by_number = fields
        self.by_tag = {number << 3 | one.wire & 7: (one.wire, one.store) for number, one in fields.items()}


def scan(data: bytes, table: Table, into: dict[str, Any], message: str) -> None:
    """Decodes all fields of a message.

    Args:
        data: the content of the message.
        table: its members.
        into: the object to store them in.
        message: its Go name, for errors.

    Raises:
        DecodeError: the message is malformed.
    """
    at, end = 0, len(data)
    by_tag = table.by_tag
    while at < end:
        start = at
        tag = data[at]
        at += 1
        if tag > 0x7F:
            tag, at = _varint(data, start, end)
        member = by_tag.get(tag)
        if member is None:
            at = _pass_over(data, start, end, table.by_number, message)
            continue
        wire, store = member
        if wire == 2:
            if at < end and data[at] < 0x80:
                begin = at + 1
                at = begin + data[at]
                if at > end:
                    raise _end()
            else:
                begin, at = _delimited(data, at, end)
            store(into, data[begin:at])
        elif wire == 0:
            value, at = _varint(data, at, end)
            store(into, value)
        elif wire == _ENTRY:
            begin, at = _delimited(data, at, end)
            store(into, (data, begin, at))
        else:
            at += 8
            if at > end:
                raise _end()
            store(into, data[at - 8 : at])


def _pass_over(data: bytes, at: int, end: int, fields: Fields, message: str) -> int:
    """Skips an unknown field. Raises DecodeError for a known field, which has a wrong wire type."""
    key, _ = _varint(data, at, end)
    number, wire = _signed32(key >> 3), key & 7
    if wire == 4:
        raise DecodeError(f"proto: {message}: wiretype end group for non-group")
    if number <= 0:
        raise DecodeError(f"proto: {message}: illegal tag {number} (wire type {key})")
    if number in fields:
        raise DecodeError(f"proto: wrong wireType = {wire} for field {fields[number].go_name}")
    return _skip(data, at, end)


def _skip(data: bytes, at: int, end: int) -> int:
    """Skips a field with its tag, or a whole group."""
    depth = 0
    while at < end:
        key, at = _varint(data, at, end)
        wire = key & 7
        if wire == 0:
            _, at = _varint(data, at, end)
        elif wire == 1:
            at += 8
        elif wire == 2:
            length, at = _varint(data, at, end)
            at += length
            if at >> 63:
                raise _negative_length()
        elif wire == 3:
            depth += 1
        elif wire == 4:
            if not depth:
                raise DecodeError("proto: unexpected end of group")
            depth -= 1
        elif wire == 5:
            at += 4
        else:
            raise DecodeError(f"proto: illegal wireType {wire}")
        if not depth:
            break
    if at > end or depth:
        raise _end()
    return at


# ---------------------------------------------------------------- structs

_tables: dict[Type, Table] = {}


def read_struct(type_: Type, data: bytes, into: dict[str, Any] | None = None) -> dict[str, Any]:
    """Decodes a message of a struct type, merging it into the object `into`.

    Raises:
        DecodeError: the message is malformed.
    """
    table = _tables.get(type_)
    if table is None:
        table = _tables[type_] = _table(layout(type_), _struct_name(type_))
    result: dict[str, Any] = {} if into is None else into
    scan(data, table, result, _struct_name(type_))
    return result


def _struct_name(type_: Type) -> str:
    return type_.name.rpartition(".")[2]


def _table(members: Layout, struct: str) -> Table:
    fields = {number: _member(field, go_name(field.name, struct)) for number, field in members.fields.items()}
    for number, inner in members.inlined.items():
        fields[number] = _inlined(inner.name, _table(inner, inner.name))
    return Table(fields)


def _inlined(struct: str, table: Table) -> Member:
    return Member(2, struct, lambda into, data: scan(data, table, into, struct))


def _member(field: Field, known_as: str) -> Member:
    type_ = field.type
    if type_.shape is Shape.LIST and not is_wrapped(type_):
        assert type_.items is not None
        wire, read = _value(type_.items)
        return Member(wire, known_as, _appended(field.name, read))
    if type_.shape is Shape.MAP:
        assert type_.items is not None
        return Member(_ENTRY, known_as, _entered(field.name, type_.items))
    if type_.shape is Shape.STRUCT:
        return Member(2, known_as, _merged(field.name, type_))
    wire, read = _value(type_)
    return Member(wire, known_as, _set_text(field) if type_.shape is Shape.STRING else _set(field, read))


def _set_text(field: Field) -> Callable[[dict[str, Any], Any], None]:
    name, shows_zero = field.name, field.pointer or not field.omit_empty

    def store(into: dict[str, Any], content: bytes) -> None:
        if content or shows_zero:
            into[name] = content.decode("utf-8", "surrogateescape")
        else:
            into.pop(name, None)

    return store


def _set(field: Field, read: Read) -> Callable[[dict[str, Any], Any], None]:
    name, shows_zero = field.name, field.pointer or not field.omit_empty

    def store(into: dict[str, Any], content: Any) -> None:
        value = read(content)
        if value is None or (not shows_zero and value in _ZEROS):
            into.pop(name, None)
        else:
            into[name] = value

    return store


#: Zero values of scalars that JSON omits ("0" is a quantity, which JSON contains).
_ZEROS: Final = ("", 0, False)


def _merged(name: str, type_: Type) -> Callable[[dict[str, Any], Any], None]:
    def store(into: dict[str, Any], content: bytes) -> None:
        into[name] = read_struct(type_, content, into.get(name))

    return store


def _appended(name: str, read: Read) -> Callable[[dict[str, Any], Any], None]:
    def store(into: dict[str, Any], content: Any) -> None:
        items = into.get(name)
        if items is None:
            items = into[name] = []
        items.append(read(content))

    return store


def _entered(name: str, items: Type) -> Callable[[dict[str, Any], Any], None]:
    wire, read = _value(items)
    zero = _zero_of(items)

    def store(into: dict[str, Any], content: tuple[bytes, int, int]) -> None:
        key, value = "", None
        data, at, end = content
        limit = len(data)
        while at < end:
            start = at
            tag, at = _varint(data, at, limit)
            number = _signed32(tag >> 3)
            if number == 1:
                begin, at = _delimited(data, at, limit)
                key = text_of(data[begin:at])
            elif number == 2 and wire == 2:
                begin, at = _delimited(data, at, limit)
                value = read(data[begin:at])
            elif number == 2:
                varint, at = _varint(data, at, limit)
                value = read(varint)
            else:
                at = _skip(data, start, limit)
                if at > end:
                    raise _end()
        members = into.get(name)
        if members is None:
            members = into[name] = {}
        members[key] = zero() if value is None else value

    return store


def _zero_of(type_: Type) -> Callable[[], Any]:
    """Makes the value of a map entry without a value."""
    made: dict[Shape, Callable[[], Any]] = {
        Shape.STRUCT: dict, Shape.LIST: list, Shape.INTEGER: int, Shape.BOOLEAN: bool,
        Shape.QUANTITY: lambda: "0",
    }  # fmt: skip
    return made.get(type_.shape, str if type_.shape in (Shape.STRING, Shape.BYTES) else lambda: None)


# ---------------------------------------------------------------- values


def _value(type_: Type) -> tuple[int, Read]:
    """Returns the wire type and the decoder of a type."""
    shape = type_.shape
    if shape is Shape.STRUCT:
        return 2, lambda data: read_struct(type_, data)
    if is_wrapped(type_):
        return 2, _wrapped
    if shape is Shape.UNION:
        return 2, lambda data: _union(type_, data)
    if shape is Shape.INTEGER:
        return 0, _signed32 if type_.format == "int32" else _signed
    return _READERS[shape]


def _signed32(number: int) -> int:
    number &= 0xFFFFFFFF
    return number - (1 << 32) if number >> 31 else number


def _number(data: bytes) -> float:
    value: float = struct.unpack("<d", data)[0]
    return value


def _parts(message: str, *numbered: tuple[int, int, str]) -> Callable[[bytes], dict[str, Any]]:
    """Makes a decoder of a small message with scalar fields: (number, wire type, name)."""
    table = Table({number: Member(wire, name, _kept(name)) for number, wire, name in numbered})

    def read(data: bytes) -> dict[str, Any]:
        found: dict[str, Any] = {}
        scan(data, table, found, message)
        return found

    return read


def _kept(name: str) -> Callable[[dict[str, Any], Any], None]:
    return lambda into, content: into.__setitem__(name, content)


_timestamp: Final = _parts("Timestamp", (1, 0, "Seconds"), (2, 0, "Nanos"))
_quantity_parts: Final = _parts("Quantity", (1, 2, "String_"))
_int_or_string_parts: Final = _parts("IntOrString", (1, 0, "Type"), (2, 0, "IntVal"), (3, 2, "StrVal"))
_raw_parts: Final = _parts("RawExtension", (1, 2, "Raw"))
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _moment(data: bytes) -> datetime | None:
    """Decodes a Timestamp; None for an empty one."""
    if not data:
        return None
    found = _timestamp(data)
    seconds, nanos = _signed(found.get("Seconds", 0)), _signed32(found.get("Nanos", 0))
    try:
        return _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError:
        raise DecodeError("Time.MarshalJSON: year outside of range [0,9999]") from None


def _time(data: bytes) -> str | None:
    moment = _moment(data)
    return None if moment is None else f"{moment.replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def _micro_time(data: bytes) -> str | None:
    moment = _moment(data)
    return None if moment is None else f"{moment.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def _quantity(data: bytes) -> str:
    return text_of(_quantity_parts(data).get("String_", b"0"))


def _int_or_string(data: bytes) -> int | str:
    found = _int_or_string_parts(data)
    if found.get("Type", 0) == 1:
        return text_of(found.get("StrVal", b""))
    return _signed32(found.get("IntVal", 0))


def _raw(data: bytes) -> Any:
    raw = _raw_parts(data).get("Raw")
    return None if not raw else json.loads(raw, merge=False)[0]


def _fields_v1(data: bytes) -> Any:
    """Decodes FieldsV1; invalid JSON is not an error."""
    raw = _raw_parts(data).get("Raw")
    try:
        return None if not raw else json.loads(raw, merge=False)[0]
    except DecodeError:
        return None


def _wrapped(data: bytes) -> list[str]:
    found: dict[str, Any] = {}
    scan(data, _WRAPPED, found, "ExtraValue")
    items: list[str] = found.get("items", [])
    return items


_WRAPPED: Final = Table({1: Member(2, "Items", _appended("items", text_of))})


def _union(type_: Type, data: bytes) -> Any:
    """Decodes a struct or its alternative (see `encoder`)."""
    table = _tables.get(type_)
    if table is None:
        table = _tables[type_] = _union_table(type_)
    found: dict[str, Any] = {}
    scan(data, table, found, _struct_name(type_))
    other = found.get("other")
    return found.get("schema", bool(other)) if not isinstance(other, list) else other


def _union_table(type_: Type) -> Table:
    assert type_.items is not None
    assert type_.alternative is not None
    schema = Member(2, "Schema", _merged("schema", type_.items))
    if type_.alternative.shape is Shape.BOOLEAN:
        return Table({1: Member(0, "Allows", _kept("other")), 2: schema})
    assert type_.alternative.items is not None
    wire, read = _value(type_.alternative.items)
    return Table({1: schema, 2: Member(wire, "JSONSchemas", _appended("other", read))})


_READERS: Final[dict[Shape, tuple[int, Read]]] = {
    Shape.STRING: (2, text_of),
    Shape.BYTES: (2, lambda data: base64.b64encode(data).decode()),
    Shape.BOOLEAN: (0, bool),
    Shape.NUMBER: (1, _number),
    Shape.TIME: (2, _time),
    Shape.MICRO_TIME: (2, _micro_time),
    Shape.QUANTITY: (2, _quantity),
    Shape.INT_OR_STRING: (2, _int_or_string),
    Shape.RAW: (2, _raw),
    Shape.FIELDS_V1: (2, _fields_v1),
    Shape.ANY: (2, _raw),
}
