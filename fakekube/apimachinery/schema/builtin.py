"""Makes the `Type`s of built-in types from `apimachinery/data/`, on first use.

A `Type` is made once per minor and Go name (including `[]string` and `map[string]k8s.io/….Quantity`), so types with
the same Go name are identical. A field with its own list type, map keys, map type or enum has its own `Type`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from fakekube.apimachinery import data
from fakekube.apimachinery.data import META_V1
from fakekube.apimachinery.schema.model import Field, ListType, MapType, Shape, Type

_EXTENSIONS = "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/"

_SCALARS: Mapping[str, tuple[Shape, str]] = {
    "string": (Shape.STRING, ""),
    "bool": (Shape.BOOLEAN, ""),
    "bytes": (Shape.BYTES, "byte"),
    "int": (Shape.INTEGER, "int64"),
    "int32": (Shape.INTEGER, "int32"),
    "int64": (Shape.INTEGER, "int64"),
    "float64": (Shape.NUMBER, "double"),
}

#: Types with a custom JSON form.
_CUSTOM: Mapping[str, Shape] = {
    META_V1 + "Time": Shape.TIME,
    META_V1 + "MicroTime": Shape.MICRO_TIME,
    META_V1 + "Duration": Shape.DURATION,
    META_V1 + "FieldsV1": Shape.FIELDS_V1,
    "k8s.io/apimachinery/pkg/api/resource.Quantity": Shape.QUANTITY,
    "k8s.io/apimachinery/pkg/util/intstr.IntOrString": Shape.INT_OR_STRING,
    "k8s.io/apimachinery/pkg/runtime.RawExtension": Shape.RAW,
} | {f"{_EXTENSIONS}{version}.JSON": Shape.ANY for version in ("v1", "v1beta1")}

#: Unions of a struct and a simpler type, by base name: the Go name of the alternative ("%s" is the package).
_UNIONS: Mapping[str, str] = {
    "JSONSchemaPropsOrArray": "[]%s.JSONSchemaProps",
    "JSONSchemaPropsOrBool": "bool",
    "JSONSchemaPropsOrStringArray": "[]string",
}


class Builtins:
    """The types of one minor.

    Args:
        whole_paths: see `Field.whole_path`.
    """

    def __init__(self, facts: data.Facts, *, whole_paths: bool = True) -> None:
        self.facts = facts
        self._whole_paths = whole_paths
        self._types: dict[str, Type] = {}
        self._kind_types: dict[tuple[str, str, str], Type] = {}

    def type_of(self, go_name: str) -> Type:
        """Returns the type of a Go name (`k8s.io/api/core/v1.Pod`, `[]string`, `map[string]int32`). Raises KeyError."""
        known = self._types.get(go_name)
        if known is None:
            known = self._types[go_name] = self._make(go_name, {})
        return known

    def kind_type(self, group: str, version: str, kind: str) -> Type | None:
        """Returns the type of a kind; None if the kind is unknown or has no type."""
        known = self._kind_types.get((group, version, kind))
        if known is None:
            row = self.facts.kind(group, version, kind)
            if row is None or not row.type:
                return None
            known = self._kind_types[group, version, kind] = self.type_of(row.type)
        return known

    def _make(self, go_name: str, row: Mapping[str, Any]) -> Type:
        """Makes a type; `row` is the row of the field if it has attributes of the type."""
        if go_name in _SCALARS:
            shape, format_ = _SCALARS[go_name]
            go = "[]uint8" if go_name == "bytes" else go_name
            return Type(shape, go_name, go, format=format_, enum=tuple(row.get("e", ())))
        if go_name.startswith("[]"):
            return self._list(go_name, go_name[2:], "[]" + self.type_of(go_name[2:]).go, row)
        if go_name.startswith("map["):
            key, _, value = go_name[4:].partition("]")
            return self._map(go_name, value, f"map[{self.type_of(key).go}]{self.type_of(value).go}", row)
        return self._make_named(go_name, row)

    def _list(self, name: str, item: str, go: str, row: Mapping[str, Any]) -> Type:
        items = self._make(item, {"e": row["e"]}) if "e" in row else self.type_of(item)
        list_type = ListType(row.get("l", "atomic"))
        keys = tuple(row.get("m", ()))
        return Type(Shape.LIST, name, go, items=items, list_type=list_type, list_map_keys=keys)

    def _map(self, name: str, value: str, go: str, row: Mapping[str, Any]) -> Type:
        items = self._make(value, {"e": row["e"]}) if "e" in row else self.type_of(value)
        return Type(Shape.MAP, name, go, items=items, map_type=MapType(row.get("g", "granular")))

    def _make_named(self, go_name: str, row: Mapping[str, Any]) -> Type:
        package, _, base = go_name.rpartition(".")
        go = f"{package.rpartition('/')[2]}.{base}"
        if go_name in _CUSTOM:
            return Type(_CUSTOM[go_name], go_name, go)
        if base in _UNIONS:
            alternative = self.type_of(_UNIONS[base].replace("%s", package))
            struct = self.type_of(f"{package}.JSONSchemaProps")
            return Type(Shape.UNION, go_name, go, items=struct, alternative=alternative)
        known = self.facts.type(go_name)
        alias = known.get("alias")
        if alias is None:
            granularity = MapType(row.get("g") or known.get("map", "granular"))
            fields = partial(self._fields, go_name)
            return Type(Shape.STRUCT, go_name, go, resolve=fields, map_type=granularity)
        if alias.startswith("[]"):
            return self._list(go_name, alias[2:], go, row)
        if alias.startswith("map["):
            return self._map(go_name, alias.partition("]")[2], go, row)
        shape, format_ = _SCALARS[alias]
        return Type(shape, go_name, go, format=format_, enum=tuple(row.get("e", ())))

    def _fields(self, go_name: str) -> Mapping[str, Field]:
        return {field.name: field for field in self._flat(go_name, _Inlining())}

    def _flat(self, go_name: str, around: _Inlining) -> Iterator[Field]:
        """Returns the fields of a struct in order, with those of inlined structs in their position."""
        for name, row in self.facts.type(go_name).get("fields", {}).items():
            type_name = row["t"].removeprefix("*")
            if name.startswith("+"):
                yield from self._flat(type_name, around.for_struct(type_name, row))
            else:
                yield self._field(name, type_name, row, around)

    def _field(self, name: str, type_name: str, row: Mapping[str, Any], around: _Inlining) -> Field:
        own = not row.keys().isdisjoint(("l", "m", "g", "e"))
        omitted = row.get("o", "e")
        return Field(
            name=name,
            type=self._make(type_name, row) if own else self.type_of(type_name),
            omit_empty=omitted in ("e", "ez"),
            omit_zero=omitted in ("z", "ez"),
            pointer=row["t"].startswith("*"),
            required="r" in row,
            default=row.get("d"),
            patch_strategy=tuple(row["s"].split(",")) if "s" in row else (),
            patch_merge_key=row.get("k", ""),
            number=row.get("n", 0),
            wire=row.get("w", "bytes") if "n" in row else "",
            inlined=around.numbers,
            embedded=around.names,
            whole_path=self._whole_paths,
            row=row,
        )


@dataclass(slots=True, frozen=True)
class _Inlining:
    """The inlined structs that contain a field: their Protobuf numbers (if they are messages) and their names."""

    numbers: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    def for_struct(self, type_name: str, row: Mapping[str, Any]) -> _Inlining:
        """Returns the inlining of a nested struct."""
        numbers = (*self.numbers, row["n"]) if "n" in row else self.numbers
        return _Inlining(numbers, (*self.names, type_name.rpartition(".")[2]))


@cache
def builtins(version: str = data.DEFAULT) -> Builtins:
    """Returns the types of a minor, made once per process and minor."""
    return Builtins(data.minor(version), whole_paths=int(version.split(".")[1]) >= 35)


def type_of(go_name: str) -> Type:
    """Returns `Builtins.type_of` of the default minor: for types of metadata, which clusters of all minors share."""
    return builtins(data.DEFAULT).type_of(go_name)


def kind_type(group: str, version: str, kind: str) -> Type | None:
    """Returns `Builtins.kind_type` of the default minor."""
    return builtins(data.DEFAULT).kind_type(group, version, kind)
