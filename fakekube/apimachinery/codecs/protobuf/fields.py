"""The Protobuf layout of structs: fields by number, with the messages of inlined structs.

In JSON the fields of an inlined struct (the source of a pod's volume) are members of the outer object; in Protobuf
such a struct is a nested message that is never absent. A `Layout` is the tree of both. A message does not contain
`kind` and `apiVersion`: they are in the envelope.

Specified by: the `protobuf` tags of the Go types, which `apimachinery/data/` contains.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from fakekube.apimachinery.schema.model import Field, Shape, Type

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


def varint(number: int) -> bytes:
    """Encodes a varint; negative numbers take 64 bits."""
    if 0 <= number < 0x80:
        return bytes((number,))
    number &= 0xFFFFFFFFFFFFFFFF
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
