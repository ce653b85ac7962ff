"""Validation of CA bundles."""

from __future__ import annotations

from base64 import b64encode

import pytest

from fakekube.apis.validation.webhooks import ca_bundle_errors, has_valid_ca_bundle
from fakekube.net.certificates import credentials


def block(name: str, content: str = "aGk=") -> str:
    return f"-----BEGIN {name}-----\n{content}\n-----END {name}-----\n"


def bundle(text: str) -> str:
    return b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", None),
        ("hi", "unable to parse bytes as PEM block"),
        (block("FOO"), "no valid certificate authority data seen"),
        (block("FOO") + "hi", "unable to parse bytes as PEM block"),
        (block("CERTIFICATE"), "failed to parse certificate: x509: malformed certificate"),
    ],
)
def test_invalid_ca_bundles_are_rejected(text: str, complaint: str | None) -> None:
    found = [error.detail for error in ca_bundle_errors(bundle(text), "p")]
    assert found == ([] if complaint is None else [f"unable to load root certificates: {complaint}"])


def test_valid_ca_bundle_is_accepted() -> None:
    authority = credentials("localhost").ca_certificate
    assert list(ca_bundle_errors(bundle(authority), "p")) == []
    assert list(ca_bundle_errors(bundle(block("FOO") + block("CERTIFICATE") + authority), "p")) == []


def test_ca_bundle_of_conversion_webhook_spec() -> None:
    def spec(ca: str) -> dict[str, object]:
        return {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"caBundle": ca}}}}

    assert has_valid_ca_bundle({})
    assert has_valid_ca_bundle({"conversion": {"strategy": "None"}})
    assert has_valid_ca_bundle(spec(""))
    assert not has_valid_ca_bundle(spec("aGk="))
