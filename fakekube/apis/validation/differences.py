"""Differences of v1 objects between their internal forms, for messages: line by line of their JSON, before 1.34 those of go-cmp.

The fields of an internal struct are data of the minor (see `to_internal`); the types of what they hold are those of the v1
struct, whose names in Go have the package of the group instead of that of the version.

Specified by: pkg/apis/core/validation/validation.go of 1.33 (cmp.Diff); pkg/apis/core/types.go.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from fakekube.apimachinery import features
from fakekube.apimachinery.data import META_V1, Facts, InternalField
from fakekube.apimachinery.errors.go_syntax import INT_OR_STRING, QUANTITY, go_name
from fakekube.apimachinery.schema.quantity import parse
from fakekube.apis.validation.to_internal import as_held, internal_fields, shows_empty_fields, to_internal
from fakekube.base.golang import cmp
from fakekube.base.golang.cmp import Kind, Value
from fakekube.base.golang.difflib import unified_diff
from fakekube.base.golang.strings import label_selector_string

_CORE: Final = "k8s.io/api/core/v1."
_NUMBERS: Final = {"#": "int32", "!": "bool", "": "string"}
_ZEROS: Final = {"int32": "0", "int64": "0", "int": "0", "bool": "false", "byte": "0"}


def diff(struct: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Returns the difference between two v1 objects, line by line, of their internal forms.

    Args:
        struct: the name of the struct, of the group core.
        old: the one object.
        new: the other.
    """
    if shows_empty_fields():
        values = _Values(features.current().facts)
        return cmp.diff(values.struct(struct, old), values.struct(struct, new))
    return unified_diff(_lines(to_internal(struct, old)), _lines(to_internal(struct, new)))


def _lines(value: dict[str, Any]) -> list[str]:
    """Returns indented JSON as Go writes it."""
    text = json.dumps(value, ensure_ascii=False, indent=1)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return [f"{line}\n" for line in text.split("\n")]


class _Values:
    """Makes values of Go for the objects of one minor."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def struct(self, struct: str, value: Mapping[str, Any]) -> Value:
        """Returns the value of an internal struct."""
        held, types = as_held(struct, value), self._types(_CORE + struct)
        fields = {field.name or field.struct: self._field(field, held, types) for field in internal_fields(struct)}
        return Value(Kind.STRUCT, f"core.{struct}", fields)

    def _types(self, go_type: str) -> Mapping[str, tuple[str, str]]:
        """Returns JSON name and type of the fields of a v1 struct, by JSON name in lower case."""
        found: dict[str, tuple[str, str]] = {}
        for name, field in (self._facts.row(go_type).get("fields") or {}).items():
            found |= self._types(field["t"].lstrip("*")) if name.startswith("+") else {name.lower(): (name, field["t"])}
        return found

    def _field(self, field: InternalField, held: Mapping[str, Any], types: Mapping[str, tuple[str, str]]) -> Value:
        if field.struct == "ObjectMeta":
            return self._of_struct(f"{META_V1}ObjectMeta", held.get("metadata") or {})
        if field.kind == "+":
            return self.struct(field.struct, held)
        name, go_type = types.get(field.json_name, (field.name[0].lower() + field.name[1:], _NUMBERS.get(field.kind, "bool")))
        value, bare = held.get(name), go_type.lstrip("*")
        if field.kind == "?" and not bare.startswith(("[]", "map[")):
            target = None if value is None else self._value(bare, value)
            return Value(Kind.POINTER, f"*{go_name(bare)}", target, self._print_pointer(bare, value))
        return self._value(bare, value)

    @staticmethod
    def _print_pointer(go_type: str, value: Any) -> str | None:
        """Returns what the method String of a pointer returns; None for the types without one."""
        if value is None:
            return None
        if go_type == f"{META_V1}LabelSelector":
            return label_selector_string(value)
        return str(value) if go_type in (QUANTITY, INT_OR_STRING) else None

    def _value(self, go_type: str, value: Any) -> Value:
        row = self._facts.row(go_type)
        alias = row.get("alias", "")
        if go_type == QUANTITY:
            return _quantity(value)
        if go_type == INT_OR_STRING:
            return _int_or_string(value)
        shape = alias or go_type
        if shape.startswith("[]") and shape != "[]byte":
            items = None if value is None else [self._item(shape[2:], item) for item in value]
            return Value(Kind.SLICE, go_name(go_type), items)
        if shape.startswith("map["):
            element = shape.partition("]")[2]
            entries = None if value is None else {name: self._item(element, item) for name, item in value.items()}
            return Value(Kind.MAP, go_name(go_type), entries)
        if row.get("fields"):
            return self._of_struct(go_type, value or {})
        if shape in _ZEROS:
            text = _ZEROS[shape] if value is None else str(value).lower() if isinstance(value, bool) else str(value)
            return Value(Kind.SCALAR, go_name(go_type), text, zero=text == _ZEROS[shape])
        text = value or ""
        return Value(Kind.STRING, go_name(go_type), text, text if go_type == f"{_CORE}ResourceName" else None)

    def _item(self, go_type: str, value: Any) -> Value:
        if go_type.startswith("*"):
            return Value(Kind.POINTER, go_type, None if value is None else self._value(go_type[1:], value))
        return self._value(go_type, value)

    def _of_struct(self, go_type: str, value: Mapping[str, Any]) -> Value:
        package, _, name = go_type.rpartition(".")
        if f"{package}." == _CORE and name in self._facts.internal:
            return self.struct(name, value)
        fields = {
            json_name[0].upper() + json_name[1:]: self._item(type_, value.get(json_name))
            for json_name, type_ in self._types(go_type).values()
        }
        return Value(Kind.STRUCT, go_name(go_type), fields)


def _quantity(value: str | None) -> Value:
    """Returns a quantity, which a method Equal compares."""
    found = parse(value or "0")
    number = {
        "value": Value(Kind.SCALAR, "int64", str(found.unscaled), zero=not found.unscaled),
        "scale": Value(Kind.SCALAR, "resource.Scale", str(found.scale), zero=not found.scale),
    }
    text = "" if value is None else found.text
    form = "" if value is None else found.format.value
    fields = {
        "i": Value(Kind.STRUCT, "resource.int64Amount", number),
        "s": Value(Kind.STRING, "string", text),
        "Format": Value(Kind.STRING, "resource.Format", form),
    }
    return Value(Kind.STRUCT, "resource.Quantity", fields, same=found.amount)


def _int_or_string(value: int | str | None) -> Value:
    number, text = (0, value) if isinstance(value, str) else (value or 0, "")
    fields = {
        "Type": Value(Kind.SCALAR, "intstr.Type", str(int(isinstance(value, str))), zero=not isinstance(value, str)),
        "IntVal": Value(Kind.SCALAR, "int32", str(number), zero=not number),
        "StrVal": Value(Kind.STRING, "string", text),
    }
    return Value(Kind.STRUCT, "intstr.IntOrString", fields)
