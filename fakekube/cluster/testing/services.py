"""Programs of a test in the place of Services: `Cluster.services` forwards Services to local ports and issues certificates;
`Cluster.aggregate` serves a WSGI application of the test process as an aggregated API, with its APIService.

The API server calls a webhook or extension API server of a test by the name of its Service, as in a cluster. The
server needs a certificate for that name: the cluster's CA issues one.
"""

from __future__ import annotations

from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from fakekube.base.private_files import write_private
from fakekube.controllers.client import ApiError, Client
from fakekube.net.wsgi import Application

if TYPE_CHECKING:
    import ssl

    from fakekube.apiserver.aggregator.aggregator import Aggregator
    from fakekube.apiserver.webhooks.services import ServiceResolver


@dataclass(frozen=True, slots=True)
class ServingCertificate:
    """The serving certificate for the name of a Service. All fields are PEM, except `ca_bundle`."""

    certificate: str
    key: str
    ca_bundle: str
    """The CA certificate in base64, as in `caBundle`."""
    context: ssl.SSLContext
    """For a server in Python: `context.wrap_socket(socket, server_side=True)`."""

    def write(self, folder: Path | str) -> tuple[Path, Path]:
        """Writes `tls.crt` and `tls.key`, the files that controller-runtime's webhook server reads, and returns their paths.

        The folder is created if necessary. Raises OSError.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        certificate, key = folder / "tls.crt", folder / "tls.key"
        certificate.write_text(self.certificate)
        write_private(key, self.key)
        return certificate, key


class ForwardedServices:
    """The attribute `services` of a cluster.

    Args:
        resolver: the API server's table of forwarded Services.
    """

    def __init__(self, resolver: ServiceResolver) -> None:
        self._forwards = resolver.forwards

    def forward(self, service: str, port: int | None, *, host: str = "127.0.0.1") -> None:
        """Forwards the API server's requests to a Service, for any of its ports, to a local port.

        These are calls of webhooks, requests for aggregated APIs, and services/proxy. The Service need not exist.

        Args:
            service: `namespace/name`.
            port: a TCP port; None ends the forwarding.
            host: the host of the port.

        Raises ValueError if `service` does not have the form `namespace/name`, or the port is not between 1 and 65535.
        """
        namespace, name = _parts(service)
        if port is None:
            self._forwards.pop((namespace, name), None)
            return
        if not 0 < port < 65536:
            raise ValueError(f"{port} is not a TCP port")
        self._forwards[namespace, name] = (host, port)

    @property
    def forwarded(self) -> dict[str, tuple[str, int]]:
        """The Services that are forwarded, as `namespace/name`, with host and port."""
        return {f"{namespace}/{name}": address for (namespace, name), address in self._forwards.items()}

    def certificate(self, service: str) -> ServingCertificate:
        """Issues a certificate of the cluster's CA for a Service, valid for `name.namespace.svc`, localhost and 127.0.0.1.

        Webhooks of forwarded Services without a caBundle are verified with this CA.

        Raises ValueError if `service` does not have the form `namespace/name`.
        """
        from fakekube.net.certificates import credentials

        namespace, name = _parts(service)
        issued = credentials(f"{name}.{namespace}.svc")
        bundle = b64encode(issued.ca_certificate.encode()).decode()
        return ServingCertificate(issued.server_certificate, issued.server_key, bundle, issued.context)


def _parts(service: str) -> tuple[str, str]:
    namespace, slash, name = service.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise ValueError(f"a Service has the form namespace/name: {service!r}")
    return namespace, name


_RESOURCE = "apiservices.apiregistration.k8s.io"
_NAMESPACE = "kube-system"
_PRIORITIES = {"groupPriorityMinimum": 100, "versionPriority": 100}


class AggregatedAPI:
    """An aggregated API that is served; a context manager that removes it. See `Cluster.aggregate` for arguments and errors."""

    def __init__(
        self, client: Client, aggregator: Aggregator, group_version: str, application: Application, timeout: float
    ) -> None:
        group, slash, version = group_version.partition("/")
        if not (group and slash and version) or "/" in version:
            raise ValueError(f"a group version has the form group/version: {group_version!r}")
        self.name = f"{version}.{group}"
        """The name of the APIService."""
        self._client, self._aggregator = client, aggregator
        self._registered = self._register(group, version)
        aggregator.mount(self.name, application)
        aggregator.wait(timeout)
        problem = self._problem()
        if problem:
            self.remove()
            raise RuntimeError(problem)

    def remove(self) -> None:
        """Stops serving the API, and deletes the APIService if this object created it. May be called twice."""
        self._aggregator.unmount(self.name)
        if self._registered:
            self._registered = False
            with suppress(ApiError):  # it may be deleted already
                self._client.delete(_RESOURCE, self.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.remove()

    def _register(self, group: str, version: str) -> bool:
        """Creates the APIService; returns False if there is one with a Service already."""
        service = {"namespace": _NAMESPACE, "name": group.replace(".", "-"), "port": 443}
        spec = {"group": group, "version": version, "service": service, "insecureSkipTLSVerify": True, **_PRIORITIES}
        obj = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": self.name}, "spec": spec}
        try:
            self._client.create(obj)
        except ApiError as error:
            if error.code != 409:
                raise ValueError(str(error)) from None
            if "service" not in self._client.get(_RESOURCE, self.name)["spec"]:
                raise ValueError(f"{group}/{version} is served by the cluster itself") from None
            return False
        return True

    def _problem(self) -> str:
        """Returns the reason why requests do not reach the application; "" if they do."""
        conditions = self._client.get(_RESOURCE, self.name).get("status", {}).get("conditions", [])
        found = next((one for one in conditions if one["type"] == "Available"), None)
        if found is None:
            return f"{self.name} did not respond in time"
        return "" if found["status"] == "True" else str(found["message"])
