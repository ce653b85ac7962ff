"""podcertificaterequests.certificates.k8s.io, which kubelets make for the volumes of pods and signers answer.

Specified by: pkg/apis/certificates/validation (ValidatePodCertificateRequestCreate and …StatusUpdate),
pkg/registry/certificates/podcertificaterequest, pkg/apis/core/validation (ValidateUserAnnotations).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parseaddr
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import IMMUTABLE, OMITTED, Typed, forbidden, invalid, not_supported, required, too_long
from fakekube.apimachinery.schema.model import Type
from fakekube.apis.certificates.signers import is_authorized_for_signer_name, validate_signer_name
from fakekube.apis.rest.strategy import Strategy, WriteContext, keep_all_but, keep_metadata
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import conditions, invalid_each
from fakekube.apis.validation.objectmeta import ANNOTATIONS_LENGTH
from fakekube.apis.validation.rules import from_minor
from fakekube.apis.validation.to_internal import semantic_deep_equal, semantic_deep_equal_as
from fakekube.base.golang import pem
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import Object

MIN_SECONDS: Final = 3600
MAX_SECONDS: Final = 91 * 24 * 3600
MAX_SECONDS_OF_KUBERNETES: Final = 24 * 3600
_MAX_CHAIN_SIZE: Final = 100 * 1024
MAX_REQUEST_SIZE: Final = 10 * 1024
_MAX_UID_LENGTH: Final = 128
FINAL: Final = ("Issued", "Denied", "Failed")
_RSA_BITS: Final = (3072, 4096)
_REQUEST: Final = "spec.stubPKCS10Request"
_KEY: Final = "spec.pkixPublicKey"
_PROOF: Final = "spec.proofOfPossession"
_CHAIN: Final = "status.certificateChain"
_CURVES: Final = ("secp256r1", "secp384r1", "secp521r1")
_GO_CURVES: Final = {"secp224r1": "P-224"}
_UNKNOWN_KEY: Final = "unknown public key type; supported types are Ed25519, ECDSA, and RSA"
_NOT_VERIFIED: Final = "could not verify proof-of-possession signature"


#: The fields of the stored version that v1 does not have.
_ONLY_STORED: Final = ("pkixPublicKey", "proofOfPossession")


def to_storage(obj: Object) -> Object:
    """Converts a request of v1 to the stored version, v1beta1: its type prints the fields that v1 does not have."""
    return obj


def from_storage(obj: Object) -> Object:
    """Converts a stored request to v1."""
    return {**obj, "spec": {name: value for name, value in obj.get("spec", {}).items() if name not in _ONLY_STORED}}


def is_kubernetes_signer(name: str) -> bool:
    """Reports whether a signer is one of Kubernetes' own (IsKubernetesSignerName)."""
    host = name.partition("/")[0]
    return host == "kubernetes.io" or host.endswith(".kubernetes.io")


def validate_user_annotations(annotations: Mapping[str, str], path: str) -> list[FieldError]:
    """Validates the annotations that a pod's author adds to a request (ValidateUserAnnotations)."""
    errors: list[FieldError] = []
    for key in annotations:
        errors += _validate_domain_prefixed_key(path, key.lower())
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > ANNOTATIONS_LENGTH:
        errors.append(too_long(path, ANNOTATIONS_LENGTH))
    return errors


def _validate_domain_prefixed_key(path: str, key: str) -> list[FieldError]:
    """Validates a key with a domain before its slash (IsDomainPrefixedKey)."""
    if not key:
        return [required(path)]
    errors = invalid_each(path, key, names.label_key(key))
    if not errors and key.count("/") != 1:
        errors.append(invalid(path, key, 'must be a domain-prefixed key (such as "acme.io/foo")'))
    return errors


class PodCertificateRequestStrategy(Strategy):
    """The strategy of podcertificaterequests."""

    unconditional_update = False
    has_status = True

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _validate_spec(obj.get("spec") or {})

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        if semantic_deep_equal_as(_spec_type(), spec, old.get("spec")):
            return []
        return [invalid("spec", _internal_spec(spec), IMMUTABLE)]


#: The fields of the internal spec in Go's order: name, field, and its zero value.
_INTERNAL: Final = (
    ("SignerName", "signerName", ""), ("PodName", "podName", ""), ("PodUID", "podUID", ""),
    ("ServiceAccountName", "serviceAccountName", ""), ("ServiceAccountUID", "serviceAccountUID", ""),
    ("NodeName", "nodeName", ""), ("NodeUID", "nodeUID", ""), ("MaxExpirationSeconds", "maxExpirationSeconds", None),
    ("PKIXPublicKey", "pkixPublicKey", None), ("ProofOfPossession", "proofOfPossession", None),
    ("StubPKCS10Request", "stubPKCS10Request", None), ("UnverifiedUserAnnotations", "unverifiedUserAnnotations", None),
)  # fmt: skip


