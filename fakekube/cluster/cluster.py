"""The class `Cluster`: what a test author calls.

A cluster can be used in process at once; `start` makes its server reachable, for any client in any language, and starts
its controllers. Its methods use the API, except for what no API offers: snapshots, forks, compaction and the clock.
`components` builds what runs behind it; its base classes are the parts about its server (`served`) and about the contents of the
store (`state`).

Invariant: the arguments are checked, and the API works, before `start`; the container runtime is made when it is first needed.
"""

from __future__ import annotations

import operator
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from fakekube.apimachinery.data import DEFAULT
from fakekube.apimachinery.features import FeatureGateError, emulation
from fakekube.apiserver.auth.options import OptionError
from fakekube.apiserver.options import ServerOptions, ineffective_flags
from fakekube.apiserver.registry.scope import Settings
from fakekube.apiserver.server import SEEDED_START
from fakekube.base.chance import Chance
from fakekube.base.clock import Clock
from fakekube.base.golang.net import is_loopback
from fakekube.cluster.components import Components
from fakekube.cluster.observed import ObservedCluster
from fakekube.cluster.serving import Control, Serving
from fakekube.cluster.testing.clients import Clients
from fakekube.cluster.testing.services import AggregatedAPI, ForwardedServices
from fakekube.cluster_options import ServerFlags, Source, unknown_options, wrong_types
from fakekube.net.wsgi import Application
from fakekube.powers.exchange import FAULTS_USER_AGENT
from fakekube.store import Retention

if TYPE_CHECKING:
    from fakekube.apimachinery.codecs.document import Document
    from fakekube.cluster.pool import ClusterPool
    from fakekube.cluster.testing.clients import AsyncCluster
    from fakekube.cluster.testing.manifests import Stages
    from fakekube.controllers import Idle, Manager
    from fakekube.nodes.fleet import Nodes
    from fakekube.nodes.images.image import Images
    from fakekube.nodes.rules import Pods
    from fakekube.store import Snapshot, Store


MAX_FIRST_REVISION = 1 << 128

#: The beginnings of the User-Agents of the cluster's own components.
_COMPONENTS = ("kube-", "kubelet/", FAULTS_USER_AGENT)
#: Real seconds for which a request to a cluster with a seed waits for one controller, which may wait for this very request, and
#: for all of them.
_REST_SECONDS = (2.0, 60.0)


