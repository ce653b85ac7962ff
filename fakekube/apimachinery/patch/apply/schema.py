"""Makes the atoms of a type from the shapes, list types and map types of the model.

Built-in types are made into atoms once per process; those of custom resources once per field manager, since
they come and go with their definitions.

Specified by: k8s.io/kube-openapi/pkg/schemaconv (openapi.go, smd.go): atoms are made from the OpenAPI schema
of a type, whose few departures from the Go type are the table `_SPECIAL` and the rules for defaults of keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from fakekube.apimachinery.patch.apply.atoms import Atom, Choice, Scalar
from fakekube.apimachinery.patch.apply.containers import AtomicList, ItemList, Map
from fakekube.apimachinery.schema import builtin
from fakekube.apimachinery.schema.model import Field, ListType, MapType, Shape, Type

_STRING = Scalar("string")
_NUMERIC = Scalar("numeric")
_BOOLEAN = Scalar("boolean")
_UNTYPED = Scalar("untyped")
#: Untyped scalars, which decoding has validated: times, quantities.
_TEXT = Scalar("untyped")
_TEXT.exact = True

OBJECT_META = "k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta"


def _untyped_atomic() -> Choice:
    """Returns the atom of any value; its lists and maps are atomic."""
    choice = Choice(exact=False)
    choice.scalar = _UNTYPED
    choice.list = AtomicList(choice, exact=False)
    choice.map = Map(None, choice, atomic=True, exact=False)
    return choice


def _deduce(*, exact: bool = False) -> Choice:
    """Returns the deduced atom of any value: maps are granular at all depths, lists are atomic."""
    choice = Choice(exact=exact)
    choice.scalar = _UNTYPED
    choice.list = AtomicList(_UNTYPED_ATOMIC, exact=False)
    choice.map = Map(None, choice, exact=False, deduced=True)
    return choice


_UNTYPED_ATOMIC = _untyped_atomic()
_DEDUCED = _deduce()

_SPECIAL: Mapping[Shape, Atom] = {
    Shape.STRING: _STRING,
    Shape.BYTES: _STRING,
    Shape.DURATION: _STRING,
    Shape.INTEGER: _NUMERIC,
    Shape.NUMBER: _NUMERIC,
    Shape.BOOLEAN: _BOOLEAN,
    Shape.TIME: _TEXT,
    Shape.MICRO_TIME: _TEXT,
    Shape.QUANTITY: _TEXT,
    Shape.INT_OR_STRING: _deduce(exact=True),
    Shape.RAW: _UNTYPED_ATOMIC,
    Shape.ANY: _DEDUCED,
    Shape.FIELDS_V1: Map(None, _DEDUCED, exact=False, deduced=True),
}

#: The atoms of types with a custom JSON form, which OpenAPI does not describe.
UNSTRUCTURED_SCHEMAS = ("JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray")


def atom_of(type: Type) -> Atom:
    """Returns the atom of a built-in type."""
    return _builtin_atom(type) if type.name else _make(type)


def custom_atom_of(type: Type) -> Atom:
    """Returns the atom of a custom resource, whose metadata has the type ObjectMeta."""
    members = _members(type, embedded=True)
    return Map(members, _undeclared_atom(type), exact=_is_exact(type))


_builtin_atom: Callable[[Type], Atom]


def _make(type: Type) -> Atom:
    special = _SPECIAL.get(type.shape)
    if special is not None:
        return _atom_of_format(type, special)
    if type.shape is Shape.LIST:
        return _list(type, type.list_type, type.list_map_keys)
    atomic = type.map_type is MapType.ATOMIC
    if type.shape is Shape.MAP:
        values = atom_of(type.items) if type.items else _DEDUCED
        return Map(None, values, atomic=atomic, exact=_is_exact(type))
    if type.go.endswith(UNSTRUCTURED_SCHEMAS):
        return _DEDUCED
    members = _members(type, embedded=type.embedded_resource)
    return Map(members, _undeclared_atom(type), atomic=atomic, exact=_is_exact(type))


_builtin_atom = cache(_make)


def _atom_of_format(type: Type, atom: Atom) -> Atom:
    """Returns the atom of a string with a format: any scalar."""
    if atom is _STRING and not type.name and type.format not in ("", "byte"):
        return _UNTYPED
    return atom


def _members(type: Type, *, embedded: bool) -> Callable[[], Mapping[str, Atom]]:
    def declare() -> Mapping[str, Atom]:
        atoms = {name: _field_atom(field) for name, field in type.fields.items()}
        if embedded and not type.name:
            atoms["metadata"] = atom_of(builtin.type_of(OBJECT_META))
            atoms.setdefault("apiVersion", _STRING)
            atoms.setdefault("kind", _STRING)
        return atoms

    return declare


def _field_atom(field: Field) -> Atom:
    """Returns the atom of a field; a list without a list type merges by the patch strategy of OpenAPI."""
    type = field.type
    if type.shape is Shape.LIST and "merge" in field.patch_strategy and "l" not in field.row:
        keys = (field.patch_merge_key,) if field.patch_merge_key else ()
        return _list(type, ListType.MAP if keys else ListType.SET, keys)
    return atom_of(type)


def _undeclared_atom(type: Type) -> Atom | None:
    """Returns the atom of undeclared entries of a struct; free-form objects allow any."""
    return _DEDUCED if type.takes_unknown_fields or not type.fields else None


def _list(type: Type, list_type: ListType, keys: tuple[str, ...]) -> Atom:
    items, exact = type.items, _is_exact(type)
    if items is None:
        return AtomicList(_UNTYPED_ATOMIC, exact=False)
    if list_type is ListType.ATOMIC:
        return AtomicList(atom_of(items), exact=exact)
    if list_type is ListType.SET:
        return ItemList(atom_of(items), exact=exact)
    defaults = {key: default for key in keys if (default := _key_default(items.fields.get(key))) is not None}
    return ItemList(atom_of(items), keys, defaults, exact=exact)


def _key_default(field: Field | None) -> Any:
    """Returns the default of a key: that of the OpenAPI schema, else the zero value if the field has no omitempty."""
    if field is None:
        return None
    if not field.type.name:
        return field.default if field.default is not None else field.type.default
    if "v" in field.row:
        return field.row["v"]
    if "x" in field.row:
        return field.row["x"].get("default")
    if field.pointer or "o" not in field.row:
        return None
    return {Shape.STRING: "", Shape.INTEGER: 0, Shape.BOOLEAN: False}.get(field.type.shape)


def _is_exact(type: Type) -> bool:
    """Reports whether no part of the type allows any value; False for recursive types."""
    known: bool | None = type.compiled.get("exact")
    if known is None:
        type.compiled["exact"] = False
        try:
            known = type.compiled["exact"] = _has_exact_parts(type)
        except RecursionError:  # a recursive type
            del type.compiled["exact"]
            raise
    return known


def _has_exact_parts(type: Type) -> bool:
    if type.shape in (Shape.RAW, Shape.ANY, Shape.FIELDS_V1) or type.takes_unknown_fields:
        return False
    if type.shape in (Shape.LIST, Shape.MAP):
        return type.items is not None and _is_exact(type.items)
    if type.shape is not Shape.STRUCT:
        return True
    exact = bool(type.fields)
    for field in type.fields.values():
        exact = exact and _is_exact(field.type)
    return exact
