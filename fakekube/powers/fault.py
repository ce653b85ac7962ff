"""A fault: which requests it meets, what happens to them, how often.

Invariant: a request is counted by a fault once, under the fault's lock; `hits` never exceeds `times`.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any

from fakekube.powers.arguments import check_arguments
from fakekube.powers.matching import CALL, Criteria

if TYPE_CHECKING:
    from fakekube.clock import Clock
    from fakekube.powers.action import Action
    from fakekube.powers.exchange import Exchange

__all__ = ["Fault", "Frequency"]

_ids = itertools.count(1)


@dataclass(slots=True, frozen=True)
class Frequency:
    """How often a fault happens."""

    times: int | None = None
    """To so many requests; None: to all."""
    after: int = 0
    """How many matching requests pass first."""
    every: int = 1
    """The first of each so many."""
    probability: float = 1.0
    lasts: float | None = None
    """Seconds of the cluster's clock."""

    def __post_init__(self) -> None:
        """Raises ValueError for numbers that mean nothing."""
        check_arguments(self)


@dataclass(eq=False)
class Fault:
    """See the module; a context manager that removes the fault at its end."""

    criteria: Criteria
    own: bool
    """Whether the cluster's own controllers and clients of the same process are met."""
    action: Action
    frequency: Frequency
    label: str | None
    clock: Clock
    dice: random.Random
    on_removal: Callable[[Fault, bool], None]
    """Is told whether it was removed by hand, and not by the end of a `with`."""
    hits: int = 0
    """Requests that it has happened to."""
    id: int = field(default_factory=lambda: next(_ids))

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._seen = 0
        self.removed = False
        lasts = self.frequency.lasts
        self.until = None if lasts is None else self.clock.monotonic() + lasts
        """When it ends by the clock."""

    @property
    def name(self) -> str:
        """The label, or the id."""
        return self.label or str(self.id)

    @property
    def exhausted(self) -> bool:
        """It will not happen any more."""
        spent = self.frequency.times is not None and self.hits >= self.frequency.times
        return spent or self.removed or (self.until is not None and self.clock.monotonic() >= self.until)

    def meets(self, exchange: Exchange) -> bool:
        """Is this a request that it is about? None that a fault has sent is; calls of webhooks are if they are named."""
        if exchange.verb == CALL:
            return CALL in (self.criteria.verb or ()) and self.criteria.matches(exchange)
        return (not exchange.own or (self.own and not exchange.of_fault)) and self.action.meets(self.criteria, exchange)

    def take(self) -> bool:
        """Count a request that it meets; does the fault happen to it?"""
        often = self.frequency
        with self._lock:
            if self.exhausted:
                return False
            place = self._seen - often.after
            self._seen += 1
            if place < 0 or place % often.every or (often.probability < 1.0 and self.dice.random() >= often.probability):
                return False
            self.hits += 1
            return True

    def remove(self) -> None:
        """It does not happen any more; requests that it holds up go on. May be called twice."""
        self._end(by_hand=True)

    def _end(self, *, by_hand: bool) -> None:
        self.removed = True
        self.on_removal(self, by_hand)

    def __enter__(self) -> Fault:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._end(by_hand=self.removed or error is not None)

    def __str__(self) -> str:
        return f"fault {self.name} ({self.action} on {self.criteria})"

    def describe(self) -> dict[str, Any]:
        """As the control prefix tells it."""
        often, on = self.frequency, self.criteria
        return {
            "id": self.id,
            "label": self.label,
            "hits": self.hits,
            "exhausted": self.exhausted,
            "on": {
                "verbs": "*" if on.verb is None else ",".join(on.verb),
                "resource": on.resource.text if on.resource else "*",
                "namespace": on.namespace,
                "name": on.name,
                "user": on.user,
                "agent": on.agent,
                "path": on.path,
                "own": self.own,
            },
            "do": self.action.describe(),
            "times": often.times,
            "after": often.after,
            "every": often.every,
            "probability": often.probability,
            "lasts": often.lasts,
        }
