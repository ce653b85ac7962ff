"""The proxy to a forwarded Service."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from fakekube import Cluster

BASE = "/api/v1/namespaces/default/services"
LINKS = b'<a href="/abs">a</a><a href="rel">r</a><a href="http://example.com/x">e</a>'


class Behind(BaseHTTPRequestHandler):
    """Tells what it was asked."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _answer(self) -> None:
        if self.headers.get("Transfer-Encoding"):
            body = b"".join(self._chunks())
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if "Upgrade" in self.headers and self.path == "/parrot":
            self.connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: parrot\r\n\r\n")
            self.connection.sendall(self.connection.recv(100) * 2)
            self.close_connection = True
            return
        asked = {"method": self.command, "target": self.path, "size": len(body), "headers": dict(self.headers)}
        moved, page = self.path == "/moved", self.path == "/page"
        answer = LINKS if page else json.dumps(asked).encode()
        self.send_response(302 if moved else 200)
        self.send_header("Content-Type", "text/html" if page else "application/json")
        self.send_header("Content-Length", str(len(answer)))
        if moved:
            self.send_header("Location", "/there/")
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else answer)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _answer


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Behind)
    threading.Thread(target=server.serve_forever, args=(0.005,), daemon=True).start()
    with Cluster(profile="apiserver") as cluster:
        cluster.services.forward("default/web", server.server_address[1])
        yield cluster
    server.shutdown()
    server.server_close()


def connection(cluster: Cluster) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(cluster.url.removeprefix("http://"), timeout=60)


def ask(cluster: Cluster, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Any]:
    client = connection(cluster)
    client.request(method, path if path.startswith("/") else f"{BASE}/{path}", body, headers, encode_chunked=True)
    answer = client.getresponse()
    content = answer.read()
    client.close()
    is_json = "json" in (answer.headers["Content-Type"] or "")
    return answer.status, answer.headers, json.loads(content) if content and is_json else content


def test_a_request_is_forwarded_unchanged(cluster: Cluster) -> None:
    status, _, asked = ask(cluster, "GET", "web:80/proxy/a%20b/c/?z=1&a=b+c", **{"X-Mine": "1"})
    assert (status, asked["method"], asked["target"]) == (200, "GET", "/a%20b/c/?z=1&a=b+c")
    assert asked["headers"]["X-Forwarded-Uri"] == f"{BASE}/web:80/proxy/a%20b/c/"
    assert asked["headers"]["Host"] == cluster.url.removeprefix("http://")
    assert asked["headers"]["X-Mine"] == "1"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_bodies_are_forwarded(cluster: Cluster, method: str) -> None:
    assert ask(cluster, method, "web/proxy/x", b"y" * 5_000_000)[2]["size"] == 5_000_000


def test_chunked_bodies_are_forwarded(cluster: Cluster) -> None:
    _, _, asked = ask(cluster, "POST", "web/proxy/x", iter([b"one", b"two"]), **{"Transfer-Encoding": "chunked"})
    assert asked["size"] == 6
    assert asked["headers"]["Transfer-Encoding"] == "chunked"


def test_a_path_without_a_trailing_slash_is_redirected(cluster: Cluster) -> None:
    status, headers, content = ask(cluster, "GET", "web/proxy?a=b")
    assert (status, headers["Location"], content) == (301, f"{BASE}/web/proxy/?a=b", b"")
    assert ask(cluster, "POST", "web/proxy")[2]["target"] == "/"


def test_links_and_redirects_are_rewritten(cluster: Cluster) -> None:
    status, headers, _ = ask(cluster, "GET", "web/proxy/moved")
    assert (status, headers["Location"]) == (302, f"{BASE}/web/proxy/there/")
    page = ask(cluster, "GET", "web/proxy/page")[2].decode()
    assert page == f'<a href="{BASE}/web/proxy/abs">a</a><a href="rel">r</a><a href="http://example.com/x">e</a>'


def test_upgraded_connections_are_forwarded(cluster: Cluster) -> None:
    host, port = cluster.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as client:
        head = f"GET {BASE}/web/proxy/parrot HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: parrot\r\n\r\n"
        client.sendall(head.encode())
        assert client.recv(4096).startswith(b"HTTP/1.1 101 ")
        client.sendall(b"hi")
        assert client.recv(4096) == b"hihi"


def test_a_refused_upgrade_is_an_error(cluster: Cluster) -> None:
    status, _, told = ask(cluster, "GET", "web/proxy/x", Connection="Upgrade", Upgrade="parrot")
    assert (status, told["message"]) == (500, "invalid upgrade response: status code 200")


def test_an_unreachable_server_is_a_503(cluster: Cluster) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    cluster.services.forward("default/gone", port)
    status, _, told = ask(cluster, "GET", "gone/proxy/x")
    assert (status, told["reason"]) == (503, "ServiceUnavailable")
    assert told["message"] == f"error trying to reach service: dial tcp 127.0.0.1:{port}: connect: connection refused"
    told = ask(cluster, "GET", "gone/proxy/x", Connection="Upgrade", Upgrade="parrot")[2]
    assert told["message"] == f"error dialing backend: dial tcp 127.0.0.1:{port}: connect: connection refused"


def test_ports_of_an_existing_service_are_checked(cluster: Cluster) -> None:
    service = {"metadata": {"name": "web"}, "spec": {"ports": [{"name": "http", "port": 80}]}}
    ask(cluster, "POST", BASE, json.dumps(service), **{"Content-Type": "application/json"})
    try:
        assert [ask(cluster, "GET", f"{name}/proxy/x")[0] for name in ("web:http", "http:web:80")] == [200, 200]
        assert ask(cluster, "GET", "web:81/proxy/x")[2]["message"] == 'no service port 81 found for service "web"'
        assert ask(cluster, "GET", "web/proxy/x")[0] != 200
    finally:
        ask(cluster, "DELETE", f"{BASE}/web")


def test_a_service_that_is_neither_forwarded_nor_created_has_no_endpoints(cluster: Cluster) -> None:
    assert ask(cluster, "GET", "other/proxy/x")[2]["message"] == 'no endpoints available for service "other"'
