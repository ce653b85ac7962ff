"""The function `format`: `'…%s…'.format([…])`.

Numbers are printed for the locale en-US, like golang.org/x/text does: with thousands separators, and with `×10` and
superscript digits for exponents.

Specified by: cel-go/ext/formatting.go.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from operator import itemgetter
from typing import Any, Final

from fakekube.apimachinery.cel.errors import EvaluationError
from fakekube.apimachinery.cel.values import CelType, Duration, Mapping, Timestamp, UInt, double_text, kind_of, type_of
from fakekube.base.golang.strconv import go_quote, parse_int

_RAISED = str.maketrans("0123456789-+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺")
_PRECISION: Final = 6
_PRECISE = re.compile(r"\.([0-9]*)")
_PLACE = re.compile("%(%)?")
#: The verbs of clauses.
_CLAUSES: Final = frozenset("sdfebxXo")


def formatted(template: str, arguments: list[Any]) -> str:
    """Returns the template with its clauses replaced. Raises EvaluationError."""

    def fill(index: int, letter: str, precision: int) -> str:
        return _WRITERS[letter](arguments[index], precision)

    return filled(template, len(arguments), fill)


def filled(template: str, count: int, fill: Callable[[int, str, int], str], *, is_literal: bool = False) -> str:
    """Replaces the clauses of a template by the results of `fill(argument index, verb, precision)`.

    `is_literal`: a template that is checked at compile time, where an unfinished clause is reported before a missing argument.
    """
    made, end, index = list[str](), 0, 0
    while match := _PLACE.search(template, end):
        made.append(template[end : match.start()])
        end = match.end()
        if match[1]:
            made.append("%")
            continue
        if end == len(template) and (is_literal or index < count):
            raise EvaluationError("unexpected end of string")
        if index >= count:
            raise EvaluationError(f"index {index} out of range")
        letter, precision, end = _clause(template, end)
        made.append(fill(index, letter, precision))
        index += 1
    return "".join((*made, template[end:]))


def _clause(template: str, at: int) -> tuple[str, int, int]:
    """Returns the verb, the precision, and the end of a clause."""
    precise = _PRECISE.match(template, at)
    if precise and precise.end() == len(template):
        raise EvaluationError(f"{_UNREADABLE}: error while parsing precision: could not find end of precision specifier")
    try:
        precision = parse_int(precise[1], "Atoi") if precise else _PRECISION
    except ValueError as problem:
        said = "error while parsing precision: error while converting precision to integer"
        raise EvaluationError(f"{_UNREADABLE}: {said}: {problem}") from None
    place = precise.end() if precise else at
    letter = template[place]
    if letter not in _CLAUSES:
        shown = chr(letter.encode()[0])
        raise EvaluationError(f'{_UNREADABLE}: unrecognized formatting clause "{shown}"')
    return letter, precision, place + 1


_UNREADABLE: Final = "could not parse formatting clause"


def _misfit(words: str, value: Any) -> EvaluationError:
    return EvaluationError(f"error during formatting: {words}, was given {type_of(value).name}")


def _string(value: Any, precision: int = _PRECISION) -> str:
    write = _TEXTS.get(kind_of(value))
    if write is None:
        raise _misfit(MISFITS["s"], value)
    return write(value)


def _inner(value: Any) -> str:
    """Formats a value within a list or map."""
    kind = kind_of(value)
    if kind is str:
        return go_quote(value)
    if kind is bytes:
        return "b" + go_quote(value.decode(errors="replace"))
    if kind is float:
        return f"{value:.{_PRECISION}f}" if abs(value) < float("inf") else f'"{double_text(value)}"'
    if kind in (Timestamp, Duration):
        return f"{'timestamp' if kind is Timestamp else 'duration'}({go_quote(str(value))})"
    return _string(value)


def _map(value: Mapping) -> str:
    for key in value:
        if kind_of(key) not in _KEYS:
            raise EvaluationError(f"error during formatting: no formatting function for map key of type {type_of(key).name}")
    entries = sorted(((_inner(key), _inner(value.find(key))) for key in value), key=itemgetter(0))
    return "{" + ", ".join(f"{key}:{content}" for key, content in entries) + "}"


_KEYS: Final = frozenset({str, bool, int, UInt})
_TEXTS: dict[type, Callable[[Any], str]] = {
    str: lambda value: value,
    bool: lambda value: "true" if value else "false",
    int: str,
    UInt: lambda value: str(int(value)),
    float: double_text,
    bytes: lambda value: value.decode(errors="replace"),
    type(None): lambda value: "null",
    CelType: lambda value: value.name,
    Timestamp: str,
    Duration: str,
    Mapping: _map,
    list: lambda value: f"[{', '.join(map(_inner, value))}]",
}


def _decimal(value: Any, precision: int) -> str:
    if value.__class__ in (int, UInt):
        return str(int(value))
    raise _misfit(MISFITS["d"], value)


def _number(value: Any, letter: str) -> float:
    if value.__class__ is float:
        return float(value)
    if value.__class__ is str and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    raise _misfit(MISFITS[letter], value)


def _endless(number: float) -> str:
    return "NaN" if math.isnan(number) else "∞" if number > 0 else "-∞"


#: Numbers in a template that the real printer rejects.
_LARGEST_NUMBER: Final = 10_000_009
_REFUSED: Final = "%!(NOVERB)"
#: The maximum number of decimals of a double.
_MOST_DECIMALS: Final = 1100


def _fixed(value: Any, precision: int) -> str:
    number = _number(value, "f")
    if precision > _LARGEST_NUMBER:
        return _REFUSED
    if not abs(number) < float("inf"):
        return _endless(number)
    text = f"{number or 0.0:,.{min(precision, _MOST_DECIMALS)}f}"
    least = precision & 0xFF  # the real printer keeps it in a byte: there may be more, if they are not zero
    whole, _, decimals = text.partition(".")
    decimals = decimals[:least].ljust(least, "0") + decimals[least:].rstrip("0")
    return f"{whole}.{decimals}" if decimals else whole


def _scientific(value: Any, precision: int) -> str:
    """Formats with an exponent; as in cel-go, the precision of the clause is the width."""
    number = _number(value, "e")
    if precision > _LARGEST_NUMBER:
        return _REFUSED
    if not abs(number) < float("inf"):
        return _endless(number).rjust(precision)
    mantissa, _, exponent = f"{number:.{_PRECISION}e}".partition("e")
    power = int(exponent)
    sign = "-" if power < 0 else ""
    return (f"{mantissa}×10" + f"{sign}{abs(power):02d}".translate(_RAISED)).rjust(precision)


def _based(letter: str) -> Callable[[Any, int], str]:
    def write(value: Any, precision: int) -> str:
        if value.__class__ in (int, UInt) or (value.__class__ is bool and letter == "b"):
            return format(int(value), letter)
        if letter in "xX" and value.__class__ in (str, bytes):
            text = (value.encode() if isinstance(value, str) else value).hex()
            return text.upper() if letter == "X" else text
        raise _misfit(MISFITS[letter], value)

    return write


_HEX: Final = "only integers, byte buffers, and strings can be formatted as hex"
_BINARY: Final = "only integers and bools can be formatted as binary"
_OCTAL: Final = "octal clause can only be used on integers"
_DECIMAL: Final = "decimal clause can only be used on integers"
_FIXED: Final = "fixed-point clause can only be used on doubles"
_SCIENTIFIC: Final = "scientific clause can only be used on doubles"
_STRING: Final = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
)

#: Verb → the error for arguments of a wrong type.
MISFITS: Final = {"s": _STRING, "d": _DECIMAL, "f": _FIXED, "e": _SCIENTIFIC, "b": _BINARY, "x": _HEX, "X": _HEX, "o": _OCTAL}
_WRITERS: Final[dict[str, Callable[[Any, int], str]]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _based("b"),
    "x": _based("x"),
    "X": _based("X"),
    "o": _based("o"),
}