def _spec_type() -> Type:
    """Returns the type of the spec in the newest version before v1."""
    version = "v1beta1" if from_minor(35) else "v1alpha1"
    return features.current().types.type_of(f"k8s.io/api/certificates/{version}.PodCertificateRequestSpec")


def _internal_spec(spec: Object) -> dict[str, Any]:
    known = _spec_type().fields
    return {name: spec.get(field, zero) for name, field, zero in _INTERNAL if field in known}


def _validate_spec(spec: Object) -> list[FieldError]:
    signer = spec.get("signerName", "")
    errors = validate_signer_name(signer, "spec.signerName")
    errors += validate_user_annotations(spec.get("unverifiedUserAnnotations") or {}, "spec.unverifiedUserAnnotations")
    errors += invalid_each("spec.podName", spec.get("podName", ""), names.dns_subdomain(spec.get("podName", "")))
    errors += _validate_uid(spec, "podUID")
    account = spec.get("serviceAccountName", "")
    errors += invalid_each("spec.serviceAccountName", account, names.dns_subdomain(account))
    errors += _validate_uid(spec, "serviceAccountUID")
    node = spec.get("nodeName", "")
    errors += invalid_each("spec.nodeName", Typed(node), names.dns_subdomain(node)) + _validate_uid(spec, "nodeUID")
    seconds = spec.get("maxExpirationSeconds")
    if seconds is None:
        return [*errors, required("spec.maxExpirationSeconds", "must be set")]
    longest = MAX_SECONDS_OF_KUBERNETES if is_kubernetes_signer(signer) else MAX_SECONDS
    if not MIN_SECONDS <= seconds <= longest:
        errors.append(invalid("spec.maxExpirationSeconds", seconds, f"must be in the range [{MIN_SECONDS}, {longest}]"))
    if "stubPKCS10Request" not in _spec_type().fields:
        return errors + _validate_public_key(spec)
    has_request, has_key, has_proof = (
        bool(spec.get(field)) for field in ("stubPKCS10Request", "pkixPublicKey", "proofOfPossession")
    )
    if has_request and not has_key and not has_proof:
        return errors + _validate_stub_request(spec["stubPKCS10Request"])
    if not has_request and has_key and has_proof:
        return errors + _validate_public_key(spec)
    text = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set"
    return [*errors, invalid("spec", OMITTED, text)]


def _validate_uid(spec: Object, field: str) -> list[FieldError]:
    value = spec.get(field, "")
    if not value:
        return [invalid(f"spec.{field}", value, "must not be empty")]
    return [too_long(f"spec.{field}", _MAX_UID_LENGTH)] if len(value.encode()) > _MAX_UID_LENGTH else []


def _validate_key(key: Any, path: str, curves: str, shown: Any = OMITTED) -> list[FieldError]:
    """Validates type and size of a public key; `shown` is the value of an error about its type."""
    if isinstance(key, ed25519.Ed25519PublicKey):
        return []
    if isinstance(key, ec.EllipticCurvePublicKey):
        name = key.curve.name
        text = f"elliptic public keys must use curve {curves}"
        return [] if name in _CURVES else [invalid(path, f"curve {_GO_CURVES.get(name, name)}", text)]
    if isinstance(key, rsa.RSAPublicKey):
        bits = (key.key_size + 7) // 8 * 8
        text = "RSA keys must have modulus size 3072 or 4096"
        return [] if bits in _RSA_BITS else [invalid(path, f"{bits}-bit modulus", text)]
    return [invalid(path, shown, _UNKNOWN_KEY)]


def _validate_stub_request(encoded: str) -> list[FieldError]:
    content = base64.b64decode(encoded)
    if len(content) > MAX_REQUEST_SIZE:
        return [too_long(_REQUEST, MAX_REQUEST_SIZE)]
    try:
        request = x509.load_der_x509_csr(content)
        key = request.public_key()
    except (ValueError, x509.InvalidVersion, UnsupportedAlgorithm):
        return [invalid(_REQUEST, OMITTED, "must be a valid PKCS#10 CSR")]
    errors = _validate_key(key, _REQUEST, "P256, P384, or P521")
    if not errors and not _is_signed(request):
        errors.append(invalid(_REQUEST, OMITTED, "invalid signature"))
    return errors


