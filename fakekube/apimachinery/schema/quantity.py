"""Parses, compares, adds and prints quantities (`500m`, `1Gi`, `1e3`) like the real server.

A quantity is an integer times a power of ten, with the format in which it was written. It prints in its canonical
form: no fraction, and the largest suffix for which the number is whole. The real server's parser has a fast path,
which keeps the original text if it appears to be canonical; so `1.500`, `+5` and `1e03` print unchanged. The real
server also drops suffixes beyond `E` (`1000E` prints `1`). Responses contain both effects, so this module has them.

Invariant: a `Quantity` is immutable, and its amount is exact (except where the real server saturates or rounds: at
nano scale, and at 2^63-1 for binary suffixes). One limit is specific to fakekube and bounds the time: quantities of
more than 1,000 digits are rejected, and amounts beyond ten to the 3,000th compare as equal.

Specified by: k8s.io/apimachinery/pkg/api/resource (quantity.go, amount.go, suffix.go).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import total_ordering
from typing import Final

from fakekube.base.caches import cache_by_text
from fakekube.base.golang.strconv import MAX_INT64

_FORMAT_WRONG: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_NUMERIC_WRONG: Final = "unable to parse numeric part of quantity"
_SUFFIX_WRONG: Final = "unable to parse quantity's suffix"

_FAST_DIGITS: Final = 18
_MAX_DIGITS: Final = 1_000
_MAX_POWER: Final = 3_000
_NANO: Final = -9
_MILLI: Final = -3

_SYNTAX = re.compile(r"([+-]?)(0*+)([0-9]*+)(?:\.([0-9]*+))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_EXPONENT = re.compile(r"[-+]?[0-9]{1,30}")
_DECIMAL_EXPONENTS: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY_EXPONENTS: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENTS.items()}
_BINARY_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _BINARY_EXPONENTS.items()}


class QuantityError(ValueError):
    """A string is not a valid quantity; has the message of the real server."""


class Format(Enum):
    """The format of a quantity."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


