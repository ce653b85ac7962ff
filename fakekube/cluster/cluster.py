"""One cluster: its construction, its life, and the way to everything that its owner can do with it.

A `Cluster` is a store with an API in front of it. It can be used in process at once; `start` puts a server on a socket and
its controllers to work, for any client in any language. All operations use the API, except those that no API
offers: snapshots, forks, compaction and the clock.
"""

from __future__ import annotations

import operator
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, overload

from fakekube.api.version import user_agent
from fakekube.assembly import Machinery, build
from fakekube.auth.identities import with_authenticated
from fakekube.client import Client
from fakekube.clock import Clock
from fakekube.cluster.kubeconfigs import Kubeconfigs
from fakekube.cluster.serving import Serving
from fakekube.cluster.state import ClusterState
from fakekube.control import WSGI, Control, is_loopback
from fakekube.controllers import DELETION_GRACE, PROFILES, Context, Manager, enabled
from fakekube.nodes import metrics_api
from fakekube.options import ServerOptions
from fakekube.registry.backend import Settings
from fakekube.registry.request import User
from fakekube.store import Retention
from fakekube.testing.aggregated_api import AggregatedAPI
from fakekube.testing.clients import Clients
from fakekube.testing.object_client import ObjectClient
from fakekube.testing.services import ForwardedServices

if TYPE_CHECKING:
    from fakekube.codecs.document import Document
    from fakekube.kubelet_api import Kubelet
    from fakekube.nodes.fleet import Nodes
    from fakekube.nodes.inside import PodInside
    from fakekube.nodes.rules import Pods
    from fakekube.powers.faults import Faults
    from fakekube.powers.observation import Observer
    from fakekube.powers.requests import Requests
    from fakekube.runtime.runtime import Runtime
    from fakekube.server import Server
    from fakekube.server.certificates import Authority
    from fakekube.store import Snapshot, Store
    from fakekube.testing.asynchronous import AsyncCluster
    from fakekube.testing.manifests import Source
    from fakekube.testing.stages import Stages

__all__ = ["Cluster"]

Object = dict[str, Any]

USER_AGENT = "fakekube"
MAX_FIRST_REVISION = 1 << 128


class _State(Enum):
    NOT_STARTED = "not started"
    STARTED = "started"
    STOPPED = "stopped"


