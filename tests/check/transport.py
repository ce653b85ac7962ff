"""Requests to an API server like those of client-go: kubeconfig, token files, Retry-After, streams of lines.

Each request has a connection of its own, so that a broken connection concerns exactly one request. An error of the server is an
`ApiError` with its Status; an error of the network is `Broken`.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import http.client
import json
import os
import socket
import ssl
import tempfile
import threading
import time
import urllib.parse
import zlib
from collections.abc import Iterator
from typing import Any

import yaml
from defects import active

#: How many times a request with Retry-After is sent at most.
MAX_RETRIES = 10
#: After how many seconds a token file is read again.
TOKEN_PERIOD = 60.0
#: The timeout of requests other than watches, in seconds.
REQUEST_TIMEOUT = 30.0


class ApiError(Exception):
    """The server refused a request, with `code` and `reason` of its Status."""

    def __init__(self, status: dict[str, Any], code: int, retry_after: float | None = None, *, in_stream: bool = False) -> None:
        super().__init__(f"{code} {status.get('reason', '')}: {status.get('message', '')}"[:300])
        if active("N1-status") and set(status) - {
            "kind",
            "apiVersion",
            "metadata",
            "status",
            "message",
            "reason",
            "details",
            "code",
        }:
            crash(f"unexpected fields of a Status: {sorted(status)}")
        self.code = code
        self.in_stream = in_stream
        self.reason = str(status.get("reason", ""))
        details = status.get("details") or {}
        self.causes = [cause.get("reason") for cause in details.get("causes") or ()]
        self.message = str(status.get("message", ""))
        if retry_after is None and details.get("retryAfterSeconds"):
            retry_after = float(details["retryAfterSeconds"])
        self.retry_after = retry_after

    @property
    def expired(self) -> bool:
        return self.code == 410 or self.reason in {"Expired", "Gone"}

    @property
    def too_large_revision(self) -> bool:
        return self.code == 504 and ("ResourceVersionTooLarge" in self.causes or "Too large resource version" in self.message)


class Broken(Exception):
    """The connection was refused or reset, or timed out."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(f"{type(cause).__name__}: {cause}")
        self.refused = isinstance(cause, ConnectionRefusedError)


def crash(message: str) -> None:
    """Ends the program as an unhandled error does."""
    print(f"fatal: {message}", flush=True)
    os._exit(1)


#: Connections that a defect keeps.
_leaked: list[http.client.HTTPConnection] = []


class Credentials:
    """The token and the certificates of a user of a kubeconfig; a token file is read again each minute, and after a 401."""

    def __init__(self, user: dict[str, Any], folder: str) -> None:
        self._token = user.get("token")
        self._file = os.path.join(folder, user["tokenFile"]) if user.get("tokenFile") else None
        self._read_at = -TOKEN_PERIOD
        self._reads = 0
        self._lock = threading.Lock()

    def token(self) -> str | None:
        with self._lock:
            if self._file and time.monotonic() - self._read_at >= TOKEN_PERIOD:
                self._reads += 1
                if not (active("A1-once") and self._token) and not (active("A1-twice") and self._reads > 2):
                    with open(self._file, encoding="utf-8") as file:
                        self._token = file.read().strip()
                self._read_at = time.monotonic()
            return self._token

    def refused(self) -> None:
        """Makes the next request read the token file again, after a 401."""
        if active("A1-crash"):
            crash("unauthorized")
        with self._lock:
            self._read_at = -TOKEN_PERIOD


