"""The HTTP server of a cluster (address, certificates, start), and what it serves.

It serves the control API, /fakekube/, and for all other paths the Kubernetes API.

Invariants: `server` is None until `start`; certificates are made when TLS or a kubeconfig first needs them. A request for the
Kubernetes API costs one comparison, and the modules of the control API are not imported for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from fakekube.apiserver.auth.options import OptionError, read_text
from fakekube.apiserver.options import ServingOptions
from fakekube.base.clock import Clock
from fakekube.cluster.control.members import PREFIX
from fakekube.net.wsgi import Application

if TYPE_CHECKING:
    import ssl

    from fakekube.apiserver.server import Machinery
    from fakekube.cluster import Cluster
    from fakekube.cluster.control.endpoints import Endpoints
    from fakekube.net import Server
    from fakekube.net.certificates import Credentials


class Serving:
    """The server of a cluster.

    Args:
        host, port: where it listens; port 0 is a free one.
        tls: whether it serves HTTPS.
        options: certificate files, and the limits of HTTP/2.
        clock: of the cluster.
    """

    def __init__(self, host: str, port: int, *, tls: bool, options: ServingOptions, clock: Clock) -> None:
        self.host, self.port, self.tls = host, port, tls
        self.server: Server | None = None
        self._options = options
        self._clock = clock

    @property
    def may_fail(self) -> bool:
        """Whether the start can fail, because the caller chose an address, a port or a certificate."""
        return bool(self.host != "127.0.0.1" or self.port or self._options.tls_cert_file)

    @property
    def credentials(self) -> Credentials:
        """The certificates of the cluster's own CA."""
        from fakekube.net.certificates import credentials

        return credentials(self.host, http2=self._options.offers_http2)

    @property
    def own_authority(self) -> str:
        """The certificate of the cluster's own CA; "" without TLS."""
        return self.credentials.ca_certificate if self.tls else ""

    @property
    def authority(self) -> str:
        """The CA bundle for clients: the cluster's CA, or the certificate of --tls-cert-file."""
        return read_text(self._options.tls_cert_file, "tls-cert-file") or self.credentials.ca_certificate

    def start(self, application: Application) -> Server:
        """Starts the server of a WSGI application.

        Raises OSError if the address is not available, and OptionError for wrong certificate files.
        """
        from fakekube.net import DEFAULT_MAX_STREAMS, Server

        context = self._context() if self.tls else None
        server = Server(
            application,
            self.host,
            self.port,
            clock=self._clock,
            tls=context,
            max_streams=self._options.http2_max_streams_per_connection or DEFAULT_MAX_STREAMS,
            goaway_chance=self._options.goaway_chance,
        )
        server.start()
        self.server = server
        return server

    def _context(self) -> ssl.SSLContext:
        """Returns the TLS context of the server. Raises OptionError if certificate and key do not match."""
        options = self._options
        if not options.tls_cert_file:
            return self.credentials.context
        import ssl

        from fakekube.net.tls import server_context

        certificate = read_text(options.tls_cert_file, "tls-cert-file")
        key = read_text(options.tls_private_key_file, "tls-private-key-file")
        try:
            return server_context(certificate, key, self.credentials.ca_certificate, http2=options.offers_http2)
        except (ssl.SSLError, ValueError) as error:
            from fakekube.base.golang.key_pairs import key_pair_problem

            problem = key_pair_problem(certificate.encode(), key.encode()) or error
            raise OptionError(f"--tls-cert-file={options.tls_cert_file}: {problem}") from None


class Control:
    """The control API of a cluster, and its Kubernetes API for all other paths.

    Args:
        machinery: has the application of the Kubernetes API, and access control.
        cluster: the cluster to control.
        is_alone: whether there is no Kubernetes API, and whoever has no credentials needs the token of the page.
    """

    def __init__(self, machinery: Machinery, cluster: Cluster, *, is_alone: bool = False) -> None:
        self._api = machinery.application
        self._is_alone = is_alone
        self._machinery = machinery
        self._cluster = cluster
        self._endpoints: Endpoints | None = None

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Serves one request."""
        if not environ["PATH_INFO"].startswith(PREFIX):
            if self._is_alone:
                start_response("404 Not Found", [("Content-Type", "text/plain"), ("Content-Length", "0")])
                return []
            return self._api(environ, start_response)
        if self._endpoints is None:
            from fakekube.cluster.control.endpoints import Endpoints

            self._endpoints = Endpoints(self._cluster, self._machinery.access, self._api, needs_token=self._is_alone)
        return self._endpoints(environ, start_response)
