"""The state of an evaluation: variables, and the remaining cost budget."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, Protocol

from fakekube.apimachinery.cel.errors import CostLimitExceeded
from fakekube.apimachinery.cel.values import MAX_UINT64
from fakekube.base.depth import allowance


class Bindings(Protocol):
    """The values of variables, read when the evaluation of an expression starts."""

    def get(self, name: str, default: Any, /) -> Any:
        """Returns the value of a variable, or the default if it has none."""


class Frame:
    """The state of one evaluation. The program refers to variables by slot number."""

    __slots__ = ("cost", "limit", "slots")

    def __init__(self, slots: list[Any], limit: int = MAX_UINT64) -> None:
        self.slots = slots
        self.cost = 0
        self.limit = limit

    def spend(self, cost: int) -> None:
        """Counts a cost that may be large. Raises CostLimitExceeded."""
        self.cost += cost
        if self.cost > self.limit:
            raise CostLimitExceeded(self.cost)

    def check(self) -> None:
        """Raises CostLimitExceeded."""
        if self.cost > self.limit:
            raise CostLimitExceeded(self.cost)


Evaluator = Callable[[Frame], Any]


# Raises the recursion limit for deeply nested expressions.
#
# An expression may nest 250 levels deep, and a recursive walk makes a few calls for each level, more than Python's default
# recursion limit.


_OPENING: Final = "([{?"
#: The number of levels that the default limit always allows.
_SHALLOW: Final = 20
_CALLS: Final = 12_000
_AS_IT_IS: Final = nullcontext()


def is_deep(source: str) -> bool:
    """Reports whether a walk over an expression may exceed the recursion limit."""
    return sum(map(source.count, _OPENING)) + source.count(".") // 4 > _SHALLOW


def room(deep: bool) -> AbstractContextManager[None]:
    """Returns the context manager for walks over an expression; `deep` is the result of `is_deep`."""
    return allowance(_CALLS) if deep else _AS_IT_IS
