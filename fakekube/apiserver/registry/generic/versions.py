"""Converts objects between the version of a request and the storage version.

Only a few built-in kinds (events, autoscalers) and custom resources with several versions need a conversion; for all
others it is the identity and costs nothing.
"""

from __future__ import annotations

from fakekube.apimachinery.codecs.document import Document
from fakekube.apis.rest.resource import Resource
from fakekube.apis.rest.strategy import Object


def to_storage(resource: Resource, obj: Object) -> Object:
    """Returns the object in the storage version."""
    return resource.to_storage(obj) if resource.to_storage else obj


def from_storage(resource: Resource, obj: Object) -> Object:
    """Returns a stored object in this version."""
    return resource.from_storage(obj) if resource.from_storage else obj


def shown(resource: Resource, document: Document) -> Document:
    """Returns a stored document in this version; cached. Raises StatusError 500 if a webhook fails to convert it."""
    if resource.from_storage is None:
        return document
    convert = resource.from_storage
    found: Document = document.encoded(("shown", resource), lambda obj: Document(convert(obj)))
    return found


def all_shown(resource: Resource, documents: list[Document]) -> list[Document]:
    """Returns every document in this version."""
    return documents if resource.from_storage is None else [shown(resource, document) for document in documents]


def fresh(resource: Resource, document: Document) -> Document:
    """Returns the stored document without cached conversions: a read or write of one object calls the webhook again."""
    return Document(document.object) if resource.converts_by_call else document
