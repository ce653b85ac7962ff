"""The network between containers: names, addresses and ports inside the cluster.

A connection to the address of a pod, a Service or a node is served by a port of a pod (`sandbox`); no connection leaves the
cluster. Traffic for a Service goes to its endpoints that are ready, in turn, or with session affinity to the one of before.

Invariant: what a client in a pod, the API server, a probe and port-forward reach at a port is the same.

Specified by: pkg/proxy (iptables/proxier.go, topology.go), pkg/kubelet/network/dns, resolv.conf(5).
"""

from __future__ import annotations

import errno
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol

from fakekube.apis.rest.cluster_access import ClusterAccess
from fakekube.apis.validation.ip import parse_ip
from fakekube.apis.well_known import KUBELET_PORT
from fakekube.base.clock import Clock
from fakekube.base.objects import StoredObject
from fakekube.net.streaming.kubelet_api import Connection
from fakekube.nodes.runtime.dns import DOMAIN, Record, Resolver, endpoints_of, lookup, resolver_of
from fakekube.nodes.runtime.filesystem import oserror
from fakekube.nodes.runtime.listeners import Listeners, Peer
from fakekube.nodes.runtime.network_policies import NetworkPolicies

#: The first and the last of the ports from which connections come (net.ipv4.ip_local_port_range).
_FIRST_PORT, _LAST_PORT = 32_768, 60_999
#: The ports of kube-proxy on a node: its health, and the mode of its proxier, which is on loopback only.
PROXY_HEALTH_PORT: Final = 10256
PROXY_STATUS_PORT: Final = 10249
_NODE_PORTS: Final = frozenset({KUBELET_PORT, PROXY_HEALTH_PORT, PROXY_STATUS_PORT})


#: Labels of Services and EndpointSlices that kube-proxy ignores (LabelServiceProxyName, IsHeadlessService).
_NOT_PROXIED: Final = frozenset({"service.kubernetes.io/service-proxy-name", "service.kubernetes.io/headless"})


class PodNetworks(Protocol):
    """What the network uses of the container runtime."""

    @property
    def cluster(self) -> ClusterAccess:
        """Access to Services, EndpointSlices, nodes and pods."""

    @property
    def clock(self) -> Clock:
        """The clock of the cluster."""

    @property
    def routes(self) -> Routes:
        """The routes of the cluster."""

    def listens(self, pod: StoredObject, port: int, protocol: str) -> bool:
        """Reports whether a program of a pod listens at a port."""

    def connect(self, pod: StoredObject, port: int, peer: Peer | None = None) -> Connection:
        """Connects to a port of a pod. Raises OSError."""

    def send(self, pod: StoredObject, port: int, data: bytes, peer: Peer) -> bytes | None:
        """Sends a datagram to a port of a pod. Returns its answer. Raises OSError."""

    def connect_api_server(self) -> Connection:
        """Connects to the API server."""

    def connect_node(self, node: StoredObject, port: int) -> Connection:
        """Connects to the kubelet or the kube-proxy of a node."""

    def policies(self) -> NetworkPolicies | None:
        """Returns the NetworkPolicies that are in force; None if none are."""


class NoSuchHost(OSError):
    """A name does not resolve."""


class Target(NamedTuple):
    """A port of a pod."""

    pod: StoredObject
    port: int


