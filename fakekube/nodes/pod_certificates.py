"""The certificates of pods: the kubelet asks a signer for each source `podCertificate` of a projected volume.

A request has a new key, which never leaves the kubelet. Until it is issued the pod waits, because its volume cannot be mounted;
a request that is denied or failed is final. A certificate is requested anew, with a new key, at the time `beginRefreshAt` of the
signer; the real kubelet does so up to five minutes later.

Invariant: a credential has a key and the chain that was issued for it, or neither.

Specified by: pkg/kubelet/podcertificate/podcertificatemanager.go (IssuingManager).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

from fakekube.base.golang import pem
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.certificates import POD_REQUESTS
from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_utils import parse_time
from fakekube.nodes.node_state import state_of
from fakekube.nodes.status_manager import StatusManager

NOT_ISSUED: Final = "credential bundle is not issued yet"
#: The first minor whose requests are PKCS#10 requests; before they have a key and a proof.
_STUBS_SINCE: Final = 36
_ABANDONED_AFTER: Final = timedelta(minutes=10)
_OVERDUE_AFTER: Final = timedelta(minutes=10)
#: What is due after a time is looked for a moment later.
_LATER: Final = timedelta(milliseconds=1)

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
_GENERATE: Final[Mapping[str, Callable[[], PrivateKey]]] = {
    "RSA3072": lambda: rsa.generate_private_key(65537, 3072),
    "RSA4096": lambda: rsa.generate_private_key(65537, 4096),
    "ECDSAP256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ECDSAP384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "ECDSAP521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "ED25519": ed25519.Ed25519PrivateKey.generate,
}


@dataclass(slots=True)
class Credential:
    """The key and the certificates of one source."""

    key: bytes = b""
    chain: bytes = b""
    problem: str = NOT_ISSUED
    """Why there is no credential; "" if there is one."""
    is_final: bool = False
    """The request was denied or has failed."""
    request: str = ""
    """The name of the request that is pending; "" if none is."""
    requested_key: bytes = b""
    abandoned_at: datetime | None = None
    refreshed_at: datetime | None = None
    not_after: datetime | None = None
    told: set[str] = field(default_factory=set)
    """The reasons of the events about this certificate."""


def certificate_sources(pod: StoredObject) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """Yields the volume, the index and the content of each source `podCertificate` of a pod."""
    for volume in pod["spec"].get("volumes") or ():
        for index, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if "podCertificate" in source:
                yield volume["name"], index, source["podCertificate"]


class PodCertificates:
    """Requests the certificates of the pods of all nodes.

    Args:
        kubelet: the kubelet of the pods.
    """

    def __init__(self, kubelet: StatusManager) -> None:
        self._kubelet = kubelet
        kubelet.also_watch(POD_REQUESTS)
        self._store: dict[tuple[str, str, int], Credential] = {}
        """By the uid of the pod, the volume, and the index of the source."""
        state_of(kubelet.context).credentials = self._store

    def forget(self, uid: str) -> None:
        """Removes the credentials of a deleted pod."""
        for key in [key for key in self._store if key[0] == uid]:
            del self._store[key]

    def sync(self, pod: Object, node: Object) -> tuple[bool, float | None]:
        """Does what is due for a pod.

        Returns:
            whether a credential was issued, and the seconds until something is due; None if nothing is.

        Raises ApiError.
        """
        is_issued, waits = False, []
        for volume, index, source in certificate_sources(pod):
            credential = self._store.setdefault((pod["metadata"]["uid"], volume, index), Credential())
            was_waiting = bool(credential.problem)
            due = self._sync_source(pod, node, source, credential)
            is_issued = is_issued or (was_waiting and not credential.problem)
            if due is not None:
                waits.append((due - self._kubelet.clock.now()).total_seconds())
        return is_issued, min(waits, default=None)

    def _sync_source(self, pod: Object, node: Object, source: Mapping[str, Any], credential: Credential) -> datetime | None:
        """Returns the time at which the source is due again (handleProjection)."""
        now = self._kubelet.clock.now()
        if credential.request:
            self._read_request(pod, credential, now)
        if credential.is_final:
            return None
        if not credential.request and (credential.refreshed_at is None or credential.refreshed_at <= now):
            self._request(pod, node, source, credential)
        if not credential.request:
            return credential.refreshed_at
        self._warn_of_age(pod, credential, now)
        times = (
            credential.abandoned_at,
            credential.refreshed_at and credential.refreshed_at + _OVERDUE_AFTER,
            credential.not_after,
        )
        return min((time + _LATER for time in times if time is not None and time >= now), default=None)

    def _read_request(self, pod: Object, credential: Credential, now: datetime) -> None:
        namespace = pod["metadata"]["namespace"]
        request = self._kubelet.cache.get(POD_REQUESTS, namespace, credential.request)
        if request is None:
            if credential.abandoned_at is not None and now >= credential.abandoned_at:
                credential.request = ""
            return
        status = request.get("status") or {}
        for condition in status.get("conditions") or ():
            type_, reason, message = condition["type"], condition.get("reason", ""), condition.get("message", "")
            if type_ == "Issued":
                credential.key, credential.chain = credential.requested_key, clean_chain(status["certificateChain"])
                credential.refreshed_at, credential.not_after = (
                    parse_time(status["beginRefreshAt"]),
                    parse_time(status["notAfter"]),
                )
                credential.problem, credential.request = "", ""
                credential.told.clear()
                return
            if type_ in ("Denied", "Failed"):
                told = f"reason={go_quote(reason)}"
                word = f"permanently {type_.lower()}"
                credential.problem = f"PodCertificateRequest was {word}: {told} message={go_quote(message)}"
                credential.is_final, credential.key, credential.chain = True, b"", b""
                verb = "was denied" if type_ == "Denied" else "failed"
                name = f"{namespace}/{credential.request}"
                text = f"PodCertificateRequest {name} {verb}, {told}, message={go_quote(message)}"
                self._record(pod, type_, f"{reason}%!(EXTRA string={text})")  # the real one takes the reason as the format
                return

    def _warn_of_age(self, pod: Object, credential: Credential, now: datetime) -> None:
        """Records an event, once for each certificate, if its refresh is overdue, and if it has expired."""
        ages = (
            (
                credential.refreshed_at and credential.refreshed_at + _OVERDUE_AFTER,
                "CertificateOverdueForRefresh",
                "refresh overdue",
            ),
            (credential.not_after, "CertificateExpired", "expired"),
        )
        for time, reason, text in ages:
            if time is not None and now > time and reason not in credential.told:
                credential.told.add(reason)
                self._record(pod, reason, f"PodCertificate {text}")

    def _record(self, pod: Object, reason: str, message: str) -> None:
        self._kubelet.recorder.event(pod, "Warning", reason, message, host=pod["spec"].get("nodeName", ""))

    # --- Requests -----------------------------------------------------------------------------------------------------

    def _request(self, pod: Object, node: Object, source: Mapping[str, Any], credential: Credential) -> None:
        """Creates a request (createPodCertificateRequest). Raises ApiError."""
        metadata, account = pod["metadata"], pod["spec"].get("serviceAccountName") or ""
        try:
            found = self._kubelet.client.get("serviceaccounts", account, namespace=metadata["namespace"])
        except ApiError as error:
            if error.code != 404:
                raise
            raise ApiError({**error.status, "code": 500}) from None  # a request with this error is tried again
        key = _GENERATE[source["keyType"]]()
        optional = {
            "maxExpirationSeconds": source.get("maxExpirationSeconds"),
            "unverifiedUserAnnotations": source.get("userAnnotations"),
        }
        created = self._kubelet.client.create(
            {
                "apiVersion": self._kubelet.client.resource(POD_REQUESTS).api_version,
                "kind": "PodCertificateRequest",
                "metadata": {
                    "generateName": "req-",
                    "namespace": metadata["namespace"],
                    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}],
                },
                "spec": {
                    "signerName": source["signerName"],
                    "podName": metadata["name"],
                    "podUID": metadata["uid"],
                    "serviceAccountName": account,
                    "serviceAccountUID": found["metadata"]["uid"],
                    "nodeName": node["metadata"]["name"],
                    "nodeUID": node["metadata"]["uid"],
                    **{name: value for name, value in optional.items() if value is not None},
                    **self._proof_of_possession(key, metadata["uid"]),
                },
            }
        )
        pkcs8, unencrypted = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        credential.requested_key = key.private_bytes(serialization.Encoding.PEM, pkcs8, unencrypted)
        credential.request = created["metadata"]["name"]
        credential.abandoned_at = parse_time(created["metadata"]["creationTimestamp"]) + _ABANDONED_AFTER

    def _proof_of_possession(self, key: PrivateKey, uid: str) -> dict[str, str]:
        """Returns the fields that prove that the kubelet has the key."""
        if self._kubelet.context.emulation.minor >= _STUBS_SINCE:
            algorithm = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
            request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, algorithm)
            return {"stubPKCS10Request": _encode(request.public_bytes(serialization.Encoding.DER))}
        signed = uid.encode()
        if isinstance(key, ed25519.Ed25519PrivateKey):
            proof = key.sign(signed)
        elif isinstance(key, ec.EllipticCurvePrivateKey):
            proof = key.sign(signed, ec.ECDSA(hashes.SHA256()))
        else:
            salted = padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.DIGEST_LENGTH)
            proof = key.sign(signed, salted, hashes.SHA256())
        public = serialization.PublicFormat.SubjectPublicKeyInfo
        pkix = key.public_key().public_bytes(serialization.Encoding.DER, public)
        return {"pkixPublicKey": _encode(pkix), "proofOfPossession": _encode(proof)}


def _encode(content: bytes) -> str:
    return base64.b64encode(content).decode()


def clean_chain(chain: str) -> bytes:
    """Returns certificates in PEM without anything around them (cleanCertificateChain)."""
    return b"".join(pem.encode("CERTIFICATE", block.content) for block in pem.blocks(chain.encode()))
