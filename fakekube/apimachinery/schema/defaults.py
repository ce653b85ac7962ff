"""Sets the constant defaults of fields; compiled per type.

A default belongs to a field and applies wherever its struct is present (`apimachinery/data/` has the default of a field if it
applies to all kinds, or a path if it applies to one kind only). It is set if the field is nil (pointers), zero
(scalars) or empty (lists). Resource lists are rounded up to thousandths, like in the real server's defaulting.

The modules of the kinds set the defaults that depend on other fields; `tests/reference/generate.py` lists them. An object is
completely defaulted after `apply` and the strategy's `default`.

Specified by: k8s.io/kubernetes/pkg/apis/**/zz_generated.defaults.go and defaults.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from threading import RLock
from typing import Any, Final

from fakekube.apimachinery.schema.builtin import Builtins
from fakekube.apimachinery.schema.model import Field, Shape, Type
from fakekube.apimachinery.schema.quantity import round_up_to_milli

Defaulter = Callable[[Any], None]

#: Serializes compilation: while a recursive type is being compiled, its cached defaults are incomplete.
_compiling = RLock()

_RESOURCE_LIST: Final = "k8s.io/api/core/v1.ResourceList"

#: Kinds that contain resource lists but have no defaulting.
_WITHOUT_DEFAULTING: Final = frozenset({("node.k8s.io", "RuntimeClass")})


def apply(types: Builtins, group: str, version: str, kind: str, obj: dict[str, Any]) -> None:
    """Sets the constant defaults of a kind of a minor in a decoded object, in place.

    Fields may be out of order afterwards. An unknown kind has no defaults.
    """
    defaulter(types, group, version, kind)(obj)


@cache
def defaulter(types: Builtins, group: str, version: str, kind: str) -> Defaulter:
    """Returns the compiled defaults of a kind of a minor."""
    row = types.facts.kind(group, version, kind)
    if row is None or not row.type or (group, kind) in _WITHOUT_DEFAULTING:
        return set_no_defaults
    with _compiling:
        by_type = _of_type(types.type_of(row.type)) or set_no_defaults
    own = [_at_path(path, value) for path, value in (row.defaults or {}).items()]
    if not own:
        return by_type

    def default_kind(obj: Any) -> None:
        for set_default in own:
            set_default(obj)
        by_type(obj)

    return default_kind


def set_no_defaults(_: Any) -> None:
    """Sets no defaults."""


def _at_path(path: str, value: Any) -> Defaulter:
    """Compiles one default of one kind (`.spec.suspend`, `.spec.rules[].status`), where all structs on the path are present."""
    *parents, name = path.removeprefix(".").replace("[]", ".[]").split(".")

    def default_path(obj: Any) -> None:
        for struct in _structs(obj, parents):
            if struct.get(name) is None:
                struct[name] = value

    return default_path


def _structs(obj: Any, steps: Sequence[str]) -> Iterator[Any]:
    """Returns the structs at a path; `[]` stands for all items of a list."""
    for position, step in enumerate(steps):
        if step == "[]":
            for item in obj:
                yield from _structs(item, steps[position + 1 :])
            return
        obj = obj.get(step)
        if obj is None:
            return
    yield obj


def _of_type(type_: Type) -> Defaulter | None:
    """Compiles the defaults of a type; None if it has none at any depth."""
    if "default" not in type_.compiled:
        # A nested occurrence of the type itself counts as one without defaults: no recursive type has defaults.
        type_.compiled["default"] = None
        try:
            type_.compiled["default"] = _compile(type_)
        except RecursionError:  # the result is unknown
            del type_.compiled["default"]
            raise
    known: Defaulter | None = type_.compiled["default"]
    return known


def _compile(type_: Type) -> Defaulter | None:
    if type_.name == _RESOURCE_LIST:
        return _round_up
    if type_.shape is Shape.STRUCT:
        return _struct(type_)
    nested = _of_type(type_.items) if type_.items is not None and type_.shape is not Shape.UNION else None
    if nested is None:
        return None
    return _items(nested) if type_.shape is Shape.LIST else _values(nested)


def _items(nested: Defaulter) -> Defaulter:
    def default_items(value: Any) -> None:
        for item in value:
            nested(item)

    return default_items


def _values(nested: Defaulter) -> Defaulter:
    def default_values(value: Any) -> None:
        for item in value.values():
            nested(item)

    return default_values


def _struct(type_: Type) -> Defaulter | None:
    constants = tuple(_constant(field) for field in type_.fields.values() if field.default is not None)
    nested_of = ((name, _of_type(field.type)) for name, field in type_.fields.items())
    below = {name: nested for name, nested in nested_of if nested is not None}
    if not constants:
        return _below_only(below) if below else None

    def default_struct(value: Any) -> None:
        for name, pointer, constant, make in constants:
            present = value.get(name)
            if present is None if pointer else not present:
                value[name] = constant if make is None else make()
        for name, nested in children:
            child = value.get(name)
            if child is not None:
                nested(child)

    children = tuple(below.items())
    return default_struct


def _below_only(below: Mapping[str, Defaulter]) -> Defaulter:
    children = tuple(below.items())

    def default_below(value: Any) -> None:
        for name, nested in children:
            child = value.get(name)
            if child is not None:
                nested(child)

    return default_below


def _constant(field: Field) -> tuple[str, bool, Any, Callable[[], Any] | None]:
    """Name, whether only None is absent, the value, and a factory if the value must be new each time."""
    value = field.default
    make = None
    if isinstance(value, dict | list):
        template = value
        make = template.copy
    return field.name, field.pointer, value, make


def _round_up(value: Any) -> None:
    """Rounds the quantities of a resource list up to thousandths."""
    for name, amount in value.items():
        rounded = round_up_to_milli(amount)
        if rounded != amount:
            value[name] = rounded
