"""The estimated costs of calls and sizes of their results: a table of functions.

Each rule computes both from the sizes of the arguments, without the costs of the arguments themselves.

Specified by: k8s.io/apiserver/pkg/cel/library/cost.go (EstimateCallCost); cel-go/ext/{lists,sets}.go,
cel-go/checker/cost.go (functionCost).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from fakekube.apimachinery.cel.types import Signature, Type
from fakekube.apimachinery.cel.values import MAX_UINT64

# --- Ranges of unsigned 64-bit numbers: sizes and costs with a minimum and a maximum ---------------------------------
# Overflows are capped at the maximum.
#
# Specified by: cel-go/checker/cost.go (SizeEstimate, CostEstimate), cel-go/common/cost.go.


#: The costs of a list, a map, and a message literal.
LIST_COST: Final = 10
MAP_COST: Final = 30
STRUCT_COST: Final = 40
#: The cost of reading a character, and of matching against a character of a pattern.
TRAVERSAL_FACTOR: Final = 0.1
PATTERN_FACTOR: Final = 0.25


def _cap(number: int) -> int:
    return min(number, MAX_UINT64)


def scale(number: int, factor: float) -> int:
    """Multiplies by a factor and rounds up."""
    product = math.ceil(float(number) * factor)
    return product if product < 1 << 64 else MAX_UINT64


class Range(NamedTuple):
    """The numbers from `low` to `high`, both included."""

    low: int
    high: int

    def plus(self, other: Range) -> Range:
        low, high = self[0] + other[0], self[1] + other[1]
        return Range(low, high) if high <= MAX_UINT64 >= low else Range(_cap(low), _cap(high))

    def times(self, other: Range) -> Range:
        return Range(_cap(self.low * other.low), _cap(self.high * other.high))

    def scale(self, factor: float) -> Range:
        """Returns the range multiplied by a factor, rounded up."""
        return Range(scale(self.low, factor), scale(self.high, factor))

    def union(self, other: Range) -> Range:
        """Returns the smallest range that contains both."""
        return Range(min(self.low, other.low), max(self.high, other.high))


def fixed_range(number: int) -> Range:
    """Returns the range of a known number."""
    return Range(number, number)


UNKNOWN: Final = Range(0, MAX_UINT64)
#: Joined with anything, it is that.
NOTHING: Final = Range(MAX_UINT64, 0)
FREE: Final = fixed_range(0)
ONE: Final = fixed_range(1)


class CallEstimate(NamedTuple):
    """The cost of a call, and the size of its result, if it can be estimated."""

    cost: Range
    size: Range | None = None


class Operand(NamedTuple):
    """A target or an argument."""

    type: Type
    path: tuple[str, ...]
    """The path from a variable; empty if there is none."""
    known_size: Range | None
    literal: Any = None

    @property
    def size(self) -> Range:
        return self.known_size or UNKNOWN


@dataclass(frozen=True, slots=True)
class EstimatedCall:
    """A call with one of its overloads."""

    function: str
    overload: Signature
    target: Operand | None
    arguments: Sequence[Operand]
    declared_size: Callable[[tuple[str, ...]], Range | None]

    @property
    def subject(self) -> Operand:
        """The target, or else the first argument."""
        return self.target if self.target is not None else self.arguments[0]


Rule = Callable[[EstimatedCall], CallEstimate]


def estimate_call(call: EstimatedCall) -> CallEstimate:
    """Returns the estimate for one overload of a call."""
    rule = _BY_TYPES.get((call.function, call.overload.key)) or _BY_NAME.get(call.function)
    return rule(call) if rule is not None else CallEstimate(ONE)


def _constant(cost: int) -> Rule:
    made = CallEstimate(fixed_range(cost))
    return lambda call: made


def _traversal(times: int = 1) -> Rule:
    """The text is read so many times."""
    return lambda call: CallEstimate(call.subject.size.scale(times * TRAVERSAL_FACTOR))


def _same_size(call: EstimatedCall) -> CallEstimate:
    size = call.subject.size
    return CallEstimate(size.scale(TRAVERSAL_FACTOR), size)


# --- Texts ------------------------------------------------------------------------------------------------------------


def _to_bytes(call: EstimatedCall) -> CallEstimate:
    size = call.subject.size
    return CallEstimate(size.scale(TRAVERSAL_FACTOR), Range(size.low, size.high * 4 & MAX_UINT64))


def _to_text(call: EstimatedCall) -> CallEstimate:
    size = call.subject.size
    return CallEstimate(size.scale(TRAVERSAL_FACTOR), Range(size.low // 4, size.high))


def _quote(call: EstimatedCall) -> CallEstimate:
    size = call.subject.size
    return CallEstimate(size.scale(TRAVERSAL_FACTOR), Range(size.low + 2, (size.high * 2 + 2) & MAX_UINT64))


def _format(call: EstimatedCall) -> CallEstimate:
    return CallEstimate(call.subject.size.scale(TRAVERSAL_FACTOR))


def _affix(call: EstimatedCall) -> CallEstimate:
    return CallEstimate(call.arguments[0].size.scale(TRAVERSAL_FACTOR))


def _contains(call: EstimatedCall) -> CallEstimate:
    part = call.arguments[0].size.scale(TRAVERSAL_FACTOR)
    return CallEstimate(call.subject.size.scale(TRAVERSAL_FACTOR).times(part))


def _pattern_cost(text: Range, pattern: Range) -> Range:
    return text.plus(ONE).scale(TRAVERSAL_FACTOR).times(pattern.scale(PATTERN_FACTOR))


def _matches(call: EstimatedCall) -> CallEstimate:
    if call.target is None:  # as a function, it has no rule
        return CallEstimate(ONE)
    return CallEstimate(_pattern_cost(call.subject.size, call.arguments[0].size))


def _found(call: EstimatedCall) -> CallEstimate:
    size = call.subject.size
    return CallEstimate(_pattern_cost(size, call.arguments[0].size), Range(0, size.high))


def _concatenation(call: EstimatedCall) -> CallEstimate:
    size = call.arguments[0].size.plus(call.arguments[1].size)
    return CallEstimate(size.scale(TRAVERSAL_FACTOR), size)


def _comparison(call: EstimatedCall) -> CallEstimate:
    smaller = min(operand.size.high for operand in call.arguments)
    return CallEstimate(Range(1 if smaller else 0, smaller).scale(TRAVERSAL_FACTOR))


def _replace(call: EstimatedCall) -> CallEstimate:
    size, old, new = call.subject.size, call.arguments[0].size, call.arguments[1].size
    if old.low == 0:  # between all characters
        most, kept_most = min(size.high + 1, MAX_UINT64), size.high
    elif new.high <= old.low:
        most, kept_most = 0, size.high
    else:
        most, kept_most = math.ceil(float(size.high) / float(old.low)), 0
    if old.high == 0:
        least, kept_least = min(size.low + 1, MAX_UINT64), size.low
    elif old.high <= new.low:
        least, kept_least = 0, size.low
    else:
        least, kept_least = math.ceil(float(size.low) / float(old.high)), 0
    made = Range(least, min(most, MAX_UINT64)).times(new).plus(Range(kept_least, kept_most))
    return CallEstimate(size.scale(2 * TRAVERSAL_FACTOR), made)


def _parts(call: EstimatedCall) -> CallEstimate:
    size = call.subject.size
    limit = call.arguments[1].literal if len(call.arguments) > 1 else None
    most = limit & MAX_UINT64 if limit.__class__ is int else size.high
    return CallEstimate(size.scale(2 * TRAVERSAL_FACTOR), Range(0, most))


def _join(call: EstimatedCall) -> CallEstimate:
    items = call.subject.size
    size = items.times(_item_size(call) or UNKNOWN) if call.subject.type.parameters else FREE
    if call.arguments:
        size = size.plus(call.arguments[0].size.times(Range(max(items.low - 1, 0), max(items.high - 1, 0))))
    return CallEstimate(size.scale(TRAVERSAL_FACTOR), size)


def _item_size(call: EstimatedCall) -> Range | None:
    """Returns the declared size of the items of the target."""
    path = call.subject.path
    return call.declared_size((*path, "@items")) if path else None


# --- Lists ------------------------------------------------------------------------------------------------------------


def _list_walk(call: EstimatedCall) -> CallEstimate:
    """Returns the cost of one traversal of all items or characters."""
    subject = call.subject
    if not subject.type.parameters:
        return CallEstimate(subject.size.scale(TRAVERSAL_FACTOR))
    each = ONE
    if subject.type.parameters[0].name in ("string", "bytes"):
        each = each.plus((_item_size(call) or UNKNOWN).scale(TRAVERSAL_FACTOR))
    return CallEstimate(subject.size.times(each))


def _new_list(size: Range, factor: float = 1) -> CallEstimate:
    return CallEstimate(size.scale(factor).plus(ONE).plus(fixed_range(LIST_COST)), size)


def _literal_or(operand: Operand, default: int) -> int:
    """Returns the value of an integer literal (0 for a negative one), else `default`."""
    return max(operand.literal, 0) if operand.literal.__class__ is int else default


def _slice(call: EstimatedCall) -> CallEstimate:
    start, end = _literal_or(call.arguments[0], 0), _literal_or(call.arguments[1], call.subject.size.high)
    return _new_list(fixed_range((end - start) & MAX_UINT64))


def _flatten(call: EstimatedCall) -> CallEstimate:
    depth = _literal_or(call.arguments[0], MAX_UINT64) if call.arguments else 1
    return _new_list(call.subject.size, depth)


def _compared_all(factor: float, operand: Callable[[EstimatedCall], Operand]) -> Rule:
    """Returns the cost of comparing every item with every other."""

    def rule(call: EstimatedCall) -> CallEstimate:
        size = operand(call).size
        return _new_list(size.times(size), factor)

    return rule


def _sort(item: str, operand: Callable[[EstimatedCall], Operand]) -> Rule:
    return _compared_all(2 + TRAVERSAL_FACTOR if item in ("string", "bytes") else 2, operand)


def _set_relation(factor: int) -> Rule:
    def rule(call: EstimatedCall) -> CallEstimate:
        one, other = call.arguments
        return CallEstimate(one.size.times(other.size).scale(factor).plus(ONE))

    return rule


# --- Addresses, formats, the rest -------------------------------------------------------------------------------------

#: Bytes of an address.
_ADDRESS: Final = Range(4, 16)
_ADDRESSES_COMPARED: Final = _ADDRESS.plus(_ADDRESS).scale(TRAVERSAL_FACTOR)
_NETWORKS_COMPARED: Final = _ADDRESSES_COMPARED.plus(_ADDRESS.scale(TRAVERSAL_FACTOR)).plus(ONE)


def _containment(base: Range) -> Rule:
    """Estimates `containsIP` and `containsCIDR`, including the parsing of strings."""

    def rule(call: EstimatedCall) -> CallEstimate:
        if call.overload.arguments[1].name != "string":
            return CallEstimate(base)
        return CallEstimate(base.plus(call.arguments[0].size.scale(TRAVERSAL_FACTOR)))

    return rule


#: The longest pattern of a format.
_LONGEST_PATTERN: Final = 128
_LONGEST_FORMAT: Final = 64


def _validate(call: EstimatedCall) -> CallEstimate:
    return CallEstimate(call.arguments[0].size.scale(TRAVERSAL_FACTOR).scale(_LONGEST_PATTERN * PATTERN_FACTOR))


#: Types whose values are compared in one step.
_SIMPLE: Final = frozenset(
    {
        "net.IP",
        "net.CIDR",
        "kubernetes.Quantity",
        "kubernetes.Semver",
        *(f"kubernetes.authorization.{name}" for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")),
    }
)


def _equal(call: EstimatedCall) -> CallEstimate:
    one, other = call.arguments
    if one.type == other.type:
        if one.type.name in _SIMPLE:
            return CallEstimate(ONE)
        if one.type.name == "kubernetes.NamedFormat":
            return CallEstimate(Range(1, _LONGEST_FORMAT).scale(TRAVERSAL_FACTOR))
        if one.type.name == "kubernetes.URL":
            size = other.known_size or ONE
            return CallEstimate(Range(1, size.high).scale(TRAVERSAL_FACTOR))
    return _comparison(call)


def _selector(call: EstimatedCall) -> CallEstimate:
    size = call.arguments[0].size
    requirements = size.scale(0.5).scale(LIST_COST + STRUCT_COST)
    return CallEstimate(fixed_range(LIST_COST).plus(size.scale(TRAVERSAL_FACTOR)).plus(requirements))


_CHECK: Final = 350_000

_BY_NAME: Final[dict[str, Rule]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _list_walk),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim", "url"), _same_size),
    "replace": _replace,
    "split": _parts,
    "join": _join,
    "find": _found,
    "findAll": _found,
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _traversal()),
    "ip.isCanonical": _traversal(2),
    "containsIP": _containment(_ADDRESSES_COMPARED),
    "containsCIDR": _containment(_NETWORKS_COMPARED),
    "matches": _matches,
    "validate": _validate,
    "strings.quote": _quote,
    "format": _format,
    "startsWith": _affix,
    "endsWith": _affix,
    "contains": _contains,
    "_==_": _equal,
    "_!=_": _comparison,
    "sets.contains": _set_relation(1),
    "sets.intersects": _set_relation(1),
    "sets.equivalent": _set_relation(2),
    "slice": _slice,
    "flatten": _flatten,
    "lists.range": lambda call: _new_list(fixed_range(_literal_or(call.arguments[0], MAX_UINT64))),
    "reverse": lambda call: _new_list(call.subject.size),
    "distinct": _compared_all(2, lambda call: call.subject),
    "check": _constant(_CHECK),
    "fieldSelector": _selector,
    "labelSelector": _selector,
}

_ITEMS: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")

#: (function, types of arguments) → the rule, for functions whose overloads differ.
_BY_TYPES: Final[dict[tuple[str, str], Rule]] = {
    ("ip", "net.CIDR"): _constant(1),
    ("bytes", "string"): _to_bytes,
    ("string", "bytes"): _to_text,
    **{("sort", f"list({item})"): _sort(item, lambda call: call.subject) for item in _ITEMS},
    **{("@sortByAssociatedKeys", f"list(A) list({item})"): _sort(item, lambda call: call.arguments[0]) for item in _ITEMS},
    ("@in", "A list(A)"): lambda call: CallEstimate(call.arguments[1].size.scale(1)),
    **{(name, f"{kind} {kind}"): _comparison for name in ("_<_", "_<=_", "_>_", "_>=_") for kind in ("string", "bytes")},
    **{("_+_", f"{kind} {kind}"): _concatenation for kind in ("string", "bytes")},
}
