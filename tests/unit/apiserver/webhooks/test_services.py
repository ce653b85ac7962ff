"""Where the API server connects to for a Service."""

from __future__ import annotations

import http.server
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.apis.rest.cluster_access import CallError
from fakekube.apiserver.webhooks.services import ServiceResolver
from fakekube.cluster.testing.services import ForwardedServices
from fakekube.controllers.client import ApiError


class ClusterAccess:
    """A cluster with one Service."""

    def __init__(self, **spec: Any) -> None:
        self._service = {"spec": {"type": "ClusterIP", "clusterIP": "10.0.0.7", "ports": [{"port": 443}], **spec}}

    def get(self, group: str, plural: str, namespace: str, name: str) -> Any:
        return self._service if (group, plural, namespace, name) == ("", "services", "n", "hook") else None


def resolver(**spec: Any) -> ServiceResolver:
    services: Any = ClusterAccess(**spec)
    return ServiceResolver(services)


@pytest.mark.parametrize(
    ("spec", "port", "problem"),
    [
        ({}, 443, "dial tcp 10.0.0.7:443: connect: connection refused"),
        ({"clusterIP": "fd00::7"}, 443, "dial tcp [fd00::7]:443: connect: connection refused"),
        ({"type": "LoadBalancer"}, 443, "dial tcp 10.0.0.7:443: connect: connection refused"),
        ({}, 80, 'no service port 80 found for service "hook"'),
        ({"clusterIP": "None"}, 443, 'cannot route to service with ClusterIP "None"'),
        ({"type": "Odd"}, 443, 'unsupported service type "Odd"'),
    ],
)
def test_service_resolution_errors(spec: dict[str, Any], port: int, problem: str) -> None:
    with pytest.raises(CallError) as caught:
        resolver(**spec).resolve("n", "hook", port)
    assert str(caught.value) == problem


def test_external_name_service_resolves_to_its_host() -> None:
    assert resolver(type="ExternalName", externalName="localhost").resolve("n", "hook", 9443) == ("localhost", 9443)


def test_forwarded_service_resolves_without_a_service_object() -> None:
    found = resolver()
    forwarded = ForwardedServices(found)
    forwarded.forward("n/hook", 4711)
    forwarded.forward("m/absent", 4712, host="127.0.0.2")
    assert found.resolve("n", "hook", 443) == ("127.0.0.1", 4711)
    assert found.resolve("m", "absent", 80) == ("127.0.0.2", 4712)
    forwarded.forward("m/absent", None)
    with pytest.raises(CallError, match='service "absent" not found'):
        found.resolve("m", "absent", 80)


@pytest.mark.parametrize(
    ("service", "port"), [("hook", 1), ("/hook", 1), ("n/", 1), ("n/hook/x", 1), ("n/hook", 0), ("n/hook", 65536)]
)
def test_invalid_forward_arguments_are_rejected(service: str, port: int) -> None:
    with pytest.raises(ValueError, match=r"namespace/name|TCP port"):
        ForwardedServices(resolver()).forward(service, port)


def test_fork_keeps_forwarded_services() -> None:
    cluster = Cluster(profile="apiserver")
    cluster.services.forward("n/hook", 4711)
    twin = cluster.fork()
    cluster.services.forward("n/hook", None)
    assert twin._machinery.resolver.resolve("n", "hook", 443) == ("127.0.0.1", 4711)


REVIEWED = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}


class _Handler(http.server.BaseHTTPRequestHandler):
    """Refuses everything."""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        response = {"uid": review["request"]["uid"], "allowed": False, "status": {"message": f"{self.path} says no"}}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(
            json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}).encode()
        )

    def log_message(self, *_: Any) -> None:
        pass


def test_webhook_with_service_reference_is_called_at_the_forwarded_port(tmp_path: Path) -> None:
    cluster = Cluster(profile="apiserver")
    certificate = cluster.services.certificate("system/hook")
    files = certificate.write(tmp_path / "certs")
    assert [file.name for file in files] == ["tls.crt", "tls.key"] and files[1].stat().st_mode & 0o77 == 0
    server = http.server.HTTPServer(("127.0.0.1", 0), _Handler)
    server.socket = certificate.context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.005,))
    thread.start()
    try:
        cluster.services.forward("system/hook", server.server_address[1])
        service = {"name": "hook", "namespace": "system", "path": "/validate"}
        for name, client_config in (("with", {"caBundle": certificate.ca_bundle}), ("without", {})):
            hook = {
                "name": "hook.example.com",
                "clientConfig": {"service": service, **client_config},
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "rules": [REVIEWED],
            }
            configuration = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
            cluster.apply({**configuration, "metadata": {"name": "hooks"}, "webhooks": [hook]})
            with pytest.raises(ApiError, match=r"denied the request: /validate\?timeout=10s says no"):
                cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
    finally:
        cluster.stop()
        server.shutdown()
        thread.join()
        server.server_close()
