"""Finds where a connect request goes: the container of a pod, the node of the pod, the kubelet of the node.

An address on which nothing listens is answered like a refused connection; no connection is opened.

Specified by: pkg/registry/core/pod/strategy.go (validateContainer, streamLocation); pkg/kubelet/client (GetConnectionInfo).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from fakekube.apimachinery.errors import status
from fakekube.apis.rest.strategy import Object
from fakekube.apis.validation.ip import parse_ip
from fakekube.apiserver.registry.generic import reads
from fakekube.apiserver.registry.scope import Scope
from fakekube.net.streaming.kubelet_api import Kubelet

_KUBELET_PORT = 10250
_ADDRESS_TYPES = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


@dataclass(slots=True, frozen=True)
class ConnectionInfo:
    """A kubelet as the API server knows it."""

    node: Object
    host: str
    """With the port."""
    kubelet: Kubelet | None
    """None if nothing listens at the address."""

    def url(self, path: str, parameters: Sequence[tuple[str, str]]) -> str:
        """Returns the URL of a request to the kubelet."""
        query = urlencode(sorted(parameters, key=lambda one: one[0]))
        return f"https://{self.host}{path}{'?' if query else ''}{query}"


def pod_of(scope: Scope) -> Object:
    """Returns the pod of a request. Raises StatusError 404."""
    return reads.get(scope, "").value.object


def container_of(pod: Object, wanted: str) -> str:
    """Returns the name of the container, or of the only one if none is given. Raises StatusError 400."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    names = [container["name"] for container in _containers(spec)]
    if wanted:
        if wanted not in names:
            raise status.bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    if len(spec["containers"]) == 1:
        return str(spec["containers"][0]["name"])
    raise status.bad_request(f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]")


def _containers(spec: Object) -> Iterator[Any]:
    for kind in _CONTAINERS:
        yield from spec.get(kind, ())


def connection_info(scope: Scope, name: str) -> ConnectionInfo:
    """Returns the kubelet of a node.

    Raises StatusError: 404 that names the requested resource, 500 for a node without addresses.
    """
    node = find(scope, "nodes", name)
    if node is None:
        raise status.not_found("", scope.resource.plural, name)
    found = node.get("status", {})
    addresses = {one["type"]: one["address"] for one in reversed(found.get("addresses", ()))}
    for kind in _ADDRESS_TYPES:
        if kind in addresses:
            port = found.get("daemonEndpoints", {}).get("kubeletEndpoint", {}).get("Port") or _KUBELET_PORT
            return ConnectionInfo(node, joined(addresses[kind], str(port)), scope.backend.kubelet_of(node))
    shown = " ".join(f"{{{one['type']} {one['address']}}}" for one in found.get("addresses", ()))
    raise status.generic(500, "", f"no preferred addresses found; known addresses: [{shown}]")


def find(scope: Scope, plural: str, name: str) -> Object | None:
    """Returns an object of another resource of the core group."""
    resource = scope.backend.registry.get("", "v1", plural)
    assert resource is not None
    record = scope.backend.store.bucket(resource.bucket).get(resource.key(scope.namespace, name))
    return None if record is None else record.value.object


def joined(host: str, port: str) -> str:
    """Returns host and port as one text."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def refused(place: str) -> str:
    """Returns the error of dialling an address on which nothing listens."""
    host = place.rpartition(":")[0]
    if parse_ip(host.strip("[]")) is None:
        return f"dial tcp: {unresolvable(host)}"
    return f"dial tcp {place}: connect: connection refused"


def unresolvable(host: str) -> str:
    """Returns the error of a name that has no address."""
    return f"lookup {host}: no such host"
