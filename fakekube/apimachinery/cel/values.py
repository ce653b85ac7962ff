"""The values of the language, with their types, equality and order.

int, double, bool, string, bytes, list and null are values of Python's types; the classes of the others are here. Values of the
schemas of definitions are views (`fakekube.apimachinery.cel.views`), which are kinds of `list` and `Mapping` here.

Invariant: an `int` lies in the range of int64, a `UInt` in that of uint64; values never change once they are made.

Specified by: cel-spec, doc/langdef.md (Values, Equality); cel-go/common/types.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fakekube.apimachinery.cel.errors import EvaluationError, no_such_overload

NANOSECONDS: Final = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


#: The result of a lookup without a value.
ABSENT: Final = _Absent()


class UInt(int):
    """A uint64."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class CelType:
    """A type as a value."""

    name: str


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A duration in nanoseconds (64 bits)."""

    nanoseconds: int

    def __str__(self) -> str:
        whole, rest = divmod(abs(self.nanoseconds), NANOSECONDS)
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        return f"{'-' if self.nanoseconds < 0 else ''}{whole}{fraction}s"


@dataclass(frozen=True, slots=True, eq=False)
class Timestamp:
    """A time: nanoseconds since 1970, and the UTC offset in minutes for printing."""

    nanoseconds: int
    offset: int = 0

    def moment(self, zone: Any = UTC) -> datetime:
        """Returns the time as a datetime, without the fraction of the second."""
        return (_EPOCH + timedelta(seconds=self.nanoseconds // NANOSECONDS)).astimezone(zone)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.nanoseconds == other.nanoseconds

    def __hash__(self) -> int:
        return hash(self.nanoseconds)

    def __lt__(self, other: Timestamp) -> bool:
        return self.nanoseconds < other.nanoseconds

    def __str__(self) -> str:
        local = _EPOCH + timedelta(seconds=self.nanoseconds // NANOSECONDS, minutes=self.offset)
        rest = self.nanoseconds % NANOSECONDS
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        sign, minutes = "-" if self.offset < 0 else "+", abs(self.offset)
        zone = f"{sign}{minutes // 60:02d}:{minutes % 60:02d}" if self.offset else "Z"
        return f"{local.year:04d}-{local:%m-%dT%H:%M:%S}{fraction}{zone}"


@dataclass(frozen=True, slots=True)
class Optional:
    """An optional value; the content is ABSENT if there is none."""

    content: Any = ABSENT

    @property
    def present(self) -> bool:
        return self.content is not ABSENT


class Opaque:
    """A value of a type of a library; equality is that of Python."""

    __slots__ = ()
    type_name = ""
    go_type = ""
    """Its Go type, if an optional with it cannot be converted to a plain value (see `attributes`)."""

    @property
    def size(self) -> int:
        """The size for the costs of calls; 1 for values without a size."""
        return 1


class Mapping:
    """A map of the language, or a view of an object."""

    __slots__ = ()

    @abstractmethod
    def find(self, key: Any) -> Any:
        """Returns the value of a key, or ABSENT."""

    @abstractmethod
    def __iter__(self) -> Iterator[Any]:
        """Yields the keys in any order."""

    @abstractmethod
    def __len__(self) -> int: ...

    def to_untyped(self) -> Any:
        """Returns the value without a schema."""
        return self

    def equals(self, other: Mapping) -> bool:
        """Reports whether all entries are equal."""
        if len(self) != len(other):
            return False
        for key in self:
            theirs = other.find(key)
            if theirs is ABSENT or not equal(self.find(key), theirs):
                return False
        return True


def key_of(key: Any) -> Any:
    """Returns the dict key of a map key: equal numbers of all types have the same, but true and 1 differ."""
    return (key,) if key.__class__ is bool else key


class Map(Mapping):
    """A map that an expression constructed."""

    __slots__ = ("_entries",)

    def __init__(self, entries: dict[Any, tuple[Any, Any]]) -> None:
        self._entries = entries

    @classmethod
    def from_pairs(cls, pairs: Any) -> Map:
        """Makes a map of pairs; the last of equal keys is kept."""
        made = cls({})
        for key, value in pairs:
            made.set(key, value)
        return made

    def add(self, key: Any, value: Any) -> bool:
        """Adds an entry during construction; returns False if the key exists. Raises EvaluationError."""
        if self.find(key) is not ABSENT:
            return False
        self.set(key, value)
        return True

    def set(self, key: Any, value: Any) -> None:
        """Adds an entry during construction. Raises EvaluationError."""
        try:
            self._entries[key_of(key)] = (key, value)
        except TypeError:  # lists are no keys
            raise EvaluationError(f"unsupported key type: {type_of(key).name}") from None

    def find(self, key: Any) -> Any:
        try:
            found = self._entries.get(key_of(key))
        except TypeError:  # lists are no keys
            return ABSENT
        return ABSENT if found is None else found[1]

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)


#: Class → the name of the type. Classes that are kinds of these are found through `kind_of`.
TYPE_NAMES: Final[dict[type, str]] = {
    int: "int",
    UInt: "uint",
    float: "double",
    bool: "bool",
    str: "string",
    bytes: "bytes",
    list: "list",
    Mapping: "map",
    type(None): "null_type",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    CelType: "type",
    Optional: "optional_type",
}

_KINDS: dict[type, type] = {kind: kind for kind in TYPE_NAMES}


def kind_of(value: Any) -> type:
    """Returns the class of the CEL type of a value: a key of TYPE_NAMES, or a subclass of Opaque."""
    cls = value.__class__
    kind = _KINDS.get(cls)
    if kind is None:
        kind = next((base for base in (list, Mapping) if issubclass(cls, base)), cls)
        _KINDS[cls] = kind
    return kind


#: Class → the Go type of its values in cel-go.
_GO_NAMES: Final = {
    int: "types.Int",
    UInt: "types.Uint",
    float: "types.Double",
    bool: "types.Bool",
    str: "types.String",
    bytes: "types.Bytes",
    type(None): "types.Null",
    Timestamp: "types.Timestamp",
    Duration: "types.Duration",
    CelType: "*types.Type",
    Optional: "*types.Optional",
    list: "*types.baseList",
    Mapping: "*types.baseMap",
}


def go_name_of(value: Any) -> str:
    """Returns the Go type of a value, which some error messages contain."""
    kind = kind_of(value)
    return _GO_NAMES.get(kind) or f"cel.{kind.__name__}"


def type_of(value: Any) -> CelType:
    """Returns the CEL type of a value."""
    kind = kind_of(value)
    return CelType(TYPE_NAMES.get(kind) or kind.type_name)  # type: ignore[attr-defined]


_NUMBERS = frozenset({int, UInt, float})


def _to_double(number: Any, beside: type) -> Any:
    """Converts a number for the comparison with another numeric type; beside a double to a double, with a loss of precision."""
    return float(number) if beside is float else number


def equal(one: Any, other: Any) -> bool:
    """Evaluates `one == other`; values of different types are unequal, except numbers. Raises EvaluationError."""
    kind, its = kind_of(one), kind_of(other)
    if kind is not its:
        return kind in _NUMBERS and its in _NUMBERS and bool(_to_double(one, its) == _to_double(other, kind))
    equality = _EQUALITIES.get(kind)
    return equality(one, other) if equality else bool(one == other)


def _same_list(one: list[Any], other: list[Any]) -> bool:
    special = getattr(one, "equals", None)
    if special is not None:
        return bool(special(other))
    return len(one) == len(other) and all(map(equal, one, other))


def _same_optional(one: Optional, other: Optional) -> bool:
    if one.present != other.present:
        return False
    return not one.present or equal(one.content, other.content)


_EQUALITIES: dict[type, Callable[[Any, Any], bool]] = {
    list: _same_list,
    Mapping: lambda one, other: bool(one.equals(other)),
    Optional: _same_optional,
}

_ORDERED = frozenset({str, bytes, bool, Timestamp, Duration})
#: The classes whose Go types implement traits.Receiver: the value itself selects the overload.
RECEIVERS: Final = frozenset({str, Timestamp, Duration})
#: The kinds of keys and indices.
QUALIFIERS: Final = _NUMBERS | {bool, str}
#: The kinds of values that have an order.
ORDERED: Final = _ORDERED | _NUMBERS


def compare(one: Any, other: Any) -> int:
    """Returns -1, 0 or 1. Raises EvaluationError for values without an order."""
    kind, its = kind_of(one), kind_of(other)
    if not ((kind is its and kind in _ORDERED) or (kind in _NUMBERS and its in _NUMBERS)):
        raise no_such_overload()
    if kind is not its:
        one, other = _to_double(one, its), _to_double(other, kind)
    if one == other:
        return 0
    if one < other:
        return -1
    if other < one:
        return 1
    raise EvaluationError("NaN values cannot be ordered")


# --- Values as strings, for conversions and for error messages -------------------------------------------------------


def format_value(value: Any) -> str:
    """Formats a value for an error message."""
    if value.__class__ is bool:
        return "true" if value else "false"
    return double_text(value) if value.__class__ is float else str(value)


#: Numbers with more digits before the point are printed with an exponent.
_PLAIN_DIGITS: Final = 6


def double_text(number: float) -> str:
    """Formats a double like Go's `%g`."""
    if math.isnan(number) or math.isinf(number):
        return "NaN" if math.isnan(number) else "+Inf" if number > 0 else "-Inf"
    if number == 0:
        return "-0" if math.copysign(1, number) < 0 else "0"
    digits, _, power = repr(abs(number)).partition("e")
    plain = digits.replace(".", "").strip("0")
    exponent = _first_place(digits) + int(power or 0)
    sign = "-" if number < 0 else ""
    if not -4 <= exponent < _PLAIN_DIGITS:
        fraction = f".{plain[1:]}" if len(plain) > 1 else ""
        return f"{sign}{plain[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{plain}"
    whole, rest = plain[: exponent + 1].ljust(exponent + 1, "0"), plain[exponent + 1 :]
    return f"{sign}{whole}.{rest}" if rest else f"{sign}{whole}"


