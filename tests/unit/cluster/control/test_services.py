"""Forwarded Services and their certificates over the control API and on the command line."""

from __future__ import annotations

import http.server
import json
import logging
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fakekube import ApiError, Cluster
from fakekube.cli import _cluster
from fakekube.cli.arguments import UsageError, parse

CONFIGURATION = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: refuse}
webhooks:
- name: no.example.com
  clientConfig: {service: {namespace: default, name: webhook, port: 443}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  sideEffects: None
  admissionReviewVersions: [v1]
"""
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


class _Refuses(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        response = {"uid": review["request"]["uid"], "allowed": False, "status": {"message": "no"}}
        data = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def webhook(context: ssl.SSLContext, server: http.server.HTTPServer) -> Iterator[None]:
    """Serves a webhook that refuses everything, with the certificate in `context`."""
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.005,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def context_of(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context


@pytest.fixture
def served() -> Iterator[Cluster]:
    with Cluster(profile="apiserver") as made:
        yield made


def ask(cluster: Cluster, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{cluster.url}/fakekube/v1/services/{path}", data, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_webhook_of_another_language_is_called_with_a_certificate_of_the_cluster(served: Cluster, tmp_path: Path) -> None:
    code, issued = ask(served, "POST", "certificate", {"service": "default/webhook"})
    assert code == 201
    (tmp_path / "tls.crt").write_text(issued["certificate"])
    (tmp_path / "tls.key").write_text(issued["key"])
    server = http.server.HTTPServer(("127.0.0.1", 0), _Refuses)
    with webhook(context_of(tmp_path / "tls.crt", tmp_path / "tls.key"), server):
        forward = {"service": "default/webhook", "port": server.server_address[1]}
        described = {**forward, "host": "127.0.0.1"}
        assert ask(served, "POST", "forward", forward) == (201, described)
        assert ask(served, "GET", "forward") == (200, {"items": [described]})
        served.load(CONFIGURATION)
        with pytest.raises(ApiError, match="denied the request: no"):
            served.create(CONFIG_MAP)
        configuration = served.get("validatingwebhookconfigurations", "refuse")
        configuration["webhooks"][0]["clientConfig"]["caBundle"] = issued["caBundle"]
        served.update(configuration)
        with pytest.raises(ApiError, match="denied the request: no"):
            served.create(CONFIG_MAP)
    assert ask(served, "DELETE", "forward?service=default/webhook") == (200, {"items": []})
    assert ask(served, "DELETE", "forward?service=default/webhook")[0] == 404


@pytest.mark.parametrize(
    "body",
    [
        {"service": "webhook", "port": 1},
        {"service": "default/webhook", "port": 0},
        {"service": "default/webhook", "port": "9443"},
        {"service": "default/webhook"},
    ],
)
def test_forward_that_cannot_be_is_refused_in_words(served: Cluster, body: Any) -> None:
    code, answer = ask(served, "POST", "forward", body)
    assert code == 400
    assert answer["error"]
    assert ask(served, "GET", "forward") == (200, {"items": []})


def test_certificate_for_an_invalid_name_is_refused(served: Cluster) -> None:
    assert ask(served, "POST", "certificate", {"service": "webhook"})[0] == 400


def test_warning_says_how_to_forward_a_service_that_leads_nowhere(served: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    served.load(CONFIGURATION)
    with caplog.at_level(logging.WARNING, "fakekube"):
        for _ in range(2):
            with pytest.raises(ApiError, match='service "webhook" not found'):
                served.create(CONFIG_MAP)
    (message,) = [one.getMessage() for one in caplog.records if "default/webhook" in one.getMessage()]
    assert "--forward default/webhook=PORT" in message


def test_command_line_forwards_services_and_writes_certificates(tmp_path: Path) -> None:
    server = http.server.HTTPServer(("127.0.0.1", 0), _Refuses)
    words = [f"--forward=default/webhook={server.server_address[1]}", f"--certificate=default/webhook={tmp_path / 'certs'}"]
    arguments = parse(["serve", "--profile", "apiserver", "--kubeconfig", str(tmp_path / "kubeconfig"), *words])
    certificate, key = tmp_path / "certs" / "tls.crt", tmp_path / "certs" / "tls.key"
    with _cluster(arguments) as cluster, webhook(context_of(certificate, key), server):
        cluster.load(CONFIGURATION)
        with pytest.raises(ApiError, match="denied the request: no"):
            cluster.create(CONFIG_MAP)


class _Echoes(http.server.BaseHTTPRequestHandler):
    """Answers with the method, the path and the body of a request."""

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        data = f"{self.command} {self.path} {body.decode()}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        pass


def test_requests_to_a_forwarded_service_arrive_at_the_program(tmp_path: Path) -> None:
    """Through the proxy of the Service, by the words of the command line."""
    server = http.server.HTTPServer(("127.0.0.1", 0), _Echoes)
    thread = threading.Thread(target=server.serve_forever, args=(0.005,))
    thread.start()
    words = [
        "--profile",
        "apiserver",
        "--kubeconfig",
        str(tmp_path / "kubeconfig"),
        f"--forward=shop/web={server.server_address[1]}",
    ]
    try:
        with _cluster(parse(["serve", *words])) as cluster:
            proxy = f"{cluster.url}/api/v1/namespaces/shop/services/web:80/proxy"
            with urllib.request.urlopen(f"{proxy}/a/b?c=d", timeout=60) as response:
                assert response.read() == b"GET /a/b?c=d "
            with urllib.request.urlopen(urllib.request.Request(f"{proxy}/", b"order"), timeout=60) as response:
                assert response.read() == b"POST / order"
            ask(cluster, "DELETE", "forward?service=shop/web")
            with pytest.raises(urllib.error.HTTPError, match="404") as refused:
                urllib.request.urlopen(f"{proxy}/", timeout=60)
            refused.value.close()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize(
    ("text", "expected"), [("a/b=1", ("a/b", "127.0.0.1", 1)), ("a/b=h:2", ("a/b", "h", 2)), ("a/b=[::1]:3", ("a/b", "::1", 3))]
)
def test_flag_forward(text: str, expected: tuple[str, str, int]) -> None:
    assert parse(["serve", "--forward", text]).forwards == [expected]


@pytest.mark.parametrize("text", ["a=1", "a/b", "a/b=", "a/b=0", "a/b=70000", "a/b=x", "a/b/c=1", "/b=1"])
def test_flag_forward_that_is_invalid(text: str) -> None:
    with pytest.raises(UsageError, match="NAMESPACE/SERVICE="):
        parse(["run", "--forward", text, "--", "true"])
