"""Checks the arguments of faults when a fault is armed, so that no action fails because of them when a request comes.

The annotation of the dataclass field decides the type of an argument; a table has the ranges of arguments by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["check_arguments", "require_text"]

Reader = Callable[[Any], bool]


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_whole(value) and value >= 0


def _is_positive(value: Any) -> bool:
    return _is_whole(value) and value >= 1


def _is_code(value: Any) -> bool:
    return _is_whole(value) and 200 <= value <= 599


def _is_seconds(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value >= 0


def _is_probability(value: Any) -> bool:
    return _is_seconds(value) and value <= 1


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


#: Annotation of the field → predicate, and what the value must be.
_TYPES: Mapping[str, tuple[Reader, str]] = {
    "int": (_is_count, "an integer that is not negative"),
    "float": (_is_seconds, "a number that is not negative"),
    "str": (_is_text, "a string"),
    "bool": (lambda value: isinstance(value, bool), "true or false"),
}

#: Name of the field → the same, for fields that are more restricted than their type.
_NAMES: Mapping[str, tuple[Reader, str]] = {
    "code": (_is_code, "a status code from 200 to 599"),
    "size": (_is_positive, "a positive integer"),
    "times": (_is_positive, "a positive integer"),
    "every": (_is_positive, "a positive integer"),
    "probability": (_is_probability, "a number from 0 to 1"),
    "when": (lambda value: value in ("never", "often", "at end", "now"), '"never", "often", "at end" or "now"'),
}

_CALLABLE = (callable, "a function")


def check_arguments(arguments: DataclassInstance) -> None:
    """Raises ValueError for a field whose value has a wrong type or range; None is valid if the annotation allows it."""
    for field in fields(arguments):
        value, kind = getattr(arguments, field.name), str(field.type)
        if value is None and kind.endswith("| None"):
            continue
        fits, wanted = _NAMES.get(field.name) or _TYPES.get(kind.partition(" ")[0], _CALLABLE)
        if not fits(value):
            raise ValueError(f"{field.name} must be {wanted}, not {value!r}")


def require_text(**values: object) -> None:
    """Raises ValueError for a value that is neither None nor a string."""
    for name, value in values.items():
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{name} must be a string, not {value!r}")
