"""The network between containers: names, addresses and ports inside the cluster.

Names resolve as with cluster DNS. A connection to the address of a pod or a Service is served by the server of the pod's port
(`ports`); no connection leaves the cluster.

Specified by: the specification of DNS-based service discovery for Kubernetes; pkg/proxy.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from fakekube.apis.rest.cluster_access import ClusterAccess
from fakekube.apis.validation.ip import parse_ip
from fakekube.net.streaming.kubelet_api import Connection
from fakekube.nodes.runtime.filesystem import oserror

__all__ = ["Network", "NoSuchHost", "endpoints_of"]

Object = Mapping[str, Any]

DOMAIN: Final = "cluster.local"


class NoSuchHost(OSError):
    """A name does not resolve."""


class Network:
    """The network of one pod.

    Args:
        pod: returns the pod.
        cluster: access to Services, EndpointSlices and pods.
        connect_pod: connects to a port of a pod; raises OSError.
    """

    def __init__(
        self, pod: Callable[[], Object], cluster: ClusterAccess, connect_pod: Callable[[Object, int], Connection], listeners: Any
    ) -> None:
        self._pod, self._cluster, self._connect_pod = pod, cluster, connect_pod
        self.listeners = listeners
        """Port → functions that connect to a program that listens there."""

    def own_address(self) -> str:
        """Returns the address of the pod."""
        return str((self._pod().get("status") or {}).get("podIP") or "127.0.0.1")

    def connect(self, host: str, port: int) -> Connection:
        """Connects to a name or an address. Raises OSError, NoSuchHost."""
        for address in self.resolve(host):
            return self._connect_address(address, port)
        raise NoSuchHost(-2, "Name or service not known", host)

    # ------------------------------------------------------------ names

    def resolve(self, name: str) -> list[str]:
        """Returns the addresses of a name; none if it does not exist."""
        if parse_ip(name) is not None:
            return [name]
        pod = self._pod()
        if name in ("localhost", "localhost.localdomain"):
            return ["127.0.0.1"]
        if name == (pod["spec"].get("hostname") or pod["metadata"]["name"]):
            return [self.own_address()]
        for alias in pod["spec"].get("hostAliases") or ():
            if name in (alias.get("hostnames") or ()):
                return [alias["ip"]]
        return self._in_cluster(name.rstrip("."), pod["metadata"]["namespace"])

    def full_name(self, name: str) -> str:
        """Returns the fully qualified name of a Service's name."""
        parts = name.rstrip(".").removesuffix(f".{DOMAIN}").removesuffix(".svc").split(".")
        namespace = parts[1] if len(parts) > 1 else self._pod()["metadata"]["namespace"]
        return f"{parts[0]}.{namespace}.svc.{DOMAIN}"

    def _in_cluster(self, name: str, namespace: str) -> list[str]:
        short = name.removesuffix(f".{DOMAIN}").removesuffix(".svc")
        parts = short.split(".")
        for candidate in ((parts[0], parts[1]) if len(parts) == 2 else None, (short, namespace) if len(parts) == 1 else None):
            if candidate is not None and (found := self._cluster.get("", "services", candidate[1], candidate[0])) is not None:
                return self._addresses_of(found)
        if len(parts) in (2, 3):  # a pod of a headless Service
            service, where = parts[1], parts[2] if len(parts) == 3 else namespace
            if self._cluster.get("", "services", where, service) is not None:
                return [
                    address
                    for one in self._endpoints(service, where)
                    if one.get("hostname") == parts[0]
                    for address in one["addresses"]
                ]
        if len(parts) == 3 and parts[2] == "pod":
            return [parts[0].replace("-", ".")]
        return []

    def _addresses_of(self, service: Object) -> list[str]:
        spec, metadata = service["spec"], service["metadata"]
        if spec.get("type") == "ExternalName":
            return self.resolve(spec["externalName"])
        if spec.get("clusterIP") not in (None, "", "None"):
            return [spec["clusterIP"]]
        return [
            address
            for one in self._endpoints(metadata["name"], metadata["namespace"])
            if (one.get("conditions") or {}).get("ready") is not False
            for address in one["addresses"]
        ]

    def _endpoints(self, service: str, namespace: str) -> Iterator[Object]:
        for piece in endpoints_of(self._cluster, service, namespace):
            yield from piece.get("endpoints") or ()

    # ------------------------------------------------------------ addresses

    def _connect_address(self, address: str, port: int) -> Connection:
        if address.startswith("127.") or address == self.own_address():
            return self._connect_pod(self._pod(), port)
        pod = self._pod_at(address)
        if pod is not None:
            return self._connect_pod(pod, port)
        for service in self._cluster.list("", "services"):
            if address in (service["spec"].get("clusterIPs") or [service["spec"].get("clusterIP")]):
                return self._connect_service(service, port)
        raise oserror(errno.EHOSTUNREACH, address)

    def _pod_at(self, address: str) -> dict[str, Any] | None:
        """Returns the running pod with this address; None if there is none."""
        for pod in self._cluster.list("", "pods"):
            status = pod.get("status") or {}
            if status.get("podIP") == address and status.get("phase") == "Running" and not pod["spec"].get("hostNetwork"):
                return pod
        return None

    def _connect_service(self, service: Object, port: int) -> Connection:
        wanted = next((one for one in service["spec"].get("ports") or () if one["port"] == port), None)
        metadata = service["metadata"]
        if wanted is None:
            raise oserror(errno.ECONNREFUSED, metadata["name"])
        for piece in endpoints_of(self._cluster, metadata["name"], metadata["namespace"]):
            for target in piece.get("ports") or ():
                if (target.get("name") or "") != (wanted.get("name") or ""):
                    continue
                for one in piece.get("endpoints") or ():
                    reference = one.get("targetRef") or {}
                    if (one.get("conditions") or {}).get("ready") is False:
                        continue
                    if reference.get("kind") == "Pod":
                        found = self._cluster.get("", "pods", metadata["namespace"], reference["name"])
                    else:
                        found = self._pod_at(one["addresses"][0])
                    if found is not None:
                        return self._connect_pod(found, target["port"])
        raise oserror(errno.ECONNREFUSED, metadata["name"])


def endpoints_of(cluster: ClusterAccess, service: str, namespace: str) -> Iterator[Object]:
    """Yields the EndpointSlices of a Service."""
    for piece in cluster.list("discovery.k8s.io", "endpointslices", namespace):
        if (piece["metadata"].get("labels") or {}).get("kubernetes.io/service-name") == service:
            yield piece
