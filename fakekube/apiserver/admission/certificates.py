"""Admission plugins of CertificateSigningRequests: CertificateApproval, CertificateSigning, CertificateSubjectRestriction.

The first two authorize those who approve a request and those who sign it, the third restricts the subjects of requests.

Specified by: plugin/pkg/admission/certificates, pkg/apis/certificates (IsAuthorizedForSignerName).
"""

from __future__ import annotations

from fakekube.apis.validation.to_internal import semantic_deep_equal
from fakekube.apis.well_known import KUBE_APISERVER_CLIENT_SIGNER_NAME, SYSTEM_PRIVILEGED_GROUP
from fakekube.apiserver.admission.chain import Attributes, Operation, Plugin, forbidden
from fakekube.base.golang.strconv import go_quote

REQUESTS = ("certificates.k8s.io", "certificatesigningrequests")


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
        if unchanged and semantic_deep_equal(new.get("conditions"), old.get("conditions")):
            return
        _check_signer_permission(attributes, "sign")


class CertificateSubjectRestriction(Plugin):
    """Rejects requests for client certificates with the group system:masters."""

    name = "CertificateSubjectRestriction"
    operations = frozenset({Operation.CREATE})
    resources = frozenset({REQUESTS})

    def validate(self, attributes: Attributes) -> None:
        from cryptography.x509.oid import NameOID

        from fakekube.apis.certificates.certificatesigningrequests import parse_csr

        assert attributes.object is not None
        spec = attributes.object["spec"]
        if spec.get("signerName") != KUBE_APISERVER_CLIENT_SIGNER_NAME:
            return
        request = parse_csr(spec["request"])
        assert request is not None  # it is valid
        groups = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        if any(group.value == SYSTEM_PRIVILEGED_GROUP for group in groups):
            text = f"use of {KUBE_APISERVER_CLIENT_SIGNER_NAME} signer with {SYSTEM_PRIVILEGED_GROUP} group is not allowed"
            raise forbidden(attributes, text)


def _check_signer_permission(attributes: Attributes, verb: str) -> None:
    """Raises StatusError 403 unless the user has the permission for the signer of the stored request."""
    from fakekube.apis.certificates.signers import is_authorized_for_signer_name

    assert attributes.old is not None
    signer = attributes.old["spec"].get("signerName", "")
    if not is_authorized_for_signer_name(attributes.context, verb, signer):
        raise forbidden(attributes, f"user not permitted to {verb} requests with signerName {go_quote(signer)}")