class Cluster(ClusterState):
    """One cluster; a context manager that starts and stops it.

    Args:
        version: the emulated minor of Kubernetes.
        profile: `cluster` has controllers, `apiserver` is a bare API server as envtest has it, `envtest` has controllers
            that end namespaces and collect dependents, after a second in which a suite may do so itself.
        host, port: where the server listens; port 0 is a free one.
        tls: serve HTTPS with a certificate of the cluster's own CA; with HTTP/2, unless there is `http2=False`.
        feature_gates: gates that differ from their defaults.
        controllers: which controllers run, in the syntax of --controllers of kube-controller-manager: `*` for all
            that run by default, a name, or `-name` for all but that one; the default are those of the profile.
        control: serve /fakekube/v1 (see docs/controllers.md); by default where the server listens on loopback.
        compaction_interval: seconds between compactions of the history.
        flags: flags of kube-apiserver with underscores, such as `token_auth_file="tokens.csv"`; see `options`.
        keep_requests: how many exchanges `requests` keeps; 0 keeps none.
        first_revision: the revision from which new ones continue, up to 2^128; objects of a fresh cluster keep
            theirs.
        strict: `stop` raises AssertionError if an armed fault never occurred.
        nodes: the number of initial nodes (node-1, node-2, …); by default one if kubelets run, else none.
        stages: kwok's Stage files, see `Cluster.stages`.
        load: manifests, or a saved state, that the cluster starts with; `reset` returns to them.

    Raises KeyError for an unknown profile, ValueError for an unknown controller or a wrong `first_revision`, LookupError
    for an unknown version, TypeError for an unknown flag and OptionError for an invalid one.
    """

    def __init__(
        self,
        *,
        version: str = "1.36",
        profile: str = "cluster",
        host: str = "127.0.0.1",
        port: int = 0,
        tls: bool = False,
        feature_gates: Mapping[str, bool] | None = None,
        controllers: str | Sequence[str] | None = None,
        control: bool | None = None,
        compaction_interval: float | None = None,
        nodes: int | None = None,
        stages: Source | None = None,
        load: Source | None = None,
        keep_requests: int = 10_000,
        strict: bool = False,
        first_revision: int = 0,
        store: Store[Document] | None = None,
        clock: Clock | None = None,
        **flags: Any,
    ) -> None:
        switches = PROFILES[profile] if controllers is None else controllers
        self._controllers = enabled(switches.split(",") if isinstance(switches, str) else switches)
        self._controller_names = tuple([row.name for row in self._controllers])
        self._control = control
        self._nodes = int(self._runs_kubelets) if nodes is None else nodes
        self._flags = flags
        self._options = ServerOptions.of(flags) if flags else ServerOptions()
        tls = tls or self._options.needs_tls
        self._profile = profile
        settings = self._settings = Settings(
            version=version, feature_gates=dict(feature_gates or {}), service_ranges=self._options.services.ranges()
        )
        self._compaction_interval = compaction_interval
        self._retention = (
            Retention() if compaction_interval is None else replace(Retention(), compaction_interval=compaction_interval)
        )
        self._shared: dict[str, Any] = {"stages": {}, "staged": set(), "runtime of": lambda: self._runtime}
        """What controllers are told of by tests."""
        clock = clock or Clock()
        self._serving = Serving(host, port, tls=tls, options=self._options.serving, clock=clock, application=lambda: self._served)
        machinery = build(
            clock=clock,
            settings=settings,
            profile=profile,
            retention=self._retention,
            store=store,
            prepare=self._prepare if self._controllers or self._nodes else None,
            tls=tls,
            controllers=self._controller_names,
            nodes=self._nodes,
            options=self._options,
            authority=self._serving.own_authority,
        )
        if self._runs_kubelets:
            machinery.backend.kubelet_of = self._kubelet_of
        if self._runs("metrics-server"):
            self._serve_metrics(machinery)
        super().__init__(self._client_for(machinery, USER_AGENT), machinery, settings, clock)
        self._manager = self._manager_for(self._machinery, settled=store is None)
        self._initial = None if store is None else self.snapshot()
        self.named_snapshots: dict[str, tuple[Snapshot[Document], datetime]] = {}
        """Those of the control prefix: name → the snapshot, and when it was taken."""
        if not 0 <= operator.index(first_revision) <= MAX_FIRST_REVISION:
            raise ValueError(f"first_revision is {first_revision}, not from 0 to 2^128")
        self.controlled: dict[str, Any] = {}
        """The recording and the replay of the control prefix."""
        if first_revision:
            self._machinery.backend.store.skip(first_revision)
        self._strict = strict
        self._keep_requests = keep_requests
        self._observer: Observer | None = None
        if keep_requests:
            self._observe()
        self._starting = threading.Lock()
        self._state = _State.NOT_STARTED
        self._kubeconfigs = Kubeconfigs(self._serving, lambda: self.url, self._add_token)
        self.services = ForwardedServices(self._machinery.resolver)
        """`services.forward("namespace/name", port)`: webhooks and aggregated APIs of that Service are reached at a port of
        this machine."""
        self.clients = Clients(self)
        """Ready clients of other packages."""
        if stages is not None:
            self.stages.load(stages)
        if load is not None:
            self.load(load)
            self.keep_initial()

    def _client_for(self, machinery: Machinery, user_agent: str, user: User | None = None) -> Client:
        backend = machinery.backend
        return Client(machinery.application, backend.registry, backend.clock, user_agent=user_agent, user=user)

    def _manager_for(self, machinery: Machinery, *, settled: bool) -> Manager:
        def client_for(program: str, name: str) -> Client:
            return self._client_for(machinery, f"{user_agent(program, self._settings.version)}/{name}")

        backend = machinery.backend
        settled_at = backend.store.revision if settled else None
        authority = self._serving.own_authority
        switched_on = frozenset(self._controller_names)
        context = Context(
            backend.services,
            backend.registry,
            authority,
            self._settings.version,
            switched_on,
            settled_at,
            _authority,
            DELETION_GRACE.get(self._profile, 0.0),
            self._shared,
        )
        return Manager(client_for, backend.clock, backend.store, self._controllers, context, settled_at=settled_at)

    def _prepare(self, machinery: Machinery) -> None:
        """Runs controllers and nodes on a fresh server until idle, once for all clusters with these settings."""
        if self._nodes:
            from fakekube.nodes.fleet import Nodes

            fleet = Nodes(self._client_for(machinery, user_agent("kubelet", self._settings.version)))
            for number in range(1, self._nodes + 1):
                fleet.add(f"node-{number}")
        if self._runs("storage-provisioner"):
            from fakekube.controllers.volumes.provisioner import DEFAULT_CLASS

            self._client_for(machinery, USER_AGENT).create(DEFAULT_CLASS)
        if self._runs("metrics-server"):
            self._serve_metrics(machinery)
            self._client_for(machinery, USER_AGENT).create(metrics_api.API_SERVICE)
            machinery.aggregator.wait(60.0)
        manager = self._manager_for(machinery, settled=False)
        manager.settle(timeout=60.0)
        manager.stop()

    def _serve_metrics(self, machinery: Machinery) -> None:
        """Serves metrics.k8s.io, as metrics-server does; its module is imported with the first request for it."""

        def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            from fakekube.nodes.metrics_server import application

            return application(lambda: self._runtime)(environ, start_response)

        machinery.aggregator.install(metrics_api.NAME, application, metrics_api.DISCOVERY)

    def _runs(self, name: str) -> bool:
        return name in self._controller_names

    @property
    def _runs_kubelets(self) -> bool:
        return self._runs("kubelet")

    # ---------------------------------------------------------------- requests and faults

    def _observe(self) -> Observer:
        """Installs the observer of the API and returns it."""
        if self._observer is None:
            from fakekube.powers.exchange import FAULTS_USER_AGENT
            from fakekube.powers.observation import Observer

            client = self._client_for(self._machinery, FAULTS_USER_AGENT)
            self._observer = Observer(self._machinery.backend, client, self._keep_requests)
            self._machinery.application.observer = self._observer
            self._machinery.observe_calls(self._observer.observe_call)
        return self._observer

    @property
    def requests(self) -> Requests:
        """The recorded requests and responses; see docs/powers.md."""
        return self._observe().requests

    @property
    def faults(self) -> Faults:
        """Fault injection: `faults.on("watch", "pods").gone()`; see docs/powers.md."""
        return self._observe().faults

    # ---------------------------------------------------------------- start and stop

    def start(self) -> Cluster:
        """Starts the server and the controllers; does nothing if they are running.

        With port 0, the server starts when its address is first read.
        Raises OSError if the address is not available, RuntimeError after `stop`.
        """
        with self._starting:
            if self._state is _State.STOPPED:
                raise RuntimeError("the cluster is stopped; a fork of it can be started")
            if self._state is _State.STARTED:
                return self
            if self._serving.may_fail:  # which the caller is told now
                self._serving.start()
            self._state = _State.STARTED
        self._manager.start()
        if self._runs("serviceaccount-controller"):
            self._machinery.backend.services.others_work = lambda: self._manager.works_elsewhere
        return self

    def _running_server(self) -> Server:
        """Returns the server; starts it on first use. Raises RuntimeError before `start` and after `stop`."""
        if self._serving.server is not None:
            return self._serving.server
        with self._starting:
            if self._state is not _State.STARTED:
                raise RuntimeError(f"the cluster is {self._state.value}")
            return self._serving.server or self._serving.start()

    @property
    def _served(self) -> WSGI:
        """Returns the WSGI application of the server: the API, and the control prefix if enabled."""
        control = is_loopback(self._serving.host) if self._control is None else self._control
        return Control(self._machinery, self) if control else self._machinery.application

    def stop(self) -> None:
        """Stops the server with all its streams, and the controllers. May be called twice.

        Raises AssertionError in a strict cluster if an armed fault never occurred.
        """
        with self._starting:
            self._state = _State.STOPPED
            server, self._serving.server = self._serving.server, None
        observer = self._observer
        if observer is not None:
            observer.stop()
        for one in self._recordings:
            one.stop()
        if server is not None:
            server.stop()
        self._manager.stop()
        self._machinery.close()
        self.clock.close()
        self._kubeconfigs.remove()
        if self._strict and observer is not None:
            self._strict = False
            observer.require_hits()

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._strict = self._strict and error is None  # the error of the block is what counts
        self.stop()

    @property
    def url(self) -> str:
        """The URL of the server. Raises RuntimeError before `start` and after `stop`."""
        return self._running_server().url

    @property
    def port(self) -> int:
        """The port of the server. Raises RuntimeError before `start` and after `stop`."""
        return self._running_server().port

    @property
    def host(self) -> str:
        """The host on which the server listens."""
        return self._serving.host

    @property
    def is_connected(self) -> bool:
        """Whether any client has a connection to the server."""
        server = self._serving.server
        return server is not None and server.is_connected

    @property
    def application(self) -> Any:
        """The API as a WSGI application, for another server or a test client."""
        return self._machinery.application

    @property
    def kubeconfig(self) -> Path:
        """The path of a kubeconfig file for the running server; it is deleted when the cluster stops."""
        return self._kubeconfigs.admin

    def write_kubeconfig(self, path: Path | str, *, user: str = "", groups: Iterable[str] = ()) -> None:
        """Writes a kubeconfig for the running server to a file: for an administrator, or for a user. Raises
        OSError."""
        self._kubeconfigs.write(Path(path), user, tuple(groups))

    @property
    def environment(self) -> dict[str, str]:
        """Returns the environment variables for a process that uses this cluster."""
        return {"KUBECONFIG": str(self.kubeconfig)}

    @property
    def nodes(self) -> Nodes:
        """The nodes: `add("n2", cpu=4)`, `cordon`, `taint`, `fail`, `recover`, `remove`."""
        from fakekube.nodes.fleet import Nodes

        return Nodes(self._client)

    @property
    def pods(self) -> Pods:
        """The behaviour of pods: `on(labels={"app": "web"}).run(seconds=3).exits(1)`, `.never_ready()`,
        `.image_pull_back_off()`."""
        if "pods" not in self._shared:
            from fakekube.nodes.rules import RULES, Pods

            self._shared.setdefault("pods", Pods(lambda: self._manager.ask("kubelet", RULES), self._inside))
        rules: Pods = self._shared["pods"]
        return rules

    def _inside(self, namespace: str, name: str) -> PodInside:
        from fakekube.nodes.inside import PodInside

        def pod() -> Mapping[str, Any]:
            found = self._machinery.backend.services.get("", "pods", namespace, name)
            if found is None:
                raise LookupError(f"there is no pod {namespace}/{name}")
            return found

        pod()
        return PodInside(pod, self._runtime)

    @property
    def _runtime(self) -> Runtime:
        """What runs in the containers; made when it is first needed."""
        found: Runtime | None = self._shared.get("runtime")
        if found is None:
            from fakekube.nodes.container_runtime import container_runtime

            client = self._client_for(self._machinery, user_agent("kubelet", self._settings.version))
            made = container_runtime(self._machinery.backend, client, self._shared, self._manager)
            found = self._shared.setdefault("runtime", made)
        return found

    def _kubelet_of(self, node: Object) -> Kubelet | None:
        """Returns what the API server reaches at the address of a node."""
        from fakekube.controllers.kubelets import has_kubelet

        return self._runtime if has_kubelet(node) else None

    @property
    def stages(self) -> Stages:
        """kwok's stages: `load("pod-general.yaml")`."""
        from fakekube.testing.stages import Stages

        return Stages(self._shared["stages"], self._stages_changed)

    def _stages_changed(self) -> None:
        from fakekube.nodes.rules import RULES
        from fakekube.nodes.stages.controller import RELOAD

        self._manager.ask("kwok-stage-controller", RELOAD, wake=True)
        self._manager.ask("kubelet", RULES)

    # ---------------------------------------------------------------- users

    def as_user(
        self, name: str, groups: Iterable[str] = (), uid: str = "", extra: Mapping[str, Sequence[str]] | None = None
    ) -> ObjectClient:
        """Returns a client with the methods of this cluster whose requests have another user.

        Args:
            name: the user name; "system:serviceaccount:NAMESPACE:NAME" and "system:node:NAME" get no groups by
                themselves.
            groups: the groups of the user, in addition to system:authenticated.
            uid, extra: the other fields of UserInfo.
        """
        user = with_authenticated(User(name, uid, tuple(groups), {key: tuple(values) for key, values in (extra or {}).items()}))
        return ObjectClient(self._client_for(self._machinery, USER_AGENT, user), self._store)

    def kubeconfig_for(self, name: str, groups: Iterable[str] = ()) -> Path:
        """Returns the path of a kubeconfig file for a user: with a client certificate if the server speaks TLS, else
        with a token.

        The file is deleted when the cluster stops. Raises RuntimeError before `start`.
        """
        return self._kubeconfigs.of(name, tuple(groups))

    def _add_token(self, token: str, user: str, groups: Sequence[str]) -> None:
        self._machinery.access.authenticator.static.add(token, User(user, "", tuple(groups)))

    # ---------------------------------------------------------------- waiting

    @property
    def aio(self) -> AsyncCluster:
        """The methods of this cluster as coroutines: `await cluster.aio.settle()`."""
        from fakekube.testing.asynchronous import AsyncCluster

        return AsyncCluster(self)

    def settle(self, timeout: float = 10.0, horizon: float = 0.0) -> None:
        """Waits until no controller, scheduler or kubelet has work now or due within `horizon` seconds of the clock.

        Timers of a held clock are not waited for. Raises TimeoutError, which names the busy controllers, after
        `timeout` real seconds.
        """
        end = time.monotonic() + timeout
        self._manager.settle(timeout, horizon)
        aggregator = self._machinery.aggregator
        while aggregator.working():
            if not aggregator.wait(end - time.monotonic()):
                raise TimeoutError(f"still at work after {timeout} s: {', '.join(aggregator.working())}")
            self._manager.settle(max(end - time.monotonic(), 0.0), horizon)

    def working(self, horizon: float = 0.0) -> Sequence[str]:
        """The names of the controllers that have work now or within `horizon` seconds of the clock."""
        return [*self._manager.working(horizon), *self._machinery.aggregator.working()]

    def aggregate(self, group_version: str, application: WSGI, *, timeout: float = 5.0) -> AggregatedAPI:
        """Serves an API group version by a WSGI application of this process, as kube-aggregator does by an extension
        API server: requests are authenticated and authorized first, and have the user in headers (X-Remote-User …).

        Registers an APIService, unless there is one with a Service already, and returns when the application has
        responded to GET /apis/GROUP/VERSION. It ends with the cluster, or with `remove()`; as a context manager at
        the end of the block.

        Args:
            group_version: such as `metrics.k8s.io/v1beta1`.
            application: called with the full path, in one thread for each request.
            timeout: real seconds to wait for it.

        Raises:
            ValueError: this is not a group version, or the cluster serves it itself.
            RuntimeError: the application does not respond as an API server; the text is that of the condition
                Available.
        """
        return AggregatedAPI(self._client, self._machinery.aggregator, group_version, application, timeout)

    # ---------------------------------------------------------------- powers

    def fork(self) -> Cluster:
        """Returns an independent copy, not started, with the same objects and history."""
        clock = self.clock.fork()
        twin = Cluster(
            version=self._settings.version,
            profile=self._profile,
            host=self._serving.host,
            tls=self._serving.tls,
            feature_gates=self._settings.feature_gates,
            controllers=self._controller_names,
            control=self._control,
            compaction_interval=self._compaction_interval,
            keep_requests=self._keep_requests,
            clock=clock,
            **self._flags,
            store=self._machinery.backend.store.fork(now=clock.monotonic, retention=self._retention),
        )
        twin._machinery.resolver.forwards.update(self._machinery.resolver.forwards)
        twin._machinery.aggregator.adopt(self._machinery.aggregator)
        if self._shared["stages"]:
            twin._shared["stages"].update(self._shared["stages"])
            twin._stages_changed()
        if "pods" in self._shared:
            twin.pods.adopt(self.pods)
        return twin

    def reset(self) -> None:
        """Restores the initial state (after the load of fixture or command line); revisions never decrease.

        Faults and recorded requests are cleared, recordings and replays end; the clock does not change.
        """
        for one in self._recordings:
            one.stop()
        if self._observer is not None:
            self._observer.faults.clear()
            self._observer.requests.clear()
        origin = self._machinery.origin
        assert origin is not None
        self.restore(self._initial or origin.snapshot())

    def keep_initial(self) -> None:
        """Makes the current state the initial state for `reset`."""
        self._initial = self.snapshot()

    def restart(self, cold: float = 1.0) -> None:
        """Simulates a restart: all connections drop; state and address remain.

        `cold`: seconds of the clock for which the watch cache initializes; until then watches, and lists from the
        cache, get the 429 "storage is (re)initializing".
        """
        if cold > 0:
            from fakekube.powers.actions import ColdCache

            registry = self._machinery.backend.registry
            uncached = frozenset((one.group, one.plural) for one in registry if not one.strategy.cached)
            self._observe().arm_own(ColdCache(uncached), cold)
        if self._serving.server is not None:
            self._serving.server.drop()

    @overload
    def outage(self, seconds: float) -> None: ...

    @overload
    def outage(self) -> AbstractContextManager[None]: ...

    def outage(self, seconds: float | None = None) -> AbstractContextManager[None] | None:
        """Drops all connections and accepts none for a number of seconds of the clock; it does not wait.

        Without `seconds` it is a context manager. Raises RuntimeError if the server is not started.
        """
        server = self._running_server()
        server.pause()
        if seconds is None:
            return _resuming(server)
        self.clock.call_at(self.clock.monotonic() + seconds, server.resume)
        return None


@contextmanager
def _resuming(server: Server) -> Iterator[None]:
    """Ends an outage."""
    try:
        yield
    finally:
        server.resume()


def _authority() -> Authority:
    from fakekube.server.certificates import authority

    return authority()
