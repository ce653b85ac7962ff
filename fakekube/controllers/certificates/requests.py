"""A CertificateSigningRequest, read: the X.509 request in it, its names and usages, and its conditions.

Specified by: pkg/apis/certificates/helpers.go, pkg/controller/certificates/certificate_controller_utils.go.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cryptography import x509

    from fakekube.controllers.reconciler import Object

__all__ = [
    "RESOURCE",
    "Names",
    "condition",
    "has_condition",
    "kubelet_client_problem",
    "kubelet_serving_problem",
    "names_of",
    "parse",
]

RESOURCE = "certificatesigningrequests.certificates.k8s.io"

_BEGIN = b"-----BEGIN CERTIFICATE REQUEST-----"
_NODE, _NODES = "system:node:", ["system:nodes"]
_CLIENT_USAGES = {"digital signature", "key encipherment", "client auth"}
_SERVING_USAGES = {"digital signature", "key encipherment", "server auth"}


@dataclass(slots=True)
class Names:
    """Whom a request names."""

    common_name: str
    organizations: list[str]
    dns: list[str]
    addresses: list[Any]
    emails: list[str]
    uris: list[str]


def parse(obj: Object) -> x509.CertificateSigningRequest | None:
    """The X.509 request of an object, or None if there is none that can be read."""
    from cryptography import x509

    try:
        text = base64.b64decode(obj["spec"]["request"])
        return x509.load_pem_x509_csr(text) if text.lstrip().startswith(_BEGIN) else None
    except (ValueError, binascii.Error):
        return None


def names_of(request: x509.CertificateSigningRequest) -> Names:
    """The names in the subject and the alternative names of a request."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    def subject(oid: x509.ObjectIdentifier) -> list[str]:
        return [str(one.value) for one in request.subject.get_attributes_for_oid(oid)]

    try:
        others = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        others = x509.SubjectAlternativeName([])
    return Names(
        "".join(subject(NameOID.COMMON_NAME)[-1:]),
        subject(NameOID.ORGANIZATION_NAME),
        others.get_values_for_type(x509.DNSName),
        others.get_values_for_type(x509.IPAddress),
        others.get_values_for_type(x509.RFC822Name),
        others.get_values_for_type(x509.UniformResourceIdentifier),
    )


Rule = tuple[Callable[[Names], bool], str]
"""What must not be, and what is said of it."""

_SUBJECT: Rule = (lambda names: names.organizations != _NODES, "subject organization is not system:nodes")
_COMMON_NAME: Rule = (
    lambda names: not names.common_name.startswith(_NODE),
    "subject common name does not begin with system:node:",
)
_EMAIL: Rule = (lambda names: bool(names.emails), "Email subjectAltNames are not allowed")
_URI: Rule = (lambda names: bool(names.uris), "URI subjectAltNames are not allowed")

_CLIENT_RULES: tuple[Rule, ...] = (
    _SUBJECT,
    (lambda names: bool(names.dns), "DNS subjectAltNames are not allowed"),
    _EMAIL,
    (lambda names: bool(names.addresses), "IP subjectAltNames are not allowed"),
    _URI,
    _COMMON_NAME,
)
_SERVING_RULES: tuple[Rule, ...] = (
    _SUBJECT,
    (lambda names: not names.dns and not names.addresses, "DNS or IP subjectAltName is required"),
    _EMAIL,
    _URI,
)


def kubelet_client_problem(names: Names, usages: set[str]) -> str:
    """Why a request is not one of a kubelet for a client certificate; "" if it is."""
    return _first(_CLIENT_RULES, names) or _usages_problem(usages, _CLIENT_USAGES)


def kubelet_serving_problem(names: Names, usages: set[str]) -> str:
    """Why a request is not one of a kubelet for a serving certificate; "" if it is."""
    return _first(_SERVING_RULES, names) or _usages_problem(usages, _SERVING_USAGES) or _first((_COMMON_NAME,), names)


def _first(rules: tuple[Rule, ...], names: Names) -> str:
    return next((problem for breaks, problem in rules if breaks(names)), "")


def _usages_problem(usages: set[str], wanted: set[str]) -> str:
    """Keys that are not of RSA do without key encipherment."""
    if usages in (wanted, wanted - {"key encipherment"}):
        return ""
    return f"usages did not match [{' '.join(sorted(wanted))}]"


def has_condition(obj: Object, kind: str, *, true: bool = False) -> bool:
    """Is there a condition of this type (with `true`, one that holds)?"""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(one["type"] == kind and (not true or one.get("status") in ("", None, "True")) for one in conditions)


def condition(kind: str, reason: str, message: str, updated: str = "") -> dict[str, str]:
    """A condition that holds; `updated` is the time of it, if the writer tells one."""
    time = {"lastUpdateTime": updated} if updated else {}
    return {"type": kind, "status": "True", "reason": reason, "message": message, **time}
