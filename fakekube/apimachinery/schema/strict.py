"""Collects the errors of strict decoding: unknown fields and duplicate members.

The decoder finds unknown fields; the parser of the format, which does not know types, finds duplicates. This module
merges both in the order of the document.

Specified by: sigs.k8s.io/json (kubernetes_patch.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from fakekube.apimachinery.schema.model import Shape, Type
from fakekube.base.golang.strconv import go_quote

MAXIMUM_STRICT_ERRORS: Final = 100


class Strict:
    """Collects the errors of strict decoding.

    Args:
        duplicates: paths of duplicate members from the parser of the format (those of unknown fields and within
            values of any type are ignored).
        members: returns all paths of members in the order of the document, duplicates included; called only if there
            are both unknown and duplicate members, to merge them in that order.
    """

    def __init__(self, duplicates: Sequence[str] = (), members: Callable[[], Iterable[str]] | None = None) -> None:
        self.unknown: list[str] = []
        self._duplicates = duplicates
        self._members = members

    def finish(self, type_: Type, value: Any) -> None:
        """Called by `decode` at its end: leave out the duplicates that the real server's typed decoder does
        not see."""
        if self._duplicates:
            known = set(_member_paths(type_, value, ""))
            self._duplicates = [path for path in self._duplicates if path in known]

    @property
    def messages(self) -> list[str]:
        """`unknown field "spec.x"`, `duplicate field "spec.y"` in the order of the document, each once, at
        most 100."""
        if not self.unknown and not self._duplicates:
            return []
        unknown = {path: f"unknown field {go_quote(path)}" for path in self.unknown}
        duplicate = {path: f"duplicate field {go_quote(path)}" for path in self._duplicates}
        if not unknown or not duplicate or self._members is None:
            return [*unknown.values(), *duplicate.values()][:MAXIMUM_STRICT_ERRORS]
        found: dict[str, None] = {}
        seen: set[str] = set()
        for path in self._members():
            message = unknown.get(path) or (duplicate.get(path) if path in seen else None)
            seen.add(path)
            if message is not None:
                found[message] = None
        return list(found)[:MAXIMUM_STRICT_ERRORS]


def _member_paths(type_: Type, value: Any, path: str) -> Iterable[str]:
    """The paths of all members that the typed decoder meets."""
    shape = type_.shape
    if type(value) is list and shape is Shape.LIST and type_.items is not None:
        for index, item in enumerate(value):
            yield from _member_paths(type_.items, item, f"{path}[{index}]")
    elif type(value) is dict and shape in (Shape.STRUCT, Shape.MAP):
        for name, item in value.items():
            inner = type_.items if shape is Shape.MAP else _type_of_field(type_, name)
            if inner is not None:
                below = f"{path}.{name}" if path else name
                yield below
                yield from _member_paths(inner, item, below)


def _type_of_field(type_: Type, name: str) -> Type | None:
    field = type_.fields.get(name)
    return field.type if field is not None else None


# Resolves duplicate members: a null that follows another value does not change Go's structs and scalars.
#
# Pointers, maps, lists and types with a custom UnmarshalJSON become nil.
#
# Specified by: Go's encoding/json (literalStore).


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
