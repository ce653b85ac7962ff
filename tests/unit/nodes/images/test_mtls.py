"""The subcommands of agnhost that authenticate each other by certificates."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from fakekube import Cluster

AGNHOST = "registry.k8s.io/e2e-test-images/agnhost:2.66.0"
NAMELESS = x509.Name([])
START = datetime(2026, 1, 1, tzinfo=UTC)


class Authority:
    """A CA without a name and identifiers, as that of the conformance suite; an intermediate one has a parent."""

    def __init__(self, parent: Authority | None = None) -> None:
        self.key = ed25519.Ed25519PrivateKey.generate()
        self.certificate = (parent or self).sign(
            self.key.public_key(), [(x509.BasicConstraints(ca=True, path_length=None), True)]
        )
        self.pem = self.certificate.public_bytes(serialization.Encoding.PEM)

    def sign(self, key: Any, extensions: list[tuple[x509.ExtensionType, bool]]) -> x509.Certificate:
        builder = x509.CertificateBuilder().subject_name(NAMELESS).issuer_name(NAMELESS).public_key(key)
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(START).not_valid_after(START + timedelta(days=36_500))
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical=critical)
        return builder.sign(self.key, None)

    def bundle(self, *names: x509.GeneralName) -> bytes:
        """Returns a new key and its certificate for these names, and that of the authority, in PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        signed = self.sign(key.public_key(), [(x509.SubjectAlternativeName(names), True)])
        pkcs8, unencrypted = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        pem = serialization.Encoding.PEM
        return key.private_bytes(pem, pkcs8, unencrypted) + signed.public_bytes(pem) + self.pem


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster with the server, and a client with each kind of credentials."""
    root = Authority()
    known, unknown = Authority(root), Authority()
    identity = x509.UniformResourceIdentifier("spiffe://cluster.local/ns/default/sa/default")
    bundles = {
        "server": known.bundle(x509.DNSName("server.default.svc.cluster.local")),
        "good": known.bundle(identity),
        "nameless": known.bundle(x509.DNSName("client")),
        "stranger": unknown.bundle(identity),
    }
    with Cluster() as made:
        made.clock.hold()
        for name, bundle in bundles.items():
            data = {"bundle": base64.b64encode(bundle).decode(), "root": base64.b64encode(root.pem).decode()}
            made.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data})
            args = ["mtlsserver", "--listen=0.0.0.0:8443", "--server-creds=/c/bundle", "--spiffe-trust-bundle=/c/root"]
            if name != "server":
                url = "https://server.default.svc.cluster.local/spiffe-echo"
                args = ["mtlsclient", f"--fetch-url={url}", "--server-trust-bundle=/c/root", "--client-cred-bundle=/c/bundle"]
            container = {"name": "c", "image": AGNHOST, "args": args, "volumeMounts": [{"name": "c", "mountPath": "/c"}]}
            spec = {"containers": [container], "volumes": [{"name": "c", "secret": {"secretName": name}}]}
            made.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": spec})
        service = {"selector": {"app": "server"}, "ports": [{"port": 443, "targetPort": 8443}]}
        made.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "server"}, "spec": service})
        made.settle(timeout=60)
        made.clock.advance(seconds=11)
        made.settle(timeout=60)
        yield made


@pytest.mark.parametrize(
    ("client", "logged"),
    [
        ("good", "Got response body: Client Identity: spiffe://cluster.local/ns/default/sa/default\n"),
        ("nameless", "non-2xx status 401"),
        ("stranger", "while sending requests to the server"),
    ],
)
def test_the_server_knows_its_client(cluster: Cluster, client: str, logged: str) -> None:
    wait_until(lambda: logged in cluster.pods.get(client).logs())


def wait_until(done: Callable[[], bool]) -> None:
    """Waits for programs, which run in workers."""
    end = time.monotonic() + 60
    while not done() and time.monotonic() < end:
        time.sleep(0.01)
    assert done()
