"""The form in which Go prints an unset field.

`omitempty` omits nil pointers, lists and maps and zero scalars, but never a struct by value:
those print as `{}` (or `null`, `"0"`, `0`: times, quantities and similar types are structs too).

Specified by: Go's encoding/json, and the MarshalJSON of the API machinery's own types.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fakekube.apimachinery.schema.model import Field, Shape, Type

#: By itself, since before Python 3.12 an attribute of an Enum class is slow.
_STRUCT = Shape.STRUCT
_NIL = frozenset({Shape.LIST, Shape.MAP, Shape.BYTES, Shape.ANY})
_STRUCTS = frozenset({
    Shape.STRUCT, Shape.TIME, Shape.MICRO_TIME, Shape.QUANTITY, Shape.INT_OR_STRING, Shape.RAW,
    Shape.FIELDS_V1, Shape.UNION,
})  # fmt: skip
_ZEROS: dict[Shape, Any] = {
    Shape.STRING: "", Shape.BOOLEAN: False, Shape.INTEGER: 0, Shape.NUMBER: 0, Shape.DURATION: "0s",
    Shape.QUANTITY: "0", Shape.INT_OR_STRING: 0,
}  # fmt: skip


def zero(type_: Type) -> Any:
    """The printed zero value of a type; a new tree each time."""
    return _new_struct(always_printed(type_)) if type_.shape is _STRUCT else _ZEROS.get(type_.shape)


def _new_struct(fields: tuple[tuple[str, Callable[[], Any]], ...]) -> dict[str, Any]:
    return {name: make() for name, make in fields}


def always_printed(type_: Type) -> tuple[tuple[str, Callable[[], Any]], ...]:
    """The fields of a struct that are printed even if unset, in order, each with a factory of the value."""
    known: tuple[tuple[str, Callable[[], Any]], ...] | None = type_.compiled.get("always")
    if known is None:
        makers = ((field.name, _maker(field)) for field in type_.fields.values())
        known = type_.compiled["always"] = tuple((name, make) for name, make in makers if make is not None)
    return known


def _maker(field: Field) -> Callable[[], Any] | None:
    """Returns the factory of an unset field's printed value; None if the field is omitted."""
    shape = field.type.shape
    if field.pointer or shape in _NIL:
        return None if field.omit_empty or field.omit_zero else _null
    if field.omit_zero or (field.omit_empty and shape not in _STRUCTS):
        return None
    if shape is Shape.STRUCT:
        return partial(_new_struct, always_printed(field.type)) if always_printed(field.type) else dict
    value = _ZEROS.get(shape)
    return lambda: value


def _null() -> None:
    return None
