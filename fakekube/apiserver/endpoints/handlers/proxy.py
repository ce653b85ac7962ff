"""Handles pods/proxy, services/proxy and nodes/proxy: finds what answers, and passes the request on.

Specified by: pkg/registry/core/pod/strategy.go and pkg/registry/core/node/strategy.go (ResourceLocation);
pkg/registry/core/service/storage/storage.go (ResourceLocation); apimachinery pkg/util/net (SplitSchemeNamePort).
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Callable, Iterator

from fakekube.apimachinery.errors import StatusError, status
from fakekube.apis.validation.ip import parse_ip
from fakekube.apis.well_known import LABEL_SERVICE_NAME
from fakekube.apiserver.endpoints.connection_info import (
    connection_info,
    find,
    format_refused_dial,
    join_host_port,
    path_of,
    unresolvable,
)
from fakekube.apiserver.endpoints.request import Response
from fakekube.apiserver.registry.scope import Scope
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import Object
from fakekube.net.streaming.kubelet_api import Destination

_BROADCAST = ipaddress.IPv4Address("255.255.255.255")
_SCHEMES = ("", "http", "https")
_LARGEST_PORT = 65535
_NAMED_PORTS = {"": 80, "http": 80, "https": 443}


def handle(scope: Scope) -> Response:
    """Responds with the answer of the server behind. Raises StatusError."""
    return _PROXIES[scope.resource.plural](scope)


def _pod(scope: Scope) -> Response:
    scheme, name, port = _target(scope, "pod")
    pod = _get_core_object(scope, "pods", name)
    if not port:
        ports = [one["ports"][0]["containerPort"] for one in pod["spec"]["containers"] if one.get("ports")]
        port = str(ports[0]) if ports else ""
    addresses = (pod.get("status") or {}).get("podIPs") or ()
    if not addresses or not _is_global(addresses[0]["ip"]):
        raise status.bad_request("address not allowed")
    return _to_pod(scope, scheme, pod, addresses[0]["ip"], port)


def _to_pod(scope: Scope, scheme: str, pod: Object, address: str, port: str) -> Response:
    """Passes a request on to a port of a pod."""
    number = _port_number(port, scheme)
    host = join_host_port(address, port) if port else address
    destination = _pod_destination(scope, pod, number)
    if destination is None:
        raise _unreachable(join_host_port(address, str(number)))
    return _proxy_request(scope, scheme, host, destination)


def _pod_destination(scope: Scope, pod: Object, port: int) -> Destination | None:
    node = find(scope, "nodes", pod["spec"].get("nodeName") or "")
    kubelet = scope.backend.kubelet_of(node) if node is not None else None
    return kubelet.pod_destination(pod, port) if kubelet is not None else None


def _node(scope: Scope) -> Response:
    scheme, name, port = _target(scope, "node")
    info = connection_info(scope, name)
    hostname, _, kubelet_port = info.host.rpartition(":")
    hostname = hostname.strip("[]")
    if parse_ip(hostname) is None:
        if info.kubelet is None:
            raise status.bad_request(unresolvable(hostname))
    elif not _is_global(hostname):
        raise status.bad_request("address not allowed")
    destination = None
    if info.kubelet is not None and port in ("", kubelet_port):
        destination = info.kubelet.node_destination(info.node)
    host = join_host_port(hostname, port) if port else info.host
    if destination is None:
        raise _unreachable(host)
    return _proxy_request(scope, "https" if port in ("", kubelet_port) else scheme, host, destination)


def _service(scope: Scope) -> Response:
    scheme, name, port = _target(scope, "service")
    service = find(scope, "services", name)
    ports = (service or {"spec": {}})["spec"].get("ports", ())
    forwarded = scope.backend.forwards.get((scope.namespace, name))
    if forwarded is not None and (service is None or any(port in (str(one["port"]), one.get("name", "")) for one in ports)):
        return _proxy_request(scope, scheme, join_host_port(forwarded[0], str(forwarded[1])), forwarded)
    if port.isdigit():
        if service is None:
            raise status.not_found("", "services", name)
        names = [one.get("name", "") for one in ports if str(one["port"]) == port]
        if not names:
            raise status.service_unavailable(f'no service port {port} found for service "{name}"')
        port = names[0]
    candidates, shown = _find_candidates(scope, name, port)
    found = list(_of_pods(scope, candidates))
    if found:
        pod, address, number = random.choice(found)  # any will do
        return _to_pod(scope, scheme, pod, address, str(number))
    raise status.service_unavailable(f'no endpoints available for service "{shown}"')


#: The first minor that finds the pods of a Service in its EndpointSlices; older ones read its Endpoints.
_SLICES_SINCE = 37

_Candidate = tuple[Object, str, int]
"""The reference to a pod, an address, and the number of the port."""


def _find_candidates(scope: Scope, name: str, port: str) -> tuple[Iterator[_Candidate], str]:
    """Returns the addresses of a Service for the port of this name, and how messages name the Service if none is a pod's.

    Raises StatusError 404 for a Service without Endpoints, before EndpointSlices were read.
    """
    if scope.resource.emulation.minor >= _SLICES_SINCE:
        return _in_slices(scope, name, port), name
    endpoints = find(scope, "endpoints", name)
    if endpoints is None:
        raise status.not_found("", "services", name)
    return _in_endpoints(endpoints, port), scope.name if endpoints.get("subsets") else name


def _in_endpoints(endpoints: Object, port: str) -> Iterator[_Candidate]:
    for subset in endpoints.get("subsets") or ():
        numbers = [one["port"] for one in subset.get("ports") or () if one.get("name", "") == port]
        for address in subset.get("addresses") or () if numbers else ():
            yield address.get("targetRef") or {}, address["ip"], numbers[0]


def _in_slices(scope: Scope, service: str, port: str) -> Iterator[_Candidate]:
    for one in scope.backend.services.list("discovery.k8s.io", "endpointslices", scope.namespace):
        if (one["metadata"].get("labels") or {}).get(LABEL_SERVICE_NAME) != service:
            continue
        numbers = [each["port"] for each in one.get("ports") or () if each.get("name") == port and each.get("port") is not None]
        for endpoint in one.get("endpoints") or () if numbers else ():
            if (endpoint.get("conditions") or {}).get("ready", True):
                yield endpoint.get("targetRef") or {}, endpoint["addresses"][0], numbers[0]


def _of_pods(scope: Scope, candidates: Iterator[_Candidate]) -> Iterator[tuple[Object, str, int]]:
    """Iterates over the candidates that are addresses of pods: pod, address and number of the port."""
    for reference, address, number in candidates:
        if reference.get("namespace") != scope.namespace:
            continue
        pod = find(scope, "pods", reference.get("name", ""))
        addresses = [one["ip"] for one in ((pod or {}).get("status") or {}).get("podIPs") or ()]
        if pod is not None and address in addresses:
            yield pod, address, number


_PROXIES: dict[str, Callable[[Scope], Response]] = {"pods": _pod, "nodes": _node, "services": _service}


def _proxy_request(scope: Scope, scheme: str, host: str, destination: Destination) -> Response:
    from fakekube.apiserver.aggregator.proxy import UpgradeAwareHandler

    return UpgradeAwareHandler(scheme or "http", host, destination).respond(scope.request, path_of(scope))


def _target(scope: Scope, what: str) -> tuple[str, str, str]:
    """Splits `name`, `name:port` or `scheme:name:port` into scheme, name and port. Raises StatusError 400."""
    parts = scope.name.split(":")
    scheme, name, port = {1: ["", *parts, ""], 2: ["", *parts], 3: parts}.get(len(parts), ["", "", ""])
    if not name or scheme not in _SCHEMES:
        raise status.bad_request(f"invalid {what} request {go_quote(scope.name)}")
    return scheme, name, port


def _port_number(port: str, scheme: str) -> int:
    """Returns the number of a port as Go's dialler finds it. Raises StatusError 503."""
    if not port:
        return _NAMED_PORTS["https" if scheme == "https" else "http"]
    if port in _NAMED_PORTS:
        return _NAMED_PORTS[port]
    number = int(port.lstrip("0")[:6] or "0") if port.isascii() and port.isdigit() else -1  # five digits are the most
    if 0 < number <= _LARGEST_PORT:
        return number
    problem = f"address {port}: invalid port" if number >= 0 else f"lookup tcp/{port}: unknown port"
    raise status.service_unavailable(status.unreachable_service(f"dial tcp: {problem}"))


def _is_global(text: str) -> bool:
    """Reports whether an IP address is a global unicast address (net.IP.IsGlobalUnicast)."""
    address = parse_ip(text)
    if address is None or address == _BROADCAST:
        return False
    return not (address.is_loopback or address.is_multicast or address.is_link_local or address.is_unspecified)


def _unreachable(place: str) -> StatusError:
    return status.service_unavailable(status.unreachable_service(format_refused_dial(place)))


def _get_core_object(scope: Scope, plural: str, name: str) -> Object:
    """Returns an object of another resource of the core group. Raises StatusError 404."""
    found = find(scope, plural, name)
    if found is None:
        raise status.not_found("", plural, name)
    return found