class Cluster(ObservedCluster):
    """One cluster; a context manager that starts and stops it.

    Objects can be read and written before `start` and after `stop`; only `url`, `kubeconfig` and what else needs the
    server require a started cluster. `snapshot`, `restore` and `fork` work in every state.

    Args:
        version: the emulated minor version of Kubernetes, 1.33 to 1.37.
        profile: `cluster` runs the controllers of kube-controller-manager, a scheduler and kubelets; `apiserver` is a bare
            API server, as in envtest; `envtest` runs only the controllers that delete the content of namespaces and collect
            garbage, each one second after the deletion, so that a suite may do it first.
        host, port: where the server listens; port 0 is a free one.
        tls: whether to serve HTTPS, with a certificate of the cluster's own CA, and HTTP/2 unless `http2=False`.
        feature_gates: gates that differ from their defaults.
        controllers: which controllers run, in the syntax of --controllers of kube-controller-manager: `*` for all
            that run by default, a name, or `-name` for all but that one; by default those of the profile.
        control: whether to serve the control API, /fakekube/v1 (docs/powers.md); by default if the server listens on a
            loopback address.
        page: whether the control API also serves the page of the cluster, /fakekube/ (docs/page.md).
        compaction_interval: seconds between compactions of the history; by default 300.
        nodes: the number of initial nodes (node-1, node-2, …); by default 1 if kubelets run, else 0.
        stages: kwok's Stage files, see `Cluster.stages`.
        load: manifests, or a saved state, that the cluster starts with; `reset` returns to them.
        keep_requests: how many of the latest requests `requests` keeps; 0 records none.
        strict: whether `stop` raises AssertionError if an armed fault never occurred.
        seed: uids, generated names, allocated addresses and ports come from it, and the clock stands at a fixed time until
            the first request, so that two runs of a program that hold it make equal objects.
        first_revision: the revision from which new ones continue, up to 2^128; objects of a fresh cluster keep theirs.
        store, idle: internal, for `fork`.
        clock: the clock of the cluster; by default a new one that follows real time.
        flags: flags of kube-apiserver with underscores, such as `token_auth_file="tokens.csv"`; see `ServerFlags`.

    Raises:
        ValueError: a controller is unknown, or `first_revision` is out of range.
        LookupError: the version or the profile is unknown; the text names the known ones.
        TypeError: an argument or a flag is unknown or of another type; the text names the nearest one, or the type.
        OptionError: the value of a flag is invalid.
    """

    def __init__(
        self,
        *,
        version: str = DEFAULT,
        profile: str = "cluster",
        host: str = "127.0.0.1",
        port: int = 0,
        tls: bool = False,
        feature_gates: Mapping[str, bool] | None = None,
        controllers: str | Sequence[str] | None = None,
        control: bool | None = None,
        page: bool = True,
        compaction_interval: float | None = None,
        nodes: int | None = None,
        stages: Source | None = None,
        load: Source | None = None,
        keep_requests: int = 10_000,
        strict: bool = False,
        first_revision: int = 0,
        seed: int | None = None,
        store: Store[Document] | None = None,
        idle: Idle | None = None,
        clock: Clock | None = None,
        **flags: Unpack[ServerFlags],
    ) -> None:
        problem = unknown_options(flags) if flags else ""
        own = {"version": version, "profile": profile, "host": host, "port": port, "tls": tls, "feature_gates": feature_gates}
        own |= {"control": control, "page": page, "compaction_interval": compaction_interval, "nodes": nodes}
        own |= {"keep_requests": keep_requests, "strict": strict, "first_revision": first_revision, "seed": seed}
        if problem or (problem := wrong_types(own | flags)):
            raise TypeError(problem)
        self._control = control
        self.has_page = page and (is_loopback(host) if control is None else control)
        """Whether the server has the page, `page_url`."""
        self._flags = flags
        self._options = ServerOptions.from_flags(flags) if flags else ServerOptions()
        tls = tls or self._options.needs_tls
        for name, reason in ineffective_flags(flags, tls=tls, is_local=is_loopback(host)).items():
            raise OptionError(f"--{name.replace('_', '-')} {reason}")
        self._profile = profile
        self._chosen = {"controllers": controllers, "nodes": nodes}
        apis = self._options.apis
        try:
            emulated = emulation(version, feature_gates, apis.emulated_minor(version))
        except FeatureGateError as error:
            raise OptionError(str(error)) from None
        settings = Settings(emulated, apis.served_apis(version), service_ranges=self._options.services.ranges())
        self._feature_gates = dict(feature_gates or {})
        self._compaction_interval = compaction_interval
        self._retention = (
            Retention() if compaction_interval is None else replace(Retention(), compaction_interval=compaction_interval)
        )
        self._seed = seed
        chance = None if seed is None else Chance(seed)
        clock = clock or (Clock() if seed is None else Clock.standing_at(SEEDED_START))
        serving = Serving(host, port, tls=tls, options=self._options.serving, clock=clock)
        components = Components(
            settings=settings,
            options=self._options,
            profile=profile,
            controllers=controllers,
            nodes=nodes,
            clock=clock,
            retention=self._retention,
            tls=tls,
            authority=serving.own_authority,
            listens_on=host,
            store=store,
            idle=idle,
            chance=chance,
        )
        super().__init__(components, serving, settings, clock, keep_requests=keep_requests, strict=strict)
        self._manager = components.manager
        self._initial = None if store is None else self.snapshot()
        self.named_snapshots: dict[str, tuple[Snapshot[Document], datetime]] = {}
        """The snapshots of the control API: name → snapshot and the time when it was taken."""
        self.wrap_served: Callable[[Application], Application] | None = None
        """Returns the application that the server serves, from that of the API; read when the server starts."""
        self.pool: ClusterPool | None = None
        """The clusters beside this one, if it is that of a pool."""
        self.controlled: dict[str, Any] = {}
        """The recording and the replay of the control API."""
        if not 0 <= operator.index(first_revision) <= MAX_FIRST_REVISION:
            raise ValueError(f"first_revision is {first_revision}, not from 0 to 2^128")
        if first_revision:
            self._machinery.backend.store.skip(first_revision)
        self.services = ForwardedServices(self._machinery.resolver)
        """`services.forward("namespace/name", port)`: the API server reaches webhooks and aggregated APIs of that Service at a
        port of this machine."""
        if stages is not None:
            self.stages.load(stages)
        if load is not None:
            self.load(load)
            self.keep_initial()
        if chance is not None:
            chance.before_request = partial(_begin_request, clock, weakref.proxy(self._manager))

    @property
    def has_control(self) -> bool:
        """Whether the server serves the control API."""
        return is_loopback(self._serving.host) if self._control is None else self._control

    @property
    def _served(self) -> Application:
        """The API, and the control API if it is enabled."""
        served: Application = Control(self._machinery, self) if self.has_control else self._machinery.application
        return served if self.wrap_served is None else self.wrap_served(served)

    def serve_page(self, port: int = 0) -> str:
        """Serves the page and the control API at a port of the loopback address over plain HTTP, and returns its address.

        A browser does not know the CA of a cluster with TLS, and the control API of a cluster that listens elsewhere is closed;
        here the page works in both cases. The address has the token that every request without credentials needs. The Kubernetes
        API is not served there.

        Args:
            port: 0 is a free one.

        Raises OSError if the port is taken, and RuntimeError before `start` and after `stop`.
        """
        from fakekube.net import Server

        self._running_server()
        control = Control(self._machinery, self, is_alone=True)
        server = Server(control, "127.0.0.1", port, clock=self.clock)
        server.start()
        self._other_servers.append(server)
        return f"{server.url}/fakekube/?token={self.page_token}"

    @property
    def options(self) -> dict[str, Any]:
        """The arguments with which a fresh cluster is made that is like this one; with port 0 in place of a given port."""
        return {
            "version": self._settings.version,
            "profile": self._profile,
            "host": self._serving.host,
            "tls": self._serving.tls,
            "feature_gates": self._feature_gates,
            **self._chosen,
            "control": self._control,
            "page": self.has_page,
            "compaction_interval": self._compaction_interval,
            "keep_requests": self._keep_requests,
            "strict": self._strict,
            "seed": self._seed,
            **self._flags,
        }

    @property
    def clients(self) -> Clients:
        """Configured clients of other packages: `clients.kubernetes()`."""
        return Clients(self)

    @property
    def nodes(self) -> Nodes:
        """The nodes: `add("n2", cpu=4)`, `cordon`, `taint`, `fail`, `recover`, `remove`."""
        from fakekube.nodes.fleet import Nodes

        return Nodes(self._client)

    @property
    def pods(self) -> Pods:
        """Rules for the behaviour of pods, `on(labels={"app": "web"}).run(seconds=3).exits(1)`, and the inside of running ones,
        `get("web-0").exec("ls /")`; see docs/nodes.md and docs/pods.md."""
        return self._components.pods

    @property
    def revision(self) -> int:
        """The resourceVersion of the last write; while it is the same, all reads return the same."""
        return self._machinery.backend.store.revision

    @property
    def pace(self) -> float:
        """The seconds of the clock that a kubelet takes before it starts a new pod, before it looks at the programs that it has
        started, and before it removes a deleted pod, and for which deleted definitions are to be seen as terminating. Twenty
        times as long the contents of a deleted namespace stay, so that a client that deletes a namespace and then objects in
        it finds them. A fifth of it passes between the two writes of a client's deletion without a grace period
        (`deletionTimestamp`, then gone), as of a pod without a node.

        With 0, the default, it acts at once, so that a client may not see a pod before it is ready. It also acts at once while
        the clock is held. With another value it also records the events of the containers of unknown images. `fakekube serve`
        has 0.05 (`--pace`).
        """
        return self._components.pace

    @pace.setter
    def pace(self, seconds: float) -> None:
        self._components.pace = seconds

    @property
    def network_policies(self) -> bool:
        """Whether NetworkPolicies decide which pods reach each other, as with a network plugin that implements them.

        By default they do not, as in kind before 0.24 and in minikube. `fakekube serve --network-policies` sets it.
        """
        return self._components.network_policies

    @network_policies.setter
    def network_policies(self, enforced: bool) -> None:
        self._components.network_policies = enforced

    @property
    def images(self) -> Images:
        """The images of containers: `cluster.images["ghcr.io/me/app"] = Image(…)`; see docs/images.md."""
        return self._components.images

    @property
    def stages(self) -> Stages:
        """kwok's stages: `load("pod-general.yaml")`; see docs/nodes.md."""
        from fakekube.cluster.testing.manifests import Stages

        return Stages(self._components.stages, self._components.stages_changed)

    # --- Waiting ------------------------------------------------------------------------------------------------------

    @property
    def aio(self) -> AsyncCluster:
        """The methods of this cluster as coroutines: `await cluster.aio.settle()`."""
        from fakekube.cluster.testing.clients import AsyncCluster

        return AsyncCluster(self)

    def settle(self, timeout: float = 10.0, horizon: float = 0.0) -> None:
        """Waits until no controller, scheduler or kubelet has work.

        Timers that are due later do not count, nor do those of a held clock.

        Args:
            timeout: real seconds.
            horizon: also waits for work that becomes due within this number of seconds of the clock.

        Raises TimeoutError, which names the controllers that have work, after `timeout`.
        """
        end, horizon = time.monotonic() + timeout, max(horizon, self.pace)
        self._manager.settle(timeout, horizon)
        if self._machinery.definitions.waits and not self._machinery.definitions.wait(end - time.monotonic()):
            raise TimeoutError(f"definitions are still being deleted after {timeout} s")
        aggregator = self._machinery.aggregator
        while aggregator.working():
            if not aggregator.wait(end - time.monotonic()):
                raise TimeoutError(f"these still have work after {timeout} s: {', '.join(aggregator.working())}")
            self._manager.settle(max(end - time.monotonic(), 0.0), horizon)

    def working(self, horizon: float = 0.0) -> Sequence[str]:
        """Returns the names of the controllers that have work now or within `horizon` seconds of the clock."""
        return [*self._manager.working(max(horizon, self.pace)), *self._machinery.aggregator.working()]

    def aggregate(self, group_version: str, application: Application, *, timeout: float = 5.0) -> AggregatedAPI:
        """Serves an API group version with a WSGI application of this process in the place of an extension API server.

        Requests are authenticated and authorized first, and carry the user in headers (X-Remote-User …), as those of
        kube-aggregator. Registers an APIService, unless there is one with a Service already, and returns when the application
        has responded to GET /apis/GROUP/VERSION. The API is served until the cluster stops, `remove()` is called on the
        result, or the `with` block of the result ends.

        Args:
            group_version: such as `metrics.k8s.io/v1beta1`.
            application: called with the full path, in one thread for each request.
            timeout: real seconds to wait for the response.

        Raises:
            ValueError: `group_version` is not a group version, or the cluster serves it itself.
            RuntimeError: the application does not respond as an API server; the text is the message of the condition
                Available.
        """
        return AggregatedAPI(self._client, self._machinery.aggregator, group_version, application, timeout)

    @contextmanager
    def _pause_controllers(self) -> Iterator[None]:
        with suppress(TimeoutError):
            self.settle()  # pods need the accounts of their namespaces
        with self._manager.pause():
            yield

    # --- Powers -------------------------------------------------------------------------------------------------------

    def fork(self, *, seed: int | None = None) -> Cluster:
        """Returns an independent copy with the same objects, history, revision, time and arguments, not started.

        Forwarded Services, aggregated APIs, stages and rules for pods are copied; armed faults, recorded requests,
        snapshots of the control API and tokens of users are not. With port 0 in place of a given port.
        May be called before `start` and after `stop`.

        Args:
            seed: that of the copy; by default that of this cluster.
        """
        idle = self._manager.idle()  # before the state of the store is taken
        clock = self.clock.fork()
        store = self._machinery.backend.store.fork(now=clock.monotonic, retention=self._retention)
        controllers = self._components.controller_names
        options = {**self.options, "controllers": controllers, "nodes": None, "clock": clock, "store": store, "idle": idle}
        if seed is not None:
            options["seed"] = seed
        twin = Cluster(**options)
        twin._components.adopt(self._components)
        return twin

    def stop(self) -> None:
        """Stops the server with all its streams, the controllers, recordings and timers, and deletes kubeconfig files.

        May be called before `start`, and twice. The clusters of its pool stop as well. Raises AssertionError if the cluster is
        strict and an armed fault never occurred; the cluster is stopped nevertheless.
        """
        if self.pool is not None:
            self.pool.stop()
        super().stop()

    def reset(self) -> None:
        """Restores the initial state: that of a fresh cluster after its argument `load`, or that of a fork at the time of `fork`.

        Revisions never decrease, and watches end with 410 Gone. Faults and recorded requests are cleared, recordings and
        replays end; the clock does not change.
        """
        for one in self._recordings:
            one.stop()
        if self._observer is not None:
            self._observer.faults.clear()
            self._observer.requests.clear()
        origin = self._machinery.origin
        assert origin is not None
        self._machinery.backend.store.restore(self._initial or origin.snapshot())
        self._note_replacement("reset", "to the initial state")

    def keep_initial(self) -> None:
        """Makes the current state the initial state for `reset`."""
        self._initial = self.snapshot()

    def restart(self, cold: float = 1.0) -> None:
        """Simulates a restart of the API server: all connections drop; objects and address remain.

        Args:
            cold: seconds of the clock for which the watch cache initializes; until then watches, and lists from the cache,
                get the 429 "storage is (re)initializing".
        """
        if cold > 0:
            from fakekube.powers.fault_actions import ColdCache

            registry = self._machinery.backend.registry
            uncached = frozenset((one.group, one.plural) for one in registry if not one.strategy.cached)
            self._observe().arm_own(ColdCache(uncached), cold)
        if self._serving.server is not None:
            self._serving.server.drop()
        self._did("restart", f"the watch cache is cold for {cold:g} s")


def _begin_request(clock: Clock, manager: Manager, agent: str) -> None:
    """Prepares a cluster with a seed for a request.

    Its clock runs from the first request of a user on. While it is held, the controllers come to rest before each of them, so
    that what they make of the requests before does not depend on how fast they are.
    """
    if agent.startswith(_COMPONENTS):
        return
    clock.begin()
    if clock.held and manager.runs_in_another_thread:
        manager.rest(*_REST_SECONDS)
