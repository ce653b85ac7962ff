"""Encodes responses in the negotiated representation.

Objects, lists and watch events are encoded the same way: the stored document is converted to the version of the
request, transformed if requested (Table, metadata only), and joined from parts that are encoded once and cached with
the document.

Specified by: k8s.io/apiserver/pkg/endpoints/handlers/response.go (transformObject), responsewriters, watch.go.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from fakekube.apimachinery.codecs import formats
from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.codecs.formats import Kind
from fakekube.apimachinery.codecs.framing import Chunks
from fakekube.apimachinery.errors import StatusError
from fakekube.apimachinery.schema import printing
from fakekube.apimachinery.schema.builtin import type_of
from fakekube.apis.rest.resource import Resource
from fakekube.apis.rest.strategy import Object
from fakekube.apiserver.endpoints import negotiation, response_transforms
from fakekube.apiserver.endpoints.negotiation import MediaType
from fakekube.apiserver.endpoints.request import Response
from fakekube.apiserver.endpoints.response_transforms import INITIAL_EVENTS_END
from fakekube.apiserver.registry.generic import versions
from fakekube.apiserver.registry.generic.reads import Listing
from fakekube.apiserver.registry.scope import Scope
from fakekube.base.depth import with_deep_stack
from fakekube.store import Event, Record

STATUS = Kind("v1", "Status", type_of("k8s.io/apimachinery/pkg/apis/meta/v1.Status"), custom=True)


def negotiate(scope: Scope) -> MediaType:
    """Negotiates the representation of a response. Raises StatusError 406."""
    headers, query = scope.request.headers, scope.request.query
    pretty = negotiation.is_pretty(query.get("pretty") or "", headers.get("user-agent", ""))
    return negotiation.offer_of(scope).output(headers.get("accept", ""), pretty=pretty)


def negotiate_stream(scope: Scope) -> MediaType:
    """Negotiates the representation of a watch's events. Raises StatusError 406."""
    return negotiation.offer_of(scope).stream(scope.request.headers.get("accept", ""))


@lru_cache(maxsize=1024)
def kind_of(resource: Resource) -> Kind:
    """Returns the encoding properties of the objects of a resource."""
    return Kind(resource.api_version, resource.kind, None if resource.custom else resource.type, resource.custom)


@lru_cache(maxsize=1024)
def list_kind_of(resource: Resource) -> Kind:
    return Kind(resource.api_version, resource.list_kind, None, resource.custom)


# ---------------------------------------------------------------- whole answers


@with_deep_stack
def object_response(scope: Scope, chosen: MediaType, code: int, document: Document) -> Response:
    """Returns a response with one object of the scope's resource."""
    shown = versions.shown(scope.resource, document)
    if chosen.target is not None:
        return response_transforms.object_response(scope, chosen, code, document, shown)
    form, kind = formats.format_of(chosen.format, pretty=chosen.pretty), kind_of(scope.resource)
    return _response(chosen, code, form.object(form.encoded_item(shown, kind), kind))


def list_response(scope: Scope, chosen: MediaType, listing: Listing) -> Response:
    """Returns a response with a collection."""
    resource, metadata = scope.resource, list_metadata(listing)
    if chosen.target is not None:
        return response_transforms.list_response(scope, chosen, listing, metadata)
    form, kind = formats.format_of(chosen.format, pretty=chosen.pretty), kind_of(resource)
    items = listing.encoded((form, kind), lambda: form.items(versions.all_shown(resource, listing.documents), kind))
    if resource.custom:  # an unstructured list: its members are sorted, and `continue` is always present
        metadata = dict(sorted({"continue": "", **metadata}.items()))
    return _response(chosen, 200, form.list(items, list_kind_of(resource), metadata))


def list_metadata(listing: Listing) -> Object:
    """Returns the ListMeta of a page."""
    metadata: Object = {"resourceVersion": str(listing.revision)} if listing.revision else {}
    if listing.token:
        metadata["continue"] = listing.token
    if listing.remaining is not None:
        metadata["remainingItemCount"] = listing.remaining
    return metadata


