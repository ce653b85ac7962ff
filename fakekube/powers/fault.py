"""A fault: the criteria of requests, the action that happens to them, and how often.

Invariant: a fault counts each request once, under its lock; `hits` never exceeds `times`.
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
    from fakekube.base.clock import Clock
    from fakekube.powers.action import Action
    from fakekube.powers.exchange import Exchange

__all__ = ["Fault", "Frequency"]

_ids = itertools.count(1)


@dataclass(slots=True, frozen=True)
class Frequency:
    """How often a fault happens; the arguments that every action takes."""

    times: int | None = None
    """The maximum number of requests to which it happens; None for no limit."""
    after: int = 0
    """The number of matching requests that pass first."""
    every: int = 1
    """It happens to the first of each `every` matching requests."""
    probability: float = 1.0
    """The probability, from 0 to 1, with which it happens to a matching request."""
    lasts: float | None = None
    """The fault ends after this number of seconds of the cluster's clock; None for never."""

    def __post_init__(self) -> None:
        """Checks the values. Raises ValueError."""
        check_arguments(self)


@dataclass(eq=False)
class Fault:
    """An armed fault; a context manager that removes it at the end of the block."""

    criteria: Criteria
    own: bool
    """Whether requests of the cluster's own controllers and of clients in the same process count."""
    action: Action
    frequency: Frequency
    label: str | None
    clock: Clock
    dice: random.Random
    on_removal: Callable[[Fault, bool], None]
    """Called when the fault is removed, with True after `remove()` and False at the end of a `with` block."""
    hits: int = 0
    """The number of requests to which it has happened."""
    id: int = field(default_factory=lambda: next(_ids))

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._seen = 0
        self.removed = False
        lasts = self.frequency.lasts
        self.until = None if lasts is None else self.clock.monotonic() + lasts
        """The time of the clock at which it ends; None if it does not."""

    @property
    def name(self) -> str:
        """The label, or the id."""
        return self.label or str(self.id)

    @property
    def exhausted(self) -> bool:
        """Reports whether the fault will not happen again."""
        spent = self.frequency.times is not None and self.hits >= self.frequency.times
        return spent or self.removed or (self.until is not None and self.clock.monotonic() >= self.until)

    def meets(self, exchange: Exchange) -> bool:
        """Reports whether a request meets the criteria. Requests that a fault sends never do; calls of webhooks do only if the
        verbs contain `call`."""
        if exchange.verb == CALL:
            return CALL in (self.criteria.verb or ()) and self.criteria.matches(exchange)
        return (not exchange.own or (self.own and not exchange.of_fault)) and self.action.meets(self.criteria, exchange)

    def take(self) -> bool:
        """Counts a request that meets the criteria, and reports whether the fault happens to it."""
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
        """Removes the fault; requests that it delays continue. May be called twice."""
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
        """Returns the fault as the control API shows it."""
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
