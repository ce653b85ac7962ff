"""The WSGI application that serves the control API, /fakekube/, and passes all other requests to the Kubernetes API.

Invariant: a request for any other path costs one comparison, and the other modules of this package are not imported for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from fakekube.cluster.control.paths import PREFIX

if TYPE_CHECKING:
    from fakekube.apiserver.server import Machinery
    from fakekube.cluster import Cluster
    from fakekube.cluster.control.endpoints import Endpoints

__all__ = ["WSGI", "Control"]

WSGI = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Control:
    """The control API of a cluster, and its Kubernetes API for all other paths.

    Args:
        machinery: has the application of the Kubernetes API, and access control.
        cluster: the cluster to control.
    """

    def __init__(self, machinery: Machinery, cluster: Cluster) -> None:
        self._api = machinery.application
        self._machinery = machinery
        self._cluster = cluster
        self._endpoints: Endpoints | None = None

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Serves one request."""
        if not environ["PATH_INFO"].startswith(PREFIX):
            return self._api(environ, start_response)
        if self._endpoints is None:
            from fakekube.cluster.control.endpoints import Endpoints

            self._endpoints = Endpoints(self._cluster, self._machinery.access, self._api)
        return self._endpoints(environ, start_response)
