"""Authorizes requests for the control API: users need access to the nonResourceURLs /fakekube/*, and web pages of other origins
are refused.

On plain HTTP, requests without a token have an administrator as their user, as in the Kubernetes API. To prevent that a web page
uses this (cross-site requests, DNS rebinding), the Host header must name this server by a name or an address that only it has,
and the Origin header, if present, must be the same host.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from fakekube.apiserver.auth.access import Access
from fakekube.apiserver.endpoints.request import RequestInfo
from fakekube.cluster.control.prefix import is_loopback
from fakekube.net.wsgi import Environment, path_of

__all__ = ["ForeignRequest", "check_access", "check_origin"]


class ForeignRequest(Exception):
    """A request that a web page of another origin may have sent."""


def check_origin(environ: Environment, listens_on: str) -> None:
    """Raises ForeignRequest if Host does not name this server, or Origin or Sec-Fetch-Site show another origin.

    Args:
        environ: the WSGI environment of the request.
        listens_on: the host on which the server listens.
    """
    host = environ.get("HTTP_HOST", "")
    if not _is_ours(_name_of(f"//{host}"), listens_on):
        raise ForeignRequest(f"the Host header {host!r} does not name this server")
    site = environ.get("HTTP_SEC_FETCH_SITE", "none")
    if site not in ("none", "same-origin"):  # set by browsers, also for images and scripts, which have no Origin
        raise ForeignRequest(f"requests of a {site} page are refused")
    origin = environ.get("HTTP_ORIGIN")
    if origin is not None and _place_of(origin) != host.lower():
        raise ForeignRequest(f"requests of the origin {origin!r} are refused")


def check_access(environ: Environment, access: Access) -> None:
    """Raises StatusError 401 or 403, as the API does for a non-resource path."""
    info = RequestInfo(path_of(environ), environ["REQUEST_METHOD"].lower())
    access.require(info, access.authenticator.user_of(environ))


def _place_of(url: str) -> str:
    """Returns the host and the port of an origin."""
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:
        return ""


def _name_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _is_ours(name: str, listens_on: str) -> bool:
    """Reports whether a name belongs to this server and cannot be a web page's own name that resolves to this machine."""
    if name == listens_on.lower() or is_loopback(name):
        return bool(name)
    if is_loopback(listens_on):
        return False
    try:
        return bool(ip_address(name))
    except ValueError:
        return False
