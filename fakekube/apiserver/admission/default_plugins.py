"""Admission plugins that are on by default, and the two others about namespaces: namespaces, certificate requests, storage.

NamespaceLifecycle guards missing and terminating namespaces; NamespaceAutoProvision and NamespaceExists are off by default.
Deletions are always allowed, so that a namespace can be emptied; so are access reviews, whose result must not reveal whether a
namespace exists. CertificateApproval, CertificateSigning and CertificateSubjectRestriction authorize approving and signing, and
restrict subjects. DefaultStorageClass and DefaultIngressClass choose a default; others protect and resize volumes.

Specified by: k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle; plugin/pkg/admission/namespace/{autoprovision,exists},
plugin/pkg/admission/certificates, pkg/apis/certificates (IsAuthorizedForSignerName); plugin/pkg/admission/storage,
plugin/pkg/admission/network/defaultingressclass; pkg/volume/util/storageclass.go (GetDefaultClass).
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence

from fakekube.apimachinery.data import NETWORKING
from fakekube.apimachinery.errors import StatusError, status
from fakekube.apimachinery.schema.quantity import Quantity
from fakekube.apis.validation.resource_lists import quantity
from fakekube.apis.validation.to_internal import semantic_deep_equal
from fakekube.apis.well_known import (
    ANNOTATION_INGRESS_CLASS,
    BETA_STORAGE_CLASS_ANNOTATION,
    KUBE_APISERVER_CLIENT_SIGNER_NAME,
    PV_PROTECTION_FINALIZER,
    PVC_PROTECTION_FINALIZER,
    SYSTEM_PRIVILEGED_GROUP,
    VAC_PROTECTION_FINALIZER,
)
from fakekube.apiserver.admission.chain import CREATE, DELETE, Attributes, Operation, Plugin, forbidden
from fakekube.base.chance import random_uuid
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import Object

IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
NAMESPACES = ("", "namespaces")
ACCESS_REVIEWS = ("authorization.k8s.io", "localsubjectaccessreviews")


class NamespaceLifecycle(Plugin):
    """See the module."""

    name = "NamespaceLifecycle"
    operations = frozenset({Operation.CREATE, Operation.UPDATE, Operation.DELETE})
    subresources = None

    def admit(self, attributes: Attributes) -> None:
        resource = (attributes.resource.group, attributes.resource.plural)
        if resource == NAMESPACES:
            if attributes.operation is DELETE and attributes.name in IMMORTAL:
                raise status.forbidden("", "namespaces", attributes.name, "this namespace may not be deleted")
            return
        if not attributes.namespace or attributes.operation is DELETE or resource == ACCESS_REVIEWS:
            return
        namespace = attributes.context.services.get("", "namespaces", "", attributes.namespace)
        if namespace is None:
            raise status.not_found("", "namespaces", attributes.namespace)
        if attributes.operation is CREATE and namespace.get("status", {}).get("phase") == "Terminating":
            self._refuse(attributes)

    @staticmethod
    def _refuse(attributes: Attributes) -> None:
        namespace = attributes.namespace
        problem = f"unable to create new content in namespace {namespace} because it is being terminated"
        error = forbidden(attributes, problem)
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
        error.details = {**(error.details or {}), "causes": [cause]}
        raise error


#: The server creates the namespace with its loopback client.
_OWNER = {
    "manager": "kube-apiserver",
    "operation": "Update",
    "apiVersion": "v1",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:kubernetes.io/metadata.name": {}}}},
}


class NamespaceAutoProvision(Plugin):
    """Creates the namespace of an object that is created."""

    name = "NamespaceAutoProvision"
    operations = frozenset({Operation.CREATE})
    subresources = None

    def admit(self, attributes: Attributes) -> None:
        if attributes.context.dry_run or not _is_in_a_namespace(attributes):
            return
        services, name = attributes.context.services, attributes.namespace
        if services.get("", "namespaces", "", name) is not None:
            return
        metadata = {
            "name": name,
            "uid": random_uuid(),
            "creationTimestamp": attributes.context.now(),
            "labels": {"kubernetes.io/metadata.name": name},
            "managedFields": [{**_OWNER, "time": attributes.context.now()}],
        }
        namespace = {"metadata": metadata, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
        try:
            services.create("", "namespaces", "", namespace)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise


class NamespaceExists(Plugin):
    """Rejects writes, including deletions, in namespaces that do not exist."""

    name = "NamespaceExists"
    operations = frozenset({Operation.CREATE, Operation.UPDATE, Operation.DELETE})
    subresources = None

    def validate(self, attributes: Attributes) -> None:
        if not _is_in_a_namespace(attributes):
            return
        if attributes.context.services.get("", "namespaces", "", attributes.namespace) is None:
            raise status.not_found("", "namespaces", attributes.namespace)


def _is_in_a_namespace(attributes: Attributes) -> bool:
    return bool(attributes.namespace) and (attributes.resource.group, attributes.resource.plural) != NAMESPACES


# --- Certificate requests ----------------------------------------------------------------------------------------------


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
        from cryptography import x509
        from cryptography.x509.oid import NameOID

        assert attributes.object is not None
        spec = attributes.object["spec"]
        if spec.get("signerName") != KUBE_APISERVER_CLIENT_SIGNER_NAME:
            return
        request = x509.load_pem_x509_csr(base64.b64decode(spec["request"]))
        groups = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        if any(group.value == SYSTEM_PRIVILEGED_GROUP for group in groups):
            text = f"use of {KUBE_APISERVER_CLIENT_SIGNER_NAME} signer with {SYSTEM_PRIVILEGED_GROUP} group is not allowed"
            raise forbidden(attributes, text)


def _check_signer_permission(attributes: Attributes, verb: str) -> None:
    """Raises StatusError 403 unless the user has the permission for the signer of the stored request."""
    from fakekube.apis.certificates.certificatesigningrequests import is_authorized_for_signer_name  # needs cryptography

    assert attributes.old is not None
    signer = attributes.old["spec"].get("signerName", "")
    if not is_authorized_for_signer_name(attributes.context, verb, signer):
        raise forbidden(attributes, f"user not permitted to {verb} requests with signerName {go_quote(signer)}")


# --- Claims, volumes and Ingresses -------------------------------------------------------------------------------------


def newest_default(objects: Iterable[Object], annotations: Sequence[str]) -> Object | None:
    """Returns the newest object with the value "true" for one of the annotations; of equally old ones, the first by
    name."""
    marked = [obj for obj in objects if any((obj["metadata"].get("annotations") or {}).get(key) == "true" for key in annotations)]
    marked.sort(key=lambda obj: str(obj["metadata"]["name"]))
    return max(marked, key=lambda obj: str(obj["metadata"].get("creationTimestamp", "")), default=None)


CLAIMS = ("", "persistentvolumeclaims")
VOLUMES = ("", "persistentvolumes")
ATTRIBUTES_CLASSES = ("storage.k8s.io", "volumeattributesclasses")
STORAGE_CLASSES = ("storage.k8s.io", "storageclasses")

DEFAULT_STORAGE_CLASS_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


FINALIZERS = {VOLUMES: PV_PROTECTION_FINALIZER, CLAIMS: PVC_PROTECTION_FINALIZER, ATTRIBUTES_CLASSES: VAC_PROTECTION_FINALIZER}


class DefaultStorageClass(Plugin):
    """Sets the default StorageClass of claims without a class."""

    name = "DefaultStorageClass"
    operations = frozenset({Operation.CREATE})
    resources = frozenset({CLAIMS})

    def admit(self, attributes: Attributes) -> None:
        claim = attributes.object
        assert claim is not None
        spec = claim.setdefault("spec", {})
        annotations = claim.get("metadata", {}).get("annotations") or {}
        if BETA_STORAGE_CLASS_ANNOTATION in annotations or spec.get("storageClassName") is not None:
            return
        found = newest_default(attributes.context.services.list(*STORAGE_CLASSES), DEFAULT_STORAGE_CLASS_ANNOTATIONS)
        if found is not None:
            spec["storageClassName"] = found["metadata"]["name"]


class StorageObjectInUseProtection(Plugin):
    """Adds the protection finalizers to volumes, claims and attributes classes."""

    name = "StorageObjectInUseProtection"
    operations = frozenset({Operation.CREATE})
    resources = frozenset({VOLUMES, CLAIMS, ATTRIBUTES_CLASSES})

    def admit(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        meta = attributes.object.setdefault("metadata", {})
        finalizer = FINALIZERS[attributes.resource.group, attributes.resource.plural]
        held = meta.get("finalizers") or []
        if finalizer not in held:
            meta["finalizers"] = [*held, finalizer]


class PersistentVolumeClaimResize(Plugin):
    """Rejects the expansion of claims that are not bound or whose class does not allow it."""

    name = "PersistentVolumeClaimResize"
    operations = frozenset({Operation.UPDATE})
    resources = frozenset({CLAIMS})

    def validate(self, attributes: Attributes) -> None:
        claim, old = attributes.object, attributes.old
        if claim is None or old is None or _size(claim) <= _size(old):
            return
        name = _class_name(claim)
        found = attributes.context.services.get(*STORAGE_CLASSES, "", name) if name == _class_name(old) and name else None
        if not (found or {}).get("allowVolumeExpansion"):
            text = (
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
            )
            raise forbidden(attributes, text)


def _size(claim: Object) -> Quantity:
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    return quantity(requests.get("storage", "0"))


def _class_name(claim: Object) -> str:
    annotations = claim["metadata"].get("annotations") or {}
    if BETA_STORAGE_CLASS_ANNOTATION in annotations:
        return str(annotations[BETA_STORAGE_CLASS_ANNOTATION])
    return (claim.get("spec") or {}).get("storageClassName") or ""


DEFAULT_INGRESS_CLASS_ANNOTATIONS = ("ingressclass.kubernetes.io/is-default-class",)


class DefaultIngressClass(Plugin):
    """See the module."""

    name = "DefaultIngressClass"
    operations = frozenset({Operation.CREATE})
    resources = frozenset({(NETWORKING, "ingresses")})

    def admit(self, attributes: Attributes) -> None:
        ingress = attributes.object
        assert ingress is not None
        spec = ingress.setdefault("spec", {})
        annotations = ingress.get("metadata", {}).get("annotations") or {}
        if spec.get("ingressClassName") is not None or ANNOTATION_INGRESS_CLASS in annotations:
            return
        found = newest_default(attributes.context.services.list(NETWORKING, "ingressclasses"), DEFAULT_INGRESS_CLASS_ANNOTATIONS)
        if found is not None:
            spec["ingressClassName"] = found["metadata"]["name"]
