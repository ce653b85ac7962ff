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

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from fakekube.aggregator.availability import LOCAL, Probe, State, state_in_cluster
from fakekube.aggregator.locations import Locations
from fakekube.clock import Clock, Timer
from fakekube.codecs.document import Document
from fakekube.controlplane.control_loop import ControlLoop
from fakekube.errors import StatusError
from fakekube.golang.timestamps import print_time
from fakekube.registry.cluster_access import ClusterAccess, Recorded
from fakekube.registry.strategy import Object
from fakekube.store import Record, Reflector, Store
from fakekube.threads import WORKERS
from fakekube.validation.conditions import condition, with_condition

__all__ = ["AvailableConditionController", "Remote"]

_log = logging.getLogger(__name__)

#: The state of controllers that know what was installed, and nothing else.
_INSTALLED = object()

GROUP, PLURAL = "apiregistration.k8s.io", "apiservices"
_SERVICE_LABEL = "kubernetes.io/service-name"

_RESYNC_SECONDS = 30.0
_FIRST_RETRY_SECONDS, _FIRST_REFRESH_RETRY_SECONDS = 0.005, 0.5
_MOVED_SECONDS = 5.0
"""How long whoever moves the clock waits for servers (real seconds)."""
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
    heard: float = 0.0
    """When it has last told what it serves, by `time.monotonic()`."""
    heard_of: int = -1
    """The generation then."""
    timer: Timer | None = None
    facts: dict[str, object] = field(default_factory=dict)
    """What the server says of itself, by who asked (discovery, OpenAPI)."""

    @property
    def group_version(self) -> tuple[str, str]:
        """The group and the version that are served."""
        return self.spec.get("group", ""), self.spec["version"]


class Inquiry(Protocol):
    """Asks a server about itself, and keeps in `Remote.facts` what it says."""

    def begin(self, remote: Remote) -> bool:
        """The server cannot be asked for now; has that changed anything?"""

    def ask(self, remote: Remote) -> Callable[[], bool]:
        """Ask now, at most some seconds long.

        Returns what takes the answer over; it tells whether that changes anything, and is called if the answer still counts.
        """

    def satisfied(self, remote: Remote) -> bool:
        """Has the server told what it was last asked?"""


