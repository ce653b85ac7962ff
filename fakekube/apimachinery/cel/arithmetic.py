"""Operators: arithmetic within the bounds of the types, concatenation, comparison, indices.

Specified by: cel-spec, doc/langdef.md (Numeric values, Overflow); cel-go/common/types (overflow.go and the types).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container
from typing import Any, Final

from fakekube.apimachinery.cel.errors import EvaluationError, no_such_overload
from fakekube.apimachinery.cel.values import (
    ABSENT,
    NANOSECONDS,
    ORDERED,
    QUALIFIERS,
    RECEIVERS,
    Duration,
    Mapping,
    Optional,
    Timestamp,
    UInt,
    compared,
    equal,
    go_name_of,
    kind_of,
    shown,
    type_of,
)

_MAX: Final = (1 << 63) - 1
_MIN: Final = -(1 << 63)
_UMAX: Final = (1 << 64) - 1
_FIRST: Final = -62135596800 * NANOSECONDS
_LAST: Final = 253402300800 * NANOSECONDS - 1


def checked_int(number: int) -> int:
    """Returns the result; raises EvaluationError beyond int64."""
    if _MIN <= number <= _MAX:
        return number
    raise EvaluationError("integer overflow")


def checked_uint(number: int) -> UInt:
    """Returns the result; raises EvaluationError beyond uint64."""
    if 0 <= number <= _UMAX:
        return UInt(number)
    raise EvaluationError("unsigned integer overflow")


def checked_duration(nanoseconds: int) -> Duration:
    """Returns the result; raises EvaluationError beyond int64."""
    if _MIN <= nanoseconds <= _MAX:
        return Duration(nanoseconds)
    raise EvaluationError("integer overflow")


def checked_timestamp(nanoseconds: int, offset: int = 0) -> Timestamp:
    """Returns the result; raises EvaluationError outside of the years 1 to 9999."""
    if _FIRST <= nanoseconds <= _LAST:
        return Timestamp(nanoseconds, offset)
    raise EvaluationError("timestamp overflow")


def _quotient(one: int, other: int) -> int:
    if other == 0:
        raise EvaluationError("division by zero")
    return abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)


def _remainder(one: int, other: int) -> int:
    if other == 0:
        raise EvaluationError("modulus by zero")
    if one == _MIN and other == -1:
        raise EvaluationError("integer overflow")
    return int(math.fmod(one, other)) if abs(one) < 1 << 53 > abs(other) else one - other * _quotient(one, other)


def _divided(one: float, other: float) -> float:
    if other == 0:
        sign = math.copysign(1.0, one) * math.copysign(1.0, other)
        return math.nan if one == 0 or math.isnan(one) else math.copysign(math.inf, sign)
    return one / other


def _multiplied(one: float, other: float) -> float:
    return one * other


Binary = Callable[[Any, Any], Any]

_ARITHMETIC: dict[str, dict[tuple[type, type], Binary]] = {
    "_+_": {
        (int, int): lambda a, b: checked_int(a + b),
        (UInt, UInt): lambda a, b: checked_uint(int(a) + int(b)),
        (float, float): lambda a, b: a + b,
        (str, str): lambda a, b: a + b,
        (bytes, bytes): lambda a, b: a + b,
        (list, list): lambda a, b: a.joined(b) if hasattr(a, "joined") else [*a, *b],
        (Duration, Duration): lambda a, b: checked_duration(a.nanoseconds + b.nanoseconds),
        (Timestamp, Duration): lambda a, b: checked_timestamp(a.nanoseconds + b.nanoseconds, a.offset),
        (Duration, Timestamp): lambda a, b: checked_timestamp(a.nanoseconds + b.nanoseconds, b.offset),
    },
    "_-_": {
        (int, int): lambda a, b: checked_int(a - b),
        (UInt, UInt): lambda a, b: checked_uint(int(a) - int(b)),
        (float, float): lambda a, b: a - b,
        (Duration, Duration): lambda a, b: checked_duration(a.nanoseconds - b.nanoseconds),
        (Timestamp, Duration): lambda a, b: checked_timestamp(a.nanoseconds - b.nanoseconds, a.offset),
        (Timestamp, Timestamp): lambda a, b: checked_duration(a.nanoseconds - b.nanoseconds),
    },
    "_*_": {
        (int, int): lambda a, b: checked_int(a * b),
        (UInt, UInt): lambda a, b: checked_uint(int(a) * int(b)),
        (float, float): _multiplied,
    },
    "_/_": {
        (int, int): lambda a, b: checked_int(_quotient(a, b)),
        (UInt, UInt): lambda a, b: checked_uint(_quotient(int(a), int(b))),
        (float, float): _divided,
    },
    "_%_": {(int, int): _remainder, (UInt, UInt): lambda a, b: UInt(_remainder(int(a), int(b)))},
}


def _misfit(name: str, kinds: Container[type], one: Any) -> EvaluationError:
    """Returns the error for operands without an overload; `kinds` are the types of first operands that have one."""
    kind = kind_of(one)
    return no_such_overload("" if kind in kinds or kind in RECEIVERS else name)


def _arithmetic(name: str) -> Binary:
    by_types = _ARITHMETIC[name]
    kinds = frozenset(first for first, _ in by_types)

    def operate(one: Any, other: Any) -> Any:
        operation = by_types.get((one.__class__, other.__class__)) or by_types.get((kind_of(one), kind_of(other)))
        if operation is None:
            raise _misfit(name, kinds, one)
        return operation(one, other)

    return operate


def _order(name: str, *wanted: int) -> Binary:
    def operate(one: Any, other: Any) -> bool:
        if kind_of(one) not in ORDERED:
            raise no_such_overload(name)
        return compared(one, other) in wanted

    return operate


def _contains(element: Any, container: Any) -> bool:
    kind = kind_of(container)
    if kind is list:
        return any(equal(element, item) for item in container)
    if kind is Mapping:
        return container.find(element) is not ABSENT
    raise no_such_overload()


def index(container: Any, key: Any) -> Any:
    """Evaluates `container[key]`; the container may be in an optional value."""
    kind = kind_of(container)
    if kind is list:
        position = _position(key)
        if not 0 <= position < len(container):
            raise EvaluationError(f"index out of bounds: {shown(key)}")
        return container[position]
    if kind is Mapping:
        found = container.find(key)
        if found is ABSENT:
            raise _no_key(key)
        return found
    if kind is Optional:
        return optional_index(container, key)
    raise _no_key(key)


def _no_key(key: Any) -> EvaluationError:
    if kind_of(key) not in QUALIFIERS:
        return EvaluationError(f"invalid qualifier type: {go_name_of(key)}")
    return EvaluationError(f"no such key: {shown(key)}")


def optional_index(container: Any, key: Any) -> Optional:
    """Evaluates `container[?key]` and `container.?key`."""
    kind = kind_of(container)
    if kind is Optional:
        return optional_index(container.content, key) if container.present else container
    if kind is list:
        position = _position(key)
        return Optional(container[position]) if 0 <= position < len(container) else Optional()
    return Optional(container.find(key) if kind is Mapping else ABSENT)


def _position(key: Any) -> int:
    if key.__class__ in (int, UInt):
        return int(key)
    if key.__class__ is float and key.is_integer():
        return int(key)
    if key.__class__ is float:
        raise EvaluationError(f"unsupported index value {shown(key)} in list")
    if kind_of(key) not in QUALIFIERS:
        raise EvaluationError(f"invalid qualifier type: {go_name_of(key)}")
    raise EvaluationError(f"unsupported index type '{type_of(key).name}' in list")


def negated(value: Any) -> Any:
    """Evaluates `-value`."""
    if value.__class__ is int:
        return checked_int(-value)
    if value.__class__ is float:
        return -value
    if value.__class__ is Duration:
        return checked_duration(-value.nanoseconds)
    raise no_such_overload("" if value.__class__ in (bool, str) else "-_")


OPERATORS: Final[dict[str, Binary]] = {
    **{name: _arithmetic(name) for name in _ARITHMETIC},
    "_==_": equal,
    "_!=_": lambda a, b: not equal(a, b),
    "_<_": _order("_<_", -1),
    "_<=_": _order("_<=_", -1, 0),
    "_>_": _order("_>_", 1),
    "_>=_": _order("_>=_", 1, 0),
    "@in": _contains,
    "_[_]": index,
    "_[?_]": optional_index,
}
