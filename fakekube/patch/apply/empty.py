"""What an object without content looks like in print: what a create is compared with.

Fields that are always printed are there, with their zero values, even if a client has not sent them; so they
are changed by a create, not added, which shows in managedFields.

Specified by: the rules of Go's encoding/json for `omitempty` and `omitzero`, and of
structured-merge-diff/value for structs.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from fakekube.schema.model import Field, Shape, Type

__all__ = ["empty_object"]

#: Structs in Go, which `omitempty` does not omit.
_STRUCTS: Final = frozenset({
    Shape.STRUCT, Shape.TIME, Shape.MICRO_TIME, Shape.DURATION, Shape.QUANTITY, Shape.INT_OR_STRING,
    Shape.RAW, Shape.ANY,
})

_ZEROS: Final[dict[Shape, Any]] = {
    Shape.STRING: "",
    Shape.BOOLEAN: False,
    Shape.INTEGER: 0,
    Shape.NUMBER: 0,
    Shape.DURATION: "0s",
    Shape.QUANTITY: "0",
    Shape.INT_OR_STRING: 0,
}


@cache
def empty_object(type: Type) -> dict[str, Any]:
    """The printed form of the zero value of a built-in struct. Shared; not to be changed."""
    return {name: _zero(field) for name, field in type.fields.items() if _is_printed(field)}


def _is_printed(field: Field) -> bool:
    if field.omit_zero:
        return False
    return not field.omit_empty or (field.type.shape in _STRUCTS and not field.pointer)


def _zero(field: Field) -> Any:
    if field.pointer:
        return None
    if field.type.shape is Shape.STRUCT:
        return empty_object(field.type)
    return _ZEROS.get(field.type.shape)
