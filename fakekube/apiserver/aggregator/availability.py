"""Determines the condition Available of an APIService: from its Service and endpoints, then by a request to the server.

Specified by: k8s.io/kube-aggregator/pkg/controllers/status/remote/remote_available_controller.go (sync).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from fakekube.apis.rest.cluster_access import ClusterAccess
from fakekube.apis.rest.strategy import Object
from fakekube.apiserver.aggregator.backends import BackendError, BackendTimeoutError
from fakekube.apiserver.aggregator.locations import Location, Locations, UnresolvedError
from fakekube.apiserver.aggregator.proxy import new_request
from fakekube.apiserver.endpoints.request import User
from fakekube.base.golang.quoting import go_quote

#: The user of requests of the aggregator.
AGGREGATOR = User("system:kube-aggregator", groups=("system:masters",))

_ATTEMPTS = 5
_SECONDS = 5.0


@dataclass(slots=True, frozen=True)
class State:
    """The state of the condition Available."""

    status: str
    reason: str
    message: str
    answered: bool = False
    """Whether the server has responded, with any status."""


LOCAL = State("True", "Local", "Local APIServices are always available")
AVAILABLE = State("True", "Passed", "all checks passed", answered=True)


def state_in_cluster(services: ClusterAccess, reference: Object) -> State | None:
    """Returns why a Service cannot be reached, from the objects of the cluster; None if it can."""
    namespace, name, number = reference["namespace"], reference["name"], reference["port"]
    what = f"service/{name} in {go_quote(namespace)}"
    service = services.get("", "services", namespace, name)
    if service is None:
        return State("False", "ServiceNotFound", f"{what} is not present")
    if service["spec"].get("type", "ClusterIP") != "ClusterIP":
        return None
    port = next((one for one in service["spec"].get("ports") or () if one["port"] == number), None)
    if port is None:
        return State("False", "ServicePortError", f"{what} is not listening on port {number}")
    slices = _slices(services, namespace, name)
    if not slices:
        return State("False", "EndpointsNotFound", f"cannot find endpointslices for {what}")
    if not any(_has_ready_endpoint(one, port.get("name", "")) for one in slices):
        text = f"endpointslices for {what} have no addresses with port name {go_quote(port.get('name', ''))}"
        return State("False", "MissingEndpoints", text)
    return None


def _slices(services: ClusterAccess, namespace: str, service: str) -> list[Object]:
    found = services.list("discovery.k8s.io", "endpointslices", namespace)
    return [one for one in found if (one["metadata"].get("labels") or {}).get("kubernetes.io/service-name") == service]


def _has_ready_endpoint(endpoint_slice: Object, port: str) -> bool:
    """Reports whether an EndpointSlice has a ready endpoint and a port of this name."""
    ready = any((one.get("conditions") or {}).get("ready", True) for one in endpoint_slice.get("endpoints") or ())
    ports = endpoint_slice.get("ports") or ()
    return ready and any(one.get("name") == port and one.get("port") is not None for one in ports)


class Probe:
    """Checks the availability of servers by requests."""

    def __init__(self, locations: Locations) -> None:
        self._locations = locations

    def __call__(self, name: str, spec: Object) -> State | None:
        """Returns the state of an APIService after up to five requests to its server.

        None if the CA bundle is invalid: there is no connection then, and the condition stays as it is.
        """
        try:
            location = self._locations.locate(name, spec)
        except UnresolvedError as error:
            return State("False", "FailedDiscoveryCheck", str(error))
        if location.problem:
            return None
        deadline = time.monotonic() + _SECONDS
        state = AVAILABLE
        for _ in range(_ATTEMPTS):  # one success is enough
            state = _check(location, _checked_path(name, spec), deadline)
            if state is AVAILABLE or time.monotonic() >= deadline:
                break
        return state


def _checked_path(name: str, spec: Object) -> str:
    version: str = spec["version"]
    return f"/api/{version}" if name == "v1." else f"/apis/{spec.get('group', '')}/{version}"


def _check(location: Location, path: str, deadline: float) -> State:
    """Returns the state according to one request."""
    url = f"https://{location.host}{path}"
    try:
        response = location.backend.send(new_request(path, location, AGGREGATOR, ""), deadline)
    except BackendTimeoutError as error:
        problem = f"Get {go_quote(url)}: {error} (Client.Timeout exceeded while awaiting headers)"
    except BackendError as error:
        problem = f"Get {go_quote(url)}: {error}"
    else:
        response.body.close()
        if 200 <= response.status < 300:
            return AVAILABLE
        problem = f"bad status from {url}: {response.status}"
        return State("False", "FailedDiscoveryCheck", f"failing or missing response from {url}: {problem}", answered=True)
    return State("False", "FailedDiscoveryCheck", f"failing or missing response from {url}: {problem}")
