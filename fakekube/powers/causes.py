"""The cause of a change: the request that is in progress in the thread, or the reason of a change without a request.

`Observer` sets the request for the time of its processing; requests nest, as that of a fault within the request to which it
happens. Work that changes the store directly (a load, a replay) names its reason by `because`.

Invariant: setting and reading a cause takes no lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from fakekube.powers.cause import Cause

if TYPE_CHECKING:
    from fakekube.powers.exchange import Exchange


#: The request in progress in this thread, or the reason of changes without one.
CURRENT: ContextVar[Exchange | Cause | None] = ContextVar("fakekube-cause", default=None)

_CLUSTER = Cause(-1, reason="cluster")


@contextmanager
def because(reason: str) -> Iterator[None]:
    """Gives the changes of a block, in this thread, a reason."""
    token = CURRENT.set(Cause(-1, reason=reason))
    try:
        yield
    finally:
        CURRENT.reset(token)


def current_cause(bucket: str, key: str, revision: int) -> Cause:
    """Returns the cause of a change that this thread makes, and notes the revision in its request."""
    current = CURRENT.get()
    if current is None:
        return _CLUSTER
    if isinstance(current, Cause):
        return current
    cause = current.cause
    if cause is None:
        current.wrote = [revision]
        current.cause = cause = cause_of(current, f"{bucket} {key}")
    else:
        current.wrote.append(revision)
    return cause


def cause_of(exchange: Exchange, key: str = "") -> Cause:
    """Returns what is kept of a request."""
    outer = exchange.within
    fault = (outer.fault or "") if outer is not None and exchange.of_fault else ""
    return Cause(exchange.number, exchange.info, exchange.agent, exchange.user, exchange.own, key, fault)
