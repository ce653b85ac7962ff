"""The proxy of pods/proxy, services/proxy and nodes/proxy.

The request keeps the Host of the client and has no headers about the user. Redirects and links in the response are rewritten to
lead through the API server. An error before the response is a Status.

Specified by: k8s.io/apimachinery/pkg/util/proxy (upgradeaware.go, transport.go); pkg/registry/core/{pod,service,node}
(ProxyREST).
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from typing import Any

from fakekube.apimachinery.errors import status
from fakekube.apiserver.aggregator import headers as proxy_headers
from fakekube.apiserver.aggregator.backends import BackendError, BackendRequest
from fakekube.apiserver.aggregator.links import Front
from fakekube.apiserver.aggregator.mounted import MountedBackend
from fakekube.apiserver.aggregator.proxy import proxy_response, read_pieces
from fakekube.apiserver.aggregator.remote import RemoteBackend
from fakekube.apiserver.endpoints.request import Request, Response
from fakekube.apiserver.webhooks.transport import Endpoint
from fakekube.net.streaming.kubelet_api import Destination


class UpgradeAwareHandler:
    """Forwards requests to one server.

    Args:
        scheme: "http" or "https". The certificate of the server is not verified.
        host: the host and port of the server in its own links.
        destination: the address of the server, or a WSGI application.
    """

    def __init__(self, scheme: str, host: str, destination: Destination) -> None:
        self._host = host
        self._backend: RemoteBackend | MountedBackend
        if isinstance(destination, tuple):
            self._backend = RemoteBackend(Endpoint(f"{scheme}://{host}", destination, b"", verified=False))
        else:
            self._backend = MountedBackend(destination)

    def respond(self, request: Request, subpath: str) -> Response:
        """Returns the response of the backend.

        Args:
            request: the request of the client.
            subpath: the path after `proxy`; "" if the request path ends with it.

        Raises:
            StatusError: there is no response.
        """
        path = _join_paths("", subpath)
        upgrade = proxy_headers.is_upgrade(request.headers)
        if not path and not upgrade and request.method in ("GET", "HEAD"):
            query = f"?{request.query.raw}" if request.query.raw else ""
            body: Any = () if request.method == "HEAD" else b""
            return Response(301, [("Location", f"{request.path}/{query}")], body)
        suffix = f"{path}/" if request.path.endswith("/") and not path.endswith("/") else path
        prefix = request.path.removesuffix(suffix)
        sent = _new_proxy_request(request, suffix or "/", prefix, upgrade=upgrade)
        if upgrade and isinstance(self._backend, RemoteBackend):
            return _upgrade(self._backend, sent)
        try:
            response = self._backend.send(sent, None)
        except BackendError as error:
            raise status.service_unavailable(f"error trying to reach service: {error}") from None
        front = Front((request.headers.get("host", ""), self._host), prefix=prefix)
        return proxy_response(response, request, front, long_running=True)


def _new_proxy_request(request: Request, path: str, prefix: str, *, upgrade: bool) -> BackendRequest:
    """Returns the request to forward."""
    written = proxy_headers.encoded_path(path)
    found = [("Host", request.headers.get("host", "")), *proxy_headers.request_headers(request.headers, upgrade=upgrade)]
    before = [value for name, value in found if name == "X-Forwarded-For"]
    found = [entry for entry in found if entry[0] not in ("X-Forwarded-For", "X-Forwarded-Uri")]
    if request.address:
        found.append(("X-Forwarded-For", ", ".join([*before, request.address])))
    if upgrade and not any(name == "User-Agent" for name, _ in found):
        found.append(("User-Agent", "Go-http-client/1.1"))
    if not upgrade:
        found.append(("X-Forwarded-Uri", _join_paths(prefix, written)))
    body, length = _body(request)
    return BackendRequest(request.method, written, request.query.raw, found, body, length)


def _join_paths(prefix: str, path: str) -> str:
    """Joins two paths like Go's path.Join, and keeps a trailing slash."""
    if not prefix and not path:
        return ""
    joined = posixpath.normpath(f"{prefix}/{path}")
    joined = "/" + joined.lstrip("/")
    return f"{joined}/" if path.endswith("/") and not joined.endswith("/") else joined


def _body(request: Request) -> tuple[Iterable[bytes], int | None]:
    """Returns the body of a request as a stream, and its length if it is known."""
    length = request.headers.get("content-length")
    if length:
        return read_pieces(request, int(length)), int(length)
    return (read_pieces(request, None), None) if "transfer-encoding" in request.headers else ((), 0)


def _upgrade(backend: RemoteBackend, request: BackendRequest) -> Response:
    from fakekube.apiserver.aggregator.upgrade import UpgradeError, try_upgrade

    try:
        return try_upgrade(backend, request)
    except UpgradeError as error:
        raise status.generic(500, "", str(error)) from None
