"""Errors of single fields of an object.

Validation returns `FieldError`s (and never raises them) in the order in which the real server finds them. A list of
them becomes the causes and the message of a 422 (`apimachinery.errors.status.invalid`). Paths are plain strings as the real
server prints them (`spec.containers[0].name`): `f"{path}.name"`, `f"{path}[{index}]"`, `f"{path}[{key}]"`.

Specified by: k8s.io/apimachinery/pkg/util/validation/field (texts and order of the parts of a message).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Any, Final

from fakekube.base.golang.strconv import go_float, go_json, go_quote
from fakekube.base.golang.strings import aggregate_errors


class FieldErrorType(Enum):
    """The `reason` of a cause, and the text that starts its message."""

    NOT_FOUND = ("FieldValueNotFound", "Not found")
    REQUIRED = ("FieldValueRequired", "Required value")
    DUPLICATE = ("FieldValueDuplicate", "Duplicate value")
    INVALID = ("FieldValueInvalid", "Invalid value")
    NOT_SUPPORTED = ("FieldValueNotSupported", "Unsupported value")
    FORBIDDEN = ("FieldValueForbidden", "Forbidden")
    TOO_LONG = ("FieldValueTooLong", "Too long")
    TOO_MANY = ("FieldValueTooMany", "Too many")
    INTERNAL = ("InternalError", "Internal error")
    TYPE_INVALID = ("FieldValueTypeInvalid", "Invalid value")

    @property
    def reason(self) -> str:
        return self.value[0]

    @property
    def words(self) -> str:
        return self.value[1]


class _Omitted:
    def __repr__(self) -> str:
        return "OMITTED"


#: The bad value of an error whose message does not show the value.
OMITTED: Final = _Omitted()

#: The detail of every error about an immutable field.
IMMUTABLE = "field is immutable"

#: The causes of a Status end when their texts have so many characters.
_MAXIMUM_TEXT: Final = 8 << 20

_MAXIMUM_ERRORS: Final = 50_000
"""The errors that validation may find in one request; the real server takes about half a minute for ten times as many."""


class _Budget(threading.local):
    """How many more errors the request of this thread may have; without a request, any number."""

    left: float = inf


_budget: Final = _Budget()


class TooManyErrorsError(Exception):
    """A request has so many errors that the real server would not tell them in time."""


def limit_errors(most: float = _MAXIMUM_ERRORS) -> None:
    """Begins a request in this thread: after so many field errors the next one raises TooManyErrorsError."""
    _budget.left = most


def lift_limit() -> None:
    """Ends the request of this thread."""
    _budget.left = inf


_WITHOUT_VALUE = frozenset({FieldErrorType.REQUIRED, FieldErrorType.FORBIDDEN, FieldErrorType.TOO_LONG, FieldErrorType.INTERNAL})


ADDRESS: Final = "0xc000123450"
"""The address of every pointer in Go's syntax, which differs from run to run in the real server."""


class Printed(str):
    """A bad value that is printed already, as the message of the error contains it."""

    __slots__ = ()


class Typed(str):
    """A bad value that Go holds by a pointer, or in a string type of its own: messages print it as JSON."""

    __slots__ = ()


def _print(value: Any) -> str:
    if isinstance(value, Printed):
        return value
    if isinstance(value, str):
        return go_json(value) if isinstance(value, Typed) else go_quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, int):
        return str(value)
    return go_float(value) if isinstance(value, float) else go_json(value)


@dataclass(slots=True, frozen=True)
class FieldError:
    """The path of a field, the type of the error, the bad value (or OMITTED) and the detail."""

    type: FieldErrorType
    path: str
    value: Any = OMITTED
    detail: str = ""

    def __post_init__(self) -> None:
        _budget.left -= 1
        if _budget.left < 0:
            raise TooManyErrorsError

    @property
    def body(self) -> str:
        """The message without the path, as a cause of a Status has it."""
        text = self.type.words
        if self.type not in _WITHOUT_VALUE and self.value is not OMITTED:
            text = f"{text}: {_print(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    @property
    def message(self) -> str:
        return f"{self.path or '<nil>'}: {self.body}"


def required(path: str, detail: str = "") -> FieldError:
    return FieldError(FieldErrorType.REQUIRED, path, "", detail)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(FieldErrorType.INVALID, path, value, detail)


def type_invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(FieldErrorType.TYPE_INVALID, path, value, detail)


def immutable(path: str, value: Any) -> FieldError:
    return FieldError(FieldErrorType.INVALID, path, value, IMMUTABLE)


def not_supported(path: str, value: Any, supported: Iterable[str], *, plain: bool = False) -> FieldError:
    """Returns an error that lists `supported` in the given order (the real server sorts sets, and keeps the order of lists).

    `plain`: Go holds the value as a plain string, and not in a string type of its own.
    """
    shown = value if plain or not isinstance(value, str) or isinstance(value, Printed) else Typed(value)
    values = ", ".join(go_quote(item) for item in supported)
    return FieldError(FieldErrorType.NOT_SUPPORTED, path, shown, f"supported values: {values}" if values else "")


def duplicate(path: str, value: Any) -> FieldError:
    return FieldError(FieldErrorType.DUPLICATE, path, value)


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError(FieldErrorType.FORBIDDEN, path, "", detail)


def not_found(path: str, value: Any) -> FieldError:
    return FieldError(FieldErrorType.NOT_FOUND, path, value)


def too_long(path: str, maximum: int, unit: str = "bytes") -> FieldError:
    """Returns the error of a value of more than `maximum` bytes (some declared rules say characters)."""
    unit = unit[:-1] if maximum == 1 else unit
    detail = f"may not be more than {maximum} {unit}" if maximum >= 0 else "value is too long"
    return FieldError(FieldErrorType.TOO_LONG, path, OMITTED, detail)


def too_many(path: str, actual: int, maximum: int) -> FieldError:
    """Returns the error of a list of `actual` items (-1: unknown) where `maximum` are allowed."""
    unit = "item" if maximum == 1 else "items"
    detail = f"must have at most {maximum} {unit}" if maximum >= 0 else "has too many items"
    return FieldError(FieldErrorType.TOO_MANY, path, actual if actual >= 0 else OMITTED, detail)


def internal(path: str, detail: str) -> FieldError:
    return FieldError(FieldErrorType.INTERNAL, path, OMITTED, detail)


def limit_text(errors: Sequence[FieldError]) -> Sequence[FieldError]:
    """Returns the first errors, as many as a Status has room for.

    An error may show a whole list. With one such error for each item, the answer has the square of the size of the request.
    """
    size = 0
    for number, error in enumerate(errors, 1):
        size += len(error.body)
        if size > _MAXIMUM_TEXT:
            return errors[:number]
    return errors


def aggregate(errors: Sequence[FieldError]) -> str:
    """Returns the message of several errors (ErrorList.ToAggregate)."""
    return aggregate_errors(error.message for error in errors)
