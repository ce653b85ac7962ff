"""What Protobuf sees of a struct: its fields by number, with the messages that JSON does not show.

In JSON the fields of an inlined struct (a pod's volume and its source) stand beside the others; in Protobuf
such a struct is a message of its own, never absent. A `Layout` is the tree of both. `kind` and `apiVersion`
have no place in a message: they are in the envelope.

Specified by: the `protobuf` tags of the Go types, as they stand in `data/`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from fakekube.schema.model import Field, Shape, Type

__all__ = ["Layout", "is_wrapped", "layout", "varint"]

#: Named lists of strings that are messages around a list.
_WRAPPERS: Final = frozenset({"ExtraValue", "Verbs"})


def is_wrapped(type_: Type) -> bool:
    """Is this list a message with the items in field 1?"""
    return type_.shape is Shape.LIST and type_.name.rpartition(".")[2] in _WRAPPERS


@dataclass(slots=True)
class Layout:
    """A message: a field or, for an inlined struct, a further layout by each number."""

    fields: dict[int, Field] = field(default_factory=dict)
    inlined: dict[int, Layout] = field(default_factory=dict)
    name: str = ""
    """The Go name of an inlined struct."""

    @property
    def numbers(self) -> list[int]:
        """Of all members, in the order in which they are written."""
        return sorted([*self.fields, *self.inlined])


def layout(type_: Type) -> Layout:
    """The layout of a struct."""
    whole = Layout()
    for member in _members(type_.fields.values()):
        place = whole
        for number, name in zip(member.inlined, member.embedded[-len(member.inlined) :], strict=False):
            place = place.inlined.setdefault(number, Layout(name=name))
        place.fields[member.number] = member
    return whole


def _members(fields: Iterable[Field]) -> list[Field]:
    """The fields without those of TypeMeta, whose numbers are taken by others."""
    members = [member for member in fields if member.number]
    opening = [(member.name, member.number) for member in members[:2]]
    if opening == [("kind", 1), ("apiVersion", 2)]:
        own = members[2:]
        if any(member.number == 1 and not member.inlined for member in own):
            return own
    return members


def varint(number: int) -> bytes:
    """A number in Protobuf's variable length; negative ones as 64 bits."""
    if 0 <= number < 0x80:
        return bytes((number,))
    number &= 0xFFFFFFFFFFFFFFFF
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
