"""Two ways to a server: HTTP by a socket, and the WSGI application of a cluster in this process.

Both send what a client sends and give what a client sees. In process a watch costs no time: when nothing more is there,
the cluster's clock moves to where something could come.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import ssl
import urllib.parse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from fakekube import Cluster
from fakekube.net.environ import ConnectionVariables, base_environ, make_environ
from fakekube.net.http1 import ProtocolError, RequestParser
from tests.differential.pacing import ClusterTime, Pace, RealTime

#: What recordings call the server, whatever its address.
HOST, PORT = "127.0.0.1", 6443
END_OF_STREAM = "<end of stream>"


class Reply:
    """An HTTP answer: `status`, `headers` (lower case), `body` (bytes), `json` (or None), `rv` and `uid` of the object."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body
        try:
            self.json = json.loads(body)
        except ValueError:
            self.json = None

    def get(self, *path: str | int, default: Any = None) -> Any:
        """The value at a path into the body."""
        value = self.json
        for step in path:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return default
        return value

    @property
    def rv(self) -> str:
        return self.get("metadata", "resourceVersion", default="")

    @property
    def uid(self) -> str:
        return self.get("metadata", "uid", default="")


def joined(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Headers by lower-case name; those that occur twice are joined by `||`."""
    headers: dict[str, str] = {}
    for name, value in pairs:
        key = name.lower()
        headers[key] = f"{headers[key]} || {value}" if key in headers else value
    return headers


class Transport(Protocol):
    """One client's way to a server."""

    host: str
    port: int
    pace: Pace

    def send(self, method: str, target: str, data: bytes | None, headers: dict[str, str]) -> Reply:
        """Send one request; the status is -1 when there is no HTTP answer."""

    def watch(
        self, target: str, headers: dict[str, str], quiet: float, limit: int, then: Callable[[], Any] | None
    ) -> tuple[Reply, list[Any]]:
        """Watch until nothing came for `quiet` seconds or `limit` events came; `then` is called once the stream is open."""

    def close(self) -> None:
        """End the connection."""


class HttpTransport:
    """Over a socket. `url` may carry a token: https://TOKEN@HOST:PORT; `certificates` is a folder that `certificates.make` filled."""

    def __init__(self, url: str, certificates: Path = Path()) -> None:
        self.certificates = certificates
        parts = urllib.parse.urlsplit(url)
        self.host, self.port, self.tls = parts.hostname or "", parts.port or 0, parts.scheme == "https"
        self.token = urllib.parse.unquote(parts.username or "")
        self.pace: Pace = RealTime()
        self._connection: http.client.HTTPConnection | None = None

    def connect(self, timeout: float = 60) -> http.client.HTTPConnection:
        """A connection of its own."""
        if self.tls:
            context = ssl._create_unverified_context()
            return http.client.HTTPSConnection(self.host, self.port, context=context, timeout=timeout)
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def authorized(self, headers: dict[str, str]) -> dict[str, str]:
        """The headers with the token, unless they say who asks."""
        return {"Authorization": f"Bearer {self.token}", **headers} if self.token else headers

    def send(self, method: str, target: str, data: bytes | None, headers: dict[str, str]) -> Reply:
        headers = self.authorized(headers)
        for attempt in (1, 2):
            if self._connection is None:
                self._connection = self.connect()
            try:
                self._connection.request(method, target, body=data, headers=headers)
                answer = self._connection.getresponse()
                reply = Reply(answer.status, joined(answer.getheaders()), answer.read())
            except (http.client.HTTPException, OSError) as error:
                self.close()
                if attempt == 2:
                    return Reply(-1, {}, f"no HTTP answer: {type(error).__name__}".encode())
            else:
                if answer.will_close:
                    self.close()
                return reply
        raise AssertionError

    def watch(
        self, target: str, headers: dict[str, str], quiet: float, limit: int, then: Callable[[], Any] | None
    ) -> tuple[Reply, list[Any]]:
        connection = self.connect(timeout=max(quiet, 3))
        events: list[Any] = []
        reply = Reply(-1, {}, b"")
        try:
            connection.request("GET", target, headers=self.authorized(headers))
            answer = connection.getresponse()
            if answer.status != 200:
                return Reply(answer.status, joined(answer.getheaders()), answer.read()), events
            reply = Reply(200, joined(answer.getheaders()), b"")
            if then:
                then()
            (connection.sock or answer.fp.raw._sock).settimeout(quiet)
            while len(events) < limit:
                line = answer.readline()
                if not line:
                    events.append(END_OF_STREAM)
                    break
                events.append(json.loads(line))
        except TimeoutError:
            pass
        except (http.client.HTTPException, OSError, ValueError) as error:
            events.append(f"<{type(error).__name__}>")
        finally:
            connection.close()
        return reply, events

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class InProcessTransport:
    """The WSGI application of a cluster, whose clock is held."""

    host, port = HOST, PORT

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.pace: Pace = ClusterTime(cluster.clock)
        self._variables = ConnectionVariables(base_environ(HOST, PORT, "http") | {"REMOTE_ADDR": HOST})

    def _call(self, method: str, target: str, data: bytes | None, headers: dict[str, str]) -> tuple[int, dict[str, str], Any]:
        """What the server makes of the bytes of a request, but for the socket: status, headers and body."""
        headers = {"Host": f"{HOST}:{PORT}", "Accept-Encoding": "identity", **headers}
        lines = [f"{method} {target} HTTP/1.1"]
        if data is not None or method in ("POST", "PUT", "PATCH"):
            lines.append(f"Content-Length: {len(data or b'')}")
        lines += [f"{name}: {value}" for name, value in headers.items()]
        parser = RequestParser()
        parser.feed("\r\n".join([*lines, "", ""]).encode("latin-1"))
        try:
            request = parser.request()
        except ProtocolError as refused:
            head, _, text = refused.answer.partition(b"\r\n\r\n")
            status, *fields = head.decode("latin-1").split("\r\n")
            return int(status.split()[1]), joined([tuple(field.split(": ", 1)) for field in fields]), [text]
        assert request is not None
        environ = make_environ(self._variables, request, io.BytesIO(data or b""))
        started: list[Any] = []
        body = self.cluster.application(environ, lambda status, fields, error=None: started.extend((status, fields)))
        return int(started[0].partition(" ")[0]), joined(started[1]), body

    def send(self, method: str, target: str, data: bytes | None, headers: dict[str, str]) -> Reply:
        status, fields, body = self._call(method, target, data, headers)
        with contextlib.closing(body) if hasattr(body, "close") else contextlib.nullcontext():
            text = b"".join(_until_end(body, self.pace) if hasattr(body, "take") else body)
        return Reply(status, fields, b"" if method == "HEAD" else text)

    def watch(
        self, target: str, headers: dict[str, str], quiet: float, limit: int, then: Callable[[], Any] | None
    ) -> tuple[Reply, list[Any]]:
        status, fields, body = self._call("GET", target, None, headers)
        if not hasattr(body, "take"):
            text = b"".join(body)
            if status != 200:
                return Reply(status, fields, text), []
            return Reply(status, fields, b""), [*map(json.loads, text.splitlines()), END_OF_STREAM][:limit]
        with contextlib.closing(body):
            if then:
                then()
            try:
                return Reply(status, fields, b""), self._events(body, quiet, limit)
            except ValueError as error:
                return Reply(status, fields, b""), [f"<{type(error).__name__}>"]

    def stream(self, target: str, headers: dict[str, str]) -> Any:
        """A watch as a stream (`fakekube.net.streams.Stream`), for whoever reads it now and then."""
        return self._call("GET", target, None, headers)[2]

    def _events(self, stream: Any, quiet: float, limit: int) -> list[Any]:
        events: list[Any] = []
        left = quiet
        while len(events) < limit:
            lines = b"".join(iter(partial(_taken, stream), b"")).splitlines()
            if lines:
                events += map(json.loads, lines)
                left = quiet
            elif stream.ended:
                events.append(END_OF_STREAM)
            elif left <= 0:
                break
            else:
                due = left if stream.deadline is None else stream.deadline - self.pace.monotonic()
                step = min(left, max(due, 0.001))
                self.pace.sleep(step)
                left -= step
                continue
            if events and events[-1] == END_OF_STREAM:
                break
        return events[:limit]

    def close(self) -> None:
        """Nothing is open."""


def _taken(stream: Any) -> bytes:
    return b"".join(stream.take())


def _until_end(stream: Any, pace: Pace) -> list[bytes]:
    """All frames of a stream, by moving the clock to its end; ten minutes at most."""
    frames: list[bytes] = []
    end = pace.monotonic() + 600
    while pace.monotonic() < end:
        found = stream.take()
        frames += found
        if not found:
            if stream.ended:
                break
            pace.sleep(0.5)
    return frames