class Routes:
    """Finds the pods behind addresses of pods, Services and nodes, for one cluster.

    Args:
        runtime: the container runtime.
    """

    def __init__(self, runtime: PodNetworks) -> None:
        self._runtime = runtime
        self._cluster: ClusterAccess = runtime.cluster
        self._lock = threading.Lock()
        self._turns: dict[tuple[str, int], int] = {}
        """Uid of a Service and port → the number of the endpoint that had the last connection."""
        self._affinities: dict[tuple[str, str], tuple[str, float]] = {}
        """Uid of a Service and address of a client → address of its endpoint, and the time until which it applies."""
        self._last_port = _FIRST_PORT

    def peer(self, pod: StoredObject) -> Peer:
        """Returns the source of a connection from a pod: its address with the next port."""
        with self._lock:
            self._last_port = self._last_port + 1 if self._last_port < _LAST_PORT else _FIRST_PORT
            return Peer(address_of(pod), self._last_port)

    def target(self, client: StoredObject | None, address: str, port: int, protocol: str = "TCP") -> Target | None:
        """Returns the port of a pod that an address and a port lead to; None if it is the API server.

        Args:
            client: the pod that connects; None for the API server.
            address: of a pod, a Service or a node.
            port: the port.
            protocol: TCP or UDP.

        Raises:
            OSError: nothing listens there.
        """
        if client is not None and (_is_loopback(address) or address == address_of(client)):
            return self._at_loopback(client, address, port, protocol)
        for service in self._proxied_services():
            if address in _addresses_of(service):
                is_local = client is not None and service["spec"].get("internalTrafficPolicy") == "Local"
                node_name = client["spec"].get("nodeName") if client is not None and is_local else None
                return self._endpoint_of(service, client, port, protocol, field="port", node=node_name)
        node = self.node_at(address)
        if node is not None:
            return self._at_node(node, client, address, port, protocol)
        for pod in self._running_pods_at(address):
            return Target(pod, port)
        raise oserror(errno.EHOSTUNREACH, address)

    def _at_loopback(self, client: StoredObject, address: str, port: int, protocol: str) -> Target | None:
        """Returns what a port of the client itself leads to, or of its node if it is in the network of the node."""
        if not client["spec"].get("hostNetwork"):
            return Target(client, port)
        node = self._cluster.get("", "nodes", "", client["spec"].get("nodeName", ""))
        if node is None or self._runtime.listens(client, port, protocol):
            return Target(client, port)
        return self._at_node(node, client, address, port, protocol)

    # --- Services -----------------------------------------------------------------------------------------------------

    def _proxied_services(self) -> Iterator[StoredObject]:
        """Yields the Services that kube-proxy implements: those without labels that leave them to others."""
        for service in self._cluster.list("", "services"):
            if _NOT_PROXIED.isdisjoint(service["metadata"].get("labels") or ()):
                yield service

    def _endpoint_of(
        self, service: StoredObject, client: StoredObject | None, port: int, protocol: str, *, field: str, node: str | None
    ) -> Target | None:
        """Returns an endpoint of a port of a Service; None for the API server. Raises OSError.

        Args:
            service: the Service.
            client: the pod that connects; None for the API server.
            port: one of its ports, or a node port.
            protocol: TCP or UDP.
            field: `port` or `nodePort`.
            node: the node whose endpoints are meant; None for all.
        """
        metadata = service["metadata"]
        wanted = next(
            (
                one
                for one in service["spec"].get("ports") or ()
                if one.get(field) == port and one.get("protocol", "TCP") == protocol
            ),
            None,
        )
        if wanted is None:
            raise oserror(errno.ECONNREFUSED, metadata["name"])
        if (metadata["namespace"], metadata["name"]) == ("default", "kubernetes"):
            return None
        found = list(self._endpoints(service, wanted, client, node))
        if not found:
            raise oserror(errno.ECONNREFUSED, metadata["name"])
        return self._pod_at(*self._choose_endpoint(service, port, client, found))

    def _endpoints(
        self, service: StoredObject, wanted: StoredObject, client: StoredObject | None, node: str | None
    ) -> Iterator[tuple[str, int]]:
        """Yields address and port of the endpoints that traffic goes to: those that are ready, else terminating ones that
        serve."""
        metadata = service["metadata"]
        ready, serving = list[tuple[str, int]](), list[tuple[str, int]]()
        for piece in endpoints_of(self._cluster, metadata["name"], metadata["namespace"]):
            if client is not None and not _NOT_PROXIED.isdisjoint(piece["metadata"].get("labels") or ()):
                continue
            numbers = [target["port"] for target in piece.get("ports") or () if _is_port_of(target, wanted)]
            for number, one in itertools.product(numbers, piece.get("endpoints") or ()):
                if node is not None and one.get("nodeName") != node:
                    continue
                conditions = one.get("conditions") or {}
                if conditions.get("ready") is not False:
                    ready.append((one["addresses"][0], number))
                elif conditions.get("serving") and conditions.get("terminating"):
                    serving.append((one["addresses"][0], number))
        yield from ready or serving

    def _choose_endpoint(
        self, service: StoredObject, port: int, client: StoredObject | None, found: list[tuple[str, int]]
    ) -> tuple[str, int]:
        """Returns the endpoint for a new connection: the next one in turn, or, with session affinity, that of the client."""
        uid, now = service["metadata"]["uid"], self._runtime.clock.monotonic()
        with self._lock:
            if service["spec"].get("sessionAffinity") != "ClientIP" or client is None:
                return self._take_turn(uid, port, found)
            key = (uid, address_of(client))
            address, until = self._affinities.get(key, ("", 0.0))
            chosen = next((one for one in found if one[0] == address and now < until), None) or self._take_turn(uid, port, found)
            seconds = service["spec"]["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
            self._affinities[key] = (chosen[0], now + seconds)
            return chosen

    def _take_turn(self, uid: str, port: int, found: list[tuple[str, int]]) -> tuple[str, int]:
        turn = self._turns[uid, port] = self._turns.get((uid, port), -1) + 1
        return found[turn % len(found)]

    def service(self, namespace: str, name: str, port: int) -> Target:
        """Returns an endpoint of a Service's port, for the API server. Raises OSError if there is none."""
        service = self._cluster.get("", "services", namespace, name)
        found = None if service is None else self._endpoint_of(service, None, port, "TCP", field="port", node=None)
        if found is None:
            raise oserror(errno.ECONNREFUSED, name)
        return found

    def _pod_at(self, address: str, port: int) -> Target:
        """Returns the running pod with an address, in the network of the pods or of the nodes."""
        for pod in self._running_pods_at(address):
            if not pod["spec"].get("hostNetwork") or self._runtime.listens(pod, port, "TCP"):
                return Target(pod, port)
        raise oserror(errno.EHOSTUNREACH, address)

    def _running_pods_at(self, address: str) -> Iterator[StoredObject]:
        """Yields the running pods with an address: several are in the network of one node."""
        for pod in self._cluster.list("", "pods"):
            status = pod.get("status") or {}
            if status.get("phase") == "Running" and any(one["ip"] == address for one in status.get("podIPs") or ()):
                yield pod

    # --- Nodes --------------------------------------------------------------------------------------------------------

    def find_health_checked(self, port: int) -> StoredObject | None:
        """Returns the Service whose local endpoints kube-proxy tells at a port of each node; None if there is none."""
        return next((one for one in self._proxied_services() if one["spec"].get("healthCheckNodePort") == port), None)

    def count_local_endpoints(self, service: StoredObject, node: str) -> int:
        """Returns the number of endpoints of a Service on a node that are ready."""
        metadata = service["metadata"]
        pieces = endpoints_of(self._cluster, metadata["name"], metadata["namespace"])
        endpoints = [one for piece in pieces for one in piece.get("endpoints") or () if one.get("nodeName") == node]
        return len({one["addresses"][0] for one in endpoints if (one.get("conditions") or {}).get("ready") is not False})

    def node_at(self, address: str) -> StoredObject | None:
        """Returns the node with an address; None if there is none."""
        for node in self._cluster.list("", "nodes"):
            for one in (node.get("status") or {}).get("addresses") or ():
                if one["address"] == address and one["type"] in ("InternalIP", "ExternalIP"):
                    return node
        return None

    def node_for(self, client: StoredObject, address: str) -> StoredObject | None:
        """Returns the node with an address, which is the client's own on loopback if it shares the node's network."""
        if not _is_loopback(address):
            return self.node_at(address)
        if not client["spec"].get("hostNetwork"):
            return None
        return self._cluster.get("", "nodes", "", client["spec"].get("nodeName", ""))

    def _at_node(self, node: StoredObject, client: StoredObject | None, address: str, port: int, protocol: str) -> Target | None:
        """Returns what a port of a node leads to: a pod in its network, a hostPort, or a node port."""
        name = node["metadata"]["name"]
        for pod in self._cluster.list("", "pods"):
            if pod["spec"].get("nodeName") != name or (pod.get("status") or {}).get("phase") != "Running":
                continue
            if pod["spec"].get("hostNetwork"):
                if self._runtime.listens(pod, port, protocol):
                    return Target(pod, port)
                continue
            for container in pod["spec"]["containers"]:
                for one in container.get("ports") or ():
                    same = one.get("hostPort") == port and one.get("protocol", "TCP") == protocol
                    if same and one.get("hostIP") in (None, "", "0.0.0.0", "::", address):
                        return Target(pod, one["containerPort"])
        for service in self._proxied_services():
            for one in service["spec"].get("ports") or ():
                if one.get("nodePort") == port and one.get("protocol", "TCP") == protocol:
                    # what a pod sends to its own node is neither internal nor external
                    is_own = client is not None and client["spec"].get("nodeName") == name
                    is_local = service["spec"].get("externalTrafficPolicy") == "Local" and not is_own
                    return self._endpoint_of(service, client, port, protocol, field="nodePort", node=name if is_local else None)
        raise oserror(errno.ECONNREFUSED, address)


def _is_loopback(address: str) -> bool:
    return address.startswith("127.") or address == "::1"


def address_of(pod: StoredObject) -> str:
    """Returns the address of a pod."""
    return str((pod.get("status") or {}).get("podIP") or "127.0.0.1")


def _addresses_of(service: StoredObject) -> list[str]:
    """Returns the addresses at which nodes accept traffic for a Service."""
    spec = service["spec"]
    balancer = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    found = [*(spec.get("clusterIPs") or [spec.get("clusterIP")]), *(spec.get("externalIPs") or ())]
    return [one for one in [*found, *(one.get("ip") for one in balancer)] if one not in (None, "", "None")]


class Network:
    """The network of one pod.

    Args:
        pod: returns the pod.
        runtime: the container runtime.
    """

    def __init__(self, pod: Callable[[], StoredObject], runtime: PodNetworks) -> None:
        self._pod, self._runtime = pod, runtime
        self.listeners = Listeners()
        """The ports at which programs of the pod listen."""

    def own_address(self) -> str:
        """Returns the address of the pod."""
        return address_of(self._pod())

    def connect(self, host: str, port: int) -> Connection:
        """Connects to an address, or to the first one of a name. Raises OSError, NoSuchHost."""
        pod, address, routes = self._pod(), self._require_address(host), self._runtime.routes
        is_of_node = port in _NODE_PORTS or routes.find_health_checked(port) is not None
        node = routes.node_for(pod, address) if is_of_node else None
        if node is not None and (port != PROXY_STATUS_PORT or _is_loopback(address)):
            return self._runtime.connect_node(node, port)
        target = routes.target(pod, address, port)
        self._check_policies(pod, target, address, port, "TCP")
        if target is None:
            return self._runtime.connect_api_server()
        return self._runtime.connect(target.pod, target.port, routes.peer(pod))

    def send(self, host: str, port: int, data: bytes) -> bytes | None:
        """Sends a datagram to an address, or to the first one of a name. Returns the response; None if there is none.

        Raises OSError, NoSuchHost.
        """
        pod, address, routes = self._pod(), self._require_address(host), self._runtime.routes
        target = routes.target(pod, address, port, "UDP")
        self._check_policies(pod, target, address, port, "UDP")
        if target is None:
            raise oserror(errno.ECONNREFUSED, host)
        return self._runtime.send(target.pod, target.port, data, routes.peer(pod))

    def _check_policies(self, pod: StoredObject, target: Target | None, address: str, port: int, protocol: str) -> None:
        """Raises an OSError, as after a timeout, if NetworkPolicies are in force and do not allow a connection."""
        policies = self._runtime.policies()
        if policies is None:
            return
        if target is None:
            allowed = policies.allow_address(pod, address, port, protocol)
        else:
            allowed = policies.allow(pod, target.pod, target.port, protocol)
        if not allowed:
            raise oserror(errno.ETIMEDOUT, address)

    def _require_address(self, host: str) -> str:
        """Returns the first address of a name. Raises NoSuchHost."""
        found = self.resolve(host)
        if not found:
            raise NoSuchHost(-2, "Name or service not known", host)
        return found[0]

    # --- Names --------------------------------------------------------------------------------------------------------

    def resolve(self, name: str) -> list[str]:
        """Returns the addresses of a name; none if it does not exist."""
        if parse_ip(name) is not None:
            return [name]
        return self.hosts(name) or [one.data for one in self.lookup(name, "A", search=True) if one.type in ("A", "AAAA")]

    def hosts(self, name: str) -> list[str]:
        """Returns the addresses of a name in /etc/hosts."""
        pod = self._pod()
        if name in ("localhost", "localhost.localdomain"):
            return ["127.0.0.1"]
        hostname = pod["spec"].get("hostname") or pod["metadata"]["name"]
        names = [hostname]
        if pod["spec"].get("subdomain"):
            names.append(f"{hostname}.{pod['spec']['subdomain']}.{pod['metadata']['namespace']}.svc.{DOMAIN}")
        if name in names:
            return [self.own_address()]
        for alias in pod["spec"].get("hostAliases") or ():
            if name in (alias.get("hostnames") or ()):
                return [alias["ip"]]
        return []

    def resolver(self) -> Resolver:
        """Returns the resolver of the pod."""
        return resolver_of(self._pod(), self._runtime.cluster.service_ranges.dns_address)

    def lookup(self, name: str, kind: str, *, search: bool = True) -> list[Record]:
        """Returns the records of a name.

        Args:
            name: the name; with a final dot, it is fully qualified.
            kind: one of A, AAAA, CNAME, SRV or PTR.
            search: whether the search list applies.
        """
        full = name.rstrip(".")
        candidates = [full]
        if search and not name.endswith("."):
            candidates = [f"{full}.{domain}" for domain in self.resolver().searches]
            candidates.insert(0 if full.count(".") >= 5 else len(candidates), full)
        for candidate in candidates:
            found = lookup(self._runtime.cluster, candidate, kind)
            if found is not None:
                return found
        return []

    def full_name(self, name: str) -> str:
        """Returns the fully qualified name of a Service's name."""
        parts = name.rstrip(".").removesuffix(f".{DOMAIN}").removesuffix(".svc").split(".")
        namespace = parts[1] if len(parts) > 1 else self._pod()["metadata"]["namespace"]
        return f"{parts[0]}.{namespace}.svc.{DOMAIN}"


def _is_port_of(target: StoredObject, wanted: StoredObject) -> bool:
    """Reports whether a port of an EndpointSlice is that of a port of a Service: they have the same name and protocol."""
    has_same_name = (target.get("name") or "") == (wanted.get("name") or "")
    return has_same_name and (target.get("protocol") or "TCP") == wanted.get("protocol", "TCP")
