"""Answers in another shape than the object's own: metadata only, or a Table of rows.

Specified by: k8s.io/apiserver/pkg/endpoints/handlers/response.go (doTransformObject, asTable).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fakekube.codecs.document import Document
from fakekube.codecs.formats import Kind
from fakekube.codecs.negotiation import MediaType
from fakekube.resources.strategy import Object
from fakekube.verbs.request import Response
from fakekube.verbs.scope import Scope

if TYPE_CHECKING:
    from fakekube.verbs.reading import Listing

__all__ = ["EventTransform", "event_transform", "list_response", "object_response", "plain_response"]


@dataclass(slots=True)
class EventTransform:
    kind: Kind
    shares: bool = True

    def __call__(self, document: Document) -> Document:
        raise NotImplementedError


def object_response(scope: Scope, chosen: MediaType, code: int, document: Document) -> Response:
    raise NotImplementedError


def list_response(scope: Scope, chosen: MediaType, listing: Listing, documents: list[Document]) -> Response:
    raise NotImplementedError


def plain_response(scope: Scope, chosen: MediaType, code: int, obj: Object) -> Response:
    raise NotImplementedError


def event_transform(scope: Scope, chosen: MediaType) -> EventTransform:
    raise NotImplementedError
