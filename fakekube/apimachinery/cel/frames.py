"""The state of an evaluation: variables, and the remaining cost budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from fakekube.apimachinery.cel.cost.ranges import MAXIMUM
from fakekube.apimachinery.cel.errors import CostLimitExceeded


class Bindings(Protocol):
    """The values of variables, read when the evaluation of an expression starts."""

    def get(self, name: str, default: Any, /) -> Any:
        """Returns the value of a variable, or the default if it has none."""


class Frame:
    """The state of one evaluation. The program refers to variables by slot number."""

    __slots__ = ("cost", "limit", "slots")

    def __init__(self, slots: list[Any], limit: int = MAXIMUM) -> None:
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
