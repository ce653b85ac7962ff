"""By its certificate an extension server knows the front proxy."""

from __future__ import annotations

import contextlib
import http.server
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from fakekube import Cluster
from fakekube.controllers.client import ApiError
from tests.behaviour.webhook_server import LOCAL, Authority

GROUP_VERSION = "demanding.example.com/v1"
THING = {"name": "things", "singularName": "thing", "namespaced": False, "kind": "Thing", "verbs": ["list"]}

Certificate = Callable[[Authority, str], tuple[str, str]]


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    """Makes a certificate and its key, as files."""

    def make(authority: Authority, name: str) -> tuple[str, str]:
        key = ec.generate_private_key(ec.SECP256R1())
        chain, secret = tmp_path / f"{name}.pem", tmp_path / f"{name}-key.pem"
        chain.write_bytes(authority.sign(name, key.public_key(), LOCAL).public_bytes(Encoding.PEM))
        secret.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return str(chain), str(secret)

    return make


class Demanding(http.server.BaseHTTPRequestHandler):
    """Answers discovery, and a list whose only item is named as the caller's certificate is."""

    def do_GET(self) -> None:
        connection = self.connection
        assert isinstance(connection, ssl.SSLSocket)
        peer: Any = connection.getpeercert()
        name = dict(pair for part in peer["subject"] for pair in part)["commonName"]
        if self.path == f"/apis/{GROUP_VERSION}":
            body: Any = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": GROUP_VERSION, "resources": [THING]}
        else:
            body = {"kind": "ThingList", "apiVersion": GROUP_VERSION, "metadata": {}, "items": [{"metadata": {"name": name}}]}
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def proxies() -> Authority:
    return Authority(name="front proxies")


@pytest.fixture
def port(proxies: Authority, certificate: Certificate, tmp_path: Path) -> Iterator[int]:
    """Of a server that only listens to front proxies."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate(Authority(name="servers"), "server"))
    trusted = tmp_path / "proxies.pem"
    trusted.write_bytes(proxies.certificate.public_bytes(Encoding.PEM))
    context.load_verify_locations(trusted)
    context.verify_mode = ssl.CERT_REQUIRED

    class Server(http.server.ThreadingHTTPServer):
        def finish_request(self, request: Any, client_address: Any) -> None:
            with contextlib.suppress(ssl.SSLError, ConnectionError), context.wrap_socket(request, server_side=True) as tls:
                self.RequestHandlerClass(tls, client_address, self)

    with Server(("127.0.0.1", 0), Demanding) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.005,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def register(cluster: Cluster, port: int) -> None:
    group, version = GROUP_VERSION.split("/")
    name = {"namespace": "default", "name": "demanding"}
    cluster.create({"apiVersion": "v1", "kind": "Service", "metadata": name, "spec": {"ports": [{"port": 443}]}})
    cluster.services.forward("default/demanding", port)
    cluster.create({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": f"{version}.{group}"},
        "spec": {
            "group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 100, "service": name,
            "insecureSkipTLSVerify": True,
        },
    })  # fmt: skip
    cluster.settle()


def available(cluster: Cluster) -> dict[str, str]:
    (condition,) = cluster.get("apiservices", "v1.demanding.example.com")["status"]["conditions"]
    found: dict[str, str] = condition
    return found


def test_the_certificate_is_presented_to_the_server(port: int, proxies: Authority, certificate: Certificate) -> None:
    chain, key = certificate(proxies, "front-proxy")
    with Cluster(nodes=0, proxy_client_cert_file=chain, proxy_client_key_file=key) as cluster:
        register(cluster, port)
        assert available(cluster)["status"] == "True"
        (thing,) = cluster.list("things.demanding.example.com")
        assert thing["metadata"]["name"] == "front-proxy"


def test_without_a_certificate_the_server_refuses(port: int) -> None:
    with Cluster(nodes=0) as cluster:
        register(cluster, port)
        assert available(cluster)["status"] == "False"
        assert available(cluster)["reason"] == "FailedDiscoveryCheck"
        with pytest.raises(ApiError, match="service unavailable"):
            cluster.call("GET", f"/apis/{GROUP_VERSION}/things")


@pytest.mark.parametrize("given", [{"proxy_client_cert_file": "/nowhere"}, {"proxy_client_key_file": "/nowhere"}])
def test_both_files_are_required(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be given together"):
        Cluster(nodes=0, **given)


def test_an_unreadable_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--proxy-client-cert-file="):
        Cluster(nodes=0, proxy_client_cert_file=str(tmp_path / "none"), proxy_client_key_file=str(tmp_path / "none"))
