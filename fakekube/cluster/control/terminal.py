"""The terminal of the page: a WebSocket below the control prefix, which becomes an exec of a shell by the Kubernetes API.

    GET pods/NAMESPACE/NAME/terminal?container=   Upgrade: websocket, v5.channel.k8s.io

Invariant: it is reached after the checks of the control prefix only, and runs what an exec in the container would.

Specified by: k8s.io/kubelet/pkg/cri/streaming/remotecommand (v5.channel.k8s.io).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote, urlencode

from fakekube.cluster.control.paths import PREFIX
from fakekube.net.wsgi import path_of

if TYPE_CHECKING:
    from fakekube.cluster import Cluster


_PATH: Final = re.compile(rf"{PREFIX}v1/pods/([^/]+)/([^/]+)/terminal")
#: Headers of the browser that are no business of the API: the control prefix has checked them.
_REMOVED: Final = frozenset({"HTTP_COOKIE", "HTTP_ORIGIN", "HTTP_SEC_FETCH_SITE", "HTTP_SEC_FETCH_MODE", "HTTP_SEC_FETCH_DEST"})


class Terminal:
    """Passes terminals on to the Kubernetes API.

    Args:
        cluster: whose administrator the page is.
        api: the application of the Kubernetes API.
    """

    def __init__(self, cluster: Cluster, api: Callable[..., Iterable[bytes]]) -> None:
        self._cluster, self._api = cluster, api

    def is_wanted(self, environ: dict[str, Any]) -> bool:
        """Reports whether a request opens a terminal."""
        return environ.get("HTTP_UPGRADE", "").lower() == "websocket" and _PATH.fullmatch(path_of(environ)) is not None

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Serves one terminal."""
        place = _PATH.fullmatch(path_of(environ))
        assert place is not None
        container = parse_qs(environ.get("QUERY_STRING", "")).get("container", [""])[0]
        query = {"command": "sh", "stdin": "true", "stdout": "true", "tty": "true"}
        if container:
            query["container"] = container
        path = f"/api/v1/namespaces/{place[1]}/pods/{place[2]}/exec"
        passed = {name: value for name, value in environ.items() if name not in _REMOVED}
        passed |= {
            "PATH_INFO": path.encode().decode("latin-1"),
            "QUERY_STRING": urlencode(query),
            "REQUEST_URI": f"{quote(path)}?{urlencode(query)}",
            "HTTP_AUTHORIZATION": f"Bearer {self._cluster.token}",
        }
        return self._api(passed, start_response)
