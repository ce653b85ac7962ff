"""Optional values; `or` and `orValue`, which evaluate their argument only if necessary, are in `cel.interpretable`.

Specified by: cel-go/cel/library.go (OptionalTypes).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fakekube.apimachinery.cel.errors import EvaluationError, no_such_overload
from fakekube.apimachinery.cel.values import ABSENT, Duration, Mapping, Optional, UInt, kind_of


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


FUNCTIONS: Final[dict[tuple[Any, ...], Callable[..., Any]]] = {
    ("optional.of", False, object): Optional,
    ("optional.none", False): Optional,
    ("optional.ofNonZeroValue", False, object): lambda value: Optional() if _is_zero(value) else Optional(value),
    ("hasValue", True, Optional): lambda optional: optional.present,
    ("value", True, Optional): _value,
    ("optional.unwrap", False, list): _unwrap("optional.unwrap"),
    ("unwrapOpt", True, list): _unwrap("unwrapOpt"),
}
