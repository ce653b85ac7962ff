"""Certificates of authorities that a client of a webhook is told to trust.

Specified by: k8s.io/apiserver/pkg/util/webhook/validation.go (ValidateCABundle), k8s.io/client-go/transport.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any

from fakekube.errors import FieldError
from fakekube.errors.field import invalid

__all__ = ["ca_bundle_errors", "converts_at_all", "trusts_soundly"]

_BLOCK = re.compile(rb"-----BEGIN ([^-\n]+)-----\r?\n.*?-----END \1-----", re.DOTALL)


def ca_bundle_errors(bundle: str, path: str) -> Iterator[FieldError]:
    """What is wrong with a caBundle, which is PEM in base64; an empty one is fine."""
    problem = _problem(b64decode(bundle)) if bundle else ""
    if problem:
        yield invalid(path, bundle, f"unable to load root certificates: {problem}")


def trusts_soundly(spec: Mapping[str, Any]) -> bool:
    """Has the conversion webhook of a definition's spec a CA bundle that is fine, or none?"""
    return not list(ca_bundle_errors(_bundle(spec), ""))


def converts_at_all(spec: Mapping[str, Any]) -> bool:
    """Can a client of the conversion webhook be made? A blank bundle is none to it, though not a sound one."""
    return not b64decode(_bundle(spec)).strip() or trusts_soundly(spec)


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
