"""An API server of its own in a container, which an APIService reaches by a Service: `serve` runs one in a program.

It asks the API server of the cluster with the token of the pod's service account; the users of requests that the API server
forwards are in their X-Remote headers.

Invariant: nothing of the server outlives its program: `serve` closes its watches.

Specified by: k8s.io/apiserver/pkg/authentication/request/headerrequest.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from fakekube.apiserver.auth.authentication import IN_PROCESS_USER
from fakekube.apiserver.auth.identities import with_authenticated
from fakekube.apiserver.endpoints.request import User
from fakekube.apiserver.extension_server import Group, build_extension_server
from fakekube.base.objects import Object
from fakekube.net.streams import Notifier, frames_of, is_stream
from fakekube.nodes.images.programs import SERVICE_ACCOUNT_TOKEN, wait
from fakekube.nodes.images.servers import listen
from fakekube.nodes.runtime.ports import CONNECTION, PEER
from fakekube.nodes.runtime.program import Host, Program

_GROUP, _EXTRA = "HTTP_X_REMOTE_GROUP", "HTTP_X_REMOTE_EXTRA_"


class ClusterClient:
    """Asks the API server of the cluster with the service account of a pod."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def get(self, path: str) -> Object | None:
        """Returns an object; None if there is none. Raises OSError if it cannot be read."""
        return self._send(path, None)

    def review(self, path: str, kind: str, spec: Object) -> Object:
        """Returns the status of a review. Raises OSError if the service account may not create it."""
        group = path.split("/")[2]
        body = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {}, "spec": spec}
        found: Object = (self._send(path, body) or {})["status"]
        return found

    def _send(self, path: str, body: Object | None) -> Object | None:
        token = self._host.files.read(SERVICE_ACCOUNT_TOKEN).decode()
        code, answer = self._host.call_api(path, token, None if body is None else json.dumps(body).encode())
        if code == 404 and body is None:
            return None
        found: Object = json.loads(answer) if answer[:1] == b"{" else {}
        if code >= 300:
            raise OSError(code, found.get("message") or answer.decode("utf-8", "replace"))
        return found


class ExtensionServer:
    """The server, as a WSGI application.

    Args:
        host: the container.
        group: what it serves.
    """

    def __init__(self, host: Host, group: Group) -> None:
        self._application = build_extension_server(group, ClusterClient(host), host.clock)
        self._clock, self._ended, self._end = host.clock, False, Notifier()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Responds to a request."""
        if environ[PEER].is_front_proxy and "HTTP_X_REMOTE_USER" in environ:
            environ[IN_PROCESS_USER] = _remote_user(environ)
        result = self._application(environ, start_response)
        return self._follow(result, environ) if is_stream(result) else result

    def _follow(self, stream: Any, environ: Mapping[str, Any]) -> Iterator[bytes]:
        """Yields the frames of a watch, until the client or the server has gone."""
        client = environ[CONNECTION].to_client

        def check() -> None:
            if client.abandoned or self._ended:
                stream.close()

        for source in (client, self._end):
            source.subscribe(check)
        try:
            yield from frames_of(stream, self._clock, (client, self._end))
        finally:
            for source in (client, self._end):
                source.unsubscribe(check)

    def close(self) -> None:
        """Ends all watches."""
        self._ended = True
        self._end.notify()


def _remote_user(environ: Mapping[str, Any]) -> User:
    """Returns the user in the headers of the API server of the cluster."""
    groups = tuple(filter(None, (one.strip() for one in environ.get(_GROUP, "").split(","))))
    extra = {
        unquote(name.removeprefix(_EXTRA).lower().replace("_", "-")): tuple(one.strip() for one in value.split(","))
        for name, value in environ.items()
        if name.startswith(_EXTRA)
    }
    user = User(environ["HTTP_X_REMOTE_USER"], environ.get("HTTP_X_REMOTE_UID", ""), groups, extra)
    return with_authenticated(user)


async def serve(program: Program, group: Group, port: int, context: ssl.SSLContext) -> int:
    """Serves a group until the program is killed. Raises OSError if the port is taken."""
    server = ExtensionServer(program.host, group)
    try:
        with listen(program, port, server, context):
            return await wait(program)
    finally:
        server.close()
