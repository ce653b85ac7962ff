"""Quantities (`1Gi`, `500m`).

Specified by: k8s.io/apiserver/pkg/cel/library/quantity.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fakekube.apimachinery.cel.errors import EvaluationError
from fakekube.apimachinery.cel.values import Opaque
from fakekube.apimachinery.schema import quantity
from fakekube.apimachinery.schema.quantity import Format, QuantityError


@dataclass(frozen=True, slots=True)
class Quantity(Opaque):
    """A value of the type quantity."""

    type_name = "kubernetes.Quantity"
    go_type = "*resource.Quantity"
    number: quantity.Quantity

    def __str__(self) -> str:
        return str(self.number)


def _parse(text: str) -> Quantity:
    try:
        return Quantity(quantity.parse(text))
    except QuantityError as error:
        raise EvaluationError(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        quantity.parse(text)
    except QuantityError:
        return False
    return True


def _to_integer(number: quantity.Quantity) -> int | None:
    """Returns the amount as an integer; None if it is too large or has decimals (even zeros)."""
    whole = int(number.amount)
    return whole if number.scale >= 0 and -(1 << 63) <= whole < 1 << 63 else None


def _integer(value: Quantity) -> int:
    whole = _to_integer(value.number)
    if whole is None:
        raise EvaluationError("cannot convert value to integer")
    return whole


def _approximate(value: Quantity) -> float:
    try:
        return float(value.number.amount)
    except OverflowError:
        return math.copysign(math.inf, value.number.sign)


def _order(one: Quantity, other: Quantity) -> int:
    return (one.number > other.number) - (one.number < other.number)


def _sum(one: quantity.Quantity, other: quantity.Quantity) -> Quantity:
    """Adds quantities like Go: zero takes the format of the other operand."""
    if other.unscaled == 0:
        return Quantity(one)
    return Quantity(other if one.unscaled == 0 else one + other)


def _of_int(number: int) -> quantity.Quantity:
    return quantity.Quantity(number, 0, Format.DECIMAL_EXPONENT)


FUNCTIONS: Final[dict[tuple[Any, ...], Callable[..., Any]]] = {
    ("quantity", False, str): _parse,
    ("isQuantity", False, str): _is_quantity,
    ("sign", False, Quantity): lambda value: value.number.sign,
    ("isGreaterThan", True, Quantity, Quantity): lambda one, other: _order(one, other) > 0,
    ("isLessThan", True, Quantity, Quantity): lambda one, other: _order(one, other) < 0,
    ("compareTo", True, Quantity, Quantity): _order,
    ("asApproximateFloat", True, Quantity): _approximate,
    ("asInteger", True, Quantity): _integer,
    ("isInteger", True, Quantity): lambda value: _to_integer(value.number) is not None,
    ("add", True, Quantity, Quantity): lambda one, other: _sum(one.number, other.number),
    ("add", True, Quantity, int): lambda one, other: _sum(one.number, _of_int(other)),
    ("sub", True, Quantity, Quantity): lambda one, other: _sum(one.number, -other.number),
    ("sub", True, Quantity, int): lambda one, other: _sum(one.number, _of_int(-other)),
}
