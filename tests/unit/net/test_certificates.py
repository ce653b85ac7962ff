from __future__ import annotations

import ipaddress
import subprocess
import sys

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from fakekube.net.certificates import credentials


def load(pem: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem.encode())


def extension(certificate: x509.Certificate, kind: type[x509.ExtensionType]) -> tuple[x509.ExtensionType, bool]:
    found = certificate.extensions.get_extension_for_class(kind)
    return found.value, found.critical


def test_ca_certificate_has_ca_constraints_and_key_usage() -> None:
    certificate = load(credentials().ca_certificate)
    constraints, critical = extension(certificate, x509.BasicConstraints)
    assert constraints == x509.BasicConstraints(ca=True, path_length=None)
    assert critical
    usage, critical = extension(certificate, x509.KeyUsage)
    assert isinstance(usage, x509.KeyUsage)
    assert usage.key_cert_sign
    assert usage.crl_sign
    assert critical


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.7", "example.test", "2001:db8::1"])
def test_server_certificate_subject_alternative_names(host: str) -> None:
    given = credentials(host)
    certificate = load(given.server_certificate)
    certificate.verify_directly_issued_by(load(given.ca_certificate))
    names, _ = extension(certificate, x509.SubjectAlternativeName)
    assert isinstance(names, x509.SubjectAlternativeName)
    texts = names.get_values_for_type(x509.DNSName)
    addresses = names.get_values_for_type(x509.IPAddress)
    assert {"localhost", "kubernetes", "kubernetes.default.svc.cluster.local"} <= set(texts)
    assert {ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")} <= set(addresses)
    assert host in [*texts, *map(str, addresses)]
    identifier, _ = extension(certificate, x509.AuthorityKeyIdentifier)
    subject, _ = extension(load(given.ca_certificate), x509.SubjectKeyIdentifier)
    assert isinstance(identifier, x509.AuthorityKeyIdentifier)
    assert isinstance(subject, x509.SubjectKeyIdentifier)
    assert identifier.key_identifier == subject.digest


def test_client_certificate_subject_equals_that_of_kubeadm() -> None:
    given = credentials()
    certificate = load(given.client_certificate)
    certificate.verify_directly_issued_by(load(given.ca_certificate))
    subject = certificate.subject
    assert [name.value for name in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["kubernetes-admin"]
    groups = [name.value for name in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    assert groups == ["system:masters", "kubeadm:cluster-admins"]


def test_credentials_are_cached_per_process() -> None:
    assert credentials() is credentials("127.0.0.1")
    assert credentials("other.test").ca_certificate == credentials().ca_certificate


def test_a_process_whose_child_makes_its_certificates_does_not_import_cryptography() -> None:
    code = """
import sys
from fakekube.net.certificates import authority, credentials, make_in_child
make_in_child("example.test")
given = credentials("example.test")
print("cryptography" in sys.modules, given.ca_certificate, given.server_certificate, given.client_certificate, sep=";")
print(authority().issue_client("me", ()).pem)
"""
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    is_imported, *pems = output.split(";")
    assert is_imported == "False"
    root, server, *_ = map(load, pems)
    for issued in (server, *x509.load_pem_x509_certificates(pems[2].encode())):
        issued.verify_directly_issued_by(root)
    names, _ = extension(server, x509.SubjectAlternativeName)
    assert "example.test" in str(names)


@pytest.mark.parametrize(
    "trouble",
    [
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN); make_in_child('a.test')",
        "os.fork = lambda: os.open('/absent/file', os.O_RDONLY); make_in_child('a.test')",
        "make_in_child('a.test'); os.kill(certificates._children[0]._process, signal.SIGKILL)",
        "make, certificates._make_authority = certificates._make_authority, None; make_in_child('a.test'); certificates._make_authority = make",
    ],
    ids=["its end is not reported", "it is refused", "it is killed", "it fails"],
)
def test_a_process_has_certificates_also_if_its_child_is_in_trouble(trouble: str) -> None:
    code = f"""
import os, signal
from fakekube.net import certificates
from fakekube.net.certificates import make_in_child
{trouble}
given = certificates.credentials("a.test")
print(given.ca_certificate, given.server_certificate, given.client_certificate, sep=";")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    root, server, administrator = map(load, done.stdout.split(";"))
    server.verify_directly_issued_by(root)
    administrator.verify_directly_issued_by(root)
    assert not done.stderr


def test_keys_tell_their_algorithm_by_their_label() -> None:
    given = credentials("127.0.0.1")
    for key in (given.server_key, given.client_key):
        assert key.startswith("-----BEGIN EC PRIVATE KEY-----\n")