@total_ordering
@dataclass(slots=True, frozen=True, eq=False)
class Quantity:
    """`unscaled` times ten to the `scale`. Compares by amount, whatever the format."""

    unscaled: int
    scale: int = 0
    format: Format = Format.DECIMAL_SI
    text: str = ""
    """The original string, if the real server prints it unchanged; else ""."""

    @property
    def amount(self) -> Fraction:
        """The exact value."""
        return Fraction(self.unscaled * _power_of_ten(self.scale), _power_of_ten(-self.scale))

    @property
    def sign(self) -> int:
        return (self.unscaled > 0) - (self.unscaled < 0)

    def __eq__(self, other: object) -> bool:
        return self._compare(other) == 0 if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self._compare(other) < 0

    def __hash__(self) -> int:
        return hash(self.amount)

    def _compare(self, other: Quantity) -> int:
        scale = min(self.scale, other.scale)
        return self.unscaled * _power_of_ten(self.scale - scale) - other.unscaled * _power_of_ten(other.scale - scale)

    def __add__(self, other: Quantity) -> Quantity:
        """Returns the sum in the format of the first operand that is not zero."""
        scale = min(self.scale, other.scale)
        total = self.unscaled * _power_of_ten(self.scale - scale) + other.unscaled * _power_of_ten(other.scale - scale)
        return Quantity(total, scale, self.format if self.unscaled else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return self + -other

    def __neg__(self) -> Quantity:
        return Quantity(-self.unscaled, self.scale, self.format)

    def __mul__(self, factor: int) -> Quantity:
        return Quantity(self.unscaled * factor, self.scale, self.format)

    def round_up(self, scale: int) -> Quantity:
        """Rounds away from zero to a multiple of ten to the `scale` (-3: milli). Returns itself if it is one."""
        if self.scale >= scale:
            return self
        return Quantity(_divide_away(self.unscaled, _power_of_ten(scale - self.scale)), scale, self.format)

    def value(self) -> int:
        """Returns the amount, rounded away from zero to an int64; a larger amount overflows, as in the real server."""
        whole = self.round_up(0).unscaled * _power_of_ten(self.scale)
        if -MAX_INT64 <= whole <= MAX_INT64:
            return whole
        few = abs(self.unscaled) < 10**_FAST_DIGITS
        return 0 if few else (whole + MAX_INT64 + 1) % 2**64 - MAX_INT64 - 1

    def milli_value(self) -> int:
        """Returns the amount in thousandths, rounded away from zero."""
        return (self * 1000).value()

    def __str__(self) -> str:
        if self.text:
            return self.text
        if not self.unscaled:
            return "0"
        if self.format is Format.BINARY_SI and abs(self.amount) >= 1024:
            whole = self.value()
            if whole == self.amount:
                return _binary_text(whole)
        return _decimal_text(self.unscaled, self.scale, self.format)


def _power_of_ten(power: int) -> int:
    """Returns ten to the power; 1 for negative powers. The power is bounded."""
    return int(10 ** min(max(power, 0), _MAX_POWER))


def _divide_away(number: int, divisor: int) -> int:
    """Divides and rounds away from zero."""
    quotient, remainder = divmod(abs(number), divisor)
    quotient += remainder > 0
    return quotient if number >= 0 else -quotient


def _decimal_text(unscaled: int, scale: int, format_: Format) -> str:
    while unscaled % 10 == 0:
        unscaled //= 10
        scale += 1
    unscaled *= 10 ** (scale % 3)
    scale -= scale % 3
    if format_ is Format.DECIMAL_EXPONENT:
        return f"{unscaled}e{scale}" if scale else str(unscaled)
    return f"{unscaled}{_DECIMAL_SUFFIXES.get(scale, '')}"


def _binary_text(whole: int) -> str:
    exponent = 0
    while whole % 1024 == 0:
        whole //= 1024
        exponent += 10
    return f"{whole}{_BINARY_SUFFIXES.get(exponent, '')}"


def parse(text: str) -> Quantity:
    """Parses a quantity.

    Raises:
        QuantityError: the string is not a valid quantity.
    """
    if not text:
        raise QuantityError(_FORMAT_WRONG)
    if text == "0":
        return Quantity(0, 0, Format.DECIMAL_SI, "0")
    match = _SYNTAX.fullmatch(text)
    if match is None:
        raise QuantityError(_FORMAT_WRONG)
    sign, zeros, whole, fraction, suffix = match.groups()
    exponent, format_ = _interpret(suffix)
    if zeros and not whole and fraction is None and not suffix:
        return Quantity(0, 0, format_)
    if len(whole) + len(fraction or "") > _MAX_DIGITS:
        raise QuantityError(_NUMERIC_WRONG)
    number = _Number(sign == "-", whole or "0", fraction or "", exponent, format_)
    quick = number.quick(text)
    if quick is not None:
        return quick
    if not (zeros or whole or fraction):
        raise QuantityError(_NUMERIC_WRONG)
    return number.exact()


def _interpret(suffix: str) -> tuple[int, Format]:
    """Returns the exponent of a suffix (of ten, or of two for binary suffixes) and its format."""
    if suffix in _DECIMAL_EXPONENTS:
        return _DECIMAL_EXPONENTS[suffix], Format.DECIMAL_SI
    if suffix in _BINARY_EXPONENTS:
        return _BINARY_EXPONENTS[suffix], Format.BINARY_SI
    if suffix[0] in "eE" and _EXPONENT.fullmatch(suffix, 1):
        exponent = int(suffix[1:])
        if -MAX_INT64 - 1 <= exponent <= MAX_INT64:
            return (exponent + 2**31) % 2**32 - 2**31, Format.DECIMAL_EXPONENT
    raise QuantityError(_SUFFIX_WRONG)


@dataclass(slots=True, frozen=True)
class _Number:
    """A parsed quantity: the digits before and after the decimal point, and the exponent and format of the suffix."""

    negative: bool
    whole: str
    fraction: str
    exponent: int
    format: Format

    def quick(self, text: str) -> Quantity | None:
        """Parses on the real server's fast path: few digits, at most nano scale. None if the value does not fit."""
        digits = self.whole + self.fraction
        if self.format is Format.BINARY_SI:
            if self.fraction or 15 - len(self.whole) - self.exponent * 3 // 10 - 1 < 0:
                return None
            scale, factor = 0, 1 << self.exponent
        else:
            scale, factor = self.exponent - len(self.fraction), 1
            if len(digits) > _FAST_DIGITS or scale < _NANO:
                return None
        value = int(digits)
        result = value * factor
        if result > MAX_INT64:
            return None
        if self.format is Format.BINARY_SI:
            as_written = value & 7 != 0
        else:
            as_written = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
        unscaled = -result if self.negative else result
        return Quantity(unscaled, scale, self.format, text if as_written else "")

    def exact(self) -> Quantity:
        """Parses on the real server's slow path: any number of digits, rounded up at nano, saturating if binary."""
        unscaled, scale = int(self.whole + self.fraction), -len(self.fraction)
        if self.format is Format.BINARY_SI:
            unscaled <<= self.exponent
        else:
            scale += self.exponent
        quantity = Quantity(unscaled, scale, self.format).round_up(_NANO)
        if self.format is Format.BINARY_SI:
            quantity = min(quantity, Quantity(MAX_INT64, 0, self.format))
            if 0 < quantity.amount < 1:
                quantity = Quantity(quantity.unscaled, quantity.scale, Format.DECIMAL_SI)
        return -quantity if self.negative else quantity


@cache_by_text(4096)
def canonical(text: str) -> str:
    """Returns the form in which the real server prints a quantity.

    Raises:
        QuantityError: the text is not a valid quantity.
    """
    return str(parse(text))


@cache_by_text(4096)
def round_up_to_milli(text: str) -> str:
    """Returns a printed quantity rounded up to milli, as the defaulting of resource lists does."""
    return str(parse(text).round_up(_MILLI))