class Api:
    """One user of one cluster, from a kubeconfig.

    Args:
        path: the kubeconfig; without it the first of the environment's KUBECONFIG.
        agent: the User-Agent.
    """

    def __init__(self, path: str | None, agent: str) -> None:
        path = path or os.environ["KUBECONFIG"].split(os.pathsep)[0]
        folder = os.path.dirname(os.path.abspath(path))
        with open(path, encoding="utf-8") as file:
            config = yaml.safe_load(file)

        def named(kind: str, name: str) -> dict[str, Any]:
            return next(entry[kind] for entry in config[f"{kind}s"] if entry["name"] == name) or {}

        context = named("context", config["current-context"])
        cluster, user = named("cluster", context["cluster"]), named("user", context["user"])
        self.url = urllib.parse.urlsplit(cluster["server"])
        self._agent = agent
        self._credentials = Credentials(user, folder)
        self._tls = _tls_context(cluster, user, folder) if self.url.scheme == "https" else None

    def _send(
        self, method: str, path: str, query: dict[str, str], body: Any, headers: dict[str, str], timeout: float | None
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        host, port = self.url.hostname or "localhost", self.url.port
        if self._tls:
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(host, port, timeout=10.0, context=self._tls)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=10.0)
        sent = {"Accept": "application/json", "Accept-Encoding": "gzip", "User-Agent": self._agent, **headers}
        if active("N2-agent"):
            sent["User-Agent"] = "Python-urllib/3.11"
        if active("N2-none"):
            del sent["User-Agent"]
        token = self._credentials.token()
        if token:
            sent["Authorization"] = f"Bearer {token}"
        data = None if body is None else json.dumps(body).encode()
        target = self.url.path.rstrip("/") + path + (f"?{urllib.parse.urlencode(query)}" if query else "")
        try:
            connection.connect()
            connection.sock.settimeout(timeout)
            connection.request(method, target, data, sent)
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Broken(error) from error
        if active("N1-warning") and response.getheader("Warning"):
            crash(f"unexpected header Warning: {response.getheader('Warning')}")
        return connection, response

    def _attempt(
        self, method: str, path: str, query: dict[str, str], body: Any, headers: dict[str, str]
    ) -> tuple[dict[str, Any] | None, ApiError | None]:
        connection, response = self._send(method, path, query, body, headers, REQUEST_TIMEOUT)
        try:
            data = _decoded(response, response.read())
        except (OSError, http.client.HTTPException) as error:
            data = _salvaged(error) if method == "GET" else None
            if data is None:
                raise Broken(error) from error
        finally:
            _close(connection, response)
        if response.status < 400:
            parsed = json.loads(data) if data else {}
            return parsed, None
        return None, self._refusal(response, data)

    def _refusal(self, response: http.client.HTTPResponse, data: bytes) -> ApiError:
        if response.status == 401:
            self._credentials.refused()
        try:
            status = json.loads(data)
        except ValueError:
            if active("R1-text") or (active("R2-page") and b"<html" in data):
                crash(f"cannot understand {data[:40]!r}")
            status = None
        if not isinstance(status, dict):
            status = {"message": data.decode(errors="replace")}
        header = response.getheader("Retry-After", "")
        if active("R1-date") and header and not header.isdigit():
            crash(f"not a number: {header}")
        return ApiError(status, response.status, float(header) if header.isdigit() else None)

    def request(
        self, method: str, path: str, query: dict[str, str] | None = None, body: Any = None, **headers: str
    ) -> dict[str, Any]:
        """Returns the decoded answer. Repeats a request after a 429 or server error with Retry-After, up to ten times.

        Raises:
            ApiError: the server refused.
            Broken: there was no answer, or not all of it.
        """
        names = {name.replace("_", "-").title(): value for name, value in headers.items()}
        if body is not None:
            names.setdefault("Content-Type", "application/json")
        for tried in range(MAX_RETRIES + 1):
            answer, error = self._attempt(method, path, query or {}, body, names)
            if error is None:
                assert answer is not None
                return answer
            wait = retry_wait(error, tried)
            if wait is None:
                raise error
            time.sleep(wait)
        raise AssertionError

    def stream(self, path: str, query: dict[str, str], idle: float | None) -> Iterator[bytes]:
        """Yields the lines of a watch, until the server ends the stream; an incomplete line is dropped.

        Raises:
            ApiError: the watch was refused.
            Broken: the connection broke, or nothing came for `idle` seconds.
        """
        for tried in range(MAX_RETRIES + 1):
            connection, response = self._send("GET", path, query, None, {}, idle or REQUEST_TIMEOUT)
            try:
                if response.status < 400:
                    if connection.sock is not None:
                        connection.sock.settimeout(idle)
                    yield from _lines(response)
                    return
                error = self._refusal(response, _decoded(response, response.read()))
            except (OSError, http.client.HTTPException) as cause:
                raise Broken(cause) from cause
            finally:
                _shut(connection)
                response.close()
                connection.close()
            wait = retry_wait(error, tried)
            if wait is None:
                raise error
            time.sleep(wait)


