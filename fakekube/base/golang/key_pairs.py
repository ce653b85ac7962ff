"""Checks that a certificate and a private key belong together, with the error messages of Go's crypto/tls.

Specified by: crypto/tls (X509KeyPair) of Go.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes


_BLOCK = re.compile(rb"(?:\A|(?<=\n))-----BEGIN ([^\r\n]*?)-----[ \t]*\r?\n(.*?)-----END \1-----[ \t]*(?:\r?\n|\Z)", re.DOTALL)


def key_pair_problem(certificate: bytes, key: bytes) -> str:
    """Returns the error of X509KeyPair for a certificate (chain) and its key, both PEM; "" if there is none."""
    leaf, problem = _find(certificate, lambda kind: kind == "CERTIFICATE")
    if leaf is None:
        return _no_certificate(problem)
    pem, skipped = _find(key, lambda kind: kind == "PRIVATE KEY" or kind.endswith(" PRIVATE KEY"))
    if pem is None:
        return _no_key(skipped)
    return _mismatch(leaf, pem)


def _blocks(text: bytes) -> Iterator[tuple[str, bytes]]:
    for found in _BLOCK.finditer(text):
        lines = [line for line in found[2].splitlines() if b":" not in line]  # those with a colon are headers
        try:
            b64decode(b"".join(lines), validate=True)
        except ValueError:
            continue
        yield found[1].decode("utf-8", "replace"), found[0]


def _find(text: bytes, wanted: Callable[[str], bool]) -> tuple[bytes | None, list[str]]:
    """Returns the first block whose type matches, or else the types of all blocks."""
    skipped = []
    for kind, block in _blocks(text):
        if wanted(kind):
            return block, []
        skipped.append(kind)
    return None, skipped


def _no_certificate(skipped: list[str]) -> str:
    if not skipped:
        return "tls: failed to find any PEM data in certificate input"
    if len(skipped) == 1 and skipped[0].endswith("PRIVATE KEY"):
        return (
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
            "PEM inputs may have been switched"
        )
    return (
        'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the '
        f"following types: [{' '.join(skipped)}]"
    )


def _no_key(skipped: list[str]) -> str:
    if not skipped:
        return "tls: failed to find any PEM data in key input"
    if skipped == ["CERTIFICATE"]:
        return "tls: found a certificate rather than a key in the PEM for the private key"
    return (
        'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks '
        f"of the following types: [{' '.join(skipped)}]"
    )


def _mismatch(certificate: bytes, key: bytes) -> str:
    from cryptography.x509 import load_pem_x509_certificate

    try:
        public = load_pem_x509_certificate(certificate).public_key()
    except ValueError:
        return "x509: malformed certificate"
    private = _private_key(key)
    if private is None:
        return "tls: failed to parse private key"
    return _compare(public, private)


def _private_key(pem: bytes) -> PrivateKeyTypes | None:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        return load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None


def _compare(public: PublicKeyTypes, private: PrivateKeyTypes) -> str:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    pairs = (
        (rsa.RSAPublicKey, rsa.RSAPrivateKey),
        (ec.EllipticCurvePublicKey, ec.EllipticCurvePrivateKey),
        (ed25519.Ed25519PublicKey, ed25519.Ed25519PrivateKey),
    )
    for public_type, private_type in pairs:
        if isinstance(public, public_type):
            if not isinstance(private, private_type):
                return "tls: private key type does not match public key type"
            same = private.public_key() == public
            return "" if same else "tls: private key does not match public key"
    return "tls: unknown public key algorithm"
