"""The container runtime of a cluster: implements `kubelet_api.Kubelet` for the pods of all nodes.

It is created by the first request for the inside of a pod. Pods are read from the store; the files, logs and programs of a pod
are kept in a `Sandbox`, by uid, until the pod is deleted.

Invariant: a `Container` is one run of a container, which is determined by the status of the pod.

Specified by: pkg/kubelet/kubelet_pods.go (GetKubeletContainerLogs, GetExec, GetAttach, GetPortForward).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from fakekube.apis.well_known import KUBELET_PORT
from fakekube.base.clock import Clock
from fakekube.base.objects import StoredObject
from fakekube.controllers.client import ApiError, Client
from fakekube.net.streaming.kubelet_api import (
    Connection,
    Destination,
    Execution,
    KubeletError,
    LogOptions,
    PortForwardError,
    Streams,
)
from fakekube.net.streams import Stream
from fakekube.nodes.images.image import DEFAULT, Images
from fakekube.nodes.pod_status import is_meant_to_end, status_of
from fakekube.nodes.runtime.behaviour import NOTHING, Behaviour
from fakekube.nodes.runtime.container import Container
from fakekube.nodes.runtime.filesystem import FileSystem
from fakekube.nodes.runtime.image_files import node_root
from fakekube.nodes.runtime.listeners import Peer
from fakekube.nodes.runtime.logs import LogStream, read_log
from fakekube.nodes.runtime.network import Routes
from fakekube.nodes.runtime.resources import add_node_cgroups
from fakekube.nodes.runtime.sandbox import Sandbox, run_of
from fakekube.nodes.runtime.sessions import attach, exec_handler, exec_program

if TYPE_CHECKING:
    from fakekube.apiserver.registry.scope import Backend
    from fakekube.nodes.runtime.network_policies import NetworkPolicies

#: The lists of containers in a pod's spec.
_CONTAINER_FIELDS: Final = ("containers", "initContainers", "ephemeralContainers")


class Runtime:
    """The containers of a cluster.

    Args:
        backend: the backend of the cluster.
        client: requests tokens, as kubelets do.
        behaviour: returns the behaviour that tests have set for a container of a pod.
        on_exit: called with pod, container and exit code when a main program ends that determines the end of its container;
            with None if the shell does not have the program.
        images: the images of the cluster.
        enforces_policies: reports whether NetworkPolicies are in force.
        credential: returns the key and the certificates of a source of a pod's volume, by uid, volume and index.
        terminations: returns the numbers of terminations of containers, by node, type, exit code and reason.
    """

    def __init__(
        self,
        backend: Backend,
        client: Client,
        behaviour: Callable[[StoredObject, StoredObject], Behaviour] | None = None,
        on_exit: Callable[[StoredObject, Container, int | None], None] | None = None,
        images: Images | None = None,
        *,
        enforces_policies: Callable[[], bool] = lambda: False,
        credential: Callable[[str, str, int], tuple[bytes, bytes]] = lambda _uid, _volume, _index: (b"", b""),
        terminations: Callable[[], Mapping[tuple[str, str, int, str], int]] = dict,
    ) -> None:
        self.cluster = backend.services
        self._client = client
        self.images = DEFAULT if images is None else images
        self.routes = Routes(self)
        self.clock: Clock = backend.clock
        self._behaviour = behaviour or (lambda _pod, _container: NOTHING)
        self._on_exit = on_exit
        self._enforces_policies = enforces_policies
        self.credential = credential
        self.terminations = terminations
        self._lock = threading.RLock()
        self._sandboxes: dict[str, Sandbox] = {}
        self._node_files: dict[str, FileSystem] = {}
        self._bucket = backend.store.bucket("pods")
        self._watches_pods = False

    # --- Pods and containers ------------------------------------------------------------------------------------------

    def sandbox(self, pod: StoredObject) -> Sandbox:
        """Returns the sandbox of a pod; creates it on first use."""
        uid = pod["metadata"]["uid"]
        with self._lock:
            found = self._sandboxes.get(uid)
            if found is None:
                self._close_gone_sandboxes()
                found = self._sandboxes[uid] = Sandbox(pod, self)
                if not self._watches_pods:
                    self._watches_pods = True
                    self._bucket.subscribe(self._on_pods_changed)
        return found

    def stop(self) -> None:
        """Ends the programs of all pods when the cluster stops."""
        with self._lock:
            for sandbox in list(self._sandboxes.values()):  # a writer may remove one meanwhile
                sandbox.stop()

    def find_sandbox(self, uid: str) -> Sandbox | None:
        """Returns the sandbox of a pod; None if nothing has run in it."""
        return self._sandboxes.get(uid)

    def _close_gone_sandboxes(self) -> None:
        """Closes the sandboxes of deleted pods."""
        for uid, one in list(self._sandboxes.items()):
            if one.is_gone:
                one.close()
                self._sandboxes.pop(uid, None)

    def _on_pods_changed(self) -> None:
        """Ends containers whose runs have ended, and forgets deleted pods. Called by the store, in the thread of the writer."""
        for uid, one in list(self._sandboxes.items()):
            if not one.catch_up():
                self._sandboxes.pop(uid, None)

    def container(self, pod: StoredObject, name: str, *, previous: bool = False) -> Container:
        """Returns the current run of a container, or the previous one. Raises KubeletError if there is none."""
        spec = next((one for kind in _CONTAINER_FIELDS for one in pod["spec"].get(kind) or () if one["name"] == name), None)
        status = status_of(pod, name)
        metadata = pod["metadata"]
        if spec is None or status is None:
            raise KubeletError(404, f'container not found ("{name}")')
        run = run_of(status, previous=previous)
        if run is None:
            what = "previous terminated container" if previous else "container"
            raise KubeletError(400, f'{what} "{name}" in pod "{metadata["name"]}" not found')
        return self.sandbox(pod).container(spec, run)

    def node_files(self, node: str) -> FileSystem:
        """Returns the files of a node, which hostPath volumes mount, or with "" those of all nodes; made on first use."""
        with self._lock:
            found = self._node_files.get(node)
            if found is None:
                found = self._node_files[node] = node_root(node, self.clock.now().timestamp())
                add_node_cgroups(found, lambda: self._pods_on(node))
        return found

    def _pods_on(self, node: str) -> list[StoredObject]:
        """Returns the pods on a node in which something has run."""
        with self._lock:
            pods = [one.pod for one in list(self._sandboxes.values())]
        return [pod for pod in pods if pod["spec"].get("nodeName") == node]

    def behaviour_of(self, pod: StoredObject, container: StoredObject) -> Behaviour:
        """Returns the behaviour that tests have set for a container."""
        return self._behaviour(pod, container)

    def consumption_of(self, pod: StoredObject, container: StoredObject, resource: str) -> float:
        """Returns what the programs of a container use of a resource in addition to its usage."""
        sandbox = self._sandboxes.get(pod["metadata"]["uid"])
        return 0.0 if sandbox is None else sandbox.consumption(container["name"], resource)

    def request_token(self, pod: StoredObject, audience: str, seconds: int) -> str:
        """Requests a token for the service account of a pod; returns "" if the request fails."""
        metadata = pod["metadata"]
        reference = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}
        spec = {"audiences": [audience] if audience else [], "expirationSeconds": seconds, "boundObjectRef": reference}
        account = pod["spec"].get("serviceAccountName") or "default"
        path = f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{account}/token"
        body = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": spec}
        try:
            return str(self._client.call("POST", path, body)["status"]["token"])
        except ApiError:
            return ""

    def on_program_exit(self, pod: StoredObject, container: Container, code: int | None) -> None:
        """Called when a main program has ended, or with None if the shell does not have it; calls `on_exit` if it determines
        the end of its container."""
        decides = container.behaviour().follows_command
        if decides is None:
            decides = bool(container.spec.get("stdin")) or container.main.is_server
            decides = decides or self.images.runs(container.spec, ends=is_meant_to_end(pod))
        if decides and self._on_exit is not None:
            self._on_exit(pod, container, code)

    # --- kubelet_api.Kubelet ------------------------------------------------------------------------------------------

    def container_logs(self, pod: StoredObject, container: str, options: LogOptions) -> Stream | bytes:
        """See `kubelet_api.Kubelet`."""
        found = self.container(pod, container, previous=options.previous)
        found.main.catch_up()
        if not options.follow:
            return read_log(found.log, options, self.clock.now())
        found.main.follow()
        return LogStream(found.log, options, self.clock, found.main.unfollow)

    def exec(self, pod: StoredObject, container: str, command: Sequence[str], streams: Streams) -> Execution:
        """See `kubelet_api.Kubelet`."""
        found = self._require_running(pod, container)
        found.main.catch_up()
        handler = found.behaviour().exec
        if handler is not None:
            return exec_handler(handler, found, command, streams)
        return exec_program(found, command, streams)

    def attach(self, pod: StoredObject, container: str, streams: Streams) -> Execution:
        """See `kubelet_api.Kubelet`."""
        found = self._require_running(pod, container)
        handler = found.behaviour().attach
        if handler is not None:
            return exec_handler(handler, found, (), streams)
        return attach(found, streams)

    def _require_running(self, pod: StoredObject, name: str) -> Container:
        """Returns the current run of a container that has not ended. Raises KubeletError."""
        found = self.container(pod, name)
        if not found.is_running:
            raise KubeletError(500, f'container not found ("{name}")')
        return found

    def port_forward(self, pod: StoredObject, port: int) -> Connection:
        """See `kubelet_api.Kubelet`."""
        from fakekube.apiserver.endpoints.connection_info import sandbox_of

        sandbox = self.sandbox(pod)
        if sandbox.is_gone:
            raise PortForwardError(f'network namespace for sandbox "{sandbox_of(pod)}" is closed')
        try:
            return sandbox.connect(port)
        except OSError:
            raise PortForwardError(
                f'failed to connect to localhost:{port} inside namespace "{sandbox_of(pod)}", '
                f"IPv4: dial tcp4 127.0.0.1:{port}: connect: connection refused "
                f"IPv6 dial tcp6: address localhost: no suitable address found "
            ) from None

    def connect(self, pod: StoredObject, port: int, peer: Peer | None = None) -> Connection:
        """Connects to a port of a pod. Raises OSError."""
        return self.sandbox(pod).connect(port, peer)

    def listens(self, pod: StoredObject, port: int, protocol: str) -> bool:
        """Reports whether a program of a pod listens at a port."""
        return self.sandbox(pod).listens(port, protocol)

    def send(self, pod: StoredObject, port: int, data: bytes, peer: Peer) -> bytes | None:
        """Sends a datagram to a port of a pod. Returns the response; None if there is none. Raises OSError."""
        return self.sandbox(pod).send(port, data, peer)

    def bridge(self, namespace: str, name: str, port: int) -> tuple[str, int] | None:
        """Returns an address of this machine that leads to an endpoint of a Service's port; None if nothing listens there."""
        try:
            target = self.routes.service(namespace, name, port)
        except OSError:
            return None
        return self.sandbox(target.pod).bridge(target.port)

    def policies(self) -> NetworkPolicies | None:
        """See `network.PodNetworks`."""
        if not self._enforces_policies():
            return None
        from fakekube.nodes.runtime.network_policies import NetworkPolicies

        return NetworkPolicies(self.cluster)

    def connect_api_server(self) -> Connection:
        """Connects to the API server, which serves TLS."""
        from fakekube.net.certificates import credentials
        from fakekube.nodes.runtime.ports import serve
        from fakekube.nodes.runtime.tls import secure

        return secure(lambda _certificate: serve(self._client.application), credentials().context)

    def connect_node(self, node: StoredObject, port: int) -> Connection:
        """Connects to the kubelet of a node, which serves TLS, or to its kube-proxy."""
        from fakekube.nodes.runtime.ports import serve

        if port != KUBELET_PORT:
            from fakekube.nodes.runtime.kube_proxy import KubeProxy, ServiceHealth

            service = self.routes.find_health_checked(port)
            if service is not None:
                return serve(ServiceHealth(service, lambda: self.routes.count_local_endpoints(service, node["metadata"]["name"])))
            return serve(KubeProxy(port, node, self.clock))
        from fakekube.net.certificates import credentials
        from fakekube.nodes.runtime.kubelet_server import KubeletPort, KubeletServer
        from fakekube.nodes.runtime.tls import secure

        name = node["metadata"]["name"]
        return secure(
            lambda _certificate: serve(KubeletPort(name, self._client, KubeletServer(name, self))), credentials().context
        )

    def call_api_server(self, path: str, token: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Sends a request with a token to the API server: GET, or POST of a JSON document. Returns status and body."""
        from fakekube.nodes.runtime.ports import environ_of

        started: list[str] = []
        headers = [("authorization", f"Bearer {token}"), ("accept", "*/*")]
        if body is not None:
            headers.append(("content-type", "application/json"))
        environ = environ_of("GET" if body is None else "POST", path, "HTTP/1.1", headers, body or b"")
        response = self._client.application(environ, lambda line, found, error=None: started.append(line))
        return int(started[0].partition(" ")[0]), b"".join(response)

    def pod_destination(self, pod: StoredObject, port: int) -> Destination | None:
        """See `kubelet_api.Kubelet`."""
        return self.sandbox(pod).destination(port)

    def node_destination(self, node: StoredObject) -> Destination | None:
        """See `kubelet_api.Kubelet`."""
        from fakekube.nodes.runtime.kubelet_server import KubeletServer

        return KubeletServer(node["metadata"]["name"], self)
