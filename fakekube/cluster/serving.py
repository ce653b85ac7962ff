"""The HTTP server of a cluster (address, certificates, start), what it serves, and the kubeconfig files that lead to it.

It serves the control API, /fakekube/, and for all other paths the Kubernetes API. A kubeconfig is for the administrator, or for
another user; credentials are inline, and files are readable by their owner only.

Invariants: `server` is None until `start`; certificates are made when TLS or a kubeconfig first needs them. A request for the
Kubernetes API costs one comparison, and the modules of the control API are not imported for it. Files of the cluster's own
temporary folder are deleted when it stops; files that a caller names are not.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fakekube.apimachinery.codecs import yaml
from fakekube.apiserver.auth.identities import ADMIN
from fakekube.apiserver.auth.options import OptionError, read_text
from fakekube.apiserver.options import ServingOptions
from fakekube.base.clock import Clock
from fakekube.base.golang.net import is_loopback
from fakekube.base.private_files import write_private
from fakekube.cluster.control.members import PREFIX

if TYPE_CHECKING:
    import ssl
    import tempfile

    from fakekube.apiserver.server import Machinery
    from fakekube.cluster import Cluster
    from fakekube.cluster.control.endpoints import Endpoints
    from fakekube.net import Server
    from fakekube.net.certificates import Credentials


# --- Writes the kubeconfig files of a cluster -------------------------------------------------------------------------


NAME = "fakekube"


def kubeconfig(url: str, *, token: str = "", authority: str = "", certificate: str = "", key: str = "") -> dict[str, Any]:
    """Returns a kubeconfig with one context.

    Args:
        url: the URL of the API server.
        token: the bearer token of the user.
        authority, certificate, key: the CA bundle, and the user's certificate and key (PEM).
    """
    cluster: dict[str, Any] = {"server": url}
    if authority:
        cluster["certificate-authority-data"] = _inline(authority)
    elif url.startswith("http://"):
        cluster["insecure-skip-tls-verify"] = True  # without it the client for JavaScript refuses plain HTTP
    user: dict[str, Any] = {}
    if certificate:
        user = {"client-certificate-data": _inline(certificate), "client-key-data": _inline(key)}
    elif token:
        user = {"token": token}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": NAME,
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": NAME, "user": user}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}],
    }


def write_kubeconfig(path: Path, config: dict[str, Any]) -> None:
    """Writes a kubeconfig to a file that only its owner can read. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, yaml.dumps(config))


def _inline(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


#: The bearer token of the administrator of a server that only this machine can reach.
TOKEN: Final = "admin-token"

AddToken = Callable[[str, str, Sequence[str]], None]
"""(token, user name, groups): makes the token authenticate that user."""


class Kubeconfigs:
    """The kubeconfig files of one cluster.

    Args:
        serving: the cluster's server.
        url: starts the server if necessary; returns its URL.
        add_token: makes a token authenticate a user; used if the server does not speak TLS.
    """

    def __init__(self, serving: Serving, url: Callable[[], str], add_token: AddToken) -> None:
        self._serving = serving
        self._url = url
        self._add_token = add_token
        self._token = TOKEN if is_loopback(serving.host) else ""
        self._isolated = False
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._of_users: dict[tuple[str, tuple[str, ...]], Path] = {}
        """User name and groups → file."""

    @property
    def token(self) -> str:
        """A bearer token of an administrator: the well-known one, or a random one if other hosts can reach the server."""
        if not self._token:
            self._token = self._token_of(ADMIN.name, ADMIN.groups)
        return self._token

    @property
    def admin(self) -> Path:
        """The file of the administrator; written on first use. Raises RuntimeError if the cluster is not started."""
        if self._folder is None:
            self._url()  # raises before there is a folder
            import tempfile

            self._folder = tempfile.TemporaryDirectory(prefix="fakekube-")
            self.write(Path(self._folder.name) / "kubeconfig")
        return Path(self._folder.name) / "kubeconfig"

    def file_of(self, user: str, groups: tuple[str, ...]) -> Path:
        """The file of a user; written on first use. Raises RuntimeError if the cluster is not started."""
        path = self._of_users.get((user, groups))
        if path is None:
            path = self.admin.parent / f"{len(self._of_users)}-{re.sub('[^A-Za-z0-9.-]', '-', user)}.kubeconfig"
            self.write(path, user, groups)
            self._of_users[user, groups] = path
        return path

    def write(self, path: Path, user: str = "", groups: tuple[str, ...] = ()) -> None:
        """Writes a file for an administrator, or for a user: with a client certificate if the server speaks TLS, else with
        a token. Raises OSError, and RuntimeError if the cluster is not started."""
        write_kubeconfig(path, self._config(user, groups))

    def text(self) -> str:
        """Returns the content of a file for an administrator. Raises RuntimeError if the cluster is not started."""
        return yaml.dumps(self._config()).decode()

    def isolate(self) -> None:
        """Uses random tokens only, which are valid for this cluster alone."""
        self._isolated, self._token = True, ""

    def _config(self, user: str = "", groups: tuple[str, ...] = ()) -> dict[str, Any]:
        serving = self._serving
        if not serving.tls:
            return kubeconfig(self._url(), token=self._token_of(user, groups) if user else self.token)
        if self._isolated:
            return kubeconfig(
                self._url(), authority=serving.authority, token=self._token_of(user, groups) if user else self.token
            )
        certificate, key = serving.credentials.client_certificate, serving.credentials.client_key
        if user:
            from fakekube.net.certificates import client_credentials

            certificate, key = client_credentials(user, groups)
        return kubeconfig(self._url(), authority=serving.authority, certificate=certificate, key=key)

    def remove(self) -> None:
        """Deletes the files of the cluster's own folder."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
            self._of_users.clear()

    def _token_of(self, user: str, groups: tuple[str, ...]) -> str:
        import secrets

        token = f"fakekube-{secrets.token_urlsafe(24)}"
        self._add_token(token, user, groups)
        return token


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
        """Reports whether the start can fail, because the caller chose a port or a certificate."""
        return bool(self.port or self._options.tls_cert_file)

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

    def start(self, application: WSGI) -> Server:
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


WSGI = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


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
