"""`Cluster.services`: forwards Services to local ports, and issues serving certificates.

The API server calls a webhook or extension API server of a test by the name of its Service, as in a cluster. The
server needs a certificate for that name: the cluster's CA issues one.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fakekube.base.private_files import write_private

if TYPE_CHECKING:
    import ssl

    from fakekube.apiserver.webhooks.services import ServiceResolver

__all__ = ["ForwardedServices", "ServingCertificate"]


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

    def certificate(self, service: str) -> ServingCertificate:
        """Issues a certificate of the cluster's CA for a Service, valid for `name.namespace.svc`, localhost and
        127.0.0.1.

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
