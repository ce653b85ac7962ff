"""CertificateSigningRequests, with subresources for status and approval.

The server sets the requester. Approval conditions cannot be removed, and an issued certificate is immutable.

Specified by: pkg/apis/certificates (validation, helpers.go), pkg/registry/certificates/certificates,
pkg/apis/core/validation/names.go (ValidateSignerName).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import Printed, duplicate, forbidden, invalid, required
from fakekube.apis.certificates.signers import validate_signer_name
from fakekube.apis.rest.strategy import Strategy, WriteContext, restore
from fakekube.apis.validation.checks import one_of, repeated_indices
from fakekube.apis.validation.rules import from_minor, holds_declared_rules
from fakekube.apis.well_known import LEGACY_UNKNOWN_SIGNER_NAME
from fakekube.base.golang import pem
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import Object

#: The conditions of an approval, and those that cannot be removed.
_DECISIONS = ("Approved", "Denied")
FINAL = (*_DECISIONS, "Failed")
#: The shortest expirationSeconds.
MIN_SECONDS = 600
_USAGES = frozenset(
    {
        "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
        "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
        "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
        "server auth", "signing", "timestamping",
    }
)  # fmt: skip


class _Requests(Strategy):
    """The base strategy: rules of all updates of a request."""

    checks_metadata = False  # `validate` does it, before the other checks
    checks_metadata_update = False
    sets_approval = False

    def name_errors(self, name: str, prefix: bool) -> list[str]:
        return []

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return [*self.validate_metadata(context, obj["metadata"]), *_validate_request(obj, None)]

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return [
            *self.validate_metadata(context, obj["metadata"]),
            *_validate_request(obj, old),
            *self._validate_changes(obj.get("status") or {}, old.get("status") or {}),
            *self.validate_metadata_update(context, obj["metadata"], old["metadata"]),
        ]

    def _validate_changes(self, status: Object, old_status: Object) -> list[FieldError]:
        path = "status.conditions"
        errors = [
            forbidden(path, f"updates may not remove a condition of type {go_quote(kind)}")
            for kind in FINAL
            if len(_of_type(status, kind)) < len(_of_type(old_status, kind))
        ]
        if not self.sets_approval:
            errors += [
                forbidden(path, f"updates may not add a condition of type {go_quote(kind)}")
                for kind in _DECISIONS
                if len(_of_type(status, kind)) > len(_of_type(old_status, kind))
            ]
        held = old_status.get("certificate", "")
        if held and status.get("certificate", "") != held:
            errors.append(forbidden("status.certificate", "updates may not modify existing certificate content"))
        return errors


class CertificateSigningRequestStrategy(_Requests):
    """The strategy of certificatesigningrequests; after the creation only the metadata can change."""

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        asker = {
            "username": context.user,
            "uid": context.uid,
            "groups": list(context.groups),
            "extra": {key: list(values) for key, values in context.extra.items()},
        }
        told = {key: value for key, value in obj.get("spec", {}).items() if key not in asker}
        obj["spec"] = {**told, **{key: value for key, value in asker.items() if value}}
        obj["status"] = {}

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        restore(obj, old, "spec", "status")

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return [("spec",), ("status",)]


class CSRStatusStrategy(_Requests):
    """The strategy of /status: the certificate and failure conditions; approval conditions are kept."""

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        restore(obj, old, "spec")
        status, old_status = obj.setdefault("status", {}), old.get("status") or {}
        for kind in _DECISIONS:
            held, told = _of_type(old_status, kind), _of_type(status, kind)
            if len(held) == len(told):
                before = iter(held)
                status["conditions"] = [
                    next(before) if item.get("type") == kind else item for item in status.get("conditions") or ()
                ]
        _set_condition_times(context, status, old_status)

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return [("spec",), ("status", "conditions")]


class CSRApprovalStrategy(_Requests):
    """The strategy of /approval, which changes only the conditions."""

    sets_approval = True

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        status, old_status = obj.get("status") or {}, old.get("status") or {}
        _set_condition_times(context, status, old_status)
        restore(obj, old, "spec")
        obj["status"] = {**old_status, "conditions": status.get("conditions") or []}

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return [("spec",), ("status", "certificate")]


def _of_type(status: Object, kind: str) -> list[Object]:
    return [item for item in status.get("conditions") or () if item.get("type") == kind]


def _set_condition_times(context: WriteContext, status: Object, old_status: Object) -> None:
    """Sets the times of conditions that the client does not set."""
    now = context.now()
    since: dict[tuple[str, str], str] = {}
    for old in old_status.get("conditions") or ():
        if old.get("lastTransitionTime"):
            since.setdefault((old.get("type", ""), old.get("status", "")), old["lastTransitionTime"])
    stamped = []
    for item in status.get("conditions") or ():
        transition = since.get((item.get("type", ""), item.get("status", "")), now)
        times = {"lastUpdateTime": now, "lastTransitionTime": transition}
        stamped.append({**item, **{key: time for key, time in times.items() if not item.get(key)}})
    if stamped:
        status["conditions"] = stamped


# --- Rules ------------------------------------------------------------------------------------------------------------


def _validate_request(obj: Object, old: Object | None) -> list[FieldError]:
    """Validates a new or updated request; errors that the old request has already are allowed."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    old_spec, old_status = (old or {}).get("spec") or {}, (old or {}).get("status") or {}
    errors: list[FieldError] = []
    problem = problem_with_request(spec.get("request") or "")
    if problem:
        request = spec.get("request")
        errors.append(
            invalid("spec.request", Printed("[]byte(nil)") if request is None and not from_minor(34) else request, problem)
        )
    errors += _validate_usages(spec.get("usages") or (), old_spec.get("usages") or ())
    signer = spec.get("signerName", "")
    if signer == LEGACY_UNKNOWN_SIGNER_NAME != old_spec.get("signerName"):
        errors.append(invalid("spec.signerName", signer, "the legacy signerName is not allowed via this API version"))
    else:
        errors += validate_signer_name(signer, "spec.signerName")
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < MIN_SECONDS:
        text = f"may not specify a duration less than {MIN_SECONDS} seconds (10 minutes)"
        errors.append(invalid("spec.expirationSeconds", seconds, text))
    errors += _validate_conditions(status.get("conditions") or (), old_status.get("conditions") or ())
    certificate, held = status.get("certificate", ""), old_status.get("certificate", "")
    untouched = old is not None and (certificate == held or _problem_with_certificate(held))
    problem = "" if untouched else _problem_with_certificate(certificate)
    return [*errors, invalid("status.certificate", "<certificate data>", problem)] if problem else errors


