"""Admission plugins for CertificateSigningRequests: authorize approving and signing, and restrict subjects.

Specified by: plugin/pkg/admission/certificates, pkg/apis/certificates (IsAuthorizedForSignerName).
"""

from __future__ import annotations

import base64

from fakekube.apis.validation.to_internal import same
from fakekube.apiserver.admission.chain import Attributes, Operation, Plugin, forbidden
from fakekube.base.golang.strconv import go_quote

REQUESTS = ("certificates.k8s.io", "certificatesigningrequests")
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
ALMIGHTY_GROUP = "system:masters"


class CertificateApproval(Plugin):
    """Requires the permission `approve` for the signer."""

    name = "CertificateApproval"
    operations = frozenset({Operation.UPDATE})
    resources = frozenset({REQUESTS})
    subresources = frozenset({"approval"})

    def validate(self, attributes: Attributes) -> None:
        _check_signer_permission(attributes, "approve")


class CertificateSigning(Plugin):
    """Requires the permission `sign` for the signer to set the certificate or conditions."""

    name = "CertificateSigning"
    operations = frozenset({Operation.UPDATE})
    resources = frozenset({REQUESTS})
    subresources = frozenset({"status"})

    def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None and attributes.old is not None
        new, old = attributes.object.get("status") or {}, attributes.old.get("status") or {}
        unchanged = new.get("certificate") == old.get("certificate")
        if unchanged and same(new.get("conditions"), old.get("conditions")):
            return
        _check_signer_permission(attributes, "sign")


class CertificateSubjectRestriction(Plugin):
    """Rejects requests for client certificates with the group system:masters."""

    name = "CertificateSubjectRestriction"
    operations = frozenset({Operation.CREATE})
    resources = frozenset({REQUESTS})

    def validate(self, attributes: Attributes) -> None:
        from cryptography import x509
        from cryptography.x509.oid import NameOID

        assert attributes.object is not None
        spec = attributes.object["spec"]
        if spec.get("signerName") != CLIENT_SIGNER:
            return
        request = x509.load_pem_x509_csr(base64.b64decode(spec["request"]))
        groups = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        if any(group.value == ALMIGHTY_GROUP for group in groups):
            text = f"use of {CLIENT_SIGNER} signer with {ALMIGHTY_GROUP} group is not allowed"
            raise forbidden(attributes, text)


def _check_signer_permission(attributes: Attributes, verb: str) -> None:
    """Raises StatusError 403 unless the user has the permission for the signer of the stored request."""
    assert attributes.old is not None
    signer = attributes.old["spec"].get("signerName", "")
    if not _is_authorized_for_signer(attributes, verb, signer):
        raise forbidden(attributes, f"user not permitted to {verb} requests with signerName {go_quote(signer)}")


def _is_authorized_for_signer(attributes: Attributes, verb: str, signer: str) -> bool:
    """Reports whether the user has the permission for the signer name, or for its domain with a wildcard."""
    context = attributes.context
    for name in (signer, f"{signer.partition('/')[0]}/*"):
        question = {
            "user": context.user,
            "uid": context.uid,
            "groups": list(context.groups),
            "extra": {key: list(values) for key, values in context.extra.items()},
            "resourceAttributes": {
                "group": "certificates.k8s.io",
                "resource": "signers",
                "name": name,
                "verb": verb,
                "version": "*",
            },
        }
        if context.services.authorize(context.user, context.groups, question)[0]:
            return True
    return False
