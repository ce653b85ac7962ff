"""The components behind a cluster: API server, controller manager, kubelets and the container runtime.

`Components` builds them for the profile and the controllers of a cluster, and prepares the state in which a fresh cluster
starts (nodes registered, controllers idle). What users call is in `cluster`.

Invariant: nothing here starts a thread or a socket; controllers run after `manager.start()` or in `manager.settle()`.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from fakekube.apiserver.http.nonresource_paths import user_agent
from fakekube.apiserver.server import build
from fakekube.base.objects import Object
from fakekube.controllers import DELETION_GRACE, PROFILES, Context, Idle, Manager, select_controllers
from fakekube.controllers.client import Client
from fakekube.controllers.manager import PREPARATION_TIMEOUT
from fakekube.nodes import metrics_api
from fakekube.nodes.controller_descriptors import NODE_CONTROLLERS
from fakekube.nodes.node_state import NodeState

if TYPE_CHECKING:
    from fakekube.apimachinery.codecs.document import Document
    from fakekube.apiserver.endpoints.request import User
    from fakekube.apiserver.options import ServerOptions
    from fakekube.apiserver.registry.scope import Settings
    from fakekube.apiserver.server import Machinery
    from fakekube.base.chance import Chance
    from fakekube.base.clock import Clock
    from fakekube.net.certificates import Authority
    from fakekube.net.streaming.kubelet_api import Kubelet
    from fakekube.nodes.images.image import Images
    from fakekube.nodes.rules import PodInside, Pods
    from fakekube.nodes.runtime.runtime import Runtime
    from fakekube.nodes.stages.stage import Stage
    from fakekube.store import Retention, Store


#: The maximum number of initial nodes: that for which Kubernetes is made.
MAX_NODES: Final = 5000
USER_AGENT = "fakekube"
"""The user agent of requests that test authors make through a `Cluster`."""


class Components:
    """The components of one cluster.

    Args:
        settings, options: version, feature gates and flags of the API server.
        profile: a key of `controllers.PROFILES`.
        controllers: which controllers run, in the syntax of --controllers; by default those of the profile.
        nodes: the number of initial nodes; by default 1 if kubelets run, else 0.
        clock: of the cluster.
        retention: how long the store keeps its history.
        tls, authority: whether the API server uses TLS, and the CA certificate (PEM) if so.
        store: the state to continue from, for a fork; by default that of a fresh cluster.
        chance: that of a cluster with a seed.
        idle: when the controllers of the origin of a fork had nothing to do; None if that is not known.

    Raises ValueError for an unknown controller or number of nodes, LookupError for an unknown profile or version, and OptionError
    for invalid flags.
    """

    def __init__(
        self,
        *,
        settings: Settings,
        options: ServerOptions,
        profile: str,
        controllers: str | Sequence[str] | None,
        nodes: int | None,
        clock: Clock,
        retention: Retention,
        tls: bool,
        authority: str,
        listens_on: str,
        store: Store[Document] | None,
        idle: Idle | None,
        chance: Chance | None,
    ) -> None:
        if profile not in PROFILES:
            raise LookupError(f"the profile {profile!r} is not known; known: {', '.join(PROFILES)}")
        switches = PROFILES[profile] if controllers is None else controllers
        self._controllers = select_controllers(switches.split(",") if isinstance(switches, str) else switches, NODE_CONTROLLERS)
        self.controller_names = tuple([row.name for row in self._controllers])
        self._profile, self._settings, self._authority = profile, settings, authority
        runs_kubelets = self._runs("kubelet")
        if nodes is not None and not 0 <= nodes <= MAX_NODES:
            raise ValueError(f"nodes is {nodes}, not from 0 to {MAX_NODES}")
        self.initial_nodes = int(runs_kubelets) if nodes is None else nodes
        """The number of nodes with which a fresh cluster starts."""
        me: Any = weakref.proxy(self)
        self._me = me  # for what the machinery refers to: see `apiserver.server`
        self._node_state = NodeState(lambda: me.runtime, seeded=chance is not None)
        self._lock = threading.Lock()
        """Held while something of the state of the nodes is made that is made on first use."""
        self.machinery = build(
            clock=clock,
            settings=settings,
            profile=profile,
            retention=retention,
            store=store,
            prepare=self._prepare if self._controllers or self.initial_nodes else None,
            tls=tls,
            controllers=self.controller_names,
            nodes=self.initial_nodes,
            options=options,
            authority=authority,
            listens_on=listens_on,
            chance=chance,
        )
        self.machinery.backend.services.components = partial(_components, self.controller_names)
        if runs_kubelets:
            self.machinery.backend.kubelet_of = partial(Components._kubelet_of, me)
            self.machinery.resolver.route = partial(Components._route, me)
        if self._has_api_server_endpoints:
            from fakekube.nodes.addresses import API_SERVER_ENDPOINTS

            for one in API_SERVER_ENDPOINTS:
                self.machinery.add_default_object(one)
        if self._runs("metrics-server"):
            self._serve_metrics(self.machinery)
        self.manager = self._manager_for(self.machinery, Idle(self.machinery.backend.store.revision) if store is None else idle)

    def client(self, agent: str = USER_AGENT, user: User | None = None) -> Client:
        """Returns a client of the API in the same process.

        Args:
            agent: the value of User-Agent.
            user: the user of its requests; by default an administrator.
        """
        return _client_for(self.machinery, agent, user)

    def start(self) -> None:
        """Starts the controllers."""
        self.manager.start()
        if self._runs("serviceaccount-controller"):
            self.machinery.backend.services.others_work = lambda: self.manager.runs_in_another_thread

    def stop(self) -> None:
        """Stops the controllers and the programs of pods, closes connections to webhooks and extension API servers. May be called
        twice."""
        self.manager.stop()
        if self._node_state.made_runtime is not None:
            self._node_state.made_runtime.stop()
        self.machinery.backend.services.others_work = lambda: False
        self.machinery.close()

    def adopt(self, origin: Components) -> None:
        """Takes over what the store of `origin` does not hold: forwarded Services, aggregated APIs, stages, rules for pods."""
        self.machinery.resolver.forwards.update(origin.machinery.resolver.forwards)
        self.machinery.aggregator.adopt(origin.machinery.aggregator)
        if origin.stages:
            self.stages.update(origin.stages)
            self.stages_changed()
        self.pace = origin.pace
        self.network_policies = origin.network_policies
        if origin._node_state.images is not None:
            self.images.update(origin.images)
            self.images.missing.extend(origin.images.missing)
        if origin._node_state.rules is not None:
            self.pods.adopt(origin.pods)

    # --- Kubelets -----------------------------------------------------------------------------------------------------

    @property
    def stages(self) -> dict[str, Stage]:
        """kwok's stages by name."""
        return self._node_state.stages

    def stages_changed(self) -> None:
        """Has the controllers that use stages read them again."""
        from fakekube.nodes.rules import RULES
        from fakekube.nodes.stages.controller import RELOAD

        self.manager.enqueue("kwok-stage-controller", RELOAD, start=True)
        self.manager.enqueue("kubelet", RULES)

    @property
    def pods(self) -> Pods:
        """The rules for the behaviour of pods; made on first use."""
        with self._lock:
            if self._node_state.rules is None:
                from fakekube.nodes.rules import RULES, Pods

                self._node_state.rules = Pods(lambda: self.manager.enqueue("kubelet", RULES), self._pod_inside)
            return self._node_state.rules

    @property
    def runtime(self) -> Runtime:
        """The container runtime; made on first use."""
        with self._lock:
            if self._node_state.made_runtime is None:
                from fakekube.nodes.container_runtime import container_runtime

                client = self.client(user_agent("kubelet", self._settings.version))
                made = container_runtime(self.machinery.backend, client, self._node_state, self.manager)
                self._node_state.made_runtime = made
            return self._node_state.made_runtime

    @property
    def pace(self) -> float:
        """See `Cluster.pace`."""
        return self.machinery.backend.services.pace

    @pace.setter
    def pace(self, seconds: float) -> None:
        self.machinery.backend.services.pace = seconds

    @property
    def network_policies(self) -> bool:
        """See `Cluster.network_policies`."""
        return self._node_state.network_policies

    @network_policies.setter
    def network_policies(self, enforced: bool) -> None:
        self._node_state.network_policies = enforced

    @property
    def images(self) -> Images:
        """The images of containers; made on first use."""
        with self._lock:
            if self._node_state.images is None:
                from fakekube.nodes.images.image import Images
                from fakekube.nodes.rules import RULES

                self._node_state.images = Images(lambda: self.manager.enqueue("kubelet", RULES))
                if self._node_state.made_runtime is not None:
                    self._node_state.made_runtime.images = self._node_state.images
            return self._node_state.images

    def _pod_inside(self, namespace: str, name: str) -> PodInside:
        """Returns the inside of a pod. Raises LookupError if there is no such pod."""
        from fakekube.nodes.rules import PodInside

        def pod() -> Mapping[str, Any]:
            found = self.machinery.backend.services.get("", "pods", namespace, name)
            if found is None:
                raise LookupError(f"there is no pod {namespace}/{name}")
            return found

        pod()
        return PodInside(pod, self.runtime)

    def _kubelet_of(self, node: Object) -> Kubelet | None:
        """Returns the kubelet that the API server reaches at the address of a node; None if nothing answers there."""
        from fakekube.controllers.node_lifecycle import has_kubelet

        return self.runtime if has_kubelet(node) else None

    def _route(self, namespace: str, name: str, port: int) -> tuple[str, int] | None:
        """Returns an address of this machine that leads to a pod of a Service; None if it has none that listens."""
        return self.runtime.bridge(namespace, name, port)

    # --- Construction -------------------------------------------------------------------------------------------------

    def _runs(self, name: str) -> bool:
        return name in self.controller_names

    @property
    def _has_api_server_endpoints(self) -> bool:
        """Whether pods reach the API server, which then has Endpoints."""
        return self._profile == "cluster" and self._runs("kubelet")

    def _manager_for(self, machinery: Machinery, idle: Idle | None) -> Manager:
        """Returns the controller manager.

        Args:
            machinery: whose API the controllers use.
            idle: when the controllers had nothing to do; None if that is not known.
        """

        version, backend = self._settings.version, machinery.backend

        def client_for(program: str, name: str) -> Client:
            return _client_for(machinery, f"{user_agent(program, version)}/{name}")

        context = Context(
            backend.services,
            backend.registry,
            self._authority,
            version,
            frozenset(self.controller_names),
            None if idle is None else idle.revision,
            _authority,
            DELETION_GRACE.get(self._profile, 0.0),
            self._node_state,
            itertools.count(backend.store.revision),
        )
        return Manager(client_for, backend.clock, backend.store, self._controllers, context, idle=idle)

    def _prepare(self, machinery: Machinery) -> None:
        """Runs controllers and nodes on a fresh API server until they are idle; once for all clusters with these settings."""
        if self.initial_nodes:
            from fakekube.nodes.fleet import Nodes

            fleet = Nodes(_client_for(machinery, user_agent("kubelet", self._settings.version)))
            for number in range(1, self.initial_nodes + 1):
                fleet.add(f"node-{number}")
        if self._has_api_server_endpoints:
            from fakekube.nodes.addresses import API_SERVER_ENDPOINTS

            for one in API_SERVER_ENDPOINTS:
                _client_for(machinery, user_agent("kube-apiserver", self._settings.version)).create(one)
        if self._runs("storage-provisioner"):
            from fakekube.controllers.volumes.controller import DEFAULT_CLASS

            _client_for(machinery, USER_AGENT).create(DEFAULT_CLASS)
        if self._runs("metrics-server"):
            self._serve_metrics(machinery)
            _client_for(machinery, USER_AGENT).create(metrics_api.API_SERVICE)
            machinery.aggregator.wait(60.0)
        manager = self._manager_for(machinery, None)
        manager.settle(timeout=PREPARATION_TIMEOUT + self.initial_nodes)
        manager.stop()

    def _serve_metrics(self, machinery: Machinery) -> None:
        """Serves metrics.k8s.io, as metrics-server does; its module is imported for the first request."""

        me = self._me

        def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            from fakekube.nodes.metrics_server import application

            return application(lambda: me.runtime)(environ, start_response)

        machinery.aggregator.install(metrics_api.NAME, application, metrics_api.DISCOVERY)


def _client_for(machinery: Machinery, agent: str, user: User | None = None) -> Client:
    backend = machinery.backend
    return Client(machinery.application, backend.registry, backend.clock, user_agent=agent, user=user)


#: Component status → a controller that runs only if the component does.
_COMPONENTS: Final = {"scheduler": "kube-scheduler", "controller-manager": "replicaset-controller"}


def _components(controllers: Sequence[str]) -> list[str]:
    """Returns the names of the component statuses that are healthy where these controllers run."""
    return [component for component, controller in _COMPONENTS.items() if controller in controllers]


def _authority() -> Authority:
    """Returns the CA of the process."""
    from fakekube.net.certificates import authority

    return authority()
