from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from fakekube.net import Server, certificates, tls
from fakekube.net.certificates import Credentials, credentials
from fakekube.net.tls import TLSTransport, _openssl

TIMEOUT = 60.0

Serve = Callable[..., Server]
Connect = Callable[..., Any]


@pytest.fixture(scope="module")
def given() -> Credentials:
    return credentials()


@pytest.fixture
def context(given: Credentials) -> ssl.SSLContext:
    """As strict as Python 3.13's default."""
    context = ssl.create_default_context(cadata=given.ca_certificate)
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


@dataclass
class Secure:
    """Starts servers with TLS and connects to them."""

    serve: Serve
    connect: Connect
    given: Credentials
    context: ssl.SSLContext

    def start(self, application: Callable[..., Iterable[bytes]]) -> Server:
        return self.serve(application, tls=self.given.context)

    def open(self, server: Server) -> Any:
        return self.connect(server, self.context)

    def open_to(self, application: Callable[..., Iterable[bytes]]) -> Any:
        return self.open(self.start(application))


@pytest.fixture
def secure(serve: Serve, connect: Connect, given: Credentials, context: ssl.SSLContext) -> Secure:
    return Secure(serve, connect, given, context)


def show(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """What the environ says of the client."""
    start_response("200 OK", [])
    shown = [environ["wsgi.url_scheme"], environ["HTTPS"], environ["SSL_CLIENT_VERIFY"]]
    shown += [f"{name}={value}" for name, value in environ.items() if name.startswith("SSL_CLIENT_S_DN")]
    return ["\n".join(shown).encode()]


def test_requests_over_tls(secure: Secure) -> None:
    server = secure.start(show)
    assert server.url == f"https://127.0.0.1:{server.port}"
    client = secure.open(server)
    for _ in range(2):
        client.get()
        assert client.answer()[2] == b"https\non\nNONE"


def test_client_certificate_is_in_the_environ(secure: Secure, tmp_path: Any) -> None:
    path = tmp_path / "client.pem"
    path.write_text(secure.given.client_key + secure.given.client_certificate)
    secure.context.load_cert_chain(path)
    client = secure.open_to(show)
    client.get()
    assert client.answer()[2].decode().split("\n")[2:] == [
        "GENEROUS",
        "SSL_CLIENT_S_DN_O_0=system:masters",
        "SSL_CLIENT_S_DN_O=system:masters",
        "SSL_CLIENT_S_DN_O_1=kubeadm:cluster-admins",
        "SSL_CLIENT_S_DN_CN_0=kubernetes-admin",
        "SSL_CLIENT_S_DN_CN=kubernetes-admin",
    ]


def test_large_request_and_response_bodies_over_tls(secure: Secure) -> None:
    def echo(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        start_response("200 OK", [])
        return [environ["wsgi.input"].read()]

    client = secure.open_to(echo)
    body = bytes(range(256)) * 4000
    client.get("/", f"Content-Length: {len(body)}")
    client.send(body)
    assert client.answer()[2] == body


class Watch:
    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make
        self.streams: list[Any] = []

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [])
        self.streams.append(self.make())
        return self.streams[-1]


def test_streams_over_tls(secure: Secure, topic: Any, make_cursor: Any) -> None:
    watch = Watch(lambda: make_cursor(topic))
    server = secure.start(watch)
    clients = [secure.open(server) for _ in range(5)]
    for client in clients:
        client.get()
        client.head()
    for frame in (b"a", b"b" * 100_000):
        topic.publish(frame)
        for client in clients:
            assert client.chunk() == frame
    clients[0].close()
    assert watch.streams[0].closed.wait(TIMEOUT)
    topic.publish(make_cursor.END)
    for client in clients[1:]:
        assert client.chunk() == b""
        client.get()
        client.head()


def test_slow_client_of_a_tls_stream_gets_all_frames(secure: Secure, topic: Any, make_cursor: Any) -> None:
    watch = Watch(lambda: make_cursor(topic, limit=2))
    server = secure.start(watch)
    slow, fast = secure.open(server), secure.open(server)
    for client in (slow, fast):
        client.get()
        client.head()
    frames = [b"%06d" % number * 20_000 for number in range(150)]
    for frame in frames:
        topic.publish(frame)
        assert fast.chunk() == frame
    assert watch.streams[0].position < len(frames)
    for frame in frames:
        assert slow.chunk() == frame


def test_tls_close_notify_closes_the_stream(secure: Secure, topic: Any, make_cursor: Any) -> None:
    watch = Watch(lambda: make_cursor(topic))
    client = secure.open_to(watch)
    client.get()
    client.head()
    client.socket.setblocking(False)
    with suppress(ssl.SSLWantReadError):
        client.socket.unwrap()
    assert watch.streams[0].closed.wait(TIMEOUT)


def test_server_context_does_not_verify_its_own_certificate(given: Credentials) -> None:
    assert given.context.num_tickets == 1
    if _openssl() is not None:  # OpenSSL verifies the server's certificate if it knows the CA
        assert given.context.get_ca_certs() == []


def test_plain_http_request_to_https_port_returns_400(secure: Secure) -> None:
    client = secure.connect(secure.start(show))
    client.get()
    assert client.rest() == (b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")


def test_client_without_tls_handshake_does_not_block_others(secure: Secure) -> None:
    server = secure.start(show)
    silent = secure.connect(server)
    client = secure.open(server)
    client.get()
    assert client.answer()[0] == "HTTP/1.1 200 OK"
    server.stop()
    assert silent.rest() == b""


def test_client_certificate_of_an_unknown_ca_is_in_the_environ(secure: Secure, tmp_path: Any) -> None:
    """The application authenticates: kube-apiserver answers 401, and accepts a valid token beside an invalid certificate."""
    stranger = certificates.Authority().issue_client("evil", ("system:masters",))
    path = tmp_path / "stranger.pem"
    path.write_text(stranger.key_pem + stranger.pem)
    secure.context.load_cert_chain(path)
    client = secure.open_to(show)
    client.get()
    lines = client.answer()[2].decode().split("\n")
    assert (lines[2], lines[-1]) == ("GENEROUS", "SSL_CLIENT_S_DN_CN=evil")


def test_server_stop_sends_tls_close_notify(secure: Secure, topic: Any, make_cursor: Any) -> None:
    server = secure.start(Watch(lambda: make_cursor(topic)))
    client = secure.open(server)
    client.socket.suppress_ragged_eofs = False
    client.get()
    client.head()
    assert topic.subscribed.wait(TIMEOUT)  # the pump has the stream: before that a stop closes the connection
    stopper = threading.Thread(target=server.stop)
    stopper.start()
    assert client.chunk() == b""
    assert client.rest() == b""
    stopper.join(TIMEOUT)


@pytest.mark.parametrize("option", ["own", "none", "unknown to the system"])
def test_a_transport_that_does_not_block_sends_and_receives_all(
    given: Credentials, context: ssl.SSLContext, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of a parked connection, whose client reads late: OpenSSL takes a part of the data, and gets them again."""
    if option != "own":
        monkeypatch.setattr(tls, "_HOLD", None if option == "none" else 9999)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near, (far, _) = socket.create_connection(listener.getsockname()), listener.accept()
    far.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 17)
    far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for end in (near, far):
        end.settimeout(TIMEOUT)
    transport, pieces = TLSTransport(far, given.context), [bytes([number]) * 700_000 for number in range(3)]
    problems: list[BaseException] = []

    def serve() -> None:
        try:
            transport.handshake()
            assert transport.receive_now() is None
            for piece in pieces:
                transport.send(piece)
            if option == "own" and tls._HOLD is not None:
                assert transport._socket.getsockopt(socket.IPPROTO_TCP, tls._HOLD) == 0
            assert transport.receive() == b"thanks"
        except BaseException as problem:
            problems.append(problem)

    server = threading.Thread(target=serve)
    server.start()
    with context.wrap_socket(near, server_hostname="localhost") as client:
        received = bytearray()
        while len(received) < sum(map(len, pieces)):
            received += client.recv(1 << 16)
        assert received == b"".join(pieces)
        client.sendall(b"thanks")
        server.join(TIMEOUT)
    transport.close()
    assert problems == []
