"""Parses a CertificateSigningRequest: its X.509 request, names, usages and conditions.

Specified by: pkg/apis/certificates/helpers.go, pkg/controller/certificates/certificate_controller_utils.go.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cryptography import x509

    from fakekube.controllers.objects import Object

__all__ = [
    "RESOURCE",
    "Names",
    "has_condition",
    "names_of",
    "new_condition",
    "parse",
    "validate_kubelet_client",
    "validate_kubelet_serving",
]

RESOURCE: Final = "certificatesigningrequests.certificates.k8s.io"

_BEGIN: Final = b"-----BEGIN CERTIFICATE REQUEST-----"
_NODE, _NODES = "system:node:", ["system:nodes"]
_CLIENT_USAGES: Final = {"digital signature", "key encipherment", "client auth"}
_SERVING_USAGES: Final = {"digital signature", "key encipherment", "server auth"}


@dataclass(slots=True)
class Names:
    """The names in the subject and the subjectAltNames of a request."""

    common_name: str
    organizations: list[str]
    dns: list[str]
    addresses: list[Any]
    emails: list[str]
    uris: list[str]


def parse(obj: Object) -> x509.CertificateSigningRequest | None:
    """Returns the X.509 request of an object; None if it is missing or malformed (ParseCSR)."""
    from cryptography import x509

    try:
        text = base64.b64decode(obj["spec"]["request"])
        return x509.load_pem_x509_csr(text) if text.lstrip().startswith(_BEGIN) else None
    except (ValueError, binascii.Error):
        return None


def names_of(request: x509.CertificateSigningRequest) -> Names:
    """Returns the names in the subject and the subjectAltNames of a request."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    def subject(oid: x509.ObjectIdentifier) -> list[str]:
        return [str(one.value) for one in request.subject.get_attributes_for_oid(oid)]

    try:
        alternative = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        alternative = x509.SubjectAlternativeName([])
    return Names(
        "".join(subject(NameOID.COMMON_NAME)[-1:]),
        subject(NameOID.ORGANIZATION_NAME),
        alternative.get_values_for_type(x509.DNSName),
        alternative.get_values_for_type(x509.IPAddress),
        alternative.get_values_for_type(x509.RFC822Name),
        alternative.get_values_for_type(x509.UniformResourceIdentifier),
    )


Rule = tuple[Callable[[Names], bool], str]
"""Whether the names violate the rule, and the message about it."""

_SUBJECT: Final[Rule] = (lambda names: names.organizations != _NODES, "subject organization is not system:nodes")
_COMMON_NAME: Final[Rule] = (
    lambda names: not names.common_name.startswith(_NODE),
    "subject common name does not begin with system:node:",
)
_EMAIL: Final[Rule] = (lambda names: bool(names.emails), "Email subjectAltNames are not allowed")
_URI: Final[Rule] = (lambda names: bool(names.uris), "URI subjectAltNames are not allowed")

_CLIENT_RULES: Final[tuple[Rule, ...]] = (
    _SUBJECT,
    (lambda names: bool(names.dns), "DNS subjectAltNames are not allowed"),
    _EMAIL,
    (lambda names: bool(names.addresses), "IP subjectAltNames are not allowed"),
    _URI,
    _COMMON_NAME,
)
_SERVING_RULES: Final[tuple[Rule, ...]] = (
    _SUBJECT,
    (lambda names: not names.dns and not names.addresses, "DNS or IP subjectAltName is required"),
    _EMAIL,
    _URI,
)


def validate_kubelet_client(names: Names, usages: set[str]) -> str:
    """Returns why a request is not for a client certificate of a kubelet; "" if it is (ValidateKubeletClientCSR)."""
    return _first_violation(_CLIENT_RULES, names) or _check_usages(usages, _CLIENT_USAGES)


def validate_kubelet_serving(names: Names, usages: set[str]) -> str:
    """Returns why a request is not for a serving certificate of a kubelet; "" if it is (ValidateKubeletServingCSR)."""
    return (
        _first_violation(_SERVING_RULES, names)
        or _check_usages(usages, _SERVING_USAGES)
        or _first_violation((_COMMON_NAME,), names)
    )


def _first_violation(rules: tuple[Rule, ...], names: Names) -> str:
    return next((message for violates, message in rules if violates(names)), "")


def _check_usages(usages: set[str], required: set[str]) -> str:
    """Returns why the usages are wrong; "" if they are right. Key encipherment is optional, because only RSA keys have it."""
    if usages in (required, required - {"key encipherment"}):
        return ""
    return f"usages did not match [{' '.join(sorted(required))}]"


def has_condition(obj: Object, type_: str, *, true: bool = False) -> bool:
    """Reports whether there is a condition of this type; with `true`, one whose status is True or empty."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(one["type"] == type_ and (not true or one.get("status") in ("", None, "True")) for one in conditions)


def new_condition(type_: str, reason: str, message: str, updated: str = "") -> dict[str, str]:
    """Returns a condition with the status True; `updated` is its lastUpdateTime, if the writer sets it."""
    time = {"lastUpdateTime": updated} if updated else {}
    return {"type": type_, "status": "True", "reason": reason, "message": message, **time}
