"""Who may use the control prefix: whoever RBAC lets use the nonResourceURLs /fakekube/*, and no browser from elsewhere.

On plain HTTP a request without a token counts as an administrator's, as for the API. So that no web page reaches it, a
request must be for this machine by name or address (Host), and its Origin, if it tells one, must be the same.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from fakekube.api.environment import Environment, path_of
from fakekube.auth.access import Access
from fakekube.control.prefix import is_loopback
from fakekube.registry.request import RequestInfo

__all__ = ["ForeignRequest", "check_access", "check_origin"]


class ForeignRequest(Exception):
    """A request that a page of another origin may have made."""


def check_origin(environ: Environment, listens_on: str) -> None:
    """Raises ForeignRequest for a Host that is not this server's, and for an Origin that is not its own.

    Args:
        environ: of the request.
        listens_on: the host that the server was told to listen on.
    """
    host = environ.get("HTTP_HOST", "")
    if not _is_ours(_name_of(f"//{host}"), listens_on):
        raise ForeignRequest(f"the Host header {host!r} does not name this server")
    site = environ.get("HTTP_SEC_FETCH_SITE", "none")
    if site not in ("none", "same-origin"):  # of browsers; an image or a script tells no origin
        raise ForeignRequest(f"requests of a {site} page are refused")
    origin = environ.get("HTTP_ORIGIN")
    if origin is not None and _place_of(origin) != host.lower():
        raise ForeignRequest(f"requests of the origin {origin!r} are refused")


def check_access(environ: Environment, access: Access) -> None:
    """Raises StatusError 401 or 403, as the API does for a path that is about no resource."""
    info = RequestInfo(path_of(environ), environ["REQUEST_METHOD"].lower())
    access.require(info, access.authenticator.user_of(environ))


def _place_of(url: str) -> str:
    """Host and port."""
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
    """A name that only this server has: a page cannot have its own name resolve to it."""
    if name == listens_on.lower() or is_loopback(name):
        return bool(name)
    if is_loopback(listens_on):
        return False
    try:
        return bool(ip_address(name))
    except ValueError:
        return False
