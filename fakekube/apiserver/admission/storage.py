"""Admission plugins of claims, volumes and Ingresses: the default classes, protection while in use, resizing of claims.

DefaultStorageClass and DefaultIngressClass set the newest class that is marked as the default one (`newest_default`).

Specified by: plugin/pkg/admission/storage, plugin/pkg/admission/network/defaultingressclass; pkg/volume/util/storageclass.go
(GetDefaultClass).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fakekube.apimachinery.data import NETWORKING
from fakekube.apimachinery.schema.quantity import Quantity
from fakekube.apis.validation.resource_lists import quantity
from fakekube.apis.well_known import (
    ANNOTATION_INGRESS_CLASS,
    BETA_STORAGE_CLASS_ANNOTATION,
    PV_PROTECTION_FINALIZER,
    PVC_PROTECTION_FINALIZER,
    VAC_PROTECTION_FINALIZER,
)
from fakekube.apiserver.admission.chain import Attributes, Operation, Plugin, forbidden
from fakekube.base.objects import Object

CLAIMS = ("", "persistentvolumeclaims")
VOLUMES = ("", "persistentvolumes")
ATTRIBUTES_CLASSES = ("storage.k8s.io", "volumeattributesclasses")
_STORAGE_CLASSES = ("storage.k8s.io", "storageclasses")

DEFAULT_STORAGE_CLASS_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)

_FINALIZERS = {VOLUMES: PV_PROTECTION_FINALIZER, CLAIMS: PVC_PROTECTION_FINALIZER, ATTRIBUTES_CLASSES: VAC_PROTECTION_FINALIZER}


def newest_default(objects: Iterable[Object], annotations: Sequence[str]) -> Object | None:
    """Returns the newest object with the value "true" for one of the annotations; of equally old ones the first by name."""
    marked = [obj for obj in objects if any((obj["metadata"].get("annotations") or {}).get(key) == "true" for key in annotations)]
    marked.sort(key=lambda obj: str(obj["metadata"]["name"]))
    return max(marked, key=lambda obj: str(obj["metadata"].get("creationTimestamp", "")), default=None)


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
        found = newest_default(attributes.context.services.list(*_STORAGE_CLASSES), DEFAULT_STORAGE_CLASS_ANNOTATIONS)
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
        finalizer = _FINALIZERS[attributes.resource.group, attributes.resource.plural]
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
        found = attributes.context.services.get(*_STORAGE_CLASSES, "", name) if name == _class_name(old) and name else None
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


_DEFAULT_INGRESS_CLASS_ANNOTATIONS = ("ingressclass.kubernetes.io/is-default-class",)


class DefaultIngressClass(Plugin):
    """Sets the default IngressClass of Ingresses without a class."""

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
        found = newest_default(attributes.context.services.list(NETWORKING, "ingressclasses"), _DEFAULT_INGRESS_CLASS_ANNOTATIONS)
        if found is not None:
            spec["ingressClassName"] = found["metadata"]["name"]
