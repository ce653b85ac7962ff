"""The state of a decode on the slow path: the current position and the first error.

Invariant: the first type mismatch is reported; only a type with a custom UnmarshalJSON (`own_form`) ends a walk
early, with its own error.

Specified by: Go's encoding/json (decode.go: errorContext, saveError, addErrorContext).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from fakekube.golang.quoting import json_kind
from fakekube.schema.model import Field, Type
from fakekube.schema.strict import MAXIMUM_STRICT_ERRORS, Strict

__all__ = ["DecodeError", "Decoder", "Frame", "Literals", "SlowPathRequired", "Walk"]


class DecodeError(ValueError):
    """A value does not fit the type. The message is the real server's, without the prefix of the verb."""


class SlowPathRequired(Exception):
    """A value needs the slow path."""


class Frame:
    """A field on the way to where the walk is."""

    __slots__ = ("go_names", "name", "owner")

    def __init__(self, owner: Type, field: Field) -> None:
        self.name = field.name
        self.go_names = (*field.embedded, field.name)
        self.owner = owner.go.rpartition(".")[2]


Step: TypeAlias = Frame | int | str
"""A field, an index of a list, a key of a map."""

Literals: TypeAlias = Callable[[], Any]
"""Reads the value once more, with numbers that are no integers as the text that they were written as."""


def _part_of_path(step: Step) -> str:
    if type(step) is int:
        return f"[{step}]"
    return f".{step.name if isinstance(step, Frame) else step}"


class Walk:
    """The state of one decode on the slow path."""

    __slots__ = ("_literals", "_own_form", "error", "stack", "strict")

    def __init__(self, strict: Strict | None, literals: Literals | None) -> None:
        self.stack: list[Step] = []
        self.error: str | None = None
        self.strict = strict
        self._literals = literals
        self._own_form: str | None = None

    def unknown(self, name: str) -> None:
        """Report a field that the type does not have."""
        if self.strict is not None and len(self.strict.unknown) < MAXIMUM_STRICT_ERRORS:
            path = self._path() + "." + name if self.stack else name
            if path not in self.strict.unknown:
                self.strict.unknown.append(path)

    def _path(self) -> str:
        """Where we are, as strict errors tell it."""
        return "".join(map(_part_of_path, self.stack)).removeprefix(".")

    def mismatch(self, value: Any, go: str) -> None:
        """Remember that a value is not of the Go type `go`, unless something else was wrong before."""
        if self.error is None:
            self.error = self.type_error(json_kind(value), go)

    def not_a_number(self, value: Any, go: str) -> None:
        """The same for a value that should be a number; the number that does not fit is told."""
        if self.error is None:
            self.error = self.number_error(value, go)

    def number_error(self, value: Any, go: str) -> str:
        """The message of a value that is no number of the Go type `go`."""
        is_number = type(value) is int or isinstance(value, float)
        return self.type_error(f"number {self.literal(value)}" if is_number else json_kind(value), go)

    def fault(self, message: str) -> None:
        """Remember an error that does not tell where it happened."""
        if self.error is None:
            self.error = message

    def type_error(self, what: str, go: str) -> str:
        """Go's UnmarshalTypeError with the field that it happened in."""
        frames = [step for step in self.stack if type(step) is Frame]
        if not frames:
            return f"json: cannot unmarshal {what} into Go value of type {go}"
        path = ".".join(name for frame in frames for name in frame.go_names)
        owner = self._own_form or frames[-1].owner
        return f"json: cannot unmarshal {what} into Go struct field {owner}.{path} of type {go}"

    def literal(self, number: float) -> str:
        """The text of a number as the client wrote it."""
        known = getattr(number, "literal", None)
        if known is None and type(number) is float and self._literals is not None:
            known = _at(self._literals(), self.stack)
        return known if isinstance(known, str) else repr(number)

    def own_form(self, read: Decoder, value: Any) -> Any:
        """Decodes a type with a custom UnmarshalJSON: without strict errors, and any error ends the decode at once."""
        strict, error, own_form = self.strict, self.error, self._own_form
        self.strict, self.error = None, None
        if own_form is None:
            self._own_form = next((step.owner for step in reversed(self.stack) if type(step) is Frame), None)
        tree = read(value, self)
        if self.error is not None:
            raise DecodeError(self.error)
        self.strict, self.error, self._own_form = strict, error, own_form
        return tree


Decoder: TypeAlias = Callable[[Any, Walk | None], Any]
"""Reads a value (never null), on the quick road if there is no walk."""


def _at(tree: Any, stack: Sequence[Step]) -> Any:
    """What stands in a tree where the walk is; None if the trees differ."""
    for step in stack:
        key = step.name if isinstance(step, Frame) else step
        try:
            tree = tree[key]
        except (LookupError, TypeError):
            return None
    return tree