def _validate_usages(usages: Sequence[str], old_usages: Sequence[str]) -> list[FieldError]:
    errors = [] if usages else [required("spec.usages")]
    if all(usage in _USAGES for usage in old_usages):
        for index, usage in enumerate(usages):
            errors += one_of(usage, f"spec.usages[{index}]", _USAGES)
    if len(set(old_usages)) == len(old_usages):
        errors += [duplicate(f"spec.usages[{index}]", usages[index]) for index in repeated_indices(usages)]
    return errors


def _validate_conditions(items: Sequence[Mapping[str, Any]], old_items: Sequence[Mapping[str, Any]]) -> list[FieldError]:
    errors: list[FieldError] = []
    old_types = {item.get("type", "") for item in old_items}
    seen: set[str] = set()
    for index, item in enumerate(items):
        path, kind, state = f"status.conditions[{index}]", item.get("type", ""), item.get("status", "")
        if not kind and "" not in old_types:
            errors.append(required(f"{path}.type"))
        allowed = ("True",) if kind in FINAL else ("False", "True", "Unknown")
        errors += one_of(state, f"{path}.status", allowed) if state else [required(f"{path}.status")]
        other = {"Approved": "Denied", "Denied": "Approved"}.get(kind)
        if other in seen and not old_types.issuperset(_DECISIONS):
            text = "Approved and Denied conditions are mutually exclusive"
            shown = kind
            if holds_declared_rules():
                both = [f'conditions[{{"type": "{decision}"}}]' for decision in _DECISIONS]
                text, shown = f"must specify at most one of: `{both[0]}`, `{both[1]}`", f"{{{', '.join(both)}}}"
            errors.append(invalid("status.conditions" if from_minor(34) else f"{path}.type", shown, text))
        if kind in seen and len(old_types) == len(old_items):
            errors.append(duplicate(f"{path}.type", kind))
        seen.add(kind)
    return errors


# --- PEM and X.509 ----------------------------------------------------------------------------------------------------


def parse_csr(text: str) -> x509.CertificateSigningRequest | None:
    """Returns the X.509 request in the base64 of a PEM text; None if it is malformed (ParseCSR)."""
    block, _ = pem.decode(base64.b64decode(text))
    if block is None or block.type != "CERTIFICATE REQUEST":
        return None
    try:
        return x509.load_der_x509_csr(block.content)
    except (ValueError, x509.InvalidVersion):
        return None


def problem_with_request(text: str) -> str:
    """Returns the error text of a PEM request, as the real server words it; "" if it is valid."""
    block, _ = pem.decode(base64.b64decode(text))
    if block is None or block.type != "CERTIFICATE REQUEST":
        return "PEM block type must be CERTIFICATE REQUEST"
    content = block.content
    try:
        request = x509.load_der_x509_csr(content)
    except (ValueError, x509.InvalidVersion):
        return _problem_with_der(content, "certificateRequest")
    try:
        return _problem_with_signature(request)
    except UnsupportedAlgorithm:
        return _UNSUPPORTED_CURVE if _EC_KEY in content else _UNIMPLEMENTED
    except ValueError:
        return _problem_with_key(content)


