"""PartialObjectMetadata and lists of it.

For built-in kinds it has the metadata of the internal version, whichever version was requested. So it has no annotations that
represent a field of the internal version, nor those that the conversion to an old version adds.

Specified by: k8s.io/apimachinery/pkg/apis/meta/v1 (types.go),
k8s.io/apiserver/pkg/endpoints/handlers/response.go.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.codecs.formats import Kind
from fakekube.apimachinery.schema import printing
from fakekube.apimachinery.schema.builtin import type_of
from fakekube.base.objects import Object

_META = "k8s.io/apimachinery/pkg/apis/meta/v1."

#: By (group, plural): the annotation that is a field in the internal version.
_FIELDS_IN_ANNOTATIONS: Final = {
    ("apps", "daemonsets"): "deprecated.daemonset.template.generation",
    ("apps", "deployments"): "deprecated.deployment.rollback.to",
}


def partial(obj: Object, api_version: str, resource: tuple[str, str] = ("", ""), *, custom: bool = False) -> Object:
    """The metadata of an object, in the order of ObjectMeta.

    Args:
        obj: any object in its storage version, with or without kind and apiVersion.
        api_version: meta.k8s.io/v1 or meta.k8s.io/v1beta1.
        resource: its group and plural.
        custom: whether it is a custom resource, whose keys are sorted; the keys of others are in order.
    """
    metadata: dict[str, Any] = obj.get("metadata") or {}
    field, annotations = _FIELDS_IN_ANNOTATIONS.get(resource), metadata.get("annotations") or {}
    hides_field = field in annotations
    if hides_field:
        metadata = {**metadata, "annotations": {name: annotations[name] for name in annotations if name != field}}
    if custom or hides_field:
        metadata = printing.normalise(type_of(f"{_META}ObjectMeta"), metadata)
    return {"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": metadata}


def reader(api_version: str, resource: tuple[str, str] = ("", ""), *, custom: bool = False) -> Callable[[Document], Document]:
    """Returns a function that makes the metadata document of a stored object, cached in its Document."""
    key = ("partial", api_version)

    def make(obj: Object) -> Document:
        return Document(partial(obj, api_version, resource, custom=custom))

    return lambda document: document.encoded(key, make)


@cache
def kind(api_version: str) -> Kind:
    """Returns the encoding properties of PartialObjectMetadata."""
    type_ = type_of(f"{_META}PartialObjectMetadata")
    return Kind(api_version, "PartialObjectMetadata", type_, custom=True)


@cache
def list_kind(api_version: str) -> Kind:
    """Returns the encoding properties of its list."""
    return Kind(api_version, "PartialObjectMetadataList")