class AvailableConditionController(ControlLoop):
    """Keeps the condition `Available` of the APIServices that have a Service, and what their servers serve."""

    def __init__(
        self, store: Store[Document], services: ClusterAccess, clock: Clock, locations: Locations, inquiries: tuple[Inquiry, ...]
    ) -> None:
        self._services, self._clock, self._locations, self._inquiries = services, clock, locations, inquiries
        self._probe = Probe(locations)
        self._bucket = store.bucket(f"{PLURAL}.{GROUP}")
        backing = (store.bucket("services"), store.bucket("endpointslices.discovery.k8s.io"))
        self._registered = Reflector(self._bucket)
        self._backing = tuple(Reflector(bucket) for bucket in backing)
        self._changed = threading.Condition(threading.RLock())
        self.remotes: Mapping[str, Remote] = {}
        """By the name of the APIService. Replaced, not changed."""
        self.state: object = object()
        """Another one when discovery or OpenAPI has changed."""
        super().__init__((self._bucket, *backing))

    # ---------------------------------------------------------------- for others

    def mounted(self, name: str) -> None:
        """The server of an APIService is another one from now on."""
        with self._working:
            remote = self.remotes.get(name)
            if remote is not None:
                self._touch(remote)
        self.refresh()

    def install(self, name: str, record: Record[Document], facts: dict[str, object]) -> None:
        """Know an APIService and what its server says, without asking it before something changes."""
        with self._working:
            remote = Remote(name, record.value.object["spec"], record.revision, again=False, facts=facts)
            if not self.remotes:
                self._clock.subscribe(self._moved)
            self.remotes = {**self.remotes, name: remote}
            self.state = _INSTALLED if len(self.remotes) == 1 else object()

    def adopt(self, other: AvailableConditionController) -> None:
        """Know what another cluster knows of the servers, whose state this one shares."""
        with self._working:
            self.refresh()
            for name, remote in self.remotes.items():
                known = other.remotes.get(name)
                if known is not None and known.spec == remote.spec:
                    remote.facts |= known.facts
            self.state = object()

    def working(self) -> list[str]:
        """The names of the APIServices whose servers are being asked."""
        return [remote.name for remote in self.remotes.values() if remote.asking or remote.again]

    def wait(self, timeout: float) -> bool:
        """Wait until no server is being asked, at most so many (real) seconds; is that so?"""
        with self._changed:
            return self._changed.wait_for(lambda: not self.working(), timeout)

    def stop(self) -> None:
        """Ask no more until something changes; what is being learnt does not count."""
        with self._working:
            for remote in self.remotes.values():
                remote.generation += 1
                remote.again = False
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
                if remote.again:
                    self._judge(remote)
        return self._bucket.end != before

    def _learn(self, name: str) -> None:
        """An APIService has come, changed or gone."""
        record, known = self._registered.records.get(name), self.remotes.get(name)
        spec = {} if record is None else record.value.object["spec"]
        if record is None or "service" not in spec:
            if known is not None:
                self._forget(known)
            if record is not None and not _tells(record.value.object, LOCAL):
                self._write(name, spec, LOCAL)
            return
        if known is None:
            known = Remote(name, spec)
            if not self.remotes:
                self._clock.subscribe(self._moved)
            for inquiry in self._inquiries:
                inquiry.begin(known)
            self.remotes = {**self.remotes, name: known}
            self.state = object()
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
        if not self.remotes:
            self._clock.unsubscribe(self._moved)

    def _moved(self) -> None:
        """The clock was held, moved or released: who did that finds what servers were asked then to have answered."""
        self.wait(_MOVED_SECONDS)

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
            self._unreachable(remote)
            remote.revision = self._write(remote.name, remote.spec, state)
        elif not remote.asking:
            remote.asking, remote.again = True, False
            WORKERS.run(partial(self._ask, remote))

    def _unreachable(self, remote: Remote) -> None:
        """The server cannot be asked: what it has said may not be so any more."""
        for inquiry in self._inquiries:
            if inquiry.begin(remote):
                self.state = object()

    def _write(self, name: str, spec: Object, state: State) -> int:
        """Set the condition; the revision of the object then, 0 if it is another one by now."""

        def judged(old: Object) -> Object:
            if old["spec"] != spec:
                raise _ChangedError
            if _tells(old, state):
                return old
            now = print_time(self._clock.now())
            return with_condition(
                old, type_="Available", status=state.status, reason=state.reason, message=state.message, now=now
            )

        try:
            written = self._services.update(GROUP, PLURAL, "", name, judged, recorded=Recorded("status", self._clock.now()))
        except (StatusError, _ChangedError):
            return 0
        return int(written["metadata"]["resourceVersion"])

    # ---------------------------------------------------------------- in a thread of its own

    def _ask(self, remote: Remote) -> None:
        try:
            self._ask_once(remote)
        except Exception:
            _log.exception("asking the server of %s", remote.name)
        finally:
            with self._working:
                remote.asking = False
            if remote.again:
                self.refresh()
            with self._changed:
                self._changed.notify_all()

    def _ask_once(self, remote: Remote) -> None:
        generation = remote.generation
        state = self._probe(remote.name, remote.spec)
        if not self._counts(remote, generation):
            return
        if state is not None:
            self._write_quietly(remote, state)
        if state is None or not state.answered:
            with self._working:
                if self._counts(remote, generation):
                    self._unreachable(remote)
        elif remote.heard_of != generation or time.monotonic() - remote.heard >= _REFRESH_SECONDS:
            self._inquire(remote, generation)
        with self._working:
            if self._counts(remote, generation):
                retry = None if remote.heard_of == generation else _FIRST_REFRESH_RETRY_SECONDS
                self._plan(remote, retry if state is not None and state.status == "True" else _FIRST_RETRY_SECONDS)

    def _inquire(self, remote: Remote, generation: int) -> None:
        """Have the server tell what it serves."""
        for inquiry in self._inquiries:
            take_over = inquiry.ask(remote)
            with self._working:
                if not self._counts(remote, generation):
                    return
                if take_over():
                    self.state = object()
        if all(inquiry.satisfied(remote) for inquiry in self._inquiries):
            remote.heard, remote.heard_of = time.monotonic(), generation

    def _write_quietly(self, remote: Remote, state: State) -> None:
        """Write the condition, which is no reason to ask again."""
        with self._working:
            self._busy = True
            try:
                remote.revision = self._write(remote.name, remote.spec, state)
            finally:
                self._busy = False
        self.refresh()

    def _counts(self, remote: Remote, generation: int) -> bool:
        return remote.generation == generation

    def _plan(self, remote: Remote, retry: float | None) -> None:
        """When to ask again: after `retry` seconds, which double with each failure; None if all went well."""
        wait = _RESYNC_SECONDS
        if retry is None:
            remote.failures = 0
        else:
            wait = min(_RESYNC_SECONDS, retry * 2.0 ** min(remote.failures, 20))
            remote.failures += 1
        if remote.timer is not None:
            remote.timer.cancel()

        def again() -> None:
            with self._working:
                remote.again = self.remotes.get(remote.name) is remote
            if remote.again:
                self.refresh()

        remote.timer = self._clock.call_at(self._clock.monotonic() + wait, again)


class _ChangedError(Exception):
    """The APIService is not the one any more of which something was learnt."""


def _tells(obj: Object, state: State) -> bool:
    """Has an APIService the condition already?"""
    known = condition(obj, "Available")
    return (known.get("status"), known.get("reason"), known.get("message")) == (state.status, state.reason, state.message)