def retry_wait(error: ApiError, tried: int) -> float | None:
    """Returns how many seconds to wait before repeating a refused request; None if the transport does not repeat it."""
    if error.retry_after is None or (error.code != 429 and error.code < 500) or error.too_large_revision or tried == MAX_RETRIES:
        return None
    if active("R1-stop"):
        print("told to retry later: stop", flush=True)
        while True:
            time.sleep(3600)
    if active("R1-five") and tried == 4:
        crash("refused too often")
    if active("R1-ignore"):
        return 0.0
    if active("R1-second"):
        return 1.0
    return error.retry_after


def _close(connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
    if active("N3-leaks"):
        _leaked.append(connection)
    else:
        response.close()
        connection.close()


def _shut(connection: http.client.HTTPConnection) -> None:
    if connection.sock is not None:
        with contextlib.suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)


def _salvaged(error: Exception) -> bytes | None:
    """A defect: what has arrived of an answer that broke off, with what it lacks."""
    if not isinstance(error, http.client.IncompleteRead):
        return None
    data = error.partial
    while active("R7-half") and b'"items"' in data and b"}" in data:
        with contextlib.suppress(ValueError):
            return json.dumps(json.loads(data + b"]}")).encode()
        data = data[: data.rindex(b"}", 0, -1) + 1]
    return None


def _decoded(response: http.client.HTTPResponse, data: bytes) -> bytes:
    if active("N1-gzip") and response.getheader("Content-Encoding") == "gzip":
        crash("cannot understand gzip")
    return gzip.decompress(data) if response.getheader("Content-Encoding") == "gzip" else data


def _pieces(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """Yields what arrives of a stream; a compressed one consists of many members of gzip."""
    if response.getheader("Content-Encoding") != "gzip":
        while piece := response.read1(65536):
            yield piece
        return
    member = zlib.decompressobj(16 + zlib.MAX_WBITS)
    while piece := response.read1(65536):
        while piece:
            yield member.decompress(piece)
            piece = member.unused_data if member.eof else b""
            if member.eof:
                member = zlib.decompressobj(16 + zlib.MAX_WBITS)


def _lines(response: http.client.HTTPResponse) -> Iterator[bytes]:
    limit = 65536 if active("W9-limit") else 4 << 20 if active("W9-limit-4m") else None
    buffer = bytearray()
    for arrived in _pieces(response):
        piece = arrived
        if active("W8-chunks"):
            yield piece
            continue
        if active("W8-characters"):
            piece = piece.decode().encode()
        if active("W8-replaces"):
            piece = piece.decode(errors="replace").encode()
        searched = len(buffer)
        buffer += piece
        while (end := buffer.find(b"\n", searched)) >= 0:
            line = bytes(buffer[:end])
            del buffer[: end + 1]
            searched = 0
            if limit is not None and len(line) > limit:
                raise ValueError("line too long")
            if line.strip():
                yield line
            if active("W8-first"):
                buffer.clear()
        if limit is not None and len(buffer) > limit:
            raise ValueError("line too long")


def _tls_context(cluster: dict[str, Any], user: dict[str, Any], folder: str) -> ssl.SSLContext:
    def data(entry: dict[str, Any], key: str) -> bytes | None:
        if entry.get(f"{key}-data"):
            return base64.b64decode(entry[f"{key}-data"])
        if entry.get(key):
            with open(os.path.join(folder, entry[key]), "rb") as file:
                return file.read()
        return None

    authority = data(cluster, "certificate-authority")
    context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate, key = data(user, "client-certificate"), data(user, "client-key")
    if certificate and key:
        with tempfile.NamedTemporaryFile() as file:
            file.write(certificate + b"\n" + key)
            file.flush()
            context.load_cert_chain(file.name)
    return context