def _is_signed(request: x509.CertificateSigningRequest) -> bool:
    try:
        return request.is_signature_valid
    except UnsupportedAlgorithm:
        return False


def _validate_public_key(spec: Object) -> list[FieldError]:
    shown = spec.get("pkixPublicKey")
    content, proof = base64.b64decode(shown or ""), base64.b64decode(spec.get("proofOfPossession") or "")
    for path, value in ((_KEY, content), (_PROOF, proof)):
        if len(value) > MAX_REQUEST_SIZE:
            return [too_long(path, MAX_REQUEST_SIZE)]
    try:
        key = serialization.load_der_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        return [invalid(_KEY, shown, "must be a valid PKIX-serialized public key")]
    errors = _validate_key(key, _KEY, "P256 or P384", shown)
    if errors:
        return errors
    signed = spec["podUID"].encode()
    try:
        if isinstance(key, ed25519.Ed25519PublicKey):
            key.verify(proof, signed)
        elif isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(proof, signed, ec.ECDSA(hashes.SHA256()))
        elif isinstance(key, rsa.RSAPublicKey):
            salted = padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.AUTO)
            key.verify(proof, signed, salted, hashes.SHA256())
    except InvalidSignature:
        return [invalid(_PROOF, OMITTED, _NOT_VERIFIED)]
    return []


# --- Status ----------------------------------------------------------------------------------------------------------


class PodCertificateRequestStatusStrategy(Strategy):
    """The strategy of podcertificaterequests/status, which signers write."""

    unconditional_update = False

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        keep_all_but(obj, old, "status")
        keep_metadata(obj, old)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        status, before = obj.get("status") or {}, old.get("status") or {}
        errors = _validate_status(context, status, before, old.get("spec") or {})
        if not errors and not semantic_deep_equal(status, before):
            signer = (old.get("spec") or {}).get("signerName", "")
            if not is_authorized_for_signer_name(context, "sign", signer):
                text = f'User {go_quote(context.user)} is not permitted to "sign" for signer {go_quote(signer)}'
                errors = [forbidden("spec.signerName", text)]
        return errors

    def reset_fields(self, version: str) -> Sequence[tuple[str, ...]]:
        return [("metadata",), ("spec",)]


def _types_of(status: Object) -> set[str]:
    return {one.get("type", "") for one in status.get("conditions") or ()}


def _validate_status(context: WriteContext, status: Object, before: Object, spec: Object) -> list[FieldError]:
    items = status.get("conditions") or []
    errors = _validate_condition_types(items) + conditions(items, "status.conditions")
    if errors:
        return errors
    if _types_of(before) & {*FINAL}:
        text = "immutable after PodCertificateRequest is issued, denied, or failed"
        return [] if semantic_deep_equal(status, before) else [invalid("status", OMITTED, text)]
    if _types_of(status) & {"Denied", "Failed"}:
        text = "non-condition status fields must be empty when denying or failing the PodCertificateRequest"
        return [] if semantic_deep_equal(status, {"conditions": items}) else [invalid("status", OMITTED, text)]
    if "Issued" in _types_of(status):
        return _validate_issued(context, status, spec)
    text = 'status is immutable unless transitioning to "Issued", "Denied", or "Failed"'
    return [] if semantic_deep_equal(status, before) else [invalid("status", OMITTED, text)]


