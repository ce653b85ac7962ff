"""Between the version that a request speaks and the one that is stored.

Only a few built-in kinds differ (events, autoscalers) and custom resources with several versions; for all others the
conversion is the identity and costs nothing.
"""

from __future__ import annotations

from fakekube.codecs.document import Document
from fakekube.registry.resource import Resource
from fakekube.registry.strategy import Object

__all__ = ["all_shown", "fresh", "from_storage", "shown", "to_storage"]


def to_storage(resource: Resource, obj: Object) -> Object:
    """The object as it is stored."""
    return resource.to_storage(obj) if resource.to_storage else obj


def from_storage(resource: Resource, obj: Object) -> Object:
    """A stored object as this version shows it."""
    return resource.from_storage(obj) if resource.from_storage else obj


def shown(resource: Resource, document: Document) -> Document:
    """A stored document as this version shows it, made once. Raises StatusError 500 if a webhook does not convert it."""
    if resource.from_storage is None:
        return document
    convert = resource.from_storage
    found: Document = document.encoded(("shown", resource), lambda obj: Document(convert(obj)))
    return found


def all_shown(resource: Resource, documents: list[Document]) -> list[Document]:
    """The same of each."""
    return documents if resource.from_storage is None else [shown(resource, document) for document in documents]


def fresh(resource: Resource, document: Document) -> Document:
    """The stored document, to be shown as if it never had been: who reads or changes one object asks the webhook anew."""
    return Document(document.object) if resource.converts_by_call else document
