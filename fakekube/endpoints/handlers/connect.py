"""Handles connect: the subresources that need a kubelet (log, exec, attach, portforward, proxy).

The options, the container, the node and its addresses are checked as in the real server. A connection to a kubelet or a
container then fails like a refused one: nothing listens on the addresses of this cluster, and nothing is dialled except
Services that are forwarded. The log of a pod without a node is empty.

Specified by: pkg/registry/core/{pod,node}/strategy.go, pkg/registry/core/pod/rest, service/storage (ResourceLocation),
pkg/kubelet/client (GetConnectionInfo), validation.ValidatePodLogOptions.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from typing import Any, NoReturn
from urllib.parse import urlencode

from fakekube.endpoints import admission, connect_options, response_writers
from fakekube.errors import FieldError, StatusError, field, status
from fakekube.golang.quoting import go_quote
from fakekube.registry.generic import reads
from fakekube.registry.options import boolean, given, int64
from fakekube.registry.request import Query, Response
from fakekube.registry.scope import Scope
from fakekube.registry.strategy import Object
from fakekube.registry.subresource import Subresource
from fakekube.validation.ip import parse_ip

__all__ = ["handle", "is_connection"]

_KUBELET_PORT = 10250
_ADDRESS_TYPES = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
_BROADCAST = ipaddress.IPv4Address("255.255.255.255")
_SCHEMES = ("", "http", "https")
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


def is_connection(subresource: Subresource) -> bool:
    """Reports whether a request is one for a connect subresource."""
    return subresource.name in _STREAMS or subresource.name in ("log", "proxy")


def handle(scope: Scope) -> Response:
    """Responds like a server whose nodes cannot be reached. Raises StatusError."""
    assert scope.subresource is not None
    if scope.subresource.name == "log":
        return _log(scope)
    if "dryRun" in scope.request.query:
        raise status.bad_request("dryRun is not supported")
    admission.connect(scope, connect_options.of(scope))
    if scope.subresource.name == "proxy":
        return _PROXIES[scope.resource.plural](scope)
    raise _stream(scope)


# ---------------------------------------------------------------- log


def _log(scope: Scope) -> Response:
    response_writers.negotiate(scope)  # the log itself is text, also if the request fails
    query = scope.request.query
    numbers = {name: given(query, name, int64) for name in ("sinceSeconds", "tailLines", "limitBytes")}
    errors = _log_errors(query, numbers)
    if errors:
        raise status.invalid("", "PodLogOptions", scope.name, errors)
    pod = reads.get(scope, "").value.object
    container = _container(pod, query.get("container") or "")
    node = pod["spec"].get("nodeName", "")
    if not node:
        return Response(204, [], b"")
    host = _kubelet(scope, node)
    flags = {name: "true" for name in ("follow", "previous", "timestamps") if boolean(query.all(name))}
    options = {**flags, **{name: number for name, number in numbers.items() if number is not None}}
    since = query.get("sinceTime")
    parameters = urlencode(sorted({**options, **({"sinceTime": since} if since else {})}.items()))
    path = f"/containerLogs/{scope.namespace}/{scope.name}/{container}"
    url = f"https://{host}{path}{'?' if parameters else ''}{parameters}"
    raise status.generic(500, "", f"Get {go_quote(url)}: {_unreachable(host)}")


def _log_errors(query: Query, numbers: dict[str, int | None]) -> list[FieldError]:
    tail, limit, since = numbers["tailLines"], numbers["limitBytes"], numbers["sinceSeconds"]
    errors = []
    if tail is not None and tail < 0:
        errors.append(field.invalid("tailLines", tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        errors.append(field.invalid("limitBytes", limit, "must be greater than 0"))
    if since is not None and query.get("sinceTime"):
        errors.append(field.forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif since is not None and since < 1:
        errors.append(field.invalid("sinceSeconds", since, "must be greater than 0"))
    if query.get("stream") is not None:
        errors.append(field.forbidden("stream", "may not be specified"))
    return errors


# ---------------------------------------------------------------- exec, attach, portforward


def _stream(scope: Scope) -> StatusError:
    assert scope.subresource is not None
    pod = reads.get(scope, "").value.object
    if _STREAMS[scope.subresource.name]:
        _container(pod, scope.request.query.get("container") or "")
    node = pod["spec"].get("nodeName", "")
    if not node:
        return status.bad_request(f"pod {scope.name} does not have a host assigned")
    host = _kubelet(scope, node)
    if "upgrade" not in scope.request.headers.get("connection", "").lower():
        return status.bad_request("Upgrade request required")
    return status.generic(500, "", f"error dialing backend: {_unreachable(host)}")


def _container(pod: Object, wanted: str) -> str:
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


# ---------------------------------------------------------------- proxy


def _pod_proxy(scope: Scope) -> NoReturn:
    _, name, port = _target(scope, "pod")
    pod = _sibling(scope, "pods", name)
    if not port:
        ports = [one["ports"][0]["containerPort"] for one in pod["spec"]["containers"] if one.get("ports")]
        port = str(ports[0]) if ports else "80"
    addresses = pod.get("status", {}).get("podIPs", ())
    if not addresses or not _is_global(addresses[0]["ip"]):
        raise status.bad_request("address not allowed")
    raise _unreachable_service(_joined(addresses[0]["ip"], port))


def _node_proxy(scope: Scope) -> NoReturn:
    _, name, port = _target(scope, "node")
    host = _kubelet(scope, name)
    hostname = host.rpartition(":")[0].strip("[]")
    if parse_ip(hostname) is None:
        raise status.bad_request(_unresolvable(hostname))
    if not _is_global(hostname):
        raise status.bad_request("address not allowed")
    raise _unreachable_service(_joined(hostname, port) if port else host)


def _service_proxy(scope: Scope) -> Response:
    scheme, name, port = _target(scope, "service")
    service = _found(scope, "services", name)
    ports = (service or {"spec": {}})["spec"].get("ports", ())
    forwarded = scope.backend.forwards.get((scope.namespace, name))
    if forwarded is not None and (service is None or any(port in (str(one["port"]), one.get("name", "")) for one in ports)):
        from fakekube.aggregator.service_proxy import ServiceLocation

        path = connect_options.path_of(scope)
        return ServiceLocation(scheme or "http", forwarded).respond(scope.request, path)
    if port.isdigit():
        if service is None:
            raise status.not_found("", "services", name)
        if all(str(one["port"]) != port for one in ports):
            raise status.service_unavailable(f'no service port {port} found for service "{name}"')
    endpoints = _sibling(scope, "endpoints", name, shown="services")
    shown = scope.name if endpoints.get("subsets") else name
    raise status.service_unavailable(f'no endpoints available for service "{shown}"')


_PROXIES: dict[str, Callable[[Scope], Response]] = {
    "pods": _pod_proxy, "nodes": _node_proxy, "services": _service_proxy,
}  # fmt: skip
#: Subresource → whether its options have a container.
_STREAMS = {"exec": True, "attach": True, "portforward": False}


def _target(scope: Scope, what: str) -> tuple[str, str, str]:
    """Splits `name`, `name:port` or `scheme:name:port` into scheme, name and port. Raises StatusError 400."""
    parts = scope.name.split(":")
    scheme, name, port = {1: ["", *parts, ""], 2: ["", *parts], 3: parts}.get(len(parts), ["", "", ""])
    if not name or scheme not in _SCHEMES:
        raise status.bad_request(f"invalid {what} request {go_quote(scope.name)}")
    return scheme, name, port


def _is_global(text: str) -> bool:
    """Reports whether an IP address is a global unicast address (net.IP.IsGlobalUnicast)."""
    address = parse_ip(text)
    if address is None or address == _BROADCAST:
        return False
    return not (address.is_loopback or address.is_multicast or address.is_link_local or address.is_unspecified)


def _unreachable_service(place: str) -> StatusError:
    return status.service_unavailable(f"error trying to reach service: {_unreachable(place)}")


# ---------------------------------------------------------------- nodes


def _kubelet(scope: Scope, node: str) -> str:
    """Returns host and port of a node's kubelet.

    Raises StatusError: 404 that names the requested resource, 500 for a node without addresses.
    """
    found = _sibling(scope, "nodes", node, shown=scope.resource.plural).get("status", {})
    addresses = {one["type"]: one["address"] for one in reversed(found.get("addresses", ()))}
    for kind in _ADDRESS_TYPES:
        if kind in addresses:
            port = found.get("daemonEndpoints", {}).get("kubeletEndpoint", {}).get("Port") or _KUBELET_PORT
            return _joined(addresses[kind], str(port))
    shown = " ".join(f"{{{one['type']} {one['address']}}}" for one in found.get("addresses", ()))
    raise status.generic(500, "", f"no preferred addresses found; known addresses: [{shown}]")


def _sibling(scope: Scope, plural: str, name: str, *, shown: str = "") -> Object:
    """Returns an object of another resource of the core group. Raises StatusError 404."""
    found = _found(scope, plural, name)
    if found is None:
        raise status.not_found("", shown or plural, name)
    return found


def _found(scope: Scope, plural: str, name: str) -> Object | None:
    resource = scope.backend.registry.get("", "v1", plural)
    assert resource is not None
    record = scope.backend.store.bucket(resource.bucket).get(resource.key(scope.namespace, name))
    return None if record is None else record.value.object


def _joined(host: str, port: str) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _unreachable(place: str) -> str:
    """Returns the error of dialling an address on which nothing listens."""
    host = place.rpartition(":")[0]
    if parse_ip(host.strip("[]")) is None:
        return f"dial tcp: {_unresolvable(host)}"
    return f"dial tcp {place}: connect: connection refused"


def _unresolvable(host: str) -> str:
    return f"lookup {host}: no such host"
