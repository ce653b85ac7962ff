"""Members that a document gives twice: a null that comes after another value leaves Go's structs and scalars as they are.

Pointers, maps, lists, and what reads itself become nil, as everywhere.

Specified by: Go's encoding/json (literalStore).
"""

from __future__ import annotations

from typing import Any, Final

from fakekube.schema.model import Shape, Type

__all__ = ["keep_before_null"]

_KEPT: Final = frozenset({Shape.STRUCT, Shape.STRING, Shape.BOOLEAN, Shape.INTEGER, Shape.NUMBER})


def keep_before_null(type_: Type, value: Any, first: Any) -> None:
    """Put back into `value`, which was read so that the last of two members counts, what a null may not replace.

    Args:
        type_: of the document.
        value: is changed in place.
        first: the same document, read so that the first of two members counts.
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
