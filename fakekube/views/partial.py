"""Metadata only: PartialObjectMetadata and lists of it.

Specified by: k8s.io/apimachinery/pkg/apis/meta/v1 (types.go),
k8s.io/apiserver/pkg/endpoints/handlers/response.go.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from fakekube.codecs.document import Document, Object
from fakekube.codecs.formats import Kind
from fakekube.schema import printing
from fakekube.schema.builtin import type_of

__all__ = ["kind", "list_kind", "partial", "partial_document"]

_META = "k8s.io/apimachinery/pkg/apis/meta/v1."


def partial(obj: Object, api_version: str) -> Object:
    """The metadata of an object, in the order of ObjectMeta.

    Args:
        obj: any object, with or without kind and apiVersion.
        api_version: meta.k8s.io/v1 or meta.k8s.io/v1beta1.
    """
    metadata: dict[str, Any] = printing.normalise(type_of(f"{_META}ObjectMeta"), obj.get("metadata") or {})
    return {"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": metadata}


def partial_document(document: Document, api_version: str) -> Document:
    """The same for a stored object; made once."""
    return document.encoded(("partial", api_version), lambda obj: Document(partial(obj, api_version)))


@cache
def kind(api_version: str) -> Kind:
    """How PartialObjectMetadata is encoded."""
    type_ = type_of(f"{_META}PartialObjectMetadata")
    return Kind(api_version, "PartialObjectMetadata", type_, custom=True)


@cache
def list_kind(api_version: str) -> Kind:
    """How lists of it are encoded."""
    return Kind(api_version, "PartialObjectMetadataList")
