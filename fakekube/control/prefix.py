"""The control prefix, in front of an API: requests for /fakekube/ are answered here, all others go on.

Invariant: a request for any other path costs one comparison, and nothing of this room is imported for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fakekube.assembly import Machinery
    from fakekube.cluster import Cluster
    from fakekube.control.endpoints import Endpoints

__all__ = ["PREFIX", "WSGI", "Control", "is_loopback"]

PREFIX = "/fakekube/"

WSGI = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def is_loopback(host: str) -> bool:
    """Does a server that listens there hear only this machine?"""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Control:
    """A WSGI application: the control prefix of a cluster, and its API for everything else.

    Args:
        machinery: whose API stands behind.
        cluster: what is controlled.
    """

    def __init__(self, machinery: Machinery, cluster: Cluster) -> None:
        self._api = machinery.application
        self._machinery = machinery
        self._cluster = cluster
        self._endpoints: Endpoints | None = None

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request."""
        if not environ["PATH_INFO"].startswith(PREFIX):
            return self._api(environ, start_response)
        if self._endpoints is None:
            from fakekube.control.endpoints import Endpoints

            self._endpoints = Endpoints(self._cluster, self._machinery.access)
        return self._endpoints(environ, start_response)
