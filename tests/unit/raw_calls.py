"""Requests over a socket with any Host and any headers."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from fakekube import Cluster

__all__ = ["Call", "call"]


@dataclass(slots=True, frozen=True)
class Call:
    """A request; `host` is the value of Host, by default the address of the server."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    host: str = ""

    def to(self, path: str) -> Call:
        return replace(self, path=path)


def call(cluster: Cluster, request: Call) -> tuple[int, bytes]:
    """Sends a request and returns the status and the body of the response."""
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(cluster.url).port, timeout=60)
    try:
        connection.putrequest(request.method, request.path, skip_host=bool(request.host), skip_accept_encoding=True)
        if request.host:
            connection.putheader("Host", request.host)
        for name, value in request.headers.items():
            connection.putheader(name, value)
        if request.body:
            connection.putheader("Content-Length", str(len(request.body)))
        connection.endheaders(request.body or None)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()
