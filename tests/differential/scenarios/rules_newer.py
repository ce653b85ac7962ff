"""The rules of kinds and fields that 1.37 serves and 1.36 does not."""

from __future__ import annotations

import base64
import functools
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, x25519
from cryptography.x509.oid import NameOID

from tests.differential.client import Client
from tests.differential.registry import scenario
from tests.differential.rule_tables import State, each, tell
from tests.differential.steps import until

# fmt: off

tell_of = functools.partial(tell, module="rules_newer")

Edit = dict[str, Any]
DRY = {"dryRun": "All"}
KEY = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32))
OTHER = ed25519.Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)


#: What stands in a PEM block, in JSON and in a message within JSON.
_CONTENT = re.compile(r"(-----BEGIN [A-Z]+-----)(?:(?!-----END).)*")


def certificate(key: Any = KEY, *, authority: bool = True, start: datetime = datetime(2026, 1, 1), end: datetime = datetime(2036, 1, 1), name: str = "a", **names: Any) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key()).serial_number(1).not_valid_before(start).not_valid_after(end)
    if authority:
        builder = builder.add_extension(x509.BasicConstraints(True, None), critical=True)
    if names:
        found = [*map(x509.DNSName, names.get("dns", ())), *map(x509.RFC822Name, names.get("mail", ()))]
        builder = builder.add_extension(x509.SubjectAlternativeName(found), critical=False)
    return builder.sign(KEY, None)


def pem(*found: x509.Certificate, kind: str = "CERTIFICATE", headers: str = "") -> str:
    return "".join(f"-----BEGIN {kind}-----\n{headers}{base64.encodebytes(one.public_bytes(serialization.Encoding.DER)).decode()}-----END {kind}-----\n" for one in found)


