"""The HTTP client of the behaviour tests (for fakekube or the server of --target), with a namespace per test."""

from __future__ import annotations

import http.client
import json
import secrets
import ssl
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

JSON = "application/json"


@dataclass(slots=True)
class Reply:
    """An answer: status, headers by lower-case name, body, and the body as JSON (None if it is none)."""

    status: int
    headers: dict[str, str]
    body: bytes
    json: Any = None

    def __post_init__(self) -> None:
        try:
            self.json = json.loads(self.body)
        except (ValueError, RecursionError):  # some answers are deeper than this reader goes
            self.json = None

    def at(self, *path: str | int, default: Any = None) -> Any:
        """The value at a path into the body."""
        value = self.json
        for step in path:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return default
        return value


@dataclass
class Api:
    """A client of one server. `namespace` exists and is empty at the start of a test."""

    url: str
    namespace: str = ""
    suffix: str = field(default_factory=lambda: secrets.token_hex(4))

    def __post_init__(self) -> None:
        parts = urllib.parse.urlsplit(self.url)
        self.host, self.port, self.tls = parts.hostname or "", parts.port, parts.scheme == "https"
        self.token = parts.username or ""
        self.is_ours = not self.token

    def connect(self, timeout: float = 30) -> http.client.HTTPConnection:
        if not self.tls:
            return http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=context)

    def headers(self, more: dict[str, str] | None = None) -> dict[str, str]:
        credentials = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return {"Accept": JSON, "User-Agent": "tests/1", **credentials, **(more or {})}

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Any = None,
        *,
        content_type: str = JSON,
        headers: dict[str, str] | None = None,
        lines: int | None = None,
        elapse: float = 0.0,
    ) -> Reply:
        """Send one request; `body` is bytes, text, or an object to be sent as JSON. Of a stream the first `lines` are read, or all that
        comes until so many seconds have passed.
        """
        target = path + (f"?{query if isinstance(query, str) else urllib.parse.urlencode(query, doseq=True)}" if query else "")
        sent = self.headers(headers)
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
            sent.setdefault("Content-Type", content_type)
        connection = self.connect()
        try:
            connection.request(method, target, body=data, headers=sent)
            answer = connection.getresponse()
            if elapse:
                self.elapse(elapse)
            fields = {name.lower(): ", ".join(answer.headers.get_all(name, ())) for name in answer.headers}
            read = answer.read() if lines is None else b"".join(answer.readline() for _ in range(lines))
            return Reply(answer.status, fields, read)
        finally:
            connection.close()

    def get(self, path: str, query: Any = None, **options: Any) -> Reply:
        return self.request("GET", path, None, query, **options)

    def post(self, path: str, body: Any, query: Any = None, **options: Any) -> Reply:
        return self.request("POST", path, body, query, **options)

    def put(self, path: str, body: Any, query: Any = None, **options: Any) -> Reply:
        return self.request("PUT", path, body, query, **options)

    def patch(self, path: str, body: Any, content_type: str, query: Any = None, **options: Any) -> Reply:
        return self.request("PATCH", path, body, query, content_type=content_type, **options)

    def delete(self, path: str, body: Any = None, query: Any = None, **options: Any) -> Reply:
        return self.request("DELETE", path, body, query, **options)

    def watch(self, path: str, query: dict[str, str], *, count: int) -> list[dict[str, Any]]:
        """The first `count` events of a watch (fewer if the server ends it)."""
        connection = self.connect(timeout=60)
        try:
            connection.request("GET", f"{path}?{urllib.parse.urlencode({'watch': '1', **query})}", headers=self.headers())
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            events = []
            while len(events) < count and (line := answer.readline()):
                events.append(json.loads(line))
            return events
        finally:
            connection.close()

    def elapse(self, seconds: float) -> None:
        """Let the server's time pass: on fakekube by its clock, on another server by waiting."""
        if self.is_ours:
            assert self.post("/fakekube/v1/clock/advance", {"seconds": seconds}).status == 200
        else:
            time.sleep(seconds)

    def compact(self) -> None:
        """Make fakekube forget its history, as another server does every few minutes by itself."""
        if self.is_ours:
            assert self.post("/fakekube/v1/compact", {}).status == 200

    def path(self, plural: str, *rest: str, group: str = "v1") -> str:
        """The path of a namespaced collection in the test's namespace, or of something in it."""
        root = f"/api/{group}" if "/" not in group else f"/apis/{group}"
        return "/".join([f"{root}/namespaces/{self.namespace}/{plural}", *rest])

    def name(self, base: str) -> str:
        """A cluster-wide name that no other test uses."""
        return f"t-{self.suffix}-{base}"


@pytest.fixture(scope="session")
def server_url(request: pytest.FixtureRequest) -> Iterator[str]:
    target = request.config.getoption("--target")
    if target:
        yield target
        return
    from fakekube import Cluster

    with Cluster(profile="apiserver") as cluster:
        cluster._settings.too_large_resource_version_wait = 0.3  # as nothing is written meanwhile, it need not be 3 s
        yield cluster.url


@pytest.fixture
def api(server_url: str) -> Iterator[Api]:
    """A client, with a namespace of its own."""
    client = Api(server_url)
    client.namespace = client.name("ns")
    made = client.post("/api/v1/namespaces", {"metadata": {"name": client.namespace}})
    assert made.status == 201, made.body
    yield client
    client.delete(f"/api/v1/namespaces/{client.namespace}")