_UNIMPLEMENTED: Final = "x509: cannot verify signature: algorithm unimplemented"
_UNSUPPORTED_CURVE: Final = "x509: unsupported elliptic curve"

#: The object identifiers of keys, in DER.
_EC_KEY: Final = bytes.fromhex("06072a8648ce3d0201")
_RSA_KEY: Final = bytes.fromhex("06092a864886f70d010101")
#: Name of a curve → its object identifier in DER, and its name in Go.
_CURVES: Final = {
    "secp224r1": (bytes.fromhex("06052b81040021"), "P224"),
    "secp256r1": (bytes.fromhex("06082a8648ce3d030107"), "P256"),
    "secp384r1": (bytes.fromhex("06052b81040022"), "P384"),
    "secp521r1": (bytes.fromhex("06052b81040023"), "P521"),
}
#: The algorithms of signatures that Go verifies.
_SIGNATURES: Final = frozenset(
    {
        *(f"1.2.840.113549.1.1.{number}" for number in (4, 5, 10, 11, 12, 13)),
        *("1.2.840.10045.4.1", "1.2.840.10045.4.3.2", "1.2.840.10045.4.3.3", "1.2.840.10045.4.3.4", "1.3.101.112"),
    }
)


def _problem_with_signature(request: x509.CertificateSigningRequest) -> str:
    """Returns why a signature is not that of the key (checkSignature). Raises UnsupportedAlgorithm, ValueError for bad keys."""
    key = request.public_key()
    if isinstance(key, ec.EllipticCurvePublicKey):
        if key.curve.name not in _CURVES:
            return _UNSUPPORTED_CURVE
        failure = "x509: ECDSA verification failure"
    elif isinstance(key, rsa.RSAPublicKey):
        failure = "crypto/rsa: verification error"
    elif isinstance(key, ed25519.Ed25519PublicKey):
        failure = "x509: Ed25519 verification failure"
    else:
        return _UNIMPLEMENTED
    if request.signature_algorithm_oid.dotted_string not in _SIGNATURES:
        return _UNIMPLEMENTED
    return "" if request.is_signature_valid else failure


def _problem_with_key(content: bytes) -> str:
    """Returns why the key in a request is none (parsePublicKey)."""
    if _RSA_KEY in content:
        return "x509: invalid RSA public key"
    curve = next((name for oid, name in _CURVES.values() if oid in content), None)
    return f"{curve} point not on curve" if curve is not None else _UNSUPPORTED_CURVE


def _problem_with_certificate(text: str) -> str:
    if not text:
        return ""
    blocks = list(pem.blocks(base64.b64decode(text)))
    for block in blocks:
        if block.type != "CERTIFICATE":
            return f"only CERTIFICATE PEM blocks are allowed, found {go_quote(block.type)}"
        if block.has_headers:
            return "no PEM block headers are permitted"
        if not block.content:
            return "found CERTIFICATE PEM block containing 0 certificates"
        try:
            x509.load_der_x509_certificate(block.content)
        except (ValueError, x509.InvalidVersion):
            return "x509: malformed certificate"
    return "" if blocks else "must contain at least one CERTIFICATE PEM block"


def _problem_with_length(digits: bytes, announced: int) -> str:
    """Returns the error text of Go's decoder about a length that does not fit in one byte."""
    if not announced:
        return "asn1: syntax error: indefinite length found (not DER)"
    length = 0
    for digit in digits:
        if length >= 1 << 23:
            return "asn1: structure error: length too large"
        length = length << 8 | digit
        if not length:
            return "asn1: structure error: superfluous leading zeros in length"
    if len(digits) < announced:
        return "asn1: syntax error: truncated tag or length"
    return "asn1: structure error: non-minimal length" if length < 0x80 else ""


def _problem_with_der(content: bytes, struct: str) -> str:
    """Returns the error text of Go's decoder about the outermost element, and about the first one in it."""
    if not content:
        return "asn1: syntax error: sequence truncated"
    if len(content) < 2:
        return "asn1: syntax error: truncated tag or length"
    tag, length, header = content[0], content[1], 2
    if length & 0x80:
        header += length & 0x7F
        problem = _problem_with_length(content[2:header], length & 0x7F)
        if problem:
            return problem
        length = int.from_bytes(content[2:header], "big")
    if header + length > len(content):
        return "asn1: syntax error: data truncated"
    if tag != 0x30:
        parts = f"class:{tag >> 6} tag:{tag & 0x1F} length:{length} isCompound:{str(bool(tag & 0x20)).lower()}"
        options = (
            "optional:false explicit:false application:false private:false defaultValue:<nil> tag:<nil> "
            "stringType:0 timeType:0 set:false omitEmpty:false"
        )
        return f"asn1: structure error: tags don't match (16 vs {{{parts}}}) {{{options}}} {struct} @{header}"
    if struct == "certificateRequest":
        return _problem_with_der(content[header : header + length], "tbsCertificateRequest")
    return "x509: malformed certificate request"