ROOT = certificate()
BUNDLE: Edit = {"spec": {"trustBundle": pem(ROOT)}}
tell_of("clustertrustbundles", "certificates.k8s.io/v1/*clustertrustbundles", BUNDLE, create=[
    {}, *each("spec.trustBundle", "", "x", pem(ROOT, ROOT), pem(ROOT, kind="NOPE"), pem(ROOT, headers="A: b\n\n"), pem(certificate(authority=False)), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", pem(ROOT, certificate(name="b")), "text\n" + pem(ROOT), "x" * 1_048_577),
    {"metadata.name": "a:b"}, {"metadata.name": "A_"}, *({"metadata.name": name, "spec.signerName": signer} for name, signer in (("a.b:c:d", "a.b/c"), ("a", "a.b/c"), ("a.b:c:", "a.b/c"), ("a.b:c:A_", "a.b/c"), ("x", "no slash"), ("x", "/"), ("no slash:x", "no slash"))),
], states=[State(update=[{"spec.signerName": "a.b/c"}, {"spec.trustBundle": ""}, {"spec.trustBundle": pem(certificate(name="c"))}])])
tell_of("storageversionmigrations", "storagemigration.k8s.io/v1/*storageversionmigrations", {"spec": {"resource": {"resource": "configmaps"}}}, create=[{}, *each("spec.resource", {}, {"resource": "A_"}, {"resource": "a", "group": "A_"}, {"group": "a.b", "resource": "cs"}), {"metadata.name": "A_"}], states=[State(update=[{"spec.resource.resource": "secrets"}], status_update=[{"status.resourceVersion": "x"}, {"status.resourceVersion": "5"}, {"status.conditions": [{"type": kind, "status": "True", "reason": "x", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"} for kind in ("Succeeded", "Failed")]}, {"status.conditions": [{"type": "a b", "status": "Nope", "reason": "", "message": ""}]}]), State(status={"status.resourceVersion": "5", "status.conditions": [{"type": "Running", "status": "True", "reason": "x", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}, status_update=[{"status.resourceVersion": "6"}, {"status.conditions[0].status": "False"}, {"status.conditions": [{"type": "Succeeded", "status": "True", "reason": "x", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}]), State(status={"status.conditions": [{"type": "Succeeded", "status": "True", "reason": "x", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}, status_update=[{"status.conditions[0].status": "False"}, {"status.conditions": []}]), State(status={"status.conditions": [{"type": "Failed", "status": "True", "reason": "x", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}, status_update=[{"status.conditions[0].status": "False"}])])
TAINT: Edit = {"spec": {"taint": {"key": "a", "effect": "NoSchedule"}, "deviceSelector": {"driver": "a.b"}}}
tell_of("devicetaintrules", "resource.k8s.io/v1/*devicetaintrules", TAINT, create=[{}, *each("spec.taint", {}, {"key": "a b", "effect": "NoSchedule"}, {"key": "a", "effect": "Nope"}, {"key": "a", "effect": "None"}, {"key": "a", "value": "x y", "effect": "NoExecute"}), *each("spec.deviceSelector", {}, {"driver": "A_"}, {"pool": "A_"}, {"device": "A_"}, {"driver": "a.b", "pool": "p", "device": "d"}), {"spec.deviceSelector": None}, {"metadata.name": "A_"}], states=[State(update=[{"spec.taint.key": "b"}, {"spec.taint.effect": "NoExecute"}, {"spec.deviceSelector.driver": "c.d"}], status_update=[{"status.conditions": [{"type": "a b", "status": "Nope", "reason": "", "message": ""}]}, {"status.conditions": [{"type": f"A{n}", "status": "True", "reason": "x", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"} for n in range(9)]}])])

POD: Edit = {"spec": {"containers": [{"name": "c", "image": "i"}], "volumes": [{"name": "v", "emptyDir": {}}]}}


def projected(source: str, **more: Any) -> Edit:
    return {"spec.volumes[0]": {"name": "v", "projected": {"sources": [{source: more}]}}}


PEMS = {"signerName": "a.b/c", "keyType": "ED25519", "credentialBundlePath": "p"}
tell_of("projected_volumes", "v1/pods", POD, create=[
    *(projected("clusterTrustBundle", **{"path": "p", **more}) for more in ({"name": "a"}, {"name": "a", "path": ""}, {"name": "a", "path": "../p"}, {"name": "a", "path": "..p"}, {}, {"name": "a", "signerName": "a.b/c"}, {"name": "A_"}, {"name": ""}, {"name": "a", "labelSelector": {}}, {"signerName": ""}, {"signerName": "x"}, {"signerName": "a.b/c"}, {"signerName": "a.b/c", "labelSelector": {"matchLabels": {"a b": "c"}}}, {"signerName": "a.b/c", "labelSelector": {"matchLabels": {"a": "b"}}}, {"name": "a:b"})),
    *(projected("podCertificate", **{**PEMS, **more}) for more in ({}, {"signerName": ""}, {"signerName": "x"}, {"keyType": ""}, {"keyType": "NOPE"}, {"keyType": "RSA3072"}, {"maxExpirationSeconds": 3599}, {"maxExpirationSeconds": 3600}, {"maxExpirationSeconds": 7862401}, {"signerName": "kubernetes.io/kube-apiserver-client-pod", "maxExpirationSeconds": 86401}, {"credentialBundlePath": ""}, {"credentialBundlePath": "../p"}, {"keyPath": "p"}, {"credentialBundlePath": "", "keyPath": "k", "certificateChainPath": "c"}, {"credentialBundlePath": "", "keyPath": "../k", "certificateChainPath": "/c"}, {"userAnnotations": {"a": "b"}}, {"userAnnotations": {"a.b/c": "d"}}, {"userAnnotations": {"a b/c": "d"}}, {"userAnnotations": {"a.b/c": "x" * 262_145}})),
    {"spec.volumes[0]": {"name": "v", "projected": {"sources": [{"podCertificate": PEMS}, {"podCertificate": PEMS}]}}}, {"spec.volumes[0]": {"name": "v", "projected": {"sources": [{"clusterTrustBundle": {"name": "a", "path": "p"}}, {"serviceAccountToken": {"path": "p/q"}}]}}}, {"spec.volumes[0]": {"name": "v", "projected": {"sources": [{"clusterTrustBundle": {"name": "a", "path": "p"}, "secret": {"name": "a"}}]}}},
])


def public(key: Any) -> str:
    return base64.b64encode(key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)).decode()


def stub(key: Any, algorithm: Any = None) -> str:
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, algorithm)
    return base64.b64encode(request.public_bytes(serialization.Encoding.DER)).decode()


def spec(**more: Any) -> Edit:
    own = {"signerName": "a.b/c", "podName": "p", "podUID": "u", "serviceAccountName": "s", "serviceAccountUID": "v", "nodeName": "n", "nodeUID": "w", "maxExpirationSeconds": 86400, "stubPKCS10Request": stub(KEY), **more}
    return {"metadata": {"name": "r"}, "spec": {name: value for name, value in own.items() if value is not None}}


@scenario
def pod_certificate_requests(c: Client) -> None:
    """What a kubelet may ask for, and what a signer may answer."""
    path = f"/apis/certificates.k8s.io/v1/namespaces/{c.ns}/podcertificaterequests"
    proof = base64.b64encode(KEY.sign(b"u")).decode()
    curve, small = ec.generate_private_key(ec.SECP256R1()), rsa.generate_private_key(65537, 2048)
    wide = rsa.generate_private_key(65537, 3072)
    no_stub: Edit = {"stubPKCS10Request": None}
    broken = bytearray(base64.b64decode(stub(KEY)))
    broken[-1] ^= 1
    for more in (
        {}, {"signerName": ""}, {"signerName": "x"}, {"podName": "A_"}, {"podUID": ""}, {"podUID": "x" * 129}, {"serviceAccountName": "A_"}, {"serviceAccountUID": ""}, {"nodeName": "A_"}, {"nodeUID": ""}, *({"maxExpirationSeconds": seconds} for seconds in (None, 3599, 3600, 7862400, 7862401)), {"signerName": "kubernetes.io/kube-apiserver-client-pod", "maxExpirationSeconds": 86401}, no_stub, {"pkixPublicKey": public(KEY)}, {"pkixPublicKey": public(KEY), "proofOfPossession": proof}, {"stubPKCS10Request": "AAAA"}, {"stubPKCS10Request": base64.b64encode(bytes(broken)).decode()}, {"stubPKCS10Request": "A" * 14_000}, {"stubPKCS10Request": stub(curve, hashes.SHA256())}, {"stubPKCS10Request": stub(ec.generate_private_key(ec.SECP224R1()), hashes.SHA256())}, {"stubPKCS10Request": stub(small, hashes.SHA256())},
        *({**no_stub, "pkixPublicKey": public(key), "proofOfPossession": base64.b64encode(signed).decode()} for key, signed in ((KEY, KEY.sign(b"u")), (KEY, KEY.sign(b"other")), (KEY, b"x"), (curve, curve.sign(b"u", ec.ECDSA(hashes.SHA256()))), (small, b"x"), (wide, wide.sign(b"u", padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256())), (wide, b"x"))), {**no_stub, "pkixPublicKey": public(x25519.X25519PrivateKey.from_private_bytes(bytes(32))), "proofOfPossession": proof}, {**no_stub, "pkixPublicKey": "AAAA", "proofOfPossession": proof}, {**no_stub, "pkixPublicKey": "A" * 14_000, "proofOfPossession": proof}, {"unverifiedUserAnnotations": {"a": "b"}}, {"unverifiedUserAnnotations": {"a.b/c": "d"}}, {"unverifiedUserAnnotations": {"": "x"}}, {"unverifiedUserAnnotations": {"a b/c": "d"}}, {"unverifiedUserAnnotations": {"a.b/c": "x" * 262_145}},
    ):
        c.post(path, spec(**more), DRY)
    c.post(path, spec())
    stored = c.get(f"{path}/r", silent=True).json
    c.put(f"{path}/r", {**stored, "spec": {**stored["spec"], "podName": "q"}}, DRY)
    now = datetime.now(UTC).replace(microsecond=0)

    def when(**delta: float) -> str:
        return (now + timedelta(**delta)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def leaf(key: Any = KEY, minutes: float = 0, hours: float = 12, **names: Any) -> x509.Certificate:
        start = (now + timedelta(minutes=minutes)).replace(tzinfo=None)
        return certificate(key, authority=False, start=start, end=start + timedelta(hours=hours), **names)

    def issued(*chain: x509.Certificate, **more: Any) -> Edit:
        condition = {"type": "Issued", "status": "True", "reason": "x", "message": "", "lastTransitionTime": when()}
        status = {"conditions": [condition], "certificateChain": pem(*chain), "notBefore": when(), "notAfter": when(hours=12), "beginRefreshAt": when(hours=6), **more}
        return {name: value for name, value in status.items() if value is not None}

    condition = issued()["conditions"][0]
    for status in (
        {"conditions": [{**condition, "type": "Nope"}]}, {"conditions": [{**condition, "status": "False", "type": "Denied"}]}, {"conditions": [{**condition, "type": kind} for kind in ("Denied", "Failed")]}, {"conditions": [{**condition, "type": "Denied", "reason": ""}]}, {"conditions": [{**condition, "type": "Denied"}]}, {"conditions": [{**condition, "type": "Failed"}], "certificateChain": "x"}, {"certificateChain": "x"}, issued(), issued(certificateChain="x"), issued(certificateChain=pem(leaf(), kind="NOPE")), issued(certificateChain="-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), issued(leaf(OTHER)), issued(leaf()), issued(leaf(), ROOT), issued(certificateChain=pem(leaf()) + pem(ROOT, kind="NOPE")), issued(certificateChain=pem(leaf()) + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), issued(certificateChain="x" * 110_000),
        *(issued(leaf(), **{name: None}) for name in ("notBefore", "notAfter", "beginRefreshAt")), issued(leaf(), notBefore=when(minutes=1)), issued(leaf(), notAfter=when(hours=11)), issued(leaf(), beginRefreshAt=when(minutes=5)), issued(leaf(), beginRefreshAt=when(hours=12)), issued(leaf(minutes=-30), notBefore=when(minutes=-30), notAfter=when(hours=11.5)), issued(leaf(hours=0.5), notAfter=when(hours=0.5), beginRefreshAt=when(minutes=15)), issued(leaf(hours=48), notAfter=when(hours=48)), issued(leaf(dns=["a..b"])), issued(leaf(dns=[".a", "b."])), issued(leaf(dns=["ok.example.com"])), issued(leaf(dns=[""])), issued(leaf(mail=["nope"])),
    ):
        c.put(f"{path}/r/status", {**stored, "status": status}, DRY)
    c.put(f"{path}/r/status", {**stored, "status": {"conditions": [{**condition, "type": "Denied"}]}})
    stored = c.get(f"{path}/r", silent=True).json
    c.put(f"{path}/r/status", {**stored, "status": {"conditions": [{**condition, "type": "Failed"}]}}, DRY)
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{c.ns}"
    rule = {"apiGroups": ["certificates.k8s.io"], "resources": ["podcertificaterequests/status"], "verbs": ["update"]}
    c.post(f"{rbac}/roles", {"metadata": {"name": "signer"}, "rules": [rule]}, silent=True)
    group = "rbac.authorization.k8s.io"
    subject = {"kind": "User", "apiGroup": group, "name": c.name("signer")}
    c.post(f"{rbac}/rolebindings", {"metadata": {"name": "signer"}, "roleRef": {"apiGroup": group, "kind": "Role", "name": "signer"}, "subjects": [subject]}, silent=True)
    c.post(path, {**spec(), "metadata": {"name": "other"}}, silent=True)
    stored = c.get(f"{path}/other", silent=True).json
    who = {"Impersonate-User": c.name("signer")}
    until(lambda: "cannot update resource" not in str(c.put(f"{path}/other/status", stored, DRY, headers=who, silent=True).get("message")), 10)
    c.put(f"{path}/other/status", {**stored, "status": {"conditions": [{**condition, "type": "Denied"}]}}, DRY, headers=who)
    # Certificates are made anew for each play: their times are those of the play.
    text = _CONTENT.sub(r"\1<content>", json.dumps(c.transcript))
    c.transcript[:] = json.loads(text)