def _validate_condition_types(items: Sequence[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    known = 0
    for index, item in enumerate(items):
        kind, path = item.get("type", ""), f"status.conditions.[{index}]"
        if kind not in FINAL:
            errors.append(not_supported(f"{path}.type", kind, FINAL))
            continue
        known += 1
        if known > 1:
            text = 'There may be at most one condition with type "Issued", "Denied", or "Failed"'
            errors.append(invalid(f"{path}.type", kind, text))
        if item.get("status") != "True":
            errors.append(not_supported(f"{path}.status", item.get("status", ""), ("True",)))
    return errors


def _requested_key(spec: Object) -> Any:
    if spec.get("stubPKCS10Request"):
        return x509.load_der_x509_csr(base64.b64decode(spec["stubPKCS10Request"])).public_key()
    return serialization.load_der_public_key(base64.b64decode(spec["pkixPublicKey"]))


def _validate_issued(context: WriteContext, status: Object, spec: Object) -> list[FieldError]:
    chain = status.get("certificateChain", "")
    if len(chain.encode()) > _MAX_CHAIN_SIZE:
        return [too_long(_CHAIN, _MAX_CHAIN_SIZE)]
    blocks = list(pem.blocks(chain.encode()))
    if not blocks:
        return [invalid(_CHAIN, chain, "issued certificate chain must contain at least one certificate")]
    if blocks[0].type != "CERTIFICATE":
        return [invalid(_CHAIN, chain, "issued certificate chain must consist entirely of CERTIFICATE PEM blocks")]
    try:
        leaf = x509.load_der_x509_certificate(blocks[0].content)
        key = leaf.public_key()
    except (ValueError, x509.InvalidVersion, UnsupportedAlgorithm):
        return [invalid(_CHAIN, chain, "leaf certificate does not parse as valid X.509")]
    errors = _validate_names(leaf)
    if key != _requested_key(spec):
        return [*errors, invalid(_CHAIN, chain, "leaf certificate was not issued to the requested public key")]
    errors += _validate_times(context, status, spec, leaf)
    return errors or _validate_intermediates(chain, blocks[1:])


def _validate_names(leaf: x509.Certificate) -> list[FieldError]:
    try:
        alternative = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return []
    errors: list[FieldError] = []
    for name in alternative.get_values_for_type(x509.DNSName):
        if not name:
            errors.append(invalid(_CHAIN, name, "leaf certificate should not contain empty DNSName"))
        if ".." in name:
            errors.append(invalid(_CHAIN, name, "leaf certificate's DNSName should not contain '..'"))
        if name.startswith(".") or name.endswith("."):
            errors.append(invalid(_CHAIN, name, "leaf certificate's DNSName should not start or end with '.'"))
    wrong = [address for address in alternative.get_values_for_type(x509.RFC822Name) if "@" not in parseaddr(address)[1]]
    return errors + [invalid(_CHAIN, one, "leaf certificate should not contain invalid EmailAddress") for one in wrong]


def _validate_times(context: WriteContext, status: Object, spec: Object, leaf: x509.Certificate) -> list[FieldError]:
    consistent = "must be present and consistent with the issued certificate"
    texts = {
        "notBefore": consistent,
        "notAfter": consistent,
        "beginRefreshAt": "must be present and in the range [notbefore+10min, notafter-10min]",
    }
    missing = [required(f"status.{field}", text) for field, text in texts.items() if not status.get(field)]
    if missing:
        return missing
    begin, end, refresh = (datetime.strptime(status[field], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC) for field in texts)
    lifetime = leaf.not_valid_after_utc - leaf.not_valid_before_utc
    longest = timedelta(seconds=spec.get("maxExpirationSeconds") or 0)
    margin = timedelta(minutes=10)
    rules: tuple[tuple[bool, str, Any, str], ...] = (
        (begin != leaf.not_valid_before_utc, "notBefore", status["notBefore"],
         "must be set to the NotBefore time encoded in the leaf certificate"),
        (abs(begin - context.clock.now()) > timedelta(minutes=5), "notBefore", status["notBefore"],
         "must be set to within 5 minutes of kube-apiserver's current time"),
        (end != leaf.not_valid_after_utc, "notAfter", status["notAfter"],
         "must be set to the NotAfter time encoded in the leaf certificate"),
        (lifetime < timedelta(hours=1), "certificateChain", _nanoseconds(lifetime),
         "leaf certificate lifetime must be >= 1 hour"),
        (lifetime > longest, "certificateChain", _nanoseconds(lifetime),
         f"leaf certificate lifetime must be <= spec.maxExpirationSeconds ({spec.get('maxExpirationSeconds')})"),
        (refresh < begin + margin, "beginRefreshAt", status["beginRefreshAt"],
         "must be at least 10 minutes after status.notBefore"),
        (refresh > end - margin, "beginRefreshAt", status["beginRefreshAt"],
         "must be at least 10 minutes before status.notAfter"),
    )  # fmt: skip
    for is_broken, field, value, text in rules:
        if is_broken:
            return [invalid(f"status.{field}", value, text)]
    return []


def _nanoseconds(span: timedelta) -> int:
    return int(span.total_seconds()) * 10**9


def _validate_intermediates(chain: str, blocks: Sequence[pem.Block]) -> list[FieldError]:
    for block in blocks:
        if block.type != "CERTIFICATE":
            return [invalid(_CHAIN, chain, "issued certificate chain must consist entirely of CERTFICATE PEM blocks")]
        try:
            x509.load_der_x509_certificate(block.content)
        except (ValueError, x509.InvalidVersion):
            return [invalid(_CHAIN, chain, "intermediate certificate does not parse as valid X.509")]
    return []
