"""The base class of the actions of faults.

An action is called `before` the request is performed (it may wait, raise, or return a response), `after` it was performed (it may
drop or cut the response), or with the `stream` of a watch. Of the actions whose `combines` is False, only one happens to a
request: that of the fault that was armed first.

Invariant: an action never invents state. It changes objects only through the API, and the history only through the store.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from fakekube.powers.arguments import check_arguments

if TYPE_CHECKING:
    from fakekube.apiserver.endpoints.request import Request, Response
    from fakekube.powers.exchange import Exchange
    from fakekube.powers.fault import Fault
    from fakekube.powers.faults import ActionContext
    from fakekube.powers.matching import Criteria
    from fakekube.powers.streams import ObservedStream

__all__ = ["Action"]


@dataclass(slots=True, frozen=True)
class Action:
    """What a fault does. The fields of a class are the arguments of the action."""

    name: ClassVar[str]
    combines: ClassVar[bool] = False
    """Whether it can happen to a request together with other actions."""
    on_watches: ClassVar[bool] = True
    """Whether it can happen to watches."""
    on_others: ClassVar[bool] = True
    """Whether it can happen to requests that are not watches."""
    on_open: ClassVar[bool] = False
    """Whether it also happens to watches that are open when the fault is armed."""
    on_calls: ClassVar[bool] = False
    """Whether it can happen to calls of webhooks (`webhook_faults`)."""
    at_authentication: ClassVar[bool] = False
    """Whether it happens right after authentication (`authenticated`), and at no other time."""
    loses_streams: ClassVar[bool] = False
    """Whether `after` is also called for the responses of watches."""

    def __post_init__(self) -> None:
        """Checks the arguments. Raises ValueError for one of a wrong type or out of its range."""
        check_arguments(self)

    def concerns(self, exchange: Exchange) -> bool:
        """Reports whether the action can happen to a request; other requests are not counted."""
        return self.on_watches if exchange.verb == "watch" else self.on_others

    def meets(self, criteria: Criteria, exchange: Exchange) -> bool:
        """Reports whether a request meets the criteria of the action's fault."""
        return criteria.matches(exchange)

    def authenticated(self, fault: Fault, exchange: Exchange) -> None:
        """Called after authentication and before authorization. May raise StatusError 401."""

    def armed(self, context: ActionContext) -> None:
        """Called once, when the fault is armed."""

    def before(self, fault: Fault, exchange: Exchange, request: Request, context: ActionContext) -> Response | None:
        """Called before the request is performed. If it returns a response, that is sent and the request is not performed.
        May raise StatusError and BrokenStreamError."""
        return None

    def after(self, fault: Fault, exchange: Exchange, response: Response) -> None:
        """Called after the request was performed; may change the response. May raise BrokenStreamError."""

    def issued(self, token: str) -> None:
        """Called with each token that the cluster issues, whether or not the request meets the criteria."""

    def stream(self, stream: ObservedStream, context: ActionContext) -> None:
        """Called with the stream of a watch."""

    def describe(self) -> dict[str, Any]:
        """Returns the action as the control API shows it."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {self.name: {name: value for name, value in values.items() if value is not None and not callable(value)}}

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.describe()[self.name].items())
        return f"{self.name}({shown})"
