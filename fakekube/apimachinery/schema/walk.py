"""The state of a decode on the slow path: the current position, the first error, and the fields that the type does not know.

Invariant: the first type mismatch is reported; only a type with a custom UnmarshalJSON (`custom_unmarshal`) ends a walk
early, with its own error.

Specified by: Go's encoding/json (decode.go: errorContext, saveError, addErrorContext); sigs.k8s.io/json (kubernetes_patch.go).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from fakekube.apimachinery.schema.model import Field, Shape, Type
from fakekube.apimachinery.schema.strict import MAXIMUM_STRICT_ERRORS, Strict
from fakekube.base.golang.strconv import json_float, json_kind, unmarshal_error

# --- Duplicate members -----------------------------------------------------------------------------------------------
# A null that follows another value does not change Go's structs and scalars.
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


class DecodeError(ValueError):
    """A value does not fit the type; has the message of the real server, without the prefix of the handler."""


class SlowPathRequired(Exception):
    """A value needs the slow path."""


class Frame:
    """A field on the path to the current value."""

    __slots__ = ("go_names", "name", "owner", "whole_path")

    def __init__(self, owner: Type, field: Field) -> None:
        self.name, self.whole_path = field.name, field.whole_path
        self.go_names = (*field.embedded, field.name) if field.whole_path else (field.name,)
        self.owner = owner.go.rpartition(".")[2]


Step: TypeAlias = Frame | int | str
"""A field, an index of a list, a key of a map."""

Literals: TypeAlias = Callable[[], Any]
"""Parses the body again, with numbers that are not integers as literal text."""


def _part_of_path(step: Step) -> str:
    if type(step) is int:
        return f"[{step}]"
    return f".{step.name if isinstance(step, Frame) else step}"


class Walk:
    """The state of one decode on the slow path."""

    __slots__ = ("_custom_unmarshal", "_literals", "error", "stack", "strict")

    def __init__(self, strict: Strict | None, literals: Literals | None) -> None:
        self.stack: list[Step] = []
        self.error: str | None = None
        self.strict = strict
        self._literals = literals
        self._custom_unmarshal: int | None = None
        """How many fields are around the outermost type with a custom UnmarshalJSON."""

    def unknown(self, name: str) -> None:
        """Reports an unknown field."""
        if self.strict is not None and len(self.strict.unknown) < MAXIMUM_STRICT_ERRORS:
            path = self._path() + "." + name if self.stack else name
            if path not in self.strict.unknown:
                self.strict.unknown.append(path)

    def _path(self) -> str:
        """Returns the current path as in strict decoding errors."""
        return "".join(map(_part_of_path, self.stack)).removeprefix(".")

    def mismatch(self, value: Any, go: str) -> None:
        """Records that a value does not fit the Go type `go`, unless there was an earlier error."""
        if self.error is None:
            self.error = self.type_error(json_kind(value), go)

    def not_a_number(self, value: Any, go: str) -> None:
        """Records that a value does not fit the numeric Go type `go`; the error names a number that is out of range."""
        if self.error is None:
            self.error = self.number_error(value, go)

    def number_error(self, value: Any, go: str) -> str:
        """Returns the error of a value that does not fit the numeric Go type `go`."""
        is_number = type(value) is int or isinstance(value, float)
        return self.type_error(f"number {self.literal(value)}" if is_number else json_kind(value), go)

    def fault(self, message: str) -> None:
        """Records an error without a path, unless there was an earlier one."""
        if self.error is None:
            self.error = message

    def type_error(self, what: str, go: str) -> str:
        """Returns Go's UnmarshalTypeError with the current struct and field."""
        frames = [step for step in self.stack if type(step) is Frame]
        if not frames:
            return unmarshal_error(what, go)
        owner = frames[-1].owner
        if self._custom_unmarshal:
            owner = frames[self._custom_unmarshal - 1].owner
            frames = frames if frames[-1].whole_path else frames[: self._custom_unmarshal]
        path = ".".join(name for frame in frames for name in frame.go_names)
        return unmarshal_error(what, go, f"{owner}.{path}")

    def literal(self, number: float) -> str:
        """Returns the literal text of the current number in the body, or that which Go would write."""
        known = getattr(number, "literal", None)
        if known is None and type(number) is float and self._literals is not None:
            known = _value_at(self._literals(), self.stack)
        return known if isinstance(known, str) else json_float(number)

    def custom_unmarshal(self, read: Decoder, value: Any) -> Any:
        """Decodes a type with a custom UnmarshalJSON: without strict errors, and any error ends the decode at once."""
        strict, error, custom_unmarshal = self.strict, self.error, self._custom_unmarshal
        self.strict, self.error = None, None
        if custom_unmarshal is None:
            self._custom_unmarshal = sum(type(step) is Frame for step in self.stack)
        tree = read(value, self)
        if self.error is not None:
            raise DecodeError(self.error)
        self.strict, self.error, self._custom_unmarshal = strict, error, custom_unmarshal
        return tree


Decoder: TypeAlias = Callable[[Any, Walk | None], Any]
"""Decodes a value that is not null; on the fast path without a walk."""


def _value_at(tree: Any, stack: Sequence[Step]) -> Any:
    """Returns the value at the current path in another tree; None if the trees differ."""
    for step in stack:
        key = step.name if isinstance(step, Frame) else step
        try:
            tree = tree[key]
        except (LookupError, TypeError):
            return None
    return tree
