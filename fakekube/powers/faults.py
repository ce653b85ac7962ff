"""The faults of a cluster: `faults.on(…)` says which requests, an action what happens to them.

    cluster.faults.on("update", "deployments", name="web").conflict(times=2)
    with cluster.faults.on("list").status(429, retry_after=2):
        ...

Invariant: requests read one tuple of faults; arming and removing put another in its place.
"""

from __future__ import annotations

import logging
import random
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fakekube.client import ApiError, Client
from fakekube.powers.action import Action
from fakekube.powers.actions import ACTIONS
from fakekube.powers.arguments import require_text
from fakekube.powers.fault import Fault, Frequency
from fakekube.powers.fault_index import FaultIndex
from fakekube.powers.matching import Criteria, ResourceName, verbs_of

if TYPE_CHECKING:
    from fakekube.clock import Clock
    from fakekube.powers.exchange import Exchange
    from fakekube.powers.observation import Observer
    from fakekube.registry.backend import Backend
    from fakekube.registry.request import RequestInfo

__all__ = ["Faults", "On", "Surroundings"]

_log = logging.getLogger(__name__)

#: The annotation that a conflict writes where a test does not say what.
ANNOTATION = "fakekube.dev/conflict"

#: How many faults that never happened before the end of their `with` are remembered.
_KEPT_UNFIRED = 1000

_FREQUENCY = ("times", "after", "every", "probability", "lasts")


class Surroundings:
    """What actions may do to the cluster.

    Args:
        backend: of the cluster.
        client: in process, which writes as somebody else.
    """

    def __init__(self, backend: Backend, client: Client) -> None:
        self.clock: Clock = backend.clock
        self._backend = backend
        self._client = client
        self._conflicts = 0
        self._changed = threading.Condition()
        self._stopped = False

    def wait_until(self, is_over: Callable[[], bool], due: float | None = None, timeout: float | None = None) -> bool:
        """Wait until something is so, the clock reaches `due`, or the cluster stops; False after `timeout` real seconds."""
        timer = None if due is None else self.clock.call_at(due, self.notify)
        with self._changed:
            in_time = self._changed.wait_for(
                lambda: self._stopped or is_over() or (due is not None and self.clock.monotonic() >= due), timeout
            )
        if timer is not None:
            timer.cancel()
        return in_time

    def notify(self) -> None:
        """Something may be so now that somebody waits for."""
        with self._changed:
            self._changed.notify_all()

    def stop(self) -> None:
        """Nobody waits any longer."""
        self._stopped = True
        self.notify()

    def write(self, info: RequestInfo, change: Callable[[dict[str, Any]], dict[str, Any] | None] | None) -> None:
        """Write the object of a request as somebody else, through the API; nothing if there is none."""
        resource = self._backend.registry.get(info.group, info.version, info.resource)
        if resource is None or not info.name:
            return
        path = self._client.path(resource, info.namespace or None, info.name)
        self._conflicts += 1
        try:
            before = self._client.call("GET", path)
            obj = deepcopy(before)
            if change is None:
                obj.setdefault("metadata", {}).setdefault("annotations", {})[ANNOTATION] = str(self._conflicts)
            else:
                obj = change(obj) or obj
            written = self._client.call("PUT", path, obj)
            if "status" in resource.subresources and obj.get("status") != before.get("status"):
                self._client.call("PUT", f"{path}/status", {**written, "status": obj.get("status")})
        except ApiError as error:
            if error.code not in (404, 409):  # the change of the test is invalid
                _log.warning("%s could not be written by a fault: %s", path, error)

    def compact(self) -> None:
        """Compact the history, the newest revision that anybody knows of included."""
        store = self._backend.store
        store.advance()
        store.compact()
        for resource in self._backend.registry:
            store.bucket(resource.bucket).forget()

    def revision_ago(self, by: int) -> int:
        """The revision of so many writes ago, as far as the history goes back."""
        store = self._backend.store
        return max(store.revision - by, store.compacted, 1)


