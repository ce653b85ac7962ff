"""`'…%s…'.format([…])`.

Numbers are printed for readers of English, as the real library asks golang.org/x/text to: with thousands separated, and
with `×10` and raised digits for exponents.

Specified by: cel-go/ext/formatting.go.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from fakekube.cel.errors import EvaluationError
from fakekube.cel.libraries.standard import double_text
from fakekube.cel.values import CelType, Duration, Mapping, Timestamp, UInt, kind_of, type_of
from fakekube.errors.field import go_quote

__all__ = ["formatted"]

_CLAUSE = re.compile(r"%(?:(%)|(?:\.([0-9]+))?(.))", re.DOTALL)
_RAISED = str.maketrans("0123456789-+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺")
_PRECISION = 6


def formatted(template: str, arguments: list[Any]) -> str:
    """The template with its clauses filled. Raises EvaluationError."""
    rest = iter(arguments)

    def fill(match: re.Match[str]) -> str:
        percent, precision, clause = match.groups()
        if percent:
            return "%"
        make = _CLAUSES.get(clause)
        if make is None:
            raise EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{clause}"')
        argument = next(rest, _MISSING)
        if argument is _MISSING:
            raise EvaluationError(f"index {len(arguments)} out of range")
        return make(argument, int(precision) if precision else _PRECISION)

    return _CLAUSE.sub(fill, template)


_MISSING = object()


def _misfit(words: str, value: Any) -> EvaluationError:
    return EvaluationError(f"error during formatting: {words}, was given {type_of(value).name}")


def _string(value: Any, precision: int = _PRECISION) -> str:
    write = _TEXTS.get(kind_of(value))
    if write is None:
        raise _misfit(
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
            "and timestamps", value,
        )
    return write(value)


def _inner(value: Any) -> str:
    """A value within a list or map."""
    kind = kind_of(value)
    if kind is str:
        return go_quote(value)
    if kind is bytes:
        return "b" + go_quote(value.decode(errors="replace"))
    if kind is float:
        return f"{value:.{_PRECISION}f}"
    if kind in (Timestamp, Duration):
        return f"{'timestamp' if kind is Timestamp else 'duration'}({go_quote(str(value))})"
    return f"type({value.name})" if kind is CelType else _string(value)


def _map(value: Mapping) -> str:
    entries = sorted((_inner(key), _inner(value.find(key))) for key in value)
    return "{" + ", ".join(f"{key}:{content}" for key, content in entries) + "}"


_TEXTS: dict[type, Callable[[Any], str]] = {
    str: lambda value: value, bool: lambda value: "true" if value else "false", int: str,
    UInt: lambda value: str(int(value)),
    float: double_text, bytes: lambda value: value.decode(errors="replace"), type(None): lambda value: "null",
    CelType: lambda value: value.name, Timestamp: str, Duration: str, Mapping: _map,
    list: lambda value: f"[{', '.join(map(_inner, value))}]",
}


def _decimal(value: Any, precision: int) -> str:
    if value.__class__ in (int, UInt):
        return str(int(value))
    raise _misfit("decimal clause can only be used on integers", value)


def _number(value: Any, words: str) -> float:
    if value.__class__ is float:
        return float(value)
    if value.__class__ is str and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    raise _misfit(words, value)


def _endless(number: float) -> str:
    return "NaN" if math.isnan(number) else "∞" if number > 0 else "-∞"


def _fixed(value: Any, precision: int) -> str:
    number = _number(value, "fixed-point clause can only be used on doubles")
    return f"{number:,.{precision}f}" if abs(number) < float("inf") else _endless(number)


def _scientific(value: Any, precision: int) -> str:
    number = _number(value, "scientific clause can only be used on doubles")
    if not abs(number) < float("inf"):
        return _endless(number)
    mantissa, _, exponent = f"{number:.{precision}e}".partition("e")
    power = int(exponent)
    sign = "-" if power < 0 else ""
    return f"{mantissa}×10" + f"{sign}{abs(power):02d}".translate(_RAISED)


def _based(letter: str, words: str) -> Callable[[Any, int], str]:
    def write(value: Any, precision: int) -> str:
        if value.__class__ in (int, UInt) or (value.__class__ is bool and letter == "b"):
            return format(int(value), letter)
        if letter in "xX" and value.__class__ in (str, bytes):
            text = (value.encode() if isinstance(value, str) else value).hex()
            return text.upper() if letter == "X" else text
        raise _misfit(words, value)

    return write


_HEX = "only integers, byte buffers, and strings can be formatted as hex"
_CLAUSES: dict[str, Callable[[Any, int], str]] = {
    "s": _string, "d": _decimal, "f": _fixed, "e": _scientific,
    "b": _based("b", "only integers and bools can be formatted as binary"),
    "x": _based("x", _HEX), "X": _based("X", _HEX), "o": _based("o", "octal clause can only be used on integers"),
}
