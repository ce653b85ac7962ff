"""Finds where a connect request goes: the container of a pod, the node of the pod, the kubelet of the node.

An address on which nothing listens is answered like a refused connection; no connection is opened. What a kubelet's server
answers by the status of a pod, before it asks the container runtime, is answered here.

Specified by: pkg/registry/core/pod/strategy.go (validateContainer, streamLocation); pkg/kubelet/client (GetConnectionInfo);
pkg/kubelet/server/server.go; pkg/kubelet/kubelet_pods.go (validateContainerLogStatus, findContainer).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from fakekube.apimachinery.errors import status
from fakekube.apimachinery.schema.model import Shape, Type
from fakekube.apis.core.pods.visitor import CONTAINER_STATUSES, WITH_PATHS
from fakekube.apis.validation.ip import parse_ip
from fakekube.apis.well_known import KUBELET_PORT
from fakekube.apiserver.registry.generic import reads
from fakekube.apiserver.registry.request_options import boolean, int64
from fakekube.apiserver.registry.scope import Scope
from fakekube.base.golang.strconv import go_quote, parse_uint16
from fakekube.base.golang.urls import refused_dial
from fakekube.base.objects import Object, StoredObject
from fakekube.net.streaming.kubelet_api import Kubelet, KubeletError

_ADDRESS_TYPES = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")


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
    for kind in WITH_PATHS:
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
            port = found.get("daemonEndpoints", {}).get("kubeletEndpoint", {}).get("Port") or KUBELET_PORT
            return ConnectionInfo(node, join_host_port(addresses[kind], str(port)), scope.backend.kubelet_of(node))
    shown = " ".join(f"{{{one['type']} {one['address']}}}" for one in found.get("addresses", ()))
    raise status.generic(500, "", f"no preferred addresses found; known addresses: [{shown}]")


def find(scope: Scope, plural: str, name: str) -> Object | None:
    """Returns an object of another resource of the core group."""
    resource = scope.backend.registry.get("", "v1", plural)
    assert resource is not None
    record = scope.backend.store.bucket(resource.bucket).get(resource.key(scope.namespace, name))
    return None if record is None else record.value.object


def join_host_port(host: str, port: str) -> str:
    """Returns host and port as one text."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def format_refused_dial(place: str) -> str:
    """Returns the error of dialling an address on which nothing listens."""
    host = place.rpartition(":")[0]
    if parse_ip(host.strip("[]")) is None:
        return f"dial tcp: {unresolvable(host)}"
    return refused_dial(place)


def unresolvable(host: str) -> str:
    """Returns the error of a name that has no address."""
    return f"lookup {host}: no such host"


_WAITING = {"ErrImagePull": "image can't be pulled", "ImagePullBackOff": "trying and failing to pull image"}


def require_log(pod: Object, container: str, *, previous: bool) -> None:
    """Checks that a container has a log. Raises KubeletError 400."""
    problem = _log_problem(_status_of(pod, container), previous=previous)
    if problem:
        where = f"container {go_quote(container)} in pod {go_quote(pod['metadata']['name'])}"
        raise KubeletError(400, problem.format(where))


def _log_problem(found: Object | None, *, previous: bool) -> str:
    """Returns why there is no log, with {} for the container; "" if there is one."""
    if found is None:
        return "{} is not available"
    state, last = found.get("state") or {}, (found.get("lastState") or {}).get("terminated") or {}
    ended = state.get("terminated")
    if previous:
        return "" if last.get("containerID") else "previous terminated {} not found"
    if "running" in state or last.get("containerID") or (ended or {}).get("containerID"):
        return ""
    if ended is not None or last:
        return "{} is terminated"
    if "waiting" not in state:
        return "{} is waiting to start - no logs yet"
    reason = state["waiting"].get("reason", "")
    return f"{{}} is waiting to start: {_WAITING.get(reason, reason)}"


def require_running(pod: Object, container: str, *, attaches: bool) -> None:
    """Checks that a container runs. Raises KubeletError 500."""
    found = _status_of(pod, container) or {}
    if "running" in (found.get("state") or {}):
        return
    if attaches:
        raise KubeletError(500, f"container {container} not found in pod {_full_name(pod)}")
    raise KubeletError(500, f"container not found ({go_quote(container)})")


def require_running_pod(pod: Object) -> None:
    """Checks that some container of a pod runs. Raises KubeletError 500."""
    if not any("running" in (one.get("state") or {}) for one in _statuses(pod)):
        raise KubeletError(500, f"pod not found ({go_quote(_full_name(pod))})")


def spec_of(pod: Object, container: str) -> Object:
    """Returns the container's part of the spec; {} if there is none."""
    found = (one for kind in WITH_PATHS for one in pod["spec"].get(kind, ()) if one["name"] == container)
    return next(found, {})


def sandbox_of(pod: StoredObject) -> str:
    """Returns the id of a pod's sandbox, which the runtime's messages name."""
    return str(pod["metadata"]["uid"]).replace("-", "") * 2


def _full_name(pod: Object) -> str:
    return f"{pod['metadata']['name']}_{pod['metadata']['namespace']}"


def _statuses(pod: Object) -> list[Any]:
    return [one for kind in CONTAINER_STATUSES for one in (pod.get("status") or {}).get(kind) or ()]


def _status_of(pod: Object, container: str) -> Object | None:
    return next((one for one in _statuses(pod) if one.get("name") == container), None)


def connect_options(scope: Scope) -> Object:
    """Returns the options of a request, by the type of its subresource. Raises StatusError 400."""
    query, options = scope.request.query, dict[str, Any]()
    for name, field in scope.type.fields.items():
        values = query.all(name)
        if values and name not in ("kind", "apiVersion"):
            options[name] = _value(field.type, list(values))
    if "path" in scope.type.fields:
        options["path"] = path_of(scope)
    return options


def path_of(scope: Scope) -> str:
    """Returns the part of the path after the subresource, with the slashes around it."""
    info = scope.request.info
    path = "/".join(info.parts[3:])
    path = f"/{path}" if path and not path.startswith("/") else path
    return path if not info.path.endswith("/") or path.endswith("/") else f"{path}/"


def _value(type_: Type, values: list[str]) -> Any:
    if type_.shape is Shape.BOOLEAN:
        return boolean(values)
    if type_.shape is Shape.INTEGER:
        return int64(values)
    if type_.shape is Shape.LIST:
        items = type_.items
        if items is not None and items.shape is Shape.INTEGER:
            return _ports(values)
        return [_value(items, [value]) for value in values] if items is not None else values
    return values[0]


def _ports(values: list[str]) -> list[int]:
    """Returns the port numbers of repeated or comma-separated values. Raises StatusError 400."""
    try:
        return [parse_uint16(text) for value in values for text in value.split(",")]
    except ValueError as problem:
        raise status.bad_request(f"cannot convert to []int32: {problem}") from None