@dataclass(slots=True, frozen=True)
class On:
    """Which requests; one action follows, which arms a fault and returns it."""

    faults: Faults
    criteria: Criteria
    own: bool

    def arm(self, name: str, *, label: str | None = None, **arguments: Any) -> Fault:
        """Arm a fault with an action by its name. Raises TypeError or ValueError for arguments that mean nothing."""
        often = Frequency(**{key: arguments.pop(key) for key in _FREQUENCY if key in arguments})
        return self.faults.arm(self.criteria, self.own, ACTIONS[name](**arguments), often, label)

    def status(
        self, code: int, *, reason: str | None = None, message: str | None = None, retry_after: int | None = None, **often: Any
    ) -> Fault:
        """Not performed; the Status that the real server gives with that code."""
        return self.arm("status", code=code, reason=reason, message=message, retry_after=retry_after, **often)

    def refuse(self, **often: Any) -> Fault:
        """Not performed; the connection drops before an answer."""
        return self.arm("refuse", **often)

    def lose(self, **often: Any) -> Fault:
        """Performed; the connection drops before the answer."""
        return self.arm("lose", **often)

    def delay(self, seconds: float, *, jitter: float = 0.0, **often: Any) -> Fault:
        """Performed later, by the clock; several delays add up."""
        return self.arm("delay", seconds=seconds, jitter=jitter, **often)

    def hang(self, **often: Any) -> Fault:
        """No answer until the fault is removed; then it is performed."""
        return self.arm("hang", **often)

    def conflict(self, change: Callable[[dict[str, Any]], dict[str, Any] | None] | None = None, **often: Any) -> Fault:
        """Just before it is performed somebody else writes the object: an annotation, or what `change(object)` makes of it."""
        return self.arm("conflict", change=change, **often)

    def gone(self, **often: Any) -> Fault:
        """The history is compacted, now and for each request that it meets; open watches end with the 410."""
        return self.arm("gone", **often)

    def stale(self, by: int, **often: Any) -> Fault:
        """A read that may be stale is answered from so many revisions ago, never below what it asks for."""
        return self.arm("stale", by=by, **often)

    def end(self, after_events: int = 0, **often: Any) -> Fault:
        """A watch closes cleanly after so many events."""
        return self.arm("end", after_events=after_events, **often)

    def cut(self, after_events: int | None = None, after_bytes: int | None = None, **often: Any) -> Fault:
        """The connection is reset there; without arguments right after the headers."""
        return self.arm("cut", after_events=after_events, after_bytes=after_bytes, **often)

    def slice(self, size: int, **often: Any) -> Fault:
        """What is sent arrives in pieces of so many bytes."""
        return self.arm("slice", size=size, **often)

    def silence(self, after_events: int = 0, **often: Any) -> Fault:
        """Nothing more is sent after so many events; the connection stays."""
        return self.arm("silence", after_events=after_events, **often)

    def error_event(self, code: int, *, reason: str | None = None, message: str | None = None, **often: Any) -> Fault:
        """An ERROR event with that Status, then the end of the watch."""
        return self.arm("error_event", code=code, reason=reason, message=message, **often)

    def bookmarks(self, when: str, **often: Any) -> Fault:
        """Bookmarks come "never" (but the one that ends the initial events), "often", "at end", or one more "now"."""
        return self.arm("bookmarks", when=when, **often)

    def intercept(self, function: Callable[[Exchange], tuple[int, Any] | None], **often: Any) -> Fault:
        """`function(exchange)` gives a code and an object as the answer, or None."""
        return self.arm("intercept", function=function, **often)

    def malformed(self, **often: Any) -> Fault:
        """Performed; half of the answer arrives as if it were the whole. A watch gets half an event, and ends."""
        return self.arm("malformed", **often)

    def unavailable(self, **often: Any) -> Fault:
        """The server of an API group cannot be reached: with the resource "*.GROUP", its resources and its discovery get a
        503, and the aggregated discovery says that its versions are stale."""
        return self.arm("unavailable", **often)

    def expire_tokens(self, **often: Any) -> Fault:
        """Bearer tokens that were issued before are refused with a 401, those that are issued from now on are good."""
        return self.arm("expire_tokens", **often)


