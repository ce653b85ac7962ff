"""Parses and prints durations such as `1h30m` or `-1.5s` like Go, with the same error messages.

The OpenAPI format `duration` also accepts unit names in full, days and weeks (`parse_spelled_duration`).

Specified by: Go's time package (format.go: ParseDuration, time.go: Duration.String);
k8s.io/kube-openapi/pkg/validation/strfmt (duration.go).
"""

from __future__ import annotations

import re
from typing import Final

from fakekube.base.golang.strconv import parse_int
from fakekube.base.golang.timestamps import quoted

_NANOSECONDS: Final = {
    "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9,
}  # fmt: skip
_LIMIT: Final = 1 << 63
_LIMIT_DIGITS: Final = 19
_NUMBER: Final = re.compile(r"0*+([0-9]*)(?:\.([0-9]*))?")
_UNIT: Final = re.compile(r"[^0-9.]*")

_NUMBER_AND_WORD: Final = re.compile(r"(?<![0-9])([0-9]++)[\t\n\f\r ]*([A-Za-zµ]+)")
#: The unit names, the prefix that identifies each, and the length of the unit in nanoseconds.
_SPELLED: Final = (
    (frozenset({"ns"}), "nano", 1), (frozenset({"us", "µs"}), "micro", 10**3), (frozenset({"ms"}), "milli", 10**6),
    (frozenset({"s"}), "sec", 10**9), (frozenset({"m"}), "min", 60 * 10**9), (frozenset({"h", "hr"}), "hour", 3600 * 10**9),
    (frozenset({"d"}), "day", 86_400 * 10**9), (frozenset({"w", "wk"}), "week", 604_800 * 10**9),
)  # fmt: skip


def parse_duration(text: str) -> int:
    """Returns the duration in nanoseconds (int64). Raises ValueError with Go's message."""
    negative = text[:1] == "-"
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    total, at = 0, 0
    while at < len(rest) or not at:
        number = _NUMBER.match(rest, at)
        assert number is not None  # it matches nothing, too
        if not number[0].strip(".") or len(number[1]) > _LIMIT_DIGITS:
            raise _invalid(text)
        unit = _UNIT.match(rest, number.end())
        assert unit is not None
        if not unit[0]:
            raise ValueError(f"time: missing unit in duration {quoted(text)}")
        if unit[0] not in _NANOSECONDS:
            raise ValueError(f"time: unknown unit {quoted(unit[0])} in duration {quoted(text)}")
        total += _nanoseconds(number[1], number[2] or "", _NANOSECONDS[unit[0]])
        if total > _LIMIT:
            raise _invalid(text)
        at = unit.end()
    if total == _LIMIT and not negative:
        raise _invalid(text)
    return -total if negative else total


def print_duration(nanoseconds: int) -> str:
    """Prints a duration like Go's Duration.String: `1h0m0s`, `1.5s`, `20ms`."""
    sign, rest = "-" if nanoseconds < 0 else "", abs(nanoseconds)
    if rest < 10**9:
        unit = next((unit for unit in ("ms", "µs") if rest >= _NANOSECONDS[unit]), "ns") if rest else "s"
        return f"{sign}{_decimal(rest, _NANOSECONDS[unit])}{unit}"
    seconds, fraction = divmod(rest, 10**9)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    opening = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{opening}{_decimal(seconds * 10**9 + fraction, 10**9)}s"


def _decimal(number: int, unit: int) -> str:
    whole, rest = divmod(number, unit)
    fraction = str(rest).zfill(len(str(unit)) - 1).rstrip("0") if rest else ""
    return f"{whole}.{fraction}" if fraction else str(whole)


def parse_spelled_duration(text: str) -> int:
    """Parses a duration whose units may be spelled out.

    Returns:
        Nanoseconds: of a Go duration, or else the sum of all numbers that precede a unit anywhere in the text.

    Raises:
        ValueError: the text contains no duration.
    """
    try:
        return parse_duration(text)
    except ValueError:
        found = [(parse_int(number, "Atoi"), word.lower()) for number, word in _NUMBER_AND_WORD.findall(text)]
    spans = [number * span for number, word in found for short, long, span in _SPELLED if word in short or word.startswith(long)]
    if not spans:
        raise ValueError(f"unable to parse {text} as duration")
    return (sum(spans) + _LIMIT) % (2 * _LIMIT) - _LIMIT  # int64 wraps around


def _nanoseconds(whole: str, fraction: str, unit: int) -> int:
    """Go computes the fraction with floats, from as many digits as 63 bits hold."""
    digits = fraction[:_LIMIT_DIGITS]
    if int(digits or "0") >= _LIMIT:
        digits = digits[:-1]
    return int(whole or "0") * unit + int(int(digits or "0") * (unit / float(10 ** len(digits))))


def _invalid(text: str) -> ValueError:
    return ValueError(f"time: invalid duration {quoted(text)}")