def _first_place(digits: str) -> int:
    """Returns the decimal exponent: that of the first digit that is not zero."""
    whole, _, fraction = digits.partition(".")
    return len(whole) - 1 if whole.strip("0") else len(fraction.lstrip("0")) - len(fraction) - 1


# --- Operators: arithmetic within the bounds of the types, concatenation, comparison, indices ------------------------
# Specified by: cel-spec, doc/langdef.md (Numeric values, Overflow); cel-go/common/types (overflow.go and the types).


_MAX: Final = (1 << 63) - 1
_MIN: Final = -(1 << 63)
MAX_UINT64: Final = (1 << 64) - 1
_FIRST: Final = -62135596800 * NANOSECONDS
_LAST: Final = 253402300800 * NANOSECONDS - 1


def checked_int(number: int) -> int:
    """Returns the result; raises EvaluationError beyond int64."""
    if _MIN <= number <= _MAX:
        return number
    raise EvaluationError("integer overflow")


def checked_uint(number: int) -> UInt:
    """Returns the result; raises EvaluationError beyond uint64."""
    if 0 <= number <= MAX_UINT64:
        return UInt(number)
    raise EvaluationError("unsigned integer overflow")


def _checked_duration(nanoseconds: int) -> Duration:
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


def _divide(one: float, other: float) -> float:
    if other == 0:
        sign = math.copysign(1.0, one) * math.copysign(1.0, other)
        return math.nan if one == 0 or math.isnan(one) else math.copysign(math.inf, sign)
    return one / other