class Faults:
    """The faults of one cluster; iterates over those that are armed, in their order."""

    def __init__(self, observer: Observer, clock: Clock, resolve: Callable[[str], str]) -> None:
        self._observer = observer
        self._clock = clock
        self._resolve = resolve
        self._dice = random.Random(0)
        self._changing = threading.Lock()
        self._armed: dict[int, Fault] = {}
        self._index = FaultIndex()
        self.of_tokens: tuple[Fault, ...] = ()
        """Those that happen when it is known who asks."""
        self._ended_unfired: deque[Fault] = deque(maxlen=_KEPT_UNFIRED)

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
    ) -> On:
        """Say which requests a fault meets.

        Args:
            verbs: "watch", "get,list", or "*" for all; "call" are the calls of webhooks by the API server.
            resource: "pods" (of any group, the main resource), "deployments.apps", "pods/status", "pods/*" (its
                subresources), "*.apps" (the whole group), "*" (every resource and subresource). Of a call, what the
                review is about.
            namespace: of the request.
            name: in the path, or in the body of a create.
            user: who asks, after impersonation.
            agent: a prefix of the User-Agent.
            path: a glob for requests that are not about resources, and for the URLs of webhooks; then `resource` does
                not count.
            own: also meet the cluster's own controllers and clients of the same process.

        Raises ValueError for a verb that does not exist, and for criteria that are no texts.
        """
        require_text(resource=resource, namespace=namespace, name=name, user=user, agent=agent, path=path)
        if not isinstance(own, bool):
            raise ValueError(f"own must be true or false, not {own!r}")
        named = None if path is not None else ResourceName.of(resource, self._resolve)
        return On(self, Criteria(verbs_of(verbs), named, namespace, name, user, agent, None, path), own)

    def arm(self, criteria: Criteria, own: bool, action: Action, often: Frequency, label: str | None) -> Fault:
        """Arm a fault. Raises ValueError for a label that is no text."""
        require_text(label=label)
        fault = Fault(criteria, own, action, often, label, self._clock, self._dice, self._removed)
        with self._changing:
            self._armed[fault.id] = fault
            if action.at_authentication:
                self.of_tokens += (fault,)
            else:
                self._index.add(fault)
            self._observer.refresh()
        self._observer.armed(fault)
        return fault

    def seed(self, number: int) -> None:
        """Have probabilities and jitters fall as they did with this number before."""
        self._dice.seed(number)

    def clear(self) -> None:
        """Remove all faults; requests that they hold up go on."""
        with self._changing:
            faults, self._armed = self._armed, {}
            self._index, self.of_tokens = FaultIndex(), ()
            self._ended_unfired.clear()
            self._observer.refresh()
        for fault in faults.values():
            fault.removed = True
        self._observer.surroundings.notify()

    def unfired(self) -> list[Fault]:
        """The faults that have never happened, also those that ended with their `with`; not those that were removed by hand."""
        with self._changing:
            return [fault for fault in (*self._ended_unfired, *self._armed.values()) if not fault.hits]

    def find(self, number: int) -> Fault | None:
        """The fault with that id."""
        return self._armed.get(number)

    def candidates(self, exchange: Exchange) -> list[Fault]:
        """The faults that may be about an exchange, in the order in which they were armed."""
        if not self._index:
            return []
        with self._changing:
            return self._index.candidates(exchange)

    def retire(self, fault: Fault) -> None:
        """No request has to be compared with a fault any more: it is exhausted."""
        with self._changing:
            self._index.discard(fault)

    def issued(self, request: Any) -> None:
        """Tell the faults of the token in a TokenRequest."""
        status = request.get("status") if isinstance(request, dict) else None
        token = status.get("token") if isinstance(status, dict) else None
        if isinstance(token, str):
            for fault in self.of_tokens:
                fault.action.issued(token)

    def _removed(self, fault: Fault, by_hand: bool) -> None:
        with self._changing:
            self._armed.pop(fault.id, None)
            self._index.discard(fault)
            self.of_tokens = tuple(other for other in self.of_tokens if other is not fault)
            if not by_hand and not fault.hits:
                self._ended_unfired.append(fault)
            self._observer.refresh()
        self._observer.surroundings.notify()

    def __iter__(self) -> Iterator[Fault]:
        return iter(list(self._armed.values()))

    def __len__(self) -> int:
        return len(self._armed)
