"""Constant defaults, compiled per type: what every object of a kind gets where nothing was said.

A default belongs to a field and applies wherever its struct is present (`data/` says so where that holds for
all kinds, or names the path where it holds for one kind only). A default is set where the field is nil
(pointers), zero (scalars) or empty (lists). Resource lists are rounded up to thousandths here, as the real
server's defaulting does.

Defaults that depend on other fields are not here: `data/generate.py` lists them, the modules of their kinds
apply them afterwards. So an object is complete after `apply` and the strategy's `default`.

Specified by: k8s.io/kubernetes/pkg/apis/**/zz_generated.defaults.go and defaults.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from threading import RLock
from typing import Any, Final

from fakekube.schema.builtin import Builtins, builtins
from fakekube.schema.model import Field, Shape, Type
from fakekube.schema.quantity import rounded_up_to_milli

__all__ = ["apply", "defaulter"]

Defaulter = Callable[[Any], None]

#: One thread at a time compiles: while a recursive type is being compiled, what is known of it is not the truth.
_compiling = RLock()

_RESOURCE_LIST: Final = "k8s.io/api/core/v1.ResourceList"

#: Kinds that hold resource lists but have no defaulting at all.
_WITHOUT_DEFAULTING: Final = frozenset({("node.k8s.io", "RuntimeClass")})


def apply(group: str, version: str, kind: str, obj: dict[str, Any]) -> None:
    """Set the constant defaults of a kind (of the newest minor) in a decoded object, in place.

    Fields may be out of order afterwards. A kind that is not known has no defaults.
    """
    defaulter(group, version, kind)(obj)


@cache
def defaulter(group: str, version: str, kind: str, types: Builtins | None = None) -> Defaulter:
    """The compiled defaults of a kind, of the newest minor unless `types` are those of another."""
    types = types or builtins()
    row = types.facts.kind(group, version, kind)
    if row is None or not row.type or (group, kind) in _WITHOUT_DEFAULTING:
        return _nothing
    with _compiling:
        by_type = _of_type(types.type_of(row.type)) or _nothing
    own = [_at_path(path, value) for path, value in (row.defaults or {}).items()]
    if not own:
        return by_type

    def default_kind(obj: Any) -> None:
        for set_default in own:
            set_default(obj)
        by_type(obj)

    return default_kind


def _nothing(_: Any) -> None:
    """The defaults of what has none."""


def _at_path(path: str, value: Any) -> Defaulter:
    """One default of one kind: `.spec.suspend`; the structs on the way are no pointers."""
    *parents, name = path.removeprefix(".").split(".")

    def default_path(obj: Any) -> None:
        for parent in parents:
            obj = obj[parent]
        if obj.get(name) is None:
            obj[name] = value

    return default_path


def _of_type(type_: Type) -> Defaulter | None:
    """The defaults of a value of a type, None if there are none below it."""
    if "default" not in type_.compiled:
        # A type inside itself is taken to have none until the outer round is done: no recursive type has
        # defaults.
        type_.compiled["default"] = None
        try:
            type_.compiled["default"] = _compile(type_)
        except RecursionError:  # nothing was found out
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
    """Name, whether None alone is absent, the value, and a maker of it where it must be new each time."""
    value = field.default
    make = None
    if isinstance(value, dict | list):
        template = value
        make = template.copy
    return field.name, field.pointer, value, make


def _round_up(value: Any) -> None:
    """Quantities of a resource list are not finer than thousandths."""
    for name, amount in value.items():
        rounded = rounded_up_to_milli(amount)
        if rounded != amount:
            value[name] = rounded
