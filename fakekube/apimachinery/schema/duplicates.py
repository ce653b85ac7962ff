"""Resolves duplicate members: a null that follows another value does not change Go's structs and scalars.

Pointers, maps, lists and types with a custom UnmarshalJSON become nil.

Specified by: Go's encoding/json (literalStore).
"""

from __future__ import annotations

from typing import Any, Final

from fakekube.apimachinery.schema.model import Shape, Type

_KEPT: Final = frozenset({Shape.STRUCT, Shape.STRING, Shape.BOOLEAN, Shape.INTEGER, Shape.NUMBER})


def keep_before_null(type_: Type, value: Any, first: Any) -> None:
    """Restores values in `value`, decoded with the last of duplicate members, that a null does not replace.

    Args:
        type_: the type of the document.
        value: the document; changed in place.
        first: the same document, decoded with the first of duplicate members.
    """
    if type_.shape is Shape.STRUCT and isinstance(value, dict) and isinstance(first, dict):
        for name, field in type_.fields.items():
            before = first.get(name)
            if before is None:
                continue
            if name in value and value[name] is None and not field.pointer and field.type.shape in _KEPT:
                value[name] = before
            else:
                keep_before_null(field.type, value.get(name), before)
    elif type_.items is not None and type_.shape is Shape.MAP and isinstance(value, dict) and isinstance(first, dict):
        for name, before in first.items():
            keep_before_null(type_.items, value.get(name), before)
    elif type_.items is not None and type_.shape is Shape.LIST and isinstance(value, list) and isinstance(first, list):
        for item, before in zip(value, first, strict=False):
            keep_before_null(type_.items, item, before)
