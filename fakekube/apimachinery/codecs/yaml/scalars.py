"""Resolves plain YAML scalars by the rules of YAML 1.1 in go-yaml v2.

A table has the words for booleans and null; a text that begins like a number is parsed as an integer (of any base,
with underscores), then as a float. A text that looks like a time stays a string with the tag of a time: the emitter
quotes it.

Specified by: go.yaml.in/yaml/v2 (resolve.go).
"""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from fakekube.apimachinery.codecs.errors import DecodeError

PREFIX: Final = "tag:yaml.org,2002:"
NULL: Final = PREFIX + "null"
BOOLEAN: Final = PREFIX + "bool"
STRING: Final = PREFIX + "str"
INTEGER: Final = PREFIX + "int"
FLOAT: Final = PREFIX + "float"
TIMESTAMP: Final = PREFIX + "timestamp"
BINARY: Final = PREFIX + "binary"
MERGE: Final = PREFIX + "merge"

_RESOLVABLE: Final = frozenset({"", STRING, BOOLEAN, INTEGER, FLOAT, NULL, TIMESTAMP})

_WORDS: Final[dict[str, tuple[str, Any]]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), (BOOLEAN, True)),
    **dict.fromkeys(("true", "True", "TRUE"), (BOOLEAN, True)),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), (BOOLEAN, False)),
    **dict.fromkeys(("false", "False", "FALSE"), (BOOLEAN, False)),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), (NULL, None)),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), (FLOAT, math.nan)),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), (FLOAT, math.inf)),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), (FLOAT, -math.inf)),
}

_INTEGER: Final = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))").fullmatch
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?").fullmatch
_TIMESTAMP: Final = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"(?:[Tt][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})"
    r"| [0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:[.,][0-9]+)?)?"
).fullmatch


def resolve(tag: str, text: str) -> tuple[str, Any]:
    """Resolves a scalar to its tag and value.

    Args:
        tag: the explicit tag in its long form; "" if there is none and the scalar is plain.
        text: the scalar's content.

    Returns:
        The tag, and the value: str, int, float, bool or None. Scalars with unknown tags are strings.

    Raises:
        DecodeError: the text is not a value of the explicit tag.
    """
    if tag not in _RESOLVABLE:
        return tag, text
    if tag == STRING:
        return STRING, text
    found, value = _plain(text)
    if tag in ("", found):
        return found, value
    if tag == FLOAT and found == INTEGER and -(2**63) <= value < 2**63:
        return FLOAT, float(value)
    raise DecodeError(f"yaml: cannot decode {_short(found)} `{text}` as a {_short(tag)}")


def _short(tag: str) -> str:
    return f"!!{tag.removeprefix(PREFIX)}" if tag.startswith(PREFIX) else tag


@lru_cache(maxsize=4096)
def _plain(text: str) -> tuple[str, Any]:
    word = _WORDS.get(text)
    if word is not None:
        return word
    first = text[0]
    if first not in "+-.0123456789":
        return STRING, text
    if first == ".":
        return _float(text, text)
    if _TIMESTAMP(text):
        return TIMESTAMP, text
    plain = text.replace("_", "")
    integer = _integer(plain)
    return (INTEGER, integer) if integer is not None else _float(plain, text)


def _float(plain: str, text: str) -> tuple[str, Any]:
    if _FLOAT(plain) and math.isfinite(float(plain)):
        return FLOAT, float(plain)
    return STRING, text


#: The maximum length of an integer of 64 bits in any base.
_LONGEST: Final = 70


def _integer(plain: str) -> int | None:
    """Parses an int64, or a uint64 without a sign; None if the text is neither."""
    match = _INTEGER(plain)
    if match is None:
        return None
    sign, *digits = match.groups()
    bases = zip((16, 2, 8, 10), digits, strict=True)
    base, digit = next((base, text.lstrip("0") or "0") for base, text in bases if text is not None)
    if len(digit) > _LONGEST:
        return None
    number = int(digit, base)
    if sign == "-":
        return -number if number <= 2**63 else None
    return number if number < (2**63 if sign else 2**64) else None


def float_text(number: float, *, single: bool = False) -> str:
    """Prints a float like strconv.FormatFloat(number, 'g', -1, 64) (`single`: with 32 bits)."""
    if not math.isfinite(number):
        return ".nan" if math.isnan(number) else ".inf" if number > 0 else "-.inf"
    digits = repr(number)
    if single:
        try:
            digits = _single_digits(number)
        except OverflowError:
            return ".inf" if number > 0 else "-.inf"
    if number == 0:
        return "-0" if digits.startswith("-") else "0"
    decimal = Decimal(digits).normalize()
    power = decimal.adjusted()
    if -4 <= power < 6:
        return format(decimal, "f")
    sign, mantissa, _ = decimal.as_tuple()
    first, *rest = map(str, mantissa)
    point = f".{''.join(rest)}" if rest else ""
    return f"{'-' if sign else ''}{first}{point}e{'-' if power < 0 else '+'}{abs(power):02d}"


def _single_digits(number: float) -> str:
    """Returns the shortest digits that identify this float32. Raises OverflowError."""
    packed = struct.pack("f", number)
    candidates = (f"{struct.unpack('f', packed)[0]:.{precision}g}" for precision in range(1, 10))
    return next(text for text in candidates if struct.pack("f", float(text)) == packed)
