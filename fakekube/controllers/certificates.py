"""The controllers of certificates: they approve, sign and delete CertificateSigningRequests, and publish the CA.

`parse` and the functions beside it check a request against the rules of its signer.

A kubelet may request its own certificate (create certificatesigningrequests/selfnodeclient), or that of a node that bootstraps
(…/nodeclient). Requests that are not allowed are checked again when ClusterRoles or their bindings change.

The cluster's CA signs approved requests for the signers of kube-controller-manager. A request that violates the rules of its
signer gets the condition Failed. Requests of other signers are ignored.

Old requests are deleted: one hour after a decision, 24 hours after creation, or when the certificate expires. The real cleaner
lists all of them every hour; here each is deleted at its own time.

PodCertificateRequests are deleted after 15 minutes. The CA of the API server is published as a ClusterTrustBundle.

Specified by: pkg/controller/certificates/{approver/sarapprove,signer/signer,authority/policies,cleaner/cleaner}.go,
pkg/controller/certificates/{cleaner/pcrcleaner,clustertrustbundlepublisher/publisher}.go, pkg/apis/certificates/helpers.go,
pkg/controller/certificates/certificate_controller_utils.go.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from fakekube.apis.well_known import (
    KUBE_APISERVER_CLIENT_KUBELET_SIGNER_NAME,
    KUBE_APISERVER_CLIENT_SIGNER_NAME,
    KUBELET_SERVING_SIGNER_NAME,
    LEGACY_UNKNOWN_SIGNER_NAME,
    NODE_USER_NAME_PREFIX,
    NODES_GROUP,
)
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.reconciler import Key, Reconciler

if TYPE_CHECKING:
    from cryptography import x509


RESOURCE: Final = "certificatesigningrequests.certificates.k8s.io"

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
    from fakekube.apis.certificates.certificatesigningrequests import parse_csr

    return parse_csr(obj["spec"].get("request") or "")


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

_SUBJECT: Final[Rule] = (lambda names: names.organizations != [NODES_GROUP], "subject organization is not system:nodes")
_COMMON_NAME: Final[Rule] = (
    lambda names: not names.common_name.startswith(NODE_USER_NAME_PREFIX),
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


RBAC: Final = ("clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io")
_SELF: Final = ("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.")
_NODE: Final = ("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.")


class CSRApprovingController(Reconciler):
    """Approves requests of the signer kube-apiserver-client-kubelet."""

    name = "certificatesigningrequest-approving-controller"
    client_name = "certificate-controller"
    watches = (RESOURCE,)

    def __init__(self) -> None:
        self._denied: set[Key] = set()

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        if resource != RESOURCE:
            return tuple(self._denied)
        key = Key("", obj["metadata"]["name"])
        if event_type == "DELETED":
            self._denied.discard(key)
            return ()
        return (key,)

    def reconcile(self, key: Key) -> None:
        self._denied.discard(key)
        obj = self.cache.get(RESOURCE, "", key.name)
        if (
            obj is None
            or obj["spec"].get("signerName") != KUBE_APISERVER_CLIENT_KUBELET_SIGNER_NAME
            or (obj.get("status") or {}).get("certificate")
        ):
            return
        if has_condition(obj, "Approved") or has_condition(obj, "Denied"):
            return
        request = parse(obj)
        names = names_of(request) if request is not None else None
        if names is None or validate_kubelet_client(names, set(obj["spec"].get("usages") or ())):
            return
        own = obj["spec"].get("username") == names.common_name
        for subresource, message in (_SELF, _NODE) if own else (_NODE,):
            if self._is_allowed(obj, subresource):
                self._approve_request(obj, message)
                return
        self._denied.add(key)
        for name in RBAC:
            self.also_watch(name)

    def _is_allowed(self, obj: Object, subresource: str) -> bool:
        spec = obj["spec"]
        user = {"user": spec.get("username", ""), **{name: spec[name] for name in ("uid", "groups", "extra") if name in spec}}
        attributes = {
            "group": "certificates.k8s.io",
            "resource": "certificatesigningrequests",
            "verb": "create",
            "subresource": subresource,
            "version": "*",
        }
        review = self.client.create(
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": {**user, "resourceAttributes": attributes},
            }
        )
        return bool(review["status"].get("allowed"))

    def _approve_request(self, obj: Object, message: str) -> None:
        status = obj.get("status") or {}
        conditions = [*(status.get("conditions") or ()), new_condition("Approved", "AutoApproved", message)]
        self.client.update({**obj, "status": {**status, "conditions": conditions}}, subresource="approval")


#: The maximum (--cluster-signing-duration) and the minimum lifetime of a certificate.
MAX_DURATION, MIN_DURATION = timedelta(days=365), timedelta(minutes=10)
BACKDATE: Final = timedelta(minutes=5)
#: The end of a certificate with a shorter lifetime is not brought forward by BACKDATE.
SHORT: Final = timedelta(hours=8)

Validation = Callable[[Names, set[str]], str]


def _validate_client(_names: Names, usages: set[str]) -> str:
    foreign = usages - {"digital signature", "key encipherment", "client auth"}
    if foreign:
        return f"invalid usage for client certificate: {sorted(foreign)[0]}"
    return "" if "client auth" in usages else "missing required usage for client certificate: client auth"


#: Signer → the validation of its requests, which returns "" for a valid one.
SIGNERS: Final[Mapping[str, Validation]] = {
    KUBE_APISERVER_CLIENT_SIGNER_NAME: _validate_client,
    KUBE_APISERVER_CLIENT_KUBELET_SIGNER_NAME: validate_kubelet_client,
    KUBELET_SERVING_SIGNER_NAME: validate_kubelet_serving,
    LEGACY_UNKNOWN_SIGNER_NAME: lambda _names, _usages: "",
}

#: Usages → fields of x509.KeyUsage.
_KEY_USAGES: Final = {
    "signing": "digital_signature",
    "digital signature": "digital_signature",
    "content commitment": "content_commitment",
    "key encipherment": "key_encipherment",
    "key agreement": "key_agreement",
    "data encipherment": "data_encipherment",
    "cert sign": "key_cert_sign",
    "crl sign": "crl_sign",
    "encipher only": "encipher_only",
    "decipher only": "decipher_only",
}
#: Usages → object identifiers of extended key usages, in the order of crypto/x509.
_EXTENDED_KEY_USAGES: Final = {
    "any": "2.5.29.37.0",
    "server auth": "1.3.6.1.5.5.7.3.1",
    "client auth": "1.3.6.1.5.5.7.3.2",
    "code signing": "1.3.6.1.5.5.7.3.3",
    "email protection": "1.3.6.1.5.5.7.3.4",
    "s/mime": "1.3.6.1.5.5.7.3.4",
    "ipsec end system": "1.3.6.1.5.5.7.3.5",
    "ipsec tunnel": "1.3.6.1.5.5.7.3.6",
    "ipsec user": "1.3.6.1.5.5.7.3.7",
    "timestamping": "1.3.6.1.5.5.7.3.8",
    "ocsp signing": "1.3.6.1.5.5.7.3.9",
    "microsoft sgc": "1.3.6.1.4.1.311.10.3.3",
    "netscape sgc": "2.16.840.1.113730.4.1",
}


class CSRSigningController(Reconciler):
    """Signs requests."""

    name = "certificatesigningrequest-signing-controller"
    client_name = "certificate-controller"
    watches = (RESOURCE,)

    def reconcile(self, key: Key) -> None:
        obj = self.cache.get(RESOURCE, "", key.name)
        validate = SIGNERS.get(obj["spec"].get("signerName", "")) if obj is not None else None
        if obj is None or validate is None or not _is_ready_to_sign(obj):
            return
        request = parse(obj)
        if request is None:
            return
        status, usages = obj.get("status") or {}, list(obj["spec"].get("usages") or ())
        problem = validate(names_of(request), set(usages))
        if problem:
            failed = new_condition("Failed", "SignerValidationFailure", problem, self.client.now())
            status = {**status, "conditions": [*status["conditions"], failed]}
        elif request.is_signature_valid:
            certificate = self._sign_certificate(request, usages, obj["spec"].get("expirationSeconds"))
            status = {**status, "certificate": base64.b64encode(certificate.encode()).decode()}
        else:
            return
        self.client.update({**obj, "status": status}, subresource="status")

    def _sign_certificate(self, request: x509.CertificateSigningRequest, usages: list[str], seconds: int | None) -> str:
        assert self.context.authority is not None
        duration = MAX_DURATION if seconds is None else min(MAX_DURATION, max(MIN_DURATION, timedelta(seconds=seconds)))
        now = self.clock.now()
        not_after = now + duration if duration < SHORT else now + duration - BACKDATE
        # Verifiers use the real time, which may be earlier than that of the cluster's clock.
        not_before = min(now, datetime.now(UTC)) - BACKDATE
        return self.context.authority().sign_request(request, _certificate_extensions(request, usages), not_before, not_after)


def _is_ready_to_sign(obj: Object) -> bool:
    if (obj.get("status") or {}).get("certificate"):
        return False
    denied = has_condition(obj, "Denied") or has_condition(obj, "Failed", true=True)
    return has_condition(obj, "Approved") and not denied


def _certificate_extensions(request: x509.CertificateSigningRequest, usages: list[str]) -> list[tuple[x509.ExtensionType, bool]]:
    """Returns the extensions of the certificate, and whether each is critical. Of the requested ones only names are kept."""
    from cryptography import x509

    found: list[tuple[x509.ExtensionType, bool]] = []
    fields = {_KEY_USAGES[usage] for usage in usages if usage in _KEY_USAGES}
    if fields:
        agrees = bool(fields & {"key_agreement", "encipher_only", "decipher_only"})
        flags = {name: name in fields for name in dict.fromkeys(_KEY_USAGES.values())}
        found.append((x509.KeyUsage(**{**flags, "key_agreement": agrees}), True))
    oids = [oid for usage, oid in _EXTENDED_KEY_USAGES.items() if usage in usages]
    if oids:
        found.append((x509.ExtendedKeyUsage([x509.ObjectIdentifier(oid) for oid in dict.fromkeys(oids)]), False))
    found.append((x509.BasicConstraints(ca=False, path_length=None), True))
    try:
        names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return found
    return [*found, (x509.SubjectAlternativeName(list(names)), not list(request.subject))]


#: How long requests are kept that were denied, have failed or were issued (deniedExpiration, approvedExpiration).
DECIDED: Final = timedelta(hours=1)
#: How long other requests are kept (pendingExpiration).
PENDING: Final = timedelta(hours=24)
#: Timestamps are whole seconds, so that an object is older than a limit one second later.
SECOND: Final = timedelta(seconds=1)


class CSRCleanerController(Reconciler):
    """Deletes old requests."""

    name = "certificatesigningrequest-cleaner-controller"
    client_name = "certificate-controller"
    watches = (RESOURCE,)

    def reconcile(self, key: Key) -> None:
        obj = self.cache.get(RESOURCE, "", key.name)
        expires = min(_expiration_times(obj), default=None) if obj is not None else None
        if expires is None:
            return
        left = (expires + SECOND - self.clock.now()).total_seconds()
        if left > 0:
            self.requeue_after(key, left)
        else:
            self.client.delete(RESOURCE, key.name)


def _expiration_times(obj: Object) -> Iterator[datetime]:
    """Yields the times after which the request is to be deleted; the earliest counts."""
    status = obj.get("status") or {}
    issued = bool(status.get("certificate"))
    limits = {"Approved": DECIDED if issued else PENDING, "Denied": DECIDED, "Failed": DECIDED}
    conditions = status.get("conditions") or ()
    if not conditions:
        yield datetime.fromisoformat(obj["metadata"]["creationTimestamp"]) + PENDING
    for condition in conditions:
        updated = condition.get("lastUpdateTime")
        if updated and condition["type"] in limits:
            yield datetime.fromisoformat(updated) + limits[condition["type"]]
        if condition["type"] == "Approved" and issued:
            yield from _certificate_expiration(status["certificate"])


def _certificate_expiration(certificate: str) -> Iterator[datetime]:
    from cryptography import x509

    try:
        yield x509.load_pem_x509_certificate(base64.b64decode(certificate)).not_valid_after_utc
    except ValueError:
        return


POD_REQUESTS: Final = "podcertificaterequests.certificates.k8s.io"
BUNDLES: Final = "clustertrustbundles.certificates.k8s.io"
#: How long PodCertificateRequests are kept, and how often they are looked at.
POD_REQUEST_AGE: Final = timedelta(minutes=15)
_SERVING_SIGNER: Final = "kubernetes.io/kube-apiserver-serving"


class PodCertificateRequestCleaner(Reconciler):
    """Deletes old PodCertificateRequests, whatever their state (PCRCleanerController)."""

    name = "podcertificaterequest-cleaner-controller"
    client_name = "podcertificaterequestcleaner"
    watches = (POD_REQUESTS,)

    def reconcile(self, key: Key) -> None:
        found = self.cache.get(POD_REQUESTS, *key)
        if found is None:
            return
        metadata = found["metadata"]
        left = (datetime.fromisoformat(metadata["creationTimestamp"]) + POD_REQUEST_AGE - self.clock.now()).total_seconds()
        if left > 0:
            self.requeue_after(key, left)
        else:
            self.client.delete(POD_REQUESTS, key.name, namespace=key.namespace, preconditions={"uid": metadata["uid"]})


class ClusterTrustBundlePublisher(Reconciler):
    """Publishes the CA of the API server as a ClusterTrustBundle, and deletes other bundles of its signer.

    Without TLS there is no CA, and nothing is published.
    """

    name = "kube-apiserver-serving-clustertrustbundle-publisher-controller"
    client_name = "kube-apiserver-serving-clustertrustbundle-publisher"

    def on_start(self) -> None:
        if self.context.registry.any_version("certificates.k8s.io", "clustertrustbundles") is not None:
            self.also_watch(BUNDLES)
            self.enqueue(Key("", ""))

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        return (Key("", ""),) if obj["spec"].get("signerName") == _SERVING_SIGNER else ()

    def reconcile(self, key: Key) -> None:
        authority = self.context.certificate_authority
        if not authority:
            return
        name = f"{_SERVING_SIGNER.replace('/', ':')}:{sha256(authority.encode()).hexdigest()[:24]}"
        spec = {"signerName": _SERVING_SIGNER, "trustBundle": authority}
        found = self.cache.get(BUNDLES, "", name)
        if found is None:
            api_version = self.client.resource(BUNDLES).api_version
            self.client.create(
                {"apiVersion": api_version, "kind": "ClusterTrustBundle", "metadata": {"name": name}, "spec": spec}
            )
        elif found["spec"] != spec:
            self.client.update({**found, "spec": spec})
        for other in self.cache.list(BUNDLES):
            if other["spec"].get("signerName") == _SERVING_SIGNER and other["metadata"]["name"] != name:
                self.client.delete(BUNDLES, other["metadata"]["name"])
