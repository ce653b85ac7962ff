"""Follows the APIServices that have a Service: whether their servers can be reached, and what these say that they serve.

What the state of the cluster decides (no Service, no such port, no endpoints) is written in the thread of the write that brought
it about, so that a client that has its answer can count on it. To ask a server takes time: a thread of the APIService's own
does that, and again by the cluster's clock, as kube-aggregator's controllers do.

Invariants: one thread at a time asks for one APIService, and what it has learnt counts only if nothing has changed meanwhile;
without an APIService that has a Service there is no thread and no timer.

Specified by: k8s.io/kube-aggregator/pkg/controllers/status/remote (remote_available_controller.go), pkg/apiserver
(handler_discovery.go), pkg/controllers/openapi, pkg/controllers/openapiv3.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from fakekube.aggregator.availability import AVAILABLE, State, state_in_cluster
from fakekube.aggregator.locations import Locations
from fakekube.clock import Clock, Timer
from fakekube.codecs.document import Document
from fakekube.errors import StatusError
from fakekube.resources.conditions import condition, with_condition
from fakekube.resources.services import Recorded, Services
from fakekube.resources.strategy import Object
from fakekube.resources.upkeep import Upkeep
from fakekube.schema.timestamps import print_time
from fakekube.store import Mirror, Record, Store

__all__ = ["AvailableConditionController", "Remote"]

GROUP, PLURAL = "apiregistration.k8s.io", "apiservices"
_SERVICE_LABEL = "kubernetes.io/service-name"

_RESYNC_SECONDS = 30.0
_FIRST_RETRY_SECONDS, _LAST_RETRY_SECONDS = 0.005, 30.0
_REFRESH_SECONDS = 60.0
"""How old what a server says of itself may become."""


@dataclass(slots=True)
class Remote:
    """What is known of one APIService with a Service."""

    name: str
    spec: Object
    revision: int = 0
    """Of the object, when its server was last asked, or when we wrote it ourselves."""
    generation: int = 0
    """Counts what has changed: what was learnt of an older one does not count."""
    asking: bool = False
    """A thread is at work."""
    again: bool = True
    """Its server is to be asked."""
    failures: int = 0
    timer: Timer | None = None
    available: bool = False
    facts: dict[str, object] = field(default_factory=dict)
    """What the server says of itself, by who asked (discovery, OpenAPI)."""

    @property
    def group_version(self) -> tuple[str, str]:
        """The group and the version that are served."""
        return self.spec.get("group", ""), self.spec["version"]


class Inquiry(Protocol):
    """Asks a server about itself, and keeps in `Remote.facts` what it says."""

    def begin(self, remote: Remote) -> bool:
        """What counts as long as the server cannot be asked; has that changed?"""

    def ask(self, remote: Remote, *, due: bool) -> Callable[[], bool]:
        """Ask now, at most some seconds long; `due` if it is time to ask although nothing has changed.

        Returns what takes the answer over; it tells whether that changes anything, and is called if it still counts.
        """


class AvailableConditionController(Upkeep):
    """Keeps the condition `Available` of the APIServices that have a Service, and what their servers serve."""

    def __init__(
        self, store: Store[Document], services: Services, clock: Clock, locations: Locations,
        probe: Callable[[str, Object], State | None], inquiries: tuple[Inquiry, ...] = (),
    ) -> None:
        """`probe` asks the server of an APIService, given by name and spec, whether it is there; None if it cannot tell."""
        self._services, self._clock, self._locations, self._probe = services, clock, locations, probe
        self._inquiries = inquiries
        self._bucket = store.bucket(f"{PLURAL}.{GROUP}")
        backing = (store.bucket("services"), store.bucket("endpointslices.discovery.k8s.io"))
        self._registered = Mirror(self._bucket)
        self._backing = tuple(Mirror(bucket) for bucket in backing)
        self._changed = threading.Condition(threading.RLock())
        self._ended = False
        self.remotes: Mapping[str, Remote] = {}
        """By the name of the APIService. Replaced, not changed."""
        self.state: object = object()
        """Another one when discovery or OpenAPI has changed."""
        super().__init__((self._bucket, *backing))

    # ---------------------------------------------------------------- for others

    def registered(self) -> Mapping[str, Record[Document]]:
        """All APIServices by name, as of the last write."""
        if not self._registered.records:
            self.refresh()
        return self._registered.records

    def mounted(self, name: str) -> None:
        """The server of an APIService is another one from now on."""
        with self._working:
            remote = self.remotes.get(name)
            if remote is not None:
                self._touch(remote)
        self.refresh()

    def working(self) -> list[str]:
        """The names of the APIServices whose servers are being asked."""
        return [remote.name for remote in self.remotes.values() if remote.asking or remote.again]

    def wait(self, timeout: float) -> bool:
        """Wait until no server is being asked, at most so many (real) seconds; is that so?"""
        with self._changed:
            return self._changed.wait_for(lambda: not self.working(), timeout)

    def stop(self) -> None:
        """Ask no more."""
        with self._working:
            self._ended = True
            for remote in self.remotes.values():
                if remote.timer is not None:
                    remote.timer.cancel()

    # ---------------------------------------------------------------- in the thread of a write

    def step(self) -> bool:
        before = self._bucket.end
        for name in self._registered.catch_up():
            self._learn(name)
        if self.remotes:
            self._learn_of_backing()
            for remote in list(self.remotes.values()):
                if remote.again and not self._ended:
                    self._judge(remote)
        return self._bucket.end != before

    def _learn(self, name: str) -> None:
        """An APIService has come, changed or gone."""
        record, known = self._registered.records.get(name), self.remotes.get(name)
        spec = None if record is None else record.value.object["spec"]
        if record is None or spec is None or "service" not in spec:
            if known is not None:
                self._forget(known)
            return
        if known is None:
            known = Remote(name, spec)
            for inquiry in self._inquiries:
                inquiry.begin(known)
            self.remotes = {**self.remotes, name: known}
            self.state = object()
        known.available = condition(record.value.object, "Available").get("status") == "True"
        if known.revision != record.revision:
            known.spec, known.revision = spec, record.revision
            self.state = object()
            self._touch(known)

    def _forget(self, remote: Remote) -> None:
        self.remotes = {name: one for name, one in self.remotes.items() if one is not remote}
        self.state = object()
        remote.generation += 1
        remote.again = False
        if remote.timer is not None:
            remote.timer.cancel()

    def _learn_of_backing(self) -> None:
        """Services and slices have come, changed or gone."""
        services, slices = self._backing
        known = slices.records
        touched = {tuple(key.split("/", 1)) for key in services.catch_up()}
        before = {key: record.value.object for key, record in known.items()} if touched else {}
        for key in slices.catch_up():
            record = slices.records.get(key)
            found = record.value.object if record else before.get(key)
            labels = (found["metadata"].get("labels") or {}) if found else {}
            touched.add((key.split("/", 1)[0], labels.get(_SERVICE_LABEL, "")))
            if not found:  # it has gone: whose it was is not known any more
                touched |= {(one.spec["service"]["namespace"], one.spec["service"]["name"]) for one in self.remotes.values()}
        for remote in self.remotes.values():
            if (remote.spec["service"]["namespace"], remote.spec["service"]["name"]) in touched:
                self._touch(remote)

    def _touch(self, remote: Remote) -> None:
        remote.generation += 1
        remote.again = True

    def _judge(self, remote: Remote) -> None:
        """Write what the cluster's state decides, or have the server asked."""
        reference = remote.spec["service"]
        state = None
        if not self._locations.is_given(remote.name, reference):
            state = state_in_cluster(self._services, reference)
        if state is not None:
            remote.again = False
            remote.failures = 0
            if any([inquiry.begin(remote) for inquiry in self._inquiries]):
                self.state = object()
            self._write(remote, state)
        elif not remote.asking:
            remote.asking, remote.again = True, False
            threading.Thread(target=self._ask, args=(remote,), name="fakekube-apiservice", daemon=True).start()

    def _write(self, remote: Remote, state: State) -> None:
        """Set the condition."""
        spec = remote.spec

        def judged(old: Object) -> Object:
            known = condition(old, "Available")
            shown = (known.get("status"), known.get("reason"), known.get("message"))
            if old["spec"] != spec or shown == (state.status, state.reason, state.message):
                return old
            now = print_time(self._clock.now())
            return with_condition(
                old, type_="Available", status=state.status, reason=state.reason, message=state.message, now=now
            )

        try:
            written = self._services.update(
                GROUP, PLURAL, "", remote.name, judged, recorded=Recorded("status", self._clock.now())
            )
        except StatusError:  # it has gone meanwhile
            return
        remote.revision = int(written["metadata"]["resourceVersion"])
        remote.available = condition(written, "Available").get("status") == "True"

    # ---------------------------------------------------------------- in a thread of its own

    def _ask(self, remote: Remote) -> None:
        try:
            self._ask_once(remote)
        finally:
            with self._working:
                remote.asking = False
            if remote.again and not self._ended:
                self.refresh()
            with self._changed:
                self._changed.notify_all()

    def _ask_once(self, remote: Remote) -> None:
        generation, changed = remote.generation, remote.failures == 0 or True
        state = self._probe(remote.name, remote.spec)
        if not self._counts(remote, generation):
            return
        if state is not None:
            with self._working:
                self._busy_write(remote, state)
        for inquiry in self._inquiries:
            take_over = inquiry.ask(remote, due=changed)
            with self._working:
                if not self._counts(remote, generation):
                    return
                if take_over():
                    self.state = object()
        with self._working:
            self._plan(remote, failed=state is None or state.reason != AVAILABLE.reason)

    def _busy_write(self, remote: Remote, state: State) -> None:
        """Write without being woken by it: what it changes is known."""
        self._write(remote, state)

    def _counts(self, remote: Remote, generation: int) -> bool:
        return remote.generation == generation and not self._ended

    def _plan(self, remote: Remote, *, failed: bool) -> None:
        """When to ask again."""
        wait = _RESYNC_SECONDS
        if failed:
            wait = min(_LAST_RETRY_SECONDS, _FIRST_RETRY_SECONDS * 2.0 ** min(remote.failures, 20))
            remote.failures += 1
        else:
            remote.failures = 0
        if remote.timer is not None:
            remote.timer.cancel()

        def again() -> None:
            with self._working:
                remote.again = not self._ended and self.remotes.get(remote.name) is remote
            if remote.again:
                self.refresh()

        remote.timer = self._clock.call_at(self._clock.monotonic() + wait, again)
