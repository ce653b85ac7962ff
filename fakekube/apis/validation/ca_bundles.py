"""CA bundles with which the client of a webhook verifies the server.

Specified by: k8s.io/apiserver/pkg/util/webhook/validation.go (ValidateCABundle), k8s.io/client-go/transport.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import invalid

__all__ = ["ca_bundle_errors", "has_usable_ca_bundle", "has_valid_ca_bundle"]

_BLOCK = re.compile(rb"-----BEGIN ([^-\n]+)-----\r?\n.*?-----END \1-----", re.DOTALL)


def ca_bundle_errors(bundle: str, path: str) -> Iterator[FieldError]:
    """Validates a caBundle, which is PEM in base64; an empty one is valid."""
    problem = _problem(b64decode(bundle)) if bundle else ""
    if problem:
        yield invalid(path, bundle, f"unable to load root certificates: {problem}")


def has_valid_ca_bundle(spec: Mapping[str, Any]) -> bool:
    """Reports whether the CA bundle of the conversion webhook of a definition is valid or absent."""
    return not list(ca_bundle_errors(_bundle(spec), ""))


def has_usable_ca_bundle(spec: Mapping[str, Any]) -> bool:
    """Reports whether a client of the conversion webhook can be made: the CA bundle is valid, or blank (which counts
    as none).
    """
    return not b64decode(_bundle(spec)).strip() or has_valid_ca_bundle(spec)


def _bundle(spec: Mapping[str, Any]) -> str:
    client = ((spec.get("conversion") or {}).get("webhook") or {}).get("clientConfig") or {}
    bundle: str = client.get("caBundle", "")
    return bundle


def _problem(pem: bytes) -> str:
    from cryptography import x509

    blocks = list(_BLOCK.finditer(pem))
    if not blocks:
        return "unable to parse bytes as PEM block"
    for block in blocks:
        if block.group(1) != b"CERTIFICATE":
            continue
        try:
            x509.load_pem_x509_certificate(block.group())
        except ValueError:
            return "failed to parse certificate: x509: malformed certificate"
        return ""
    return "no valid certificate authority data seen"
