"""Functions of lists and sets: sort, sum, min, max, indexOf, slice, distinct, sets.

Specified by: k8s.io/apiserver/pkg/cel/library/lists.go, cel-go/ext/lists.go (version 3), cel-go/ext/sets.go.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key, reduce
from itertools import pairwise
from typing import Any, Final

from fakekube.apimachinery.cel.errors import EvaluationError, no_such_overload
from fakekube.apimachinery.cel.values import (
    ABSENT,
    OPERATORS,
    ORDERED,
    Duration,
    Mapping,
    Optional,
    UInt,
    compare,
    equal,
    kind_of,
)


def _sum(items: list[Any]) -> Any:
    return reduce(OPERATORS["_+_"], items) if items else 0


def _extreme(name: str, better: int) -> Callable[[list[Any]], Any]:
    def find(items: list[Any]) -> Any:
        if not items:
            raise EvaluationError(f"{name} called on empty list")
        return reduce(lambda best, item: item if compare(best, item) == -better else best, items)

    return find


def _index(items: list[Any], wanted: Any) -> int:
    return next((number for number, item in enumerate(items) if equal(item, wanted)), -1)


def _last_index(items: list[Any], wanted: Any) -> int:
    return next((number for number in reversed(range(len(items))) if equal(items[number], wanted)), -1)


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(items) < end:
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return list(items[start:end])


def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat: list[Any] = []
    for item in items:
        if kind_of(item) is list and depth > 0:
            flat += _flatten(item, depth - 1)
        else:
            flat.append(item)
    return flat


def _distinct(items: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for item in items:
        if not any(equal(item, known) for known in kept):
            kept.append(item)
    return kept


def _sort(items: list[Any], keys: list[Any] | None = None) -> list[Any]:
    keys = items if keys is None else keys
    if keys and kind_of(keys[0]) not in ORDERED:
        raise EvaluationError("list elements must be comparable")
    if len({kind_of(key) for key in keys}) > 1:
        raise EvaluationError("list elements must have the same type")
    order = cmp_to_key(compare)
    in_order = sorted(range(len(items)), key=lambda number: order(keys[number]))
    return [items[number] for number in in_order]


def _contains(items: list[Any], part: list[Any]) -> bool:
    return all(_index(items, wanted) >= 0 for wanted in part)


FUNCTIONS: Final[dict[tuple[Any, ...], Callable[..., Any]]] = {
    ("isSorted", True, list): lambda items: all(compare(one, other) != 1 for one, other in pairwise(items)),
    ("sum", True, list): _sum,
    ("min", True, list): _extreme("min", -1),
    ("max", True, list): _extreme("max", 1),
    ("indexOf", True, list, object): _index,
    ("lastIndexOf", True, list, object): _last_index,
    ("slice", True, list, int, int): _slice,
    ("flatten", True, list): _flatten,
    ("flatten", True, list, int): _flatten,
    ("distinct", True, list): _distinct,
    ("reverse", True, list): lambda items: list(reversed(items)),
    ("sort", True, list): _sort,
    ("@sortByAssociatedKeys", True, list, list): _sort,
    ("lists.range", False, int): lambda count: list(range(count)),
    ("first", True, list): lambda items: Optional(items[0]) if items else Optional(),
    ("last", True, list): lambda items: Optional(items[-1]) if items else Optional(),
    ("sets.contains", False, list, list): _contains,
    ("sets.equivalent", False, list, list): lambda one, other: _contains(one, other) and _contains(other, one),
    ("sets.intersects", False, list, list): lambda one, other: any(_index(one, item) >= 0 for item in other),
}


# --- Optional values ---------------------------------------------------------------------------------------------------
# Specified by: cel-go/cel/library.go (OptionalTypes).


def _is_zero(value: Any) -> bool:
    kind = kind_of(value)
    if value is None or value is False:
        return True
    if kind in (str, bytes, list, Mapping):
        return len(value) == 0
    return value == Duration(0) if kind is Duration else kind in (int, UInt, float) and value == 0


def _value(optional: Optional) -> Any:
    if optional.content is ABSENT:
        raise EvaluationError("optional.none() dereference")
    return optional.content


def _unwrap(name: str) -> Callable[[list[Any]], list[Any]]:
    def unwrap(items: list[Any]) -> list[Any]:
        if not all(item.__class__ is Optional for item in items):
            raise no_such_overload(f"{name}(list)")
        return [item.content for item in items if item.present]

    return unwrap


OPTIONAL_FUNCTIONS: Final[dict[tuple[Any, ...], Callable[..., Any]]] = {
    ("optional.of", False, object): Optional,
    ("optional.none", False): Optional,
    ("optional.ofNonZeroValue", False, object): lambda value: Optional() if _is_zero(value) else Optional(value),
    ("hasValue", True, Optional): lambda optional: optional.present,
    ("value", True, Optional): _value,
    ("optional.unwrap", False, list): _unwrap("optional.unwrap"),
    ("unwrapOpt", True, list): _unwrap("unwrapOpt"),
}
