"""Keeps web pages of other origins away from requests that need no secret.

A client without credentials, or with one of the well-known tokens, has the default identity, an administrator. A page on any
web site could send such requests from the browser of a developer: by a form or an image, by WebSocket, which is not bound by the
same-origin policy, or by a name of its own that resolves to this machine (DNS rebinding). So these requests need

* a Host that a web site cannot own: an address, the host on which the server listens, a name of this machine, or a name that
  `--allowed-hosts` admits;
* no Sec-Fetch-Site of another site, which all current browsers send to trustworthy origins;
* no Origin of another host or port. `http://localhost` without a port is what clients in Go send that must name some origin
  (golang.org/x/net/websocket); browsers add Sec-Fetch-Site to it.

Clients that are not browsers need nothing new. Containers and other hosts that use another name are told the option.

Specified by: Fetch (Origin, Sec-Fetch-Site), RFC 9110 (Host). kube-apiserver has no such check, since it has no default identity;
`kubectl proxy --accept-hosts` has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from fakekube.apimachinery.errors import StatusError
from fakekube.base.golang.net import is_ip_address, is_loopback

#: Names of this machine, and of the API server in a cluster, which no web site can have.
_OWN_NAMES: Final = frozenset(
    {
        "localhost",
        "host.docker.internal",
        "host.containers.internal",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    }
)
_CLIENTS_ORIGINS: Final = frozenset({"http://localhost", "https://localhost"})
_SAME_SITE: Final = frozenset({"none", "same-origin"})
_DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}
#: How many values of Host are remembered.
_MAX_HOSTS: Final = 1000


#: An address in brackets, or a name or address of IPv4; then a port.
_AUTHORITY: Final = re.compile(r"(\[[^\[\]@]*\]|[^\[\]@:]*)(:\d*)?")


class ForeignRequest(Exception):
    """A request that a web page of another origin may have sent; has the reason."""


class BrowserGuard:
    """Refuses requests of web pages.

    Args:
        listens_on: the host on which the server listens.
        allowed_hosts: further names that clients may use for the server; `.example.com` stands for all names below it.
    """

    def __init__(self, listens_on: str = "127.0.0.1", allowed_hosts: Sequence[str] = ()) -> None:
        self._names = _OWN_NAMES | {_plain(name) for name in (listens_on, *allowed_hosts) if not name.startswith(".")}
        self._suffixes = (".localhost", *(_plain(name) for name in allowed_hosts if name.startswith(".")))
        self._admitted: set[str] = set()
        """Values of Host that are admitted."""

    def require_own(self, environ: Mapping[str, Any]) -> None:
        """Raises StatusError 403 if a web page of another origin may have sent the request."""
        try:
            self.check(environ)
        except ForeignRequest as problem:
            raise StatusError(403, "Forbidden", f"forbidden: {problem}", {}) from None

    def check(self, environ: Mapping[str, Any]) -> None:
        """Raises ForeignRequest if a web page of another origin may have sent the request.

        A request without Host (HTTP/1.0, a call in the process) is not a browser's.
        """
        host = environ.get("HTTP_HOST")
        if host is not None and host not in self._admitted:
            self._check_host(host)
        if "HTTP_SEC_FETCH_SITE" in environ or "HTTP_ORIGIN" in environ:
            _check_origin(environ, host or "")

    def _check_host(self, host: str) -> None:
        name = _plain(_split(f"//{host}")[0])
        if not self._is_own(name):
            raise ForeignRequest(
                f"the Host {host!r} is no name of this server, and without credentials a web page could have sent the request; "
                f"--allowed-hosts={name or 'NAME'} (in Python allowed_hosts=[…]) admits the name, and so does a token or a "
                "certificate of the kubeconfig"
            )
        if len(self._admitted) < _MAX_HOSTS:
            self._admitted.add(host)

    def _is_own(self, name: str) -> bool:
        return name in self._names or is_loopback(name) or is_ip_address(name) or name.endswith(self._suffixes)


def _check_origin(environ: Mapping[str, Any], host: str) -> None:
    site = environ.get("HTTP_SEC_FETCH_SITE", "none")
    if site not in _SAME_SITE:  # also of images and scripts, whose requests have no Origin
        raise ForeignRequest(f"requests of {site} web pages need credentials")
    origin = environ.get("HTTP_ORIGIN")
    if origin and origin.rstrip("/").lower() not in _CLIENTS_ORIGINS and not _is_origin_of(origin, host):
        raise ForeignRequest(f"requests of web pages of the origin {origin!r} need credentials")


def _is_origin_of(origin: str, host: str) -> bool:
    scheme, separator, _ = origin.lower().partition("://")
    return bool(separator) and _split(origin) == _split(f"{scheme}://{host}")


def _split(url: str) -> tuple[str, int | None]:
    """Returns the host and the port of a URL; the port that the scheme implies, if there is none."""
    try:
        parts = urlsplit(url)
        if not _AUTHORITY.fullmatch(parts.netloc):  # urlsplit reads `[::1].example.com` and `a@b`
            return "", None
        return _plain(parts.hostname or ""), parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return "", None


def _plain(name: str) -> str:
    """Returns a name in lower case, without the dot of the root domain."""
    return name.lower().removesuffix(".") if name != "." else ""
