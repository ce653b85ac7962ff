"""What an action of a fault is: the places at which it works, and what it may do there.

An action works `before` the request is performed (it may wait, raise, or answer itself), `after` it was (the answer may be lost
or cut), or on the `stream` of a watch. Actions that are not `adds_up` exclude each other: the first fault that was armed wins.

Invariant: an action never makes up state. What it changes, it changes through the API or the store.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from fakekube.powers.arguments import check_arguments

if TYPE_CHECKING:
    from fakekube.powers.exchange import Exchange
    from fakekube.powers.fault import Fault
    from fakekube.powers.faults import Surroundings
    from fakekube.powers.matching import Criteria
    from fakekube.powers.streams import ObservedStream
    from fakekube.registry.request import Request, Response

__all__ = ["Action"]


@dataclass(slots=True, frozen=True)
class Action:
    """One thing that happens. The fields of a class are the arguments of the action."""

    name: ClassVar[str]
    adds_up: ClassVar[bool] = False
    """Several faults with such actions happen to one request."""
    on_watches: ClassVar[bool] = True
    """It can happen to a watch."""
    on_others: ClassVar[bool] = True
    """It can happen to other requests."""
    on_open: ClassVar[bool] = False
    """It happens to watches that are open when it is armed, too."""
    on_calls: ClassVar[bool] = False
    """It can happen to what the API server asks of webhooks (`webhook_faults`)."""
    at_authentication: ClassVar[bool] = False
    """It happens when it is known who asks, and not later."""
    loses_streams: ClassVar[bool] = False
    """`after` is called for the answers of watches, too."""

    def __post_init__(self) -> None:
        """Raises ValueError for an argument of another type, or out of its range."""
        check_arguments(self)

    def concerns(self, exchange: Exchange) -> bool:
        """Can it happen to this request? Those to which it cannot are not counted."""
        return self.on_watches if exchange.verb == "watch" else self.on_others

    def meets(self, criteria: Criteria, exchange: Exchange) -> bool:
        """Is it about this request, by the criteria of its fault?"""
        return criteria.matches(exchange)

    def authenticated(self, fault: Fault, exchange: Exchange) -> None:
        """Called when it is known who asks; the user is not authorized yet. Raises StatusError 401."""

    def armed(self, around: Surroundings) -> None:
        """Called once, when the fault is armed."""

    def before(self, fault: Fault, exchange: Exchange, request: Request, around: Surroundings) -> Response | None:
        """Called before the request is performed; a response is sent in place of that. May raise StatusError."""
        return None

    def after(self, fault: Fault, exchange: Exchange, response: Response) -> None:
        """Called when the request was performed; may change the response."""

    def issued(self, token: str) -> None:
        """Called when the cluster has issued a token, also for requests that the fault is not about."""

    def stream(self, stream: ObservedStream, around: Surroundings) -> None:
        """Called with the stream of a watch."""

    def describe(self) -> dict[str, Any]:
        """As the control prefix tells it."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {self.name: {name: value for name, value in values.items() if value is not None and not callable(value)}}

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.describe()[self.name].items())
        return f"{self.name}({shown})"
