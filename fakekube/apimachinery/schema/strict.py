"""The errors of strict decoding: unknown fields, which the decoder finds, and duplicate ones, which the parser finds.

The parser of a format does not know types, so that it finds duplicates of which the typed decoder sees only some.

Invariant: the messages are in the order of the document, each once, at most 100.

Specified by: sigs.k8s.io/json (kubernetes_patch.go, strict.go); k8s.io/apimachinery/pkg/runtime/error.go (strictDecodingError).
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
        self.duplicates = duplicates
        self._members = members

    def finish(self, type_: Type, value: Any) -> None:
        """Leaves out the duplicates that the real server's typed decoder does not see; `decode` calls it at its end."""
        if self.duplicates:
            known = set(_member_paths(type_, value, ""))
            self.duplicates = [path for path in self.duplicates if path in known]

    @property
    def messages(self) -> list[str]:
        """The errors: `unknown field "spec.x"`, `duplicate field "spec.y"`."""
        if not self.unknown and not self.duplicates:
            return []
        unknown = {path: f"unknown field {go_quote(path)}" for path in self.unknown}
        duplicate = {path: f"duplicate field {go_quote(path)}" for path in self.duplicates}
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
    """Returns the paths of all members that the typed decoder meets."""
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


def strict_decoding_error(messages: Iterable[str]) -> str:
    """Returns the text of the error that has these messages."""
    return f"strict decoding error: {', '.join(messages)}"
