"""What the tests of HTTP/2 share: servers that offer it, and clients."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fakekube.net import Server
from fakekube.net.certificates import Credentials, credentials
from tests.unit.net.http2.client import Client


@pytest.fixture(scope="session")
def given() -> Credentials:
    return credentials(http2=True)


@pytest.fixture(scope="session")
def context(given: Credentials) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=given.ca_certificate)
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


@pytest.fixture
def serve_http2(serve: Callable[..., Server], given: Credentials) -> Callable[..., Server]:
    return lambda application, **options: serve(application, tls=given.context, **options)


@pytest.fixture
def connect_http2(context: ssl.SSLContext) -> Iterator[Callable[..., Client]]:
    """Connect to a server; closed at the end."""
    clients: list[Client] = []

    def open_one(server: Server, **options: Any) -> Client:
        clients.append(Client(server.port, context, **options))
        return clients[-1]

    yield open_one
    for client in clients:
        client.close()
