"""One scenario's view of one server, which records every exchange.

Invariant: what a scenario sends depends on its seed and on the answers before, never on the server's address or the time.
"""

from __future__ import annotations

import json
import secrets
import urllib.parse
from collections.abc import Callable
from typing import Any

from tests.differential.transports import Reply, Transport

JSON = "application/json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"

#: The response headers that a client can see and act on.
HEADERS = (
    "content-type", "content-encoding", "warning", "retry-after", "cache-control", "allow", "location",
    "x-content-type-options", "vary", "link", "www-authenticate",
)  # fmt: skip

Exchange = dict[str, Any]
"""`request` (method, path, query, accept, type, body), `status`, `headers`, and `body` or `events`."""


class Verbs:
    """A method for each verb of HTTP, by `request`."""

    def request(
        self, method: str, path: str, body: Any = None, query: dict[str, Any] | str | None = None, *,
        ctype: str | None = None, headers: dict[str, str] | None = None, silent: bool = False,
    ) -> Reply:  # fmt: skip
        """Send one request. `body` is bytes, text, or an object to be sent as JSON; a `silent` one is not recorded."""
        raise NotImplementedError

    def get(self, path: str, query: Any = None, **kw: Any) -> Reply:
        return self.request("GET", path, None, query, **kw)

    def post(self, path: str, body: Any, query: Any = None, **kw: Any) -> Reply:
        return self.request("POST", path, body, query, **kw)

    def put(self, path: str, body: Any, query: Any = None, **kw: Any) -> Reply:
        return self.request("PUT", path, body, query, **kw)

    def patch(self, path: str, body: Any, ctype: str, query: Any = None, **kw: Any) -> Reply:
        return self.request("PATCH", path, body, query, ctype=ctype, **kw)

    def delete(self, path: str, body: Any = None, query: Any = None, **kw: Any) -> Reply:
        return self.request("DELETE", path, body, query, **kw)


class Client(Verbs):
    """`ns` is a namespace of the scenario's own, `name(x)` a cluster-wide name of its own; `transcript` is what was exchanged.

    `features` are what the server has and most have not: see `registry.Scenario.needs`.
    """

    def __init__(self, transport: Transport, features: frozenset[str] = frozenset(), identity: str = "") -> None:
        self.transport, self.features = transport, features
        self.host, self.port = transport.host, transport.port
        self.id = identity or secrets.token_hex(4)
        """Fresh unless it is given, so that a server can be asked again; written as zeros in the transcript."""
        self.ns = f"d-{self.id}"
        self.transcript: list[Exchange] = []
        self.set_up()

    def name(self, suffix: str) -> str:
        """A cluster-wide name that no other scenario has."""
        return f"d-{self.id}-{suffix}"

    def set_up(self) -> None:
        """Make the namespace."""
        self.request("POST", "/api/v1/namespaces", {"metadata": {"name": self.ns}}, silent=True)

    def headers(self, more: dict[str, str] | None = None) -> dict[str, str]:
        """The headers of every request, and some more."""
        return {"Accept": JSON, "User-Agent": "replay/1", **(more or {})}

    def request(
        self, method: str, path: str, body: Any = None, query: dict[str, Any] | str | None = None, *,
        ctype: str | None = None, headers: dict[str, str] | None = None, silent: bool = False,
    ) -> Reply:  # fmt: skip
        target = urllib.parse.quote(path, safe="/:%@!$&'()*+,;=~") + (f"?{encode_query(query)}" if query else "")
        sent = self.headers(headers)
        data: bytes | None = None
        if body is not None:
            data = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
            if ctype != "":
                sent["Content-Type"] = ctype or JSON
        reply = self.transport.send(method, target, data, sent)
        if not silent:
            self._record(method, path, query, body, sent, reply)
        return reply

    def watch(
        self, path: str, query: dict[str, Any] | None = None, *, quiet: float = 0.5, limit: int = 1000,
        headers: dict[str, str] | None = None, then: Callable[[], Any] | None = None,
    ) -> list[Any]:  # fmt: skip
        """Watch until nothing came for `quiet` seconds, or `limit` events came, and record the events.

        `then` is called once the stream is open; its requests are recorded before the watch.
        """
        query = {"watch": "1", **(query or {})}
        sent = self.headers(headers)
        reply, events = self.transport.watch(f"{path}?{encode_query(query)}", sent, quiet, limit, then)
        self._record("WATCH", path, query, None, sent, reply, events)
        return events

    def _record(
        self, method: str, path: str, query: Any, body: Any, sent: dict[str, str], reply: Reply, events: list[Any] | None = None
    ) -> None:
        exchange: Exchange = {
            "request": {
                "method": method, "path": path, "query": query, "accept": sent["Accept"], "type": sent.get("Content-Type", ""),
                "body": body if isinstance(body, dict | list | str | None) else repr(body),
            },
            "status": reply.status,
            "headers": {h: reply.headers[h] for h in HEADERS if h in reply.headers},
        }  # fmt: skip
        if events is not None:
            exchange["events"] = events
        if reply.body:
            exchange["body"] = reply.json if reply.json is not None else reply.body.decode("latin-1")
        self.transcript.append(exchange)

    def close(self) -> None:
        """End the connection."""
        self.transport.close()


def encode_query(query: Any) -> str:
    """A query as text, or as what `urlencode` takes."""
    return query if isinstance(query, str) else urllib.parse.urlencode(query, doseq=True)
