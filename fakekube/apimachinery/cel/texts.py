"""Formats values as strings, for conversions and for error messages."""

from __future__ import annotations

import math
from typing import Any, Final


def shown(value: Any) -> str:
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
