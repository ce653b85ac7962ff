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
