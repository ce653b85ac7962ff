"""The one model of a type, for built-ins and custom resources alike.

A `Type` says of which shape a value is and what rules hold for it; a struct has `Field`s, in the order in
which the real server prints them. Everything that depends on types (decoding, defaulting, validation,
printing, strategic merge, apply, Protobuf, OpenAPI, CEL) reads this model; nothing else describes a type a
second time. Built-ins come from `data/`, lazily: the fields of a struct are made when they are first asked
for. Custom resources come from the structural schema of their definition, and use the attributes of the
second half as well.

Invariant: a `Type` does not change once its fields have been resolved; types may be recursive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

__all__ = ["Field", "ListType", "MapType", "Shape", "Type"]


class Shape(Enum):
    """What a value looks like in JSON, and how Go reads it."""

    STRUCT = "struct"
    LIST = "list"
    MAP = "map"
    STRING = "string"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    NUMBER = "number"
    BYTES = "bytes"
    TIME = "time"
    MICRO_TIME = "micro-time"
    DURATION = "duration"
    QUANTITY = "quantity"
    INT_OR_STRING = "int-or-string"
    FIELDS_V1 = "fields-v1"
    UNION = "union"
    """A struct (`items`), or what stands in `alternative`: JSONSchemaPropsOrBool and its like."""
    RAW = "raw"
    """An embedded object of any kind (runtime.RawExtension)."""
    ANY = "any"
    """Any JSON value, kept as it is (apiextensions JSON; unknown parts of custom resources)."""


class ListType(Enum):
    """x-kubernetes-list-type: how lists merge on apply."""

    ATOMIC = "atomic"
    SET = "set"
    MAP = "map"


class MapType(Enum):
    """x-kubernetes-map-type: how maps and structs merge on apply."""

    GRANULAR = "granular"
    ATOMIC = "atomic"


@dataclass(slots=True, eq=False)
class Field:
    """One field of a struct: its JSON name, and what Go and Protobuf say of it."""

    name: str
    type: Type
    omit_empty: bool = True
    """The zero value is not printed (`omitempty`)."""
    omit_zero: bool = False
    """A struct without content is not printed (`omitzero`)."""
    pointer: bool = False
    """None and the zero value are two things."""
    required: bool = False
    default: Any = None
    """A constant default, applied where the field is absent; None is no default."""
    patch_strategy: tuple[str, ...] = ()
    """Of strategic merge: "merge", "replace", "retainKeys"."""
    patch_merge_key: str = ""
    number: int = 0
    """Protobuf field number."""
    wire: str = ""
    """The wire kind of the Protobuf tag: varint, bytes, fixed64 …; repeated when the type is a list."""
    inlined: tuple[int, ...] = ()
    """Protobuf numbers of the messages around the field that JSON does not show (inlined structs), outermost
    first."""
    embedded: tuple[str, ...] = ()
    """Names of the inlined structs around the field, outermost first: Go's messages show them in paths."""
    row: Mapping[str, Any] = field(default_factory=dict)
    """The row in `data/` that the field was made from."""


@dataclass(eq=False)
class Type:
    """A type. Of the optional attributes only those that fit the shape mean something."""

    shape: Shape
    name: str = ""
    """The Go name of a built-in type, as in `data/`; empty for schemas of definitions."""
    go: str = ""
    """How Go's messages call the type: `int32`, `map[string]string`, `v1.PodSpec`, `[]v1.Container` …"""
    resolve: Callable[[], Mapping[str, Field]] | None = None
    """Makes the fields of a struct on first use."""
    items: Type | None = None
    """Of the items of a list, or of the values of a map; of a union the struct."""
    alternative: Type | None = None
    """Of a union what may stand there instead of the struct."""
    list_type: ListType = ListType.ATOMIC
    list_map_keys: tuple[str, ...] = ()
    map_type: MapType = MapType.GRANULAR
    format: str = ""
    """int32, int64, uint16 …; of schemas: any OpenAPI format."""
    enum: tuple[Any, ...] = ()

    # What only the schemas of custom resources use.
    nullable: bool = False
    default: Any = None
    required: tuple[str, ...] = ()
    preserve_unknown_fields: bool = False
    takes_unknown_fields: bool = False
    """It, or something that it is in, preserves unknown fields: then apply takes them, though pruning may not."""
    embedded_resource: bool = False
    keywords: Mapping[str, Any] = field(default_factory=dict)
    """minimum, maxLength, pattern, allOf, x-kubernetes-validations …: what validation compiles."""

    compiled: dict[str, Any] = field(default_factory=dict, repr=False)
    """What the walks over types have compiled for this one, by the name of the walk."""

    @cached_property
    def fields(self) -> Mapping[str, Field]:
        """The fields of a struct by JSON name, in their order; inlined structs are part of the struct."""
        return self.resolve() if self.resolve else {}