def plain_response(scope: Scope, chosen: MediaType, code: int, obj: Object, kind: Kind | None = None) -> Response:
    """Returns a response with another kind than that of the resource: a Status (which has its kind), a Scale, a review."""
    kind = kind or STATUS
    if chosen.target is not None:
        return response_transforms.plain_response(scope, chosen, code, obj, kind)
    form = formats.format_of(chosen.format, pretty=chosen.pretty)
    return _response(chosen, code, form.object(form.encoded_item(Document(obj), kind), kind))


def _response(chosen: MediaType, code: int, body: bytes | Chunks) -> Response:
    return Response(code, [("Content-Type", chosen.media_type)], body)


# ---------------------------------------------------------------- watch events


class UnencodableError(Exception):
    """An event cannot be encoded in the negotiated representation; the real server ends the watch."""


class EventEncoder:
    """Encodes the events of a watch in one representation; each event is encoded once for all watchers."""

    def __init__(self, scope: Scope, chosen: MediaType, transform: response_transforms.EventTransform | None = None) -> None:
        """`transform`: the transformation of objects into the target of `chosen`, if it exists already."""
        self._scope = scope
        self._resource = scope.resource
        self._chosen = chosen
        self._form = formats.format_of(chosen.format, pretty=chosen.pretty)
        if transform is None and chosen.target is not None:
            transform = response_transforms.event_transform(scope, chosen)
        self._transform = transform
        self._kind = self._transform.kind if self._transform else kind_of(scope.resource)
        self._encodes = chosen.target is None or self._transform is not None
        shares = self._transform is None or self._transform.shares
        self._key = (scope.resource.api_version, chosen) if shares else None

    @with_deep_stack
    def added(self, record: Record[Document]) -> bytes:
        """Encodes an object of the initial state."""
        return self._write("ADDED", *self._seen(record.value))

    @with_deep_stack
    def event(self, event_type: str, event: Event[Document]) -> bytes:
        """Encodes a change for the watchers that get it with this type of event."""
        if self._key is None:
            return self._write(event_type, *self._documents(event_type, event))
        key = (event_type, self._key)
        frame: bytes | None = event.encodings.get(key)
        if frame is None:
            frame = event.encodings[key] = self._write(event_type, *self._documents(event_type, event))
        return frame

    def _seen(self, stored: Document) -> tuple[Document, Document]:
        """Returns the stored document, and the document in the requested version."""
        return stored, versions.shown(self._resource, stored)

    def _documents(self, event_type: str, event: Event[Document]) -> tuple[Document, Document]:
        """Returns the documents of an event; DELETED has the last state at the revision of the change."""
        if event_type != "DELETED":
            assert event.record is not None
            return self._seen(event.record.value)
        assert event.previous is not None
        stored, shown = self._seen(event.previous.value)
        at_the_end = _at(stored, event.revision)
        return at_the_end, at_the_end if shown is stored else _at(shown, event.revision)

    def bookmark(self, revision: int, *, initial_end: bool = False) -> bytes:
        """Encodes an object with only a resourceVersion (and the required fields of its kind)."""
        resource = self._resource
        metadata: Object = {**resource.empty.get("metadata", {}), "resourceVersion": str(revision)}
        if initial_end:
            metadata["annotations"] = {**metadata.get("annotations", {}), INITIAL_EVENTS_END: "true"}
        obj: dict[str, Any] = {**resource.empty, "metadata": metadata}
        if resource.custom:
            obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": dict(sorted(metadata.items()))}
            bookmark = Document(obj)
        else:
            bookmark = Document(printing.normalise(resource.type, obj))
        return self._write("BOOKMARK", bookmark, bookmark)

    def error(self, error: StatusError) -> bytes:
        """Encodes an ERROR event with a Status, which is never transformed."""
        return self._form.event("ERROR", self._form.encoded_item(Document(error.status()), STATUS), STATUS)

    def _write(self, event_type: str, stored: Document, shown: Document) -> bytes:
        if not self._encodes:
            raise UnencodableError
        if self._transform is not None:
            shown = self._transform(stored, shown)
        return self._form.event(event_type, self._form.encoded_item(shown, self._kind), self._kind)


def _at(document: Document, revision: int) -> Document:
    obj = document.object
    return Document({**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}})
