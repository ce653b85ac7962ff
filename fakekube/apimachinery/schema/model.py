"""The model of types, for built-in types and custom resources.

A `Type` has the shape of a value and its rules; a struct has `Field`s, in the order in which the real server prints
them. All operations that depend on types (decoding, defaulting, validation, printing, strategic merge, apply,
Protobuf, OpenAPI, CEL) use this model. Built-in types are made from `apimachinery/data/` lazily: the fields of a struct are
made on first use. Types of custom resources are made from the structural schema of the definition, and also use the attributes
of the second half.

Invariant: a `Type` does not change once its fields have been resolved; types may be recursive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any


class Shape(Enum):
    """The form of a value in JSON, and the way in which Go decodes it."""

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
    """A struct (`items`) or the type in `alternative`: JSONSchemaPropsOrBool and similar types."""
    RAW = "raw"
    """An embedded object of any kind (runtime.RawExtension)."""
    ANY = "any"
    """Any JSON value, stored unchanged (apiextensions JSON; unknown parts of custom resources)."""


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
    """One field of a struct: its JSON name, and its properties in Go and Protobuf."""

    name: str
    type: Type
    omit_empty: bool = True
    """The zero value is not printed (`omitempty`)."""
    omit_zero: bool = False
    """A struct without content is not printed (`omitzero`)."""
    pointer: bool = False
    """The field is a pointer: None and the zero value are different."""
    required: bool = False
    default: Any = None
    """A constant default for an absent field; None if there is none."""
    patch_strategy: tuple[str, ...] = ()
    """The strategic merge patch strategy: "merge", "replace", "retainKeys"."""
    patch_merge_key: str = ""
    number: int = 0
    """Protobuf field number."""
    wire: str = ""
    """The wire kind of the Protobuf tag: varint, bytes, fixed64 …; repeated when the type is a list."""
    inlined: tuple[int, ...] = ()
    """Protobuf numbers of the inlined structs that contain the field, outermost first."""
    embedded: tuple[str, ...] = ()
    """Names of the inlined structs that contain the field, outermost first."""
    whole_path: bool = True
    """Paths in Go's messages name inlined structs, and what is within types with a custom UnmarshalJSON (since 1.35)."""
    row: Mapping[str, Any] = field(default_factory=dict)
    """The source row in `apimachinery/data/`."""


@dataclass(eq=False)
class Type:
    """A type. Each optional attribute applies to some shapes only."""

    shape: Shape
    name: str = ""
    """The Go name of a built-in type, as in `apimachinery/data/`; empty for types of custom resources."""
    go: str = ""
    """The name of the type in Go's messages: `int32`, `map[string]string`, `v1.PodSpec`, `[]v1.Container` …"""
    resolve: Callable[[], Mapping[str, Field]] | None = None
    """Makes the fields of a struct on first use."""
    items: Type | None = None
    """The type of a list's items, of a map's values, or of a union's struct."""
    alternative: Type | None = None
    """The alternative to the struct of a union."""
    list_type: ListType = ListType.ATOMIC
    list_map_keys: tuple[str, ...] = ()
    map_type: MapType = MapType.GRANULAR
    format: str = ""
    """int32, int64, uint16 …; of schemas: any OpenAPI format."""
    enum: tuple[Any, ...] = ()

    # Attributes of custom resources only.
    nullable: bool = False
    default: Any = None
    required: tuple[str, ...] = ()
    preserve_unknown_fields: bool = False
    takes_unknown_fields: bool = False
    """The type or an enclosing one preserves unknown fields: apply accepts them, though pruning may drop them."""
    embedded_resource: bool = False
    keywords: Mapping[str, Any] = field(default_factory=dict)
    """The rules for validation: minimum, maxLength, pattern, allOf, x-kubernetes-validations …"""

    compiled: dict[str, Any] = field(default_factory=dict, repr=False)
    """The compiled operations of this type, by name."""

    @cached_property
    def fields(self) -> Mapping[str, Field]:
        """The fields of a struct by JSON name, in order, including the fields of inlined structs."""
        return self.resolve() if self.resolve else {}


def types_below(type_: Type) -> Iterable[Type]:
    """Returns a type and all types of which its values are made."""
    found = {id(type_): type_}
    pending = [type_]
    while pending:
        current = pending.pop()
        fields = [field.type for field in current.fields.values()]
        for inner in (current.items, current.alternative, *fields):
            if inner is not None and id(inner) not in found:
                found[id(inner)] = inner
                pending.append(inner)
    return found.values()
