"""Optional values. (`or` and `orValue` look at their argument only if needed: see `fakekube.cel.evaluation`.)

Specified by: cel-go/cel/library.go (OptionalTypes).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fakekube.cel.errors import EvaluationError
from fakekube.cel.values import ABSENT, Mapping, Optional, kind_of

__all__ = ["FUNCTIONS"]


def _is_zero(value: Any) -> bool:
    kind = kind_of(value)
    if value is None or value is False:
        return True
    return not len(value) if kind in (str, bytes, list, Mapping) else kind in (int, float) and value == 0


def _value(optional: Optional) -> Any:
    if optional.content is ABSENT:
        raise EvaluationError("optional.none() dereference")
    return optional.content


FUNCTIONS: Final[dict[tuple[Any, ...], Callable[..., Any]]] = {
    ("optional.of", False, object): Optional,
    ("optional.none", False): Optional,
    ("optional.ofNonZeroValue", False, object): lambda value: Optional() if _is_zero(value) else Optional(value),
    ("hasValue", True, Optional): lambda optional: optional.present,
    ("value", True, Optional): _value,
    ("optional.unwrap", False, list): lambda items: [item.content for item in items if item.present],
    ("unwrapOpt", True, list): lambda items: [item.content for item in items if item.present],
}
