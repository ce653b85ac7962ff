"""Resolves the server of an APIService: a mounted application, a forwarded Service, or the address of the Service.

Specified by: k8s.io/apiserver/pkg/util/proxy/proxy.go (ResolveCluster); k8s.io/kube-aggregator/pkg/controllers/status/remote
(BuildTransportConfig).
"""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fakekube.apis.rest.cluster_access import CallError, ClusterAccess
from fakekube.apis.validation.webhooks import ca_bundle_errors
from fakekube.apiserver.webhooks.services import HEADLESS, ServiceResolver
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import Object

if TYPE_CHECKING:
    from fakekube.apiserver.aggregator.remote import RemoteBackend
from fakekube.apiserver.aggregator.backends import BackendError, BackendRequest, BackendResponse, MountedBackend
from fakekube.apiserver.webhooks.services import ROUTED_TYPES


class UnresolvedError(Exception):
    """A Service cannot be resolved; has the message of the resolver."""


@dataclass(slots=True, frozen=True)
class Location:
    """A server and its host in URLs."""

    host: str
    """With the port."""
    backend: RemoteBackend | MountedBackend | Unreachable
    problem: str = ""
    """The error if the CA bundle of the APIService is invalid, else ""."""


class Unreachable:
    """A `Backend` that refuses connections."""

    def __init__(self, problem: str) -> None:
        self.problem = problem

    def send(self, request: BackendRequest, deadline: float | None) -> BackendResponse:
        raise BackendError(self.problem)


class Locations:
    """Resolves the servers of the APIServices of one cluster."""

    def __init__(self, services: ClusterAccess, resolver: ServiceResolver, certificate: str = "") -> None:
        """
        Args:
            services: the access to Services.
            resolver: resolves Services to addresses.
            certificate: the proxy client certificate and its key, PEM; "" for none.
        """
        self._services = services
        self._resolver = resolver
        self._certificate = certificate
        self.mounted: dict[str, MountedBackend] = {}
        """Applications of this process, by the name of the APIService."""
        self.installed: dict[str, MountedBackend] = {}
        """Applications of the base state; a forwarded Service takes precedence over them."""

    def is_given(self, name: str, reference: Object) -> bool:
        """Reports whether the server is mounted or forwarded, so that Services and endpoints need not be checked."""
        return name in self.mounted or (reference["namespace"], reference["name"]) in self._resolver.forwards

    def locate(self, name: str, spec: Object) -> Location:
        """Returns the server of an APIService with a Service. Raises UnresolvedError."""
        reference = spec["service"]
        service_name = f"{reference['name']}.{reference['namespace']}.svc"
        mounted = self.mounted.get(name)
        forwarded = (reference["namespace"], reference["name"]) in self._resolver.forwards
        if mounted is not None and not (forwarded and mounted is self.installed.get(name)):
            return Location(f"{service_name}:{reference['port']}", mounted)
        host = self._host(name, reference)
        problem = next(ca_bundle_errors(spec.get("caBundle", ""), ""), None)
        try:
            address = self._resolver.resolve(reference["namespace"], reference["name"], reference["port"])
        except CallError as error:
            return Location(host, Unreachable(str(error)))

        from fakekube.apiserver.aggregator.remote import RemoteBackend
        from fakekube.apiserver.webhooks.transport import Endpoint

        endpoint = Endpoint(
            f"https://{host}",
            address,
            b64decode(spec.get("caBundle", "")),
            server_name=service_name,
            verified=not spec.get("insecureSkipTLSVerify", False),
            certificate=self._certificate,
        )
        return Location(host, RemoteBackend(endpoint), problem.detail if problem else "")

    def _host(self, name: str, reference: Object) -> str:
        """Returns host and port of a Service (ResolveCluster). Raises UnresolvedError."""
        port = reference["port"]
        service: Any = self._services.get("", "services", reference["namespace"], reference["name"])
        if service is None:
            if self.is_given(name, reference):
                return f"{reference['name']}.{reference['namespace']}.svc:{port}"
            raise UnresolvedError(f"service {go_quote(reference['name'])} not found")
        spec = service["spec"]
        kind = spec.get("type", "ClusterIP")
        if kind == "ExternalName":
            return _join_host_port(spec["externalName"], port)
        if kind not in ROUTED_TYPES:
            raise UnresolvedError(f"unsupported service type {go_quote(kind)}")
        if spec.get("clusterIP") == "None" and kind == "ClusterIP":
            raise UnresolvedError(HEADLESS)
        if not any(entry.get("port") == port for entry in spec.get("ports") or ()):
            raise UnresolvedError(f"no service port {port} found for service {go_quote(reference['name'])}")
        return _join_host_port(spec["clusterIP"], port)


def _join_host_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
