"""Ranges of unsigned 64-bit numbers: sizes and costs with a minimum and a maximum. Overflows are capped at the maximum.

Specified by: cel-go/checker/cost.go (SizeEstimate, CostEstimate), cel-go/common/cost.go.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

MAXIMUM: Final = (1 << 64) - 1
#: The costs of a list, a map, and a message literal.
LIST_COST: Final = 10
MAP_COST: Final = 30
STRUCT_COST: Final = 40
#: The cost of reading a character, and of matching against a character of a pattern.
TRAVERSAL_FACTOR: Final = 0.1
PATTERN_FACTOR: Final = 0.25


def _cap(number: int) -> int:
    return min(number, MAXIMUM)


def scaled(number: int, factor: float) -> int:
    """Multiplies by a factor and rounds up."""
    product = math.ceil(float(number) * factor)
    return product if product < 1 << 64 else MAXIMUM


class Range(NamedTuple):
    """The numbers from `low` to `high`, both included."""

    low: int
    high: int

    def plus(self, other: Range) -> Range:
        low, high = self[0] + other[0], self[1] + other[1]
        return Range(low, high) if high <= MAXIMUM >= low else Range(_cap(low), _cap(high))

    def times(self, other: Range) -> Range:
        return Range(_cap(self.low * other.low), _cap(self.high * other.high))

    def scaled(self, factor: float) -> Range:
        """Returns the range multiplied by a factor, rounded up."""
        return Range(scaled(self.low, factor), scaled(self.high, factor))

    def joined(self, other: Range) -> Range:
        """Returns the smallest range that contains both."""
        return Range(min(self.low, other.low), max(self.high, other.high))


def fixed(number: int) -> Range:
    """Returns the range of a known number."""
    return Range(number, number)


UNKNOWN: Final = Range(0, MAXIMUM)
#: Joined with anything, it is that.
NOTHING: Final = Range(MAXIMUM, 0)
FREE: Final = fixed(0)
ONE: Final = fixed(1)
