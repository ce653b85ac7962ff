"""The faults of a cluster: `faults.on(…)` selects requests, an action defines what happens to them.

    cluster.faults.on("update", "deployments", name="web").conflict(times=2)
    with cluster.faults.on("list").status(429, retry_after=2):
        ...

Invariant: arming and removing take the lock; a request of a cluster without faults takes none.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from fakekube.powers.fault import Action, Criteria, Fault, FaultIndex, Frequency, ResourceName, require_text, verbs_of

if TYPE_CHECKING:
    from fakekube.base.clock import Clock
    from fakekube.powers.action_context import ActionContext
    from fakekube.powers.exchange import Exchange
    from fakekube.powers.journal import Marks

#: The number of latest faults whose `with` block ended before they happened, for `unfired`.
_KEPT_UNFIRED = 1000

_FREQUENCY = ("times", "after", "every", "probability", "lasts")


class FaultUser(Protocol):
    """Who applies the armed faults to requests: the observer of the cluster."""

    context: ActionContext

    @property
    def marks(self) -> Marks: ...

    def refresh(self) -> None:
        """Called after faults were armed or removed."""

    def apply_to_open_watches(self, fault: Fault) -> None:
        """Called when a fault is armed."""


@dataclass(slots=True, frozen=True)
class FaultSelector:
    """A selection of requests. Each method arms a fault for them, and returns it; `often` are the fields of `Frequency`:
    times, after, every, probability, lasts. All raise ValueError for an invalid argument."""

    faults: Faults
    criteria: Criteria
    own: bool

    def arm(self, name: str, *, label: str | None = None, **arguments: Any) -> Fault:
        """Arms a fault with the action of this name. Raises TypeError for an unknown argument, ValueError for an invalid one."""
        often = Frequency(**{key: arguments.pop(key) for key in _FREQUENCY if key in arguments})
        from fakekube.powers.fault_actions import ACTIONS  # few tests use them

        return self.faults.arm(self.criteria, self.own, ACTIONS[name](**arguments), often, label)

    def status(
        self, code: int, *, reason: str | None = None, message: str | None = None, retry_after: int | None = None, **often: Any
    ) -> Fault:
        """Responds with a Status and does not perform the request; reason and message are by default those of the real server."""
        return self.arm("status", code=code, reason=reason, message=message, retry_after=retry_after, **often)

    def refuse(self, **often: Any) -> Fault:
        """Drops the connection and does not perform the request."""
        return self.arm("refuse", **often)

    def lose(self, **often: Any) -> Fault:
        """Performs the request and drops the connection before the response."""
        return self.arm("lose", **often)

    def delay(self, seconds: float, *, jitter: float = 0.0, **often: Any) -> Fault:
        """Performs the request after `seconds` plus a random part of `jitter` seconds of the clock; several delays add up."""
        return self.arm("delay", seconds=seconds, jitter=jitter, **often)

    def hang(self, **often: Any) -> Fault:
        """Performs the request when the fault is removed, and not before."""
        return self.arm("hang", **often)

    def conflict(self, change: Callable[[dict[str, Any]], dict[str, Any] | None] | None = None, **often: Any) -> Fault:
        """Updates the object as another client just before the request is performed: sets an annotation, or calls
        `change(object)`, which changes the object or returns another one."""
        return self.arm("conflict", change=change, **often)

    def gone(self, **often: Any) -> Fault:
        """Compacts the history, now and before each matching request; open watches end with 410 Gone."""
        return self.arm("gone", **often)

    def stale(self, by: int, **often: Any) -> Fault:
        """Serves reads that accept stale data (with a resourceVersion) from the state `by` revisions ago, but not from before
        that resourceVersion."""
        return self.arm("stale", by=by, **often)

    def end(self, after_events: int = 0, **often: Any) -> Fault:
        """Ends a watch cleanly after this number of events."""
        return self.arm("end", after_events=after_events, **often)

    def cut(self, after_events: int | None = None, after_bytes: int | None = None, **often: Any) -> Fault:
        """Resets the connection after this number of events or bytes; without arguments right after the header."""
        return self.arm("cut", after_events=after_events, after_bytes=after_bytes, **often)

    def slice(self, size: int, **often: Any) -> Fault:
        """Sends the response in pieces of `size` bytes."""
        return self.arm("slice", size=size, **often)

    def silence(self, after_events: int = 0, *, connection: bool = False, **often: Any) -> Fault:
        """Sends nothing more after this number of events; the connection stays open.

        Args:
            after_events: the number of events that are sent.
            connection: with HTTP/2, PINGs and other requests on the connection are not answered either.
            often: see `arm`.
        """
        return self.arm("silence", after_events=after_events, connection=connection, **often)

    def error_event(self, code: int, *, reason: str | None = None, message: str | None = None, **often: Any) -> Fault:
        """Sends an ERROR event with a Status, and ends the watch."""
        return self.arm("error_event", code=code, reason=reason, message=message, **often)

    def bookmarks(self, when: str, **often: Any) -> Fault:
        """Changes when a watch gets bookmarks: "never" (except the one that ends the initial events), "often" (after every
        batch of changes), "at end", or one additional bookmark "now"."""
        return self.arm("bookmarks", when=when, **often)

    def intercept(self, function: Callable[[Exchange], tuple[int, Any] | None], **often: Any) -> Fault:
        """Calls `function(exchange)`: it returns a status code and an object to respond with, or None to perform the request."""
        return self.arm("intercept", function=function, **often)

    def malformed(self, **often: Any) -> Fault:
        """Performs the request and sends the first half of the response as a complete body. A watch gets half an event, and
        ends."""
        return self.arm("malformed", **often)

    def unavailable(self, **often: Any) -> Fault:
        """Simulates an API group whose server cannot be reached. With the resource "*.GROUP", requests for its resources and
        its discovery get a 503, and the aggregated discovery marks its versions as stale."""
        return self.arm("unavailable", **often)

    def expire_tokens(self, **often: Any) -> Fault:
        """Refuses bearer tokens that were issued before with a 401; tokens that are issued from now on are accepted."""
        return self.arm("expire_tokens", **often)


class Faults:
    """The faults of one cluster; iterates over the armed ones in the order in which they were armed."""

    def __init__(self, observer: FaultUser, clock: Clock, resolve: Callable[[str], str]) -> None:
        self._observer = observer
        self._clock = clock
        self._resolve = resolve
        self._changing = threading.Lock()
        self._armed: dict[int, Fault] = {}
        self._index = FaultIndex()
        self.of_tokens: tuple[Fault, ...] = ()
        """The faults whose actions happen at authentication."""
        self._ended_unfired: deque[Fault] = deque(maxlen=_KEPT_UNFIRED)

    @cached_property
    def _dice(self) -> random.Random:
        return random.Random(0)

    def on(
        self,
        verbs: str | Iterable[str],
        resource: str = "*",
        *,
        namespace: str | None = None,
        name: str | None = None,
        user: str | None = None,
        agent: str | None = None,
        path: str | None = None,
        own: bool = False,
    ) -> FaultSelector:
        """Selects the requests of a fault; one of the methods of the result arms it.

        Args:
            verbs: "watch", "get,list", or "*" for all; "call" are the calls of webhooks by the API server.
            resource: "pods" (of any group, without subresources), "deployments.apps", "pods/status", "pods/*" (its
                subresources), "*.apps" (the whole group), "*" (every resource and subresource). For a call, the resource in
                the review.
            namespace: of the request.
            name: in the path, or in the body of a create.
            user: the user name after impersonation.
            agent: a prefix of the User-Agent.
            path: a glob for the paths of requests that are not for resources, and of webhooks; then `resource` is ignored.
            own: also match requests of the cluster's own controllers and of clients in the same process.

        Raises ValueError for a verb that does not exist, for a list of resources, and for criteria that are not strings.
        """
        require_text(resource=resource, namespace=namespace, name=name, user=user, agent=agent, path=path)
        if not isinstance(own, bool):
            raise ValueError(f"own must be true or false, not {own!r}")
        named = None if path is not None else ResourceName.parse(resource, self._resolve)
        return FaultSelector(self, Criteria(verbs_of(verbs), named, namespace, name, user, agent, None, path), own)

    def arm(self, criteria: Criteria, own: bool, action: Action, often: Frequency, label: str | None) -> Fault:
        """Arms a fault. Raises ValueError for a label that is not a string."""
        require_text(label=label)
        fault = Fault(criteria, own, action, often, label, self._clock, self._dice, self._forget)
        with self._changing:
            self._armed[fault.id] = fault
            if action.at_authentication:
                self.of_tokens += (fault,)
            else:
                self._index.add(fault)
            self._observer.refresh()
        self._observer.marks.add("fault", f"armed {fault}")
        self._observer.apply_to_open_watches(fault)
        return fault

    def seed(self, number: int) -> None:
        """Seeds the random numbers for probabilities and jitter; the initial seed is 0."""
        self._dice.seed(number)

    def clear(self) -> None:
        """Removes all faults; requests that they delay continue."""
        with self._changing:
            faults, self._armed = self._armed, {}
            self._index, self.of_tokens = FaultIndex(), ()
            self._ended_unfired.clear()
            self._observer.refresh()
        for fault in faults.values():
            fault.removed = True
            self._observer.marks.add("fault", f"removed {fault}, hits: {fault.hits}")
        self._observer.context.notify()

    def unfired(self) -> list[Fault]:
        """Returns the faults that never happened: armed ones, and those whose `with` block has ended, but not removed ones."""
        with self._changing:
            return [fault for fault in (*self._ended_unfired, *self._armed.values()) if not fault.hits]

    def find(self, number: int) -> Fault | None:
        """Returns the armed fault with this id; None if there is none."""
        return self._armed.get(number)

    def candidates(self, exchange: Exchange) -> list[Fault]:
        """Returns the faults whose criteria an exchange may meet, in the order in which they were armed."""
        if not self._index:
            return []
        with self._changing:
            return self._index.candidates(exchange)

    def retire(self, fault: Fault) -> None:
        """Removes an exhausted fault from the index; it is still among the armed ones."""
        with self._changing:
            self._index.discard(fault)

    def note_issued_token(self, request: Any) -> None:
        """Passes the token in a TokenRequest to the faults of tokens."""
        status = request.get("status") if isinstance(request, dict) else None
        token = status.get("token") if isinstance(status, dict) else None
        if isinstance(token, str):
            for fault in self.of_tokens:
                fault.action.note_token(token)

    def _forget(self, fault: Fault, by_hand: bool) -> None:
        with self._changing:
            self._armed.pop(fault.id, None)
            self._index.discard(fault)
            self.of_tokens = tuple(other for other in self.of_tokens if other is not fault)
            if not by_hand and not fault.hits:
                self._ended_unfired.append(fault)
            self._observer.refresh()
        self._observer.marks.add("fault", f"removed {fault}, hits: {fault.hits}")
        self._observer.context.notify()

    def __iter__(self) -> Iterator[Fault]:
        return iter(list(self._armed.values()))

    def __len__(self) -> int:
        return len(self._armed)
