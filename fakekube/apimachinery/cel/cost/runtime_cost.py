"""The cost of an evaluation at run time: the frame that counts it up to its limit, and the costs of calls, a table of functions.

Each rule computes the cost from the arguments before the call, so a call that is too expensive is not made. Without a rule, a
call costs 1.

Specified by: k8s.io/apiserver/pkg/cel/library/cost.go (CallCost); cel-go/ext/{lists,sets}.go,
cel-go/interpreter/runtimecost.go (costCall).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from fakekube.apimachinery.cel.cost.estimated_calls import LIST_COST, PATTERN_FACTOR, STRUCT_COST, TRAVERSAL_FACTOR
from fakekube.apimachinery.cel.errors import CostLimitExceeded
from fakekube.apimachinery.cel.types import Signature
from fakekube.apimachinery.cel.values import MAX_UINT64, Mapping, Opaque, Optional, kind_of


class Frame:
    """The state of one evaluation. The program refers to variables by slot number."""

    __slots__ = ("cost", "limit", "slots")

    def __init__(self, slots: list[Any], limit: int = MAX_UINT64) -> None:
        self.slots = slots
        self.cost = 0
        self.limit = limit

    def spend(self, cost: int) -> None:
        """Counts a cost that may be large. Raises CostLimitExceeded."""
        self.cost += cost
        if self.cost > self.limit:
            raise CostLimitExceeded(self.cost)

    def check(self) -> None:
        """Raises CostLimitExceeded."""
        if self.cost > self.limit:
            raise CostLimitExceeded(self.cost)


#: (arguments) → cost.
Rule = Callable[[Sequence[Any]], int]


def size_of(value: Any) -> int:
    """Returns the number of characters, bytes, items or entries; 1 for other values."""
    cls = value.__class__
    if cls in (int, bool, float):
        return 1
    if cls is Optional:
        return size_of(value.content) if value.present else 1
    if isinstance(value, str | bytes | list | Mapping):
        return len(value)
    return value.size if isinstance(value, Opaque) else 1


def _scale(size: float, factor: float = TRAVERSAL_FACTOR) -> int:
    return math.ceil(float(size) * factor)


def _traversal(times: int = 1) -> Rule:
    """The first text is read so many times."""
    factor = times * TRAVERSAL_FACTOR
    return lambda arguments: _scale(size_of(arguments[0]), factor)


def _walk(value: Any) -> int:
    """Returns the cost of a traversal of a value."""
    kind = kind_of(value)
    if kind is str:
        return int(float(len(value.encode())) * TRAVERSAL_FACTOR)
    if kind is bytes:
        return int(float(len(value)) * TRAVERSAL_FACTOR)
    if kind is list:
        return sum(map(_walk, value))
    if kind is Mapping:
        return sum(_walk(key) + _walk(value.find(key)) for key in value)
    return 1


def _pattern(text: int, pattern: int) -> int:
    return _scale(1.0 + text) * _scale(pattern, PATTERN_FACTOR)


def _matches(arguments: Sequence[Any]) -> int:
    return _pattern(size_of(arguments[0]), size_of(arguments[1]))


def _contains(arguments: Sequence[Any]) -> int:
    return _scale(size_of(arguments[0])) * _scale(size_of(arguments[1]))


def _concatenation(arguments: Sequence[Any]) -> int:
    return _scale(size_of(arguments[0]) + size_of(arguments[1]))


def _comparison(arguments: Sequence[Any]) -> int:
    return _scale(min(size_of(arguments[0]), size_of(arguments[1])))


def equality_cost(one: Any, other: Any) -> int:
    """Returns the cost of `==`; that of types of Kubernetes libraries is 1."""
    if isinstance(one, Opaque) and one.type_name != "unknown":
        return 1
    return _scale(min(size_of(one), size_of(other)))


def _join(arguments: Sequence[Any]) -> int:
    items, separator = arguments[0], arguments[1] if len(arguments) > 1 else ""
    size = sum(map(size_of, items)) + max(len(items) - 1, 0) * size_of(separator)
    return _scale(size, 2 * TRAVERSAL_FACTOR)


# --- Lists ------------------------------------------------------------------------------------------------------------


def _new_list(size: int, factor: float = 1) -> int:
    return int(float(size) * factor) + 1 + LIST_COST


def comparison_cost(items: list[Any]) -> int:
    """Returns the cost of comparing every item with every other."""
    textual = bool(items) and kind_of(items[0]) in (str, bytes)
    return _new_list(len(items) * len(items), 2 + TRAVERSAL_FACTOR if textual else 2)


def _flatten(arguments: Sequence[Any]) -> int:
    return _new_list(len(arguments[0]), arguments[1] if len(arguments) > 1 else 1)


def _set_relation(factor: int) -> Rule:
    return lambda arguments: 1 + len(arguments[0]) * len(arguments[1]) * factor


# --- Addresses, formats, authorisation --------------------------------------------------------------------------------


def _containment(base: Callable[[int], int]) -> dict[str, Rule]:
    """Returns the cost by the type of the address, which is parsed first if it is a string."""

    def of_text(arguments: Sequence[Any]) -> int:
        return base(size_of(arguments[0])) + _scale(size_of(arguments[1]))

    return {"string": of_text, "": lambda arguments: base(size_of(arguments[0]))}


_ADDRESS: Final = _containment(lambda size: _scale(size + size))
_NETWORK: Final = _containment(lambda size: _scale(size + size) + _scale(size) + 1)


def _validate(arguments: Sequence[Any]) -> int:
    return _pattern(size_of(arguments[1]), arguments[0].pattern_size)


def _selector(arguments: Sequence[Any]) -> int:
    size = size_of(arguments[1])
    return LIST_COST + _scale(size) + _scale(_scale(size, 0.5), LIST_COST + STRUCT_COST)


_BY_NAME: Final[dict[str, Rule]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), lambda arguments: _walk(arguments[0])),
    **dict.fromkeys(
        (
            "url",
            "lowerAscii",
            "upperAscii",
            "substring",
            "trim",
            "cidr",
            "isIP",
            "isCIDR",
            "ip",
            "quantity",
            "isQuantity",
            "semver",
            "isSemver",
            "startsWith",
            "endsWith",
            "strings.quote",
            "format",
        ),
        _traversal(),
    ),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _traversal(2)),
    "join": _join,
    "find": _matches,
    "findAll": _matches,
    "contains": _contains,
    "validate": _validate,
    "fieldSelector": _selector,
    "labelSelector": _selector,
    "check": lambda arguments: 350_000,
    "sets.contains": _set_relation(1),
    "sets.intersects": _set_relation(1),
    "sets.equivalent": _set_relation(2),
    "slice": lambda arguments: _new_list(max(min(arguments[2], len(arguments[0])) - arguments[1], 0)),
    "lists.range": lambda arguments: _new_list(max(arguments[0], 0)),
    "reverse": lambda arguments: _new_list(len(arguments[0])),
    "flatten": _flatten,
    "distinct": lambda arguments: comparison_cost(arguments[0]),
}

#: (function, types of arguments) → the rule, for functions whose overloads differ.
_BY_TYPES: Final[dict[tuple[str, str], Rule]] = {
    ("bytes", "string"): _traversal(),
    ("string", "bytes"): _traversal(),
    ("@in", "A list(A)"): lambda arguments: len(arguments[1]),
    **{(name, f"{kind} {kind}"): _comparison for name in ("_<_", "_<=_", "_>_", "_>=_") for kind in ("string", "bytes")},
    **{("_+_", f"{kind} {kind}"): _concatenation for kind in ("string", "bytes")},
    ("containsIP", "net.CIDR string"): _ADDRESS["string"],
    ("containsIP", "net.CIDR net.IP"): _ADDRESS[""],
    ("containsCIDR", "net.CIDR string"): _NETWORK["string"],
    ("containsCIDR", "net.CIDR net.CIDR"): _NETWORK[""],
}
_UNRESOLVED: Final[dict[str, Rule]] = {"containsIP": _ADDRESS[""], "containsCIDR": _NETWORK[""]}


def rule_of(function: str, *, member: bool, meanings: Sequence[Signature]) -> Rule | None:
    """Returns the cost rule of a function with its possible overloads; None: 1."""
    if len(meanings) == 1:
        meaning = meanings[0]
        if (function, meaning.key) == ("ip", "net.CIDR"):
            return None
        if function in ("sort", "@sortByAssociatedKeys"):
            return lambda arguments: comparison_cost(arguments[-1])
        if function == "matches":
            return _matches if member else None
        by_types = _BY_TYPES.get((function, meaning.key))
        if by_types is not None:
            return by_types
    return _BY_NAME.get(function) or _UNRESOLVED.get(function)
