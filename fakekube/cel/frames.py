"""The state of an evaluation: variables, and the remaining cost budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from fakekube.cel.cost.ranges import MAXIMUM
from fakekube.cel.errors import CostLimitExceeded

__all__ = ["Bindings", "Evaluator", "Frame"]


class Bindings(Protocol):
    """The values of variables, asked for when an expression that names them begins to run."""

    def get(self, name: str, default: Any, /) -> Any:
        """The value, or the default for a variable that has none."""


class Frame:
    """One evaluation. Variables lie in slots, whose numbers the expression knows."""

    __slots__ = ("cost", "limit", "slots")

    def __init__(self, slots: list[Any], limit: int = MAXIMUM) -> None:
        self.slots = slots
        self.cost = 0
        self.limit = limit

    def spend(self, cost: int) -> None:
        """What may be much. Raises CostLimitExceeded."""
        self.cost += cost
        if self.cost > self.limit:
            raise CostLimitExceeded(self.cost)

    def check(self) -> None:
        """Raises CostLimitExceeded."""
        if self.cost > self.limit:
            raise CostLimitExceeded(self.cost)


Evaluator = Callable[[Frame], Any]