def _multiply(one: float, other: float) -> float:
    return one * other


Binary = Callable[[Any, Any], Any]

_ARITHMETIC: dict[str, dict[tuple[type, type], Binary]] = {
    "_+_": {
        (int, int): lambda a, b: checked_int(a + b),
        (UInt, UInt): lambda a, b: checked_uint(int(a) + int(b)),
        (float, float): lambda a, b: a + b,
        (str, str): lambda a, b: a + b,
        (bytes, bytes): lambda a, b: a + b,
        (list, list): lambda a, b: a.concatenate(b) if hasattr(a, "concatenate") else [*a, *b],
        (Duration, Duration): lambda a, b: _checked_duration(a.nanoseconds + b.nanoseconds),
        (Timestamp, Duration): lambda a, b: checked_timestamp(a.nanoseconds + b.nanoseconds, a.offset),
        (Duration, Timestamp): lambda a, b: checked_timestamp(a.nanoseconds + b.nanoseconds, b.offset),
    },
    "_-_": {
        (int, int): lambda a, b: checked_int(a - b),
        (UInt, UInt): lambda a, b: checked_uint(int(a) - int(b)),
        (float, float): lambda a, b: a - b,
        (Duration, Duration): lambda a, b: _checked_duration(a.nanoseconds - b.nanoseconds),
        (Timestamp, Duration): lambda a, b: checked_timestamp(a.nanoseconds - b.nanoseconds, a.offset),
        (Timestamp, Timestamp): lambda a, b: _checked_duration(a.nanoseconds - b.nanoseconds),
    },
    "_*_": {
        (int, int): lambda a, b: checked_int(a * b),
        (UInt, UInt): lambda a, b: checked_uint(int(a) * int(b)),
        (float, float): _multiply,
    },
    "_/_": {
        (int, int): lambda a, b: checked_int(_quotient(a, b)),
        (UInt, UInt): lambda a, b: checked_uint(_quotient(int(a), int(b))),
        (float, float): _divide,
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
        return compare(one, other) in wanted

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
            raise EvaluationError(f"index out of bounds: {format_value(key)}")
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
    return EvaluationError(f"no such key: {format_value(key)}")


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
        raise EvaluationError(f"unsupported index value {format_value(key)} in list")
    if kind_of(key) not in QUALIFIERS:
        raise EvaluationError(f"invalid qualifier type: {go_name_of(key)}")
    raise EvaluationError(f"unsupported index type '{type_of(key).name}' in list")


def negate(value: Any) -> Any:
    """Evaluates `-value`."""
    if value.__class__ is int:
        return checked_int(-value)
    if value.__class__ is float:
        return -value
    if value.__class__ is Duration:
        return _checked_duration(-value.nanoseconds)
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
