"""Signs approved requests with the cluster's CA, for the signers that the control plane plays.

A request that its signer cannot accept gets the condition Failed. Other signers' requests are left alone.

Specified by: pkg/controller/certificates/signer/signer.go, pkg/controller/certificates/authority/policies.go.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from fakekube.controllers.certificates import requests
from fakekube.controllers.certificates.requests import RESOURCE, Names
from fakekube.controllers.reconciler import Key, Object, Reconciler

if TYPE_CHECKING:
    from cryptography import x509

__all__ = ["CSRSigningController"]

#: How long a certificate lasts at most (--cluster-signing-duration), and at least.
LONGEST, SHORTEST = timedelta(days=365), timedelta(minutes=10)
BACKDATE = timedelta(minutes=5)
#: A certificate that lasts less than that ends as late as was asked for.
SHORT = timedelta(hours=8)

Problem = Callable[[Names, set[str]], str]


def _client_problem(_names: Names, usages: set[str]) -> str:
    foreign = usages - {"digital signature", "key encipherment", "client auth"}
    if foreign:
        return f"invalid usage for client certificate: {sorted(foreign)[0]}"
    return "" if "client auth" in usages else "missing required usage for client certificate: client auth"


#: Signers, and why they cannot accept a request ("" if they can).
SIGNERS: Mapping[str, Problem] = {
    "kubernetes.io/kube-apiserver-client": _client_problem,
    "kubernetes.io/kube-apiserver-client-kubelet": requests.kubelet_client_problem,
    "kubernetes.io/kubelet-serving": requests.kubelet_serving_problem,
    "kubernetes.io/legacy-unknown": lambda _names, _usages: "",
}

#: Names of usages, as fields of x509.KeyUsage.
_KEY_USAGES = {
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
#: The others, as the last numbers of their object identifiers, in the order in which crypto/x509 knows them.
_EXTENDED_KEY_USAGES = {
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
    """See the module."""

    name = "certificatesigningrequest-signing-controller"
    client_name = "certificate-controller"
    watches = (RESOURCE,)

    def reconcile(self, key: Key) -> None:
        obj = self.cache.get(RESOURCE, "", key.name)
        check = SIGNERS.get(obj["spec"].get("signerName", "")) if obj is not None else None
        if obj is None or check is None or not _is_to_be_signed(obj):
            return
        request = requests.parse(obj)
        if request is None:
            return
        status, usages = obj.get("status") or {}, list(obj["spec"].get("usages") or ())
        problem = check(requests.names_of(request), set(usages))
        if problem:
            failed = requests.condition("Failed", "SignerValidationFailure", problem, self.client.now())
            status = {**status, "conditions": [*status["conditions"], failed]}
        elif request.is_signature_valid:
            pem = self._sign(request, usages, obj["spec"].get("expirationSeconds"))
            status = {**status, "certificate": base64.b64encode(pem.encode()).decode()}
        else:
            return
        self.client.update({**obj, "status": status}, subresource="status")

    def _sign(self, request: x509.CertificateSigningRequest, usages: list[str], seconds: int | None) -> str:
        assert self.context.authority is not None
        now, lasts = self.clock.now(), LONGEST if seconds is None else min(LONGEST, max(SHORTEST, timedelta(seconds=seconds)))
        ends = now + lasts if lasts < SHORT else now + lasts - BACKDATE
        begins = min(now, datetime.now(UTC)) - BACKDATE  # those who check it may not have the cluster's clock
        return self.context.authority().sign_request(request, _extensions(request, usages), begins, ends)


def _is_to_be_signed(obj: Object) -> bool:
    if (obj.get("status") or {}).get("certificate"):
        return False
    denied = requests.has_condition(obj, "Denied") or requests.has_condition(obj, "Failed", true=True)
    return requests.has_condition(obj, "Approved") and not denied


def _extensions(request: x509.CertificateSigningRequest, usages: list[str]) -> list[tuple[x509.ExtensionType, bool]]:
    """The extensions of the certificate, each with whether it is critical: of those asked for, only the names."""
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
