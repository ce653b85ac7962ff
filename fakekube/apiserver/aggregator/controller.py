"""The controller of APIServices with a Service: their condition Available, and the documents of their servers.

The condition depends on the Service, its port and endpoints, and then on a request to the server. The part that depends on
objects is written in the thread of the write that changed them, before that write's response. Requests to a server are made in a
thread per APIService, and repeated by the clock of the cluster, like the controllers of kube-aggregator.

Invariants: at most one thread makes requests for an APIService, and its result is discarded if the APIService, its Service or
its endpoints have changed meanwhile (`Remote.generation`). Without an APIService that has a Service there is no thread or
timer.

Specified by: k8s.io/kube-aggregator/pkg/controllers/status/remote (remote_available_controller.go), pkg/apiserver
(handler_discovery.go), pkg/controllers/{openapi,openapiv3}.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.errors import StatusError
from fakekube.apis.apiregistration import LOCAL_IS_AVAILABLE
from fakekube.apis.rest.cluster_access import ClusterAccess, Recorded
from fakekube.apis.validation.objectmeta import condition, with_condition
from fakekube.apis.well_known import LABEL_SERVICE_NAME
from fakekube.apiserver.aggregator.backends import BackendError, BackendTimeoutError
from fakekube.apiserver.aggregator.locations import Location, Locations, UnresolvedError
from fakekube.apiserver.aggregator.proxy import new_request
from fakekube.apiserver.controlplane.control_loop import ControlLoop
from fakekube.apiserver.endpoints.request import User
from fakekube.base.clock import Clock, Timer
from fakekube.base.golang.strconv import go_quote
from fakekube.base.golang.timestamps import print_time
from fakekube.base.objects import Object
from fakekube.base.threads import WORKERS
from fakekube.store import Record, Reflector, Store

_log = logging.getLogger(__name__)

#: The user of requests of the aggregator.
AGGREGATOR = User("system:kube-aggregator", groups=("system:masters",))

_ATTEMPTS = 5
_SECONDS = 5.0


@dataclass(slots=True, frozen=True)
class State:
    """The state of the condition Available."""

    status: str
    reason: str
    message: str
    answered: bool = False
    """Whether the server has responded, with any status."""


LOCAL = State("True", "Local", LOCAL_IS_AVAILABLE)
AVAILABLE = State("True", "Passed", "all checks passed", answered=True)


def _state_in_cluster(services: ClusterAccess, reference: Object) -> State | None:
    """Returns why a Service cannot be reached, from the objects of the cluster; None if it can."""
    namespace, name, number = reference["namespace"], reference["name"], reference["port"]
    what = f"service/{name} in {go_quote(namespace)}"
    service = services.get("", "services", namespace, name)
    if service is None:
        return State("False", "ServiceNotFound", f"{what} is not present")
    if service["spec"].get("type", "ClusterIP") != "ClusterIP":
        return None
    port = next((one for one in service["spec"].get("ports") or () if one["port"] == number), None)
    if port is None:
        return State("False", "ServicePortError", f"{what} is not listening on port {number}")
    return _state_of_endpoints(services, namespace, name, port.get("name", ""))


#: The first minor that finds the addresses of a Service in its EndpointSlices; older ones read its Endpoints.
_SLICES_SINCE = 34


def _state_of_endpoints(services: ClusterAccess, namespace: str, service: str, port: str) -> State | None:
    """Returns why a Service has no address for the port of this name; None if it has one."""
    if _reads_slices(services):
        what, found = "endpointslices", _slices(services, namespace, service)
        is_reachable = any(_has_ready_endpoint(one, port) for one in found)
    else:
        endpoints = services.get("", "endpoints", namespace, service)
        what, found = "endpoints", [] if endpoints is None else [endpoints]
        is_reachable = any(_has_address(one, port) for one in found)
    of_service = f"{what} for service/{service} in {go_quote(namespace)}"
    if not found:
        return State("False", "EndpointsNotFound", f"cannot find {of_service}")
    if not is_reachable:
        return State("False", "MissingEndpoints", f"{of_service} have no addresses with port name {go_quote(port)}")
    return None


def _reads_slices(services: ClusterAccess) -> bool:
    return services.emulation.minor >= _SLICES_SINCE


def _has_address(endpoints: Object, port: str) -> bool:
    """Reports whether Endpoints have an address and a port of this name."""
    subsets = [one for one in endpoints.get("subsets") or () if one.get("addresses")]
    return any(one.get("name", "") == port for subset in subsets for one in subset.get("ports") or ())


def _slices(services: ClusterAccess, namespace: str, service: str) -> list[Object]:
    found = services.list("discovery.k8s.io", "endpointslices", namespace)
    return [one for one in found if (one["metadata"].get("labels") or {}).get(LABEL_SERVICE_NAME) == service]


def _has_ready_endpoint(endpoint_slice: Object, port: str) -> bool:
    """Reports whether an EndpointSlice has a ready endpoint and a port of this name."""
    ready = any((one.get("conditions") or {}).get("ready", True) for one in endpoint_slice.get("endpoints") or ())
    ports = endpoint_slice.get("ports") or ()
    return ready and any(one.get("name") == port and one.get("port") is not None for one in ports)


class Probe:
    """Checks the availability of servers by requests."""

    def __init__(self, locations: Locations) -> None:
        self._locations = locations

    def __call__(self, name: str, spec: Object) -> State | None:
        """Returns the state of an APIService after up to five requests to its server.

        None if the CA bundle is invalid: there is no connection then, and the condition stays as it is.
        """
        try:
            location = self._locations.locate(name, spec)
        except UnresolvedError as error:
            return State("False", "FailedDiscoveryCheck", str(error))
        if location.problem:
            return None
        deadline = time.monotonic() + _SECONDS
        state = AVAILABLE
        for _ in range(_ATTEMPTS):  # one success is enough
            state = _check(location, _checked_path(name, spec), deadline)
            if state is AVAILABLE or time.monotonic() >= deadline:
                break
        return state


def _checked_path(name: str, spec: Object) -> str:
    version: str = spec["version"]
    return f"/api/{version}" if name == "v1." else f"/apis/{spec.get('group', '')}/{version}"


def _check(location: Location, path: str, deadline: float) -> State:
    """Returns the state according to one request."""
    url = f"https://{location.host}{path}"
    try:
        response = location.backend.send(new_request(path, location, AGGREGATOR, ""), deadline)
    except BackendTimeoutError as error:
        problem = f"Get {go_quote(url)}: {error} (Client.Timeout exceeded while awaiting headers)"
    except BackendError as error:
        problem = f"Get {go_quote(url)}: {error}"
    else:
        response.body.close()
        if 200 <= response.status < 300:
            return AVAILABLE
        problem = f"bad status from {url}: {response.status}"
        return State("False", "FailedDiscoveryCheck", f"failing or missing response from {url}: {problem}", answered=True)
    return State("False", "FailedDiscoveryCheck", f"failing or missing response from {url}: {problem}")


#: `AvailableConditionController.state` while only one installed application is known: equal in all clusters, which can share
#: documents made for it.
_INSTALLED = object()

GROUP, PLURAL = "apiregistration.k8s.io", "apiservices"

_RESYNC_SECONDS = 30.0
_FIRST_RETRY_SECONDS, _FIRST_REFRESH_RETRY_SECONDS = 0.005, 0.5
_CLOCK_MOVED_SECONDS = 5.0
"""How long a change of the clock waits for running checks (real seconds)."""
_REFRESH_SECONDS = 60.0
"""The maximum age of the documents of a server (real seconds)."""


@dataclass(slots=True)
class Remote:
    """The state of one APIService with a Service."""

    name: str
    spec: Object
    revision: int = 0
    """The resource version of the APIService that was last handled, or that this controller has written."""
    generation: int = 0
    """Counts the changes of the APIService, its Service and its endpoints. Results for an older generation are discarded."""
    checking: bool = False
    """Whether a thread is checking the server."""
    check_needed: bool = True
    """Whether the server is to be checked (again)."""
    failures: int = 0
    refreshed: float = 0.0
    """When the documents were last fetched, by `time.monotonic()`."""
    refreshed_generation: int = -1
    """The generation for which they were fetched; -1 for none."""
    timer: Timer | None = None
    facts: dict[str, object] = field(default_factory=dict)
    """The documents of the server, by the key of the `Fetcher`."""

    @property
    def group_version(self) -> tuple[str, str]:
        """The group and version of the APIService."""
        return self.spec.get("group", ""), self.spec["version"]


class Fetcher(Protocol):
    """Fetches documents of a server (discovery, OpenAPI) and keeps them in `Remote.facts`."""

    def reset(self, remote: Remote) -> bool:
        """Handles a new or unavailable server. Returns whether that changes `Remote.facts`."""

    def fetch(self, remote: Remote) -> Callable[[], bool]:
        """Fetches the documents, with a timeout of some seconds and without the lock of the controller.

        Returns a function that keeps them in `Remote.facts`, and reports whether they have changed. The controller calls it with
        its lock held, unless the server has changed meanwhile.
        """

    def is_current(self, remote: Remote) -> bool:
        """Reports whether the last fetch was successful."""


class AvailableConditionController(ControlLoop):
    """Maintains the condition Available of APIServices, and the documents of the servers of those with a Service."""

    def __init__(
        self, store: Store[Document], services: ClusterAccess, clock: Clock, locations: Locations, fetchers: tuple[Fetcher, ...]
    ) -> None:
        self._services, self._clock, self._locations, self._fetchers = services, clock, locations, fetchers
        self._probe = Probe(locations)
        self._bucket = store.bucket(f"{PLURAL}.{GROUP}")
        endpoints = "endpointslices.discovery.k8s.io" if _reads_slices(services) else "endpoints"
        backing = (store.bucket("services"), store.bucket(endpoints))
        self._registered = Reflector(self._bucket)
        self._backing = tuple(Reflector(bucket) for bucket in backing)
        self._changed = threading.Condition(threading.RLock())
        self.remotes: Mapping[str, Remote] = {}
        """By the name of the APIService. The mapping is replaced, never changed: it is read without the lock."""
        self.state: object = object()
        """Replaced by another object when discovery or OpenAPI documents have changed."""
        super().__init__((self._bucket, *backing))

    # --- The interface of the aggregator ------------------------------------------------------------------------------

    def check_mounted(self, name: str) -> None:
        """Checks an APIService again because an application was mounted or unmounted."""
        with self._working:
            remote = self.remotes.get(name)
            if remote is not None:
                self._mark_changed(remote)
        self.refresh()

    def install(self, name: str, record: Record[Document], facts: dict[str, object]) -> None:
        """Adds an APIService with known documents; its server is not checked before something changes."""
        with self._working:
            remote = Remote(name, record.value.object["spec"], record.revision, check_needed=False, facts=facts)
            if not self.remotes:
                self._clock.subscribe(self._clock_moved)
            self.remotes = {**self.remotes, name: remote}
            self.state = _INSTALLED if len(self.remotes) == 1 else object()

    def adopt(self, other: AvailableConditionController) -> None:
        """Takes over the documents that the controller of the origin of a cluster copy knows."""
        with self._working:
            self.refresh()
            for name, remote in self.remotes.items():
                known = other.remotes.get(name)
                if known is not None and known.spec == remote.spec:
                    remote.facts |= known.facts
            self.state = object()

    def working(self) -> list[str]:
        """Returns the names of the APIServices whose servers are being checked, or are to be checked."""
        return [remote.name for remote in self.remotes.values() if remote.checking or remote.check_needed]

    def wait(self, timeout: float) -> bool:
        """Waits until no server is being checked. Returns False if `timeout` (real seconds) passed before."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.working(), timeout)

    def stop(self) -> None:
        """Cancels all scheduled checks and discards the results of running ones. The next change starts checks again."""
        with self._working:
            for remote in self.remotes.values():
                remote.generation += 1
                remote.check_needed = False
                if remote.timer is not None:
                    remote.timer.cancel()

    # --- Runs in the thread of a write --------------------------------------------------------------------------------

    def step(self) -> bool:
        before = self._bucket.end
        for name in self._registered.catch_up():
            self._sync(name)
        if self.remotes:
            self._sync_backing()
            for remote in list(self.remotes.values()):
                if remote.check_needed:
                    self._check(remote)
        return self._bucket.end != before

    def _sync(self, name: str) -> None:
        """Handles the creation, a change or the deletion of an APIService."""
        record, known = self._registered.records.get(name), self.remotes.get(name)
        spec = {} if record is None else record.value.object["spec"]
        if record is None or "service" not in spec:
            if known is not None:
                self._remove(known)
            if record is not None and not _has_condition(record.value.object, LOCAL):
                self._write(name, spec, LOCAL)
            return
        if known is None:
            known = Remote(name, spec)
            if not self.remotes:
                self._clock.subscribe(self._clock_moved)
            for fetcher in self._fetchers:
                fetcher.reset(known)
            self.remotes = {**self.remotes, name: known}
            self.state = object()
        if known.revision != record.revision:
            known.spec, known.revision = spec, record.revision
            self.state = object()
            self._mark_changed(known)

    def _remove(self, remote: Remote) -> None:
        self.remotes = {name: one for name, one in self.remotes.items() if one is not remote}
        self.state = object()
        remote.generation += 1
        remote.check_needed = False
        if remote.timer is not None:
            remote.timer.cancel()
        if not self.remotes:
            self._clock.unsubscribe(self._clock_moved)

    def _clock_moved(self) -> None:
        """Waits for the checks that a change of the clock has started."""
        self.wait(_CLOCK_MOVED_SECONDS)

    def _sync_backing(self) -> None:
        """Marks the APIServices whose Service, or its EndpointSlices or Endpoints, have changed."""
        services, endpoints = self._backing
        touched = {_split_key(key) for key in services.catch_up()}
        if _reads_slices(self._services):
            touched |= self._sync_slices(endpoints, with_services=bool(touched))
        else:  # Endpoints have the names of their Services
            touched |= {_split_key(key) for key in endpoints.catch_up()}
        for remote in self.remotes.values():
            if (remote.spec["service"]["namespace"], remote.spec["service"]["name"]) in touched:
                self._mark_changed(remote)

    def _sync_slices(self, slices: Reflector[Document], *, with_services: bool) -> set[tuple[str, str]]:
        """Returns namespace and name of the Services whose EndpointSlices have changed; `with_services`: Services have, too."""
        before = {key: record.value.object for key, record in slices.records.items()} if with_services else {}
        touched: set[tuple[str, str]] = set()
        for key in slices.catch_up():
            record = slices.records.get(key)
            found = record.value.object if record else before.get(key)
            if found:
                labels = found["metadata"].get("labels") or {}
                touched.add((_split_key(key)[0], labels.get(LABEL_SERVICE_NAME, "")))
            else:  # deleted, and its Service is unknown: check all
                touched |= {(one.spec["service"]["namespace"], one.spec["service"]["name"]) for one in self.remotes.values()}
        return touched

    def _mark_changed(self, remote: Remote) -> None:
        remote.generation += 1
        remote.check_needed = True

    def _check(self, remote: Remote) -> None:
        """Writes the condition that follows from the objects of the cluster, or starts a check of the server."""
        reference = remote.spec["service"]
        state = None
        if not self._locations.is_given(remote.name, reference):
            state = _state_in_cluster(self._services, reference)
        if state is not None:
            remote.check_needed = False
            remote.failures = 0
            self._reset(remote)
            remote.revision = self._write(remote.name, remote.spec, state)
        elif not remote.checking:
            remote.checking, remote.check_needed = True, False
            WORKERS.run(partial(self._run_check, remote))

    def _reset(self, remote: Remote) -> None:
        """Handles a server that cannot be requested: its discovery is unknown from now on."""
        for fetcher in self._fetchers:
            if fetcher.reset(remote):
                self.state = object()

    def _write(self, name: str, spec: Object, state: State) -> int:
        """Writes the condition. Returns the resource version; 0 if the APIService has another spec by now, or was deleted."""

        def with_state(old: Object) -> Object:
            if old["spec"] != spec:
                raise _ChangedError
            if _has_condition(old, state):
                return old
            now = print_time(self._clock.now())
            return with_condition(
                old, type_="Available", status=state.status, reason=state.reason, message=state.message, now=now
            )

        try:
            written = self._services.update(GROUP, PLURAL, "", name, with_state, recorded=Recorded("status", self._clock.now()))
        except (StatusError, _ChangedError):
            return 0
        return int(written["metadata"]["resourceVersion"])

    # --- Runs in a thread per check -----------------------------------------------------------------------------------

    def _run_check(self, remote: Remote) -> None:
        try:
            self._check_server(remote)
        except Exception:
            _log.exception("The check of the server of APIService %s failed", remote.name)
        finally:
            with self._working:
                remote.checking = False
            if remote.check_needed:
                self.refresh()
            with self._changed:
                self._changed.notify_all()

    def _check_server(self, remote: Remote) -> None:
        generation = remote.generation
        state = self._probe(remote.name, remote.spec)
        if not self._is_current(remote, generation):
            return
        if state is not None:
            self._write_own(remote, state)
        if state is None or not state.answered:
            with self._working:
                if self._is_current(remote, generation):
                    self._reset(remote)
        elif remote.refreshed_generation != generation or time.monotonic() - remote.refreshed >= _REFRESH_SECONDS:
            self._fetch_documents(remote, generation)
        with self._working:
            if self._is_current(remote, generation):
                retry = None if remote.refreshed_generation == generation else _FIRST_REFRESH_RETRY_SECONDS
                self._schedule(remote, retry if state is not None and state.status == "True" else _FIRST_RETRY_SECONDS)

    def _fetch_documents(self, remote: Remote, generation: int) -> None:
        """Fetches the documents of the server."""
        for fetcher in self._fetchers:
            apply = fetcher.fetch(remote)
            with self._working:
                if not self._is_current(remote, generation):
                    return
                if apply():
                    self.state = object()
        if all(fetcher.is_current(remote) for fetcher in self._fetchers):
            remote.refreshed, remote.refreshed_generation = time.monotonic(), generation

    def _write_own(self, remote: Remote, state: State) -> None:
        """Writes the condition without causing another check."""
        with self._working:
            self._busy = True
            try:
                remote.revision = self._write(remote.name, remote.spec, state)
            finally:
                self._busy = False
        self.refresh()

    def _is_current(self, remote: Remote, generation: int) -> bool:
        return remote.generation == generation

    def _schedule(self, remote: Remote, retry: float | None) -> None:
        """Schedules the next check: after `retry` seconds, doubled for each failure; None after a success."""
        wait = _RESYNC_SECONDS
        if retry is None:
            remote.failures = 0
        else:
            wait = min(_RESYNC_SECONDS, retry * 2.0 ** min(remote.failures, 20))
            remote.failures += 1
        if remote.timer is not None:
            remote.timer.cancel()

        def retry_check() -> None:
            with self._working:
                remote.check_needed = self.remotes.get(remote.name) is remote
            if remote.check_needed:
                self.refresh()

        remote.timer = self._clock.call_at(self._clock.monotonic() + wait, retry_check, what="the availability of an APIService")


def _split_key(key: str) -> tuple[str, str]:
    """Returns the namespace and the name of an object in a namespace, by its key in a bucket."""
    namespace, _, name = key.partition("/")
    return namespace, name


class _ChangedError(Exception):
    """The APIService has another spec than the one that was checked."""


def _has_condition(obj: Object, state: State) -> bool:
    """Reports whether an APIService has the condition already."""
    known = condition(obj, "Available")
    return (known.get("status"), known.get("reason"), known.get("message")) == (state.status, state.reason, state.message)
