"""The wire format of Protobuf: scans the fields of a message by a table from tags to decoders.

Invariant: a message is accepted, or rejected with the same error, as by the generated code: unknown fields are skipped, a known
field with another wire type is an error.

Specified by: protobuf.dev/programming-guides/encoding; k8s.io/api/*/generated.pb.go (Unmarshal, skipGenerated).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from fakekube.apimachinery.codecs import DecodeError
from fakekube.apimachinery.schema.model import Field, Shape, Type


def unexpected_end() -> DecodeError:
    return DecodeError("unexpected EOF")


def _negative_length() -> DecodeError:
    """Returns the error for a length beyond int64, or one that ends beyond it."""
    return DecodeError("proto: negative length found during unmarshaling")


def read_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Decodes a number of at most 64 bits. Returns it and its end."""
    if at < end and data[at] < 0x80:
        return data[at], at + 1
    number = shift = 0
    while shift < 64:
        if at >= end:
            raise unexpected_end()
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
    raise DecodeError("proto: integer overflow")


def to_signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def signed32(number: int) -> int:
    number &= 0xFFFFFFFF
    return number - (1 << 32) if number >> 31 else number


def read_delimited(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Returns the start and the end of length-delimited content."""
    length, at = read_varint(data, at, end)
    after = at + length
    if after >> 63:
        raise _negative_length()
    if after > end:
        raise unexpected_end()
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
ENTRY: Final = 8 | 2

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
            tag, at = read_varint(data, start, end)
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
                    raise unexpected_end()
            else:
                begin, at = read_delimited(data, at, end)
            store(into, data[begin:at])
        elif wire == 0:
            value, at = read_varint(data, at, end)
            store(into, value)
        elif wire == ENTRY:
            begin, at = read_delimited(data, at, end)
            store(into, (data, begin, at))
        else:
            at += 8
            if at > end:
                raise unexpected_end()
            store(into, data[at - 8 : at])


def _pass_over(data: bytes, at: int, end: int, fields: Fields, message: str) -> int:
    """Skips an unknown field. Raises DecodeError for a known field, which has a wrong wire type."""
    key, _ = read_varint(data, at, end)
    number, wire = signed32(key >> 3), key & 7
    if wire == 4:
        raise DecodeError(f"proto: {message}: wiretype end group for non-group")
    if number <= 0:
        raise DecodeError(f"proto: {message}: illegal tag {number} (wire type {key})")
    if number in fields:
        raise DecodeError(f"proto: wrong wireType = {wire} for field {fields[number].go_name}")
    return skip(data, at, end)


def skip(data: bytes, at: int, end: int) -> int:
    """Skips a field with its tag, or a whole group."""
    depth = 0
    while at < end:
        key, at = read_varint(data, at, end)
        wire = key & 7
        if wire == 0:
            _, at = read_varint(data, at, end)
        elif wire == 1:
            at += 8
        elif wire == 2:
            length, at = read_varint(data, at, end)
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
        raise unexpected_end()
    return at


# --- The layout of structs: fields by number, with the messages of inlined structs -----------------------------------
# In JSON the fields of an inlined struct (the source of a pod's volume) are members of the outer object; in Protobuf
# such a struct is a nested message that is never absent. A `Layout` is the tree of both. A message does not contain
# `kind` and `apiVersion`: they are in the envelope.
#
# Specified by: the `protobuf` tags of the Go types, which `apimachinery/data/` contains.


#: Named list types that are messages with one list of strings.
_WRAPPERS: Final = frozenset({"AttestationValue", "ExtraValue", "Verbs"})


def is_wrapped(type_: Type) -> bool:
    """Reports whether this list is a message with the items in field 1."""
    return type_.shape is Shape.LIST and type_.name.rpartition(".")[2] in _WRAPPERS


@dataclass(slots=True)
class Layout:
    """A message: by number, a field, or a nested layout for an inlined struct."""

    fields: dict[int, Field] = field(default_factory=dict)
    inlined: dict[int, Layout] = field(default_factory=dict)
    name: str = ""
    """The Go name of an inlined struct."""

    @property
    def numbers(self) -> list[int]:
        """The numbers of all members, in the order of encoding."""
        return sorted([*self.fields, *self.inlined])


def layout(type_: Type) -> Layout:
    """Returns the layout of a struct."""
    whole = Layout()
    for member in _members(type_.fields.values()):
        place = whole
        for number, name in zip(member.inlined, member.embedded[-len(member.inlined) :], strict=False):
            place = place.inlined.setdefault(number, Layout(name=name))
        place.fields[member.number] = member
    return whole


def _members(fields: Iterable[Field]) -> list[Field]:
    """Drops the fields of TypeMeta, whose numbers other fields use."""
    members = [member for member in fields if member.number]
    opening = [(member.name, member.number) for member in members[:2]]
    if opening == [("kind", 1), ("apiVersion", 2)]:
        own = members[2:]
        if any(member.number == 1 and not member.inlined for member in own):
            return own
    return members


def encode_varint(number: int) -> bytes:
    """Encodes a varint; negative numbers take 64 bits."""
    if 0 <= number < 0x80:
        return bytes((number,))
    if 0 <= number < 0x4000:  # most lengths
        return bytes((number & 0x7F | 0x80, number >> 7))
    number &= 0xFFFFFFFFFFFFFFFF
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
