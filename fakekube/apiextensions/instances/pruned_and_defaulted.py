"""Reports whether an object is already pruned and defaulted, as most stored objects are.

Checks are compiled once for a type, down to the depth that objects have; a positive result saves a copy of the object.

Invariant: `objects.prune`, `drop_nulls` and `default` do not change an object that passes. The reverse does not hold: an
object that fails may stay unchanged, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fakekube.apiextensions.schema import has_default
from fakekube.apimachinery.schema.model import Shape, Type

Check = Callable[[Any], bool]
"""Reports whether an object or a list is pruned and defaulted."""

_TYPE_META: Final = frozenset({"apiVersion", "kind", "metadata"})


def is_pruned_and_defaulted(type_: Type, obj: Mapping[str, Any]) -> bool:
    """Reports whether an object is certainly pruned and defaulted. Its metadata is not checked."""
    return _check(type_)({name: item for name, item in obj.items() if name not in _TYPE_META})


def _check(type_: Type) -> Check:
    known: Check | None = type_.compiled.get("pruned and defaulted")
    if known is None:
        known = type_.compiled["pruned and defaulted"] = _COMPILERS.get(type_.shape, _uncertain)(type_)
    return known


def _uncertain(_type: Type) -> Check:
    return lambda _value: False


def _struct(type_: Type) -> Check:
    if type_.embedded_resource:
        return _uncertain(type_)
    fields, keeps = type_.fields, type_.preserve_unknown_fields
    wanted = frozenset(name for name, field in fields.items() if has_default(field.type))
    checks: dict[str, Check] = {}

    def check(value: Any) -> bool:
        if value.__class__ is not dict or not wanted <= value.keys():
            return False
        for name, item in value.items():
            if name not in fields:
                if not keeps:
                    return False
            elif item.__class__ is dict or item.__class__ is list:
                below = checks.get(name)
                if below is None:
                    below = checks[name] = _check(fields[name].type)
                if not below(item):
                    return False
            elif item is None:
                return False
        return True

    return check


def _list(type_: Type) -> Check:
    assert type_.items is not None
    return _compile_items(type_.items, list, lambda value: value)


def _map(type_: Type) -> Check:
    assert type_.items is not None
    if type_.keywords.get("additionalProperties") is True:  # nothing is known about its values
        return _compile_items(Type(Shape.STRING), dict, dict.values)
    return _compile_items(type_.items, dict, dict.values)


def _compile_items(items: Type, kind: type, values_of: Callable[[Any], Any]) -> Check:
    below: Check | None = None

    def check(value: Any) -> bool:
        nonlocal below
        if value.__class__ is not kind:
            return False
        for item in values_of(value):
            if item.__class__ is dict or item.__class__ is list:
                if below is None:
                    below = _check(items)
                if not below(item):
                    return False
            elif item is None:
                return False
        return True

    return check


def _any(type_: Type) -> Check:
    settled = type_.preserve_unknown_fields or not type_.keywords
    return lambda _value: settled


_COMPILERS: Final[Mapping[Shape, Callable[[Type], Check]]] = {
    Shape.STRUCT: _struct,
    Shape.LIST: _list,
    Shape.MAP: _map,
    Shape.ANY: _any,
}
"""Objects and lists in place of other types do not pass."""
