"""Encodes responses in the negotiated representation: as it is, as PartialObjectMetadata, or as a Table.

Objects, lists and watch events are encoded the same way: the stored document is converted to the version of the request,
transformed if requested, and joined from parts that are encoded once and cached with the document. A transformation gets the
stored object, from which the cells of built-in kinds are printed, and the object in the requested version. A Status is never
transformed.

Specified by: k8s.io/apiserver/pkg/endpoints/handlers/response.go (transformObject, doTransformObject, asTable), responsewriters,
watch.go.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any

from fakekube.apimachinery.codecs import formats
from fakekube.apimachinery.codecs.document import Chunks, Document, encode_all
from fakekube.apimachinery.codecs.formats import Kind
from fakekube.apimachinery.errors import StatusError, status
from fakekube.apimachinery.printers import custom, table
from fakekube.apimachinery.printers.table import Row, TableConvertor
from fakekube.apimachinery.schema import printing
from fakekube.apimachinery.schema.builtin import type_of
from fakekube.apis.rest.resource import Resource
from fakekube.apiserver.endpoints.negotiation import MediaType
from fakekube.apiserver.endpoints.request import Response
from fakekube.apiserver.registry.generic import conversion
from fakekube.apiserver.registry.generic.reads import Listing
from fakekube.apiserver.registry.scope import Scope
from fakekube.base.caches import forgettable
from fakekube.base.depth import with_deep_stack
from fakekube.base.objects import Object
from fakekube.store import Event, Record

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
#: The value of includeObject for rows that carry metadata only.
_METADATA = ("", "Metadata")


# --- Whole answers ----------------------------------------------------------------------------------------------------


def _transform_object(scope: Scope, chosen: MediaType, code: int, stored: Document, shown: Document) -> Response:
    """Returns one object, transformed. Raises StatusError 400 or 406."""
    assert chosen.target is not None
    if chosen.target.kind == "Table":
        made = _table(scope, chosen, _convertor(scope), lambda: ([stored], [shown]), _table_metadata(shown))
        return _response(chosen, code, made)
    if chosen.target.kind == "PartialObjectMetadataList":
        if scope.resource.custom:
            raise StatusError(500, "", "content is not a list")
        raise _not_acceptable(scope, "the requested object is not a list")
    form, kind = formats.format_of(chosen.format, pretty=chosen.pretty), table.kind(chosen.target.api_version)
    document = _metadata_of(scope, chosen.target.api_version)(shown if scope.resource.custom else stored)
    return _response(chosen, code, form.object(form.encoded_item(document, kind), kind))


def _transform_list(scope: Scope, chosen: MediaType, listing: Listing, metadata: Object) -> Response:
    """Returns a collection, transformed. Raises StatusError 400 or 406."""
    assert chosen.target is not None
    api_version = chosen.target.api_version
    if chosen.target.kind == "Table":
        convertor = _convertor(scope)
        if convertor.for_list is not None:
            convertor = convertor.for_list([document.tree for document in listing.documents])
        made = _table(scope, chosen, convertor, lambda: _pairs(scope.resource, listing), metadata, keep=listing.encoding)
        return _response(chosen, 200, made)
    if chosen.target.kind == "PartialObjectMetadata":
        raise _not_acceptable(scope, "the requested object is a list", "List")
    if not listing.records and chosen.format != "protobuf":
        return _empty_list(chosen, Kind(api_version, "PartialObjectMetadataList", custom=True), metadata)
    form, kind = formats.format_of(chosen.format, pretty=chosen.pretty), table.kind(api_version)

    def items() -> Any:
        resource, documents = scope.resource, listing.documents
        if resource.custom:
            documents = conversion.all_shown(resource, documents)
        if chosen.format == "json" and not chosen.pretty:
            return table.metadata_items(documents, api_version, (resource.group, resource.plural), custom=resource.custom)
        return form.items(map(_metadata_of(scope, api_version), documents), kind)

    kept = listing.encoding((form, kind, scope.resource), items)
    return _response(chosen, 200, form.list(kept, table.list_kind(api_version), metadata))


def _metadata_of(scope: Scope, api_version: str) -> Callable[[Document], Document]:
    """Returns the function that reduces an object to its metadata: of custom resources the converted object, else the stored."""
    resource = scope.resource
    return table.reader(api_version, (resource.group, resource.plural), custom=resource.custom)


def _empty_list(chosen: MediaType, kind: Kind, metadata: Object) -> Response:
    """Returns an empty list as Go encodes a nil slice: its items are null."""
    empty = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata, "items": None}
    form = formats.format_of(chosen.format, pretty=chosen.pretty)
    return _response(chosen, 200, form.object(form.encoded_item(Document(empty), kind), kind))


def _transform_plain(scope: Scope, chosen: MediaType, code: int, obj: Object, kind: Kind) -> Response:
    """Transforms an object that is not of the resource (without kind and apiVersion, unless its kind is `custom`)."""
    document = Document(obj)
    if kind.kind != "Status":
        return _transform_object(scope, chosen, code, document, document)
    form = formats.format_of(chosen.format, pretty=chosen.pretty)
    return _response(chosen, code, form.object(form.encoded_item(document, kind), kind))


def _response(chosen: MediaType, code: int, body: bytes | Chunks) -> Response:
    return Response(code, [("Content-Type", chosen.media_type)], body)


def _not_acceptable(scope: Scope, problem: str, suffix: str = "") -> StatusError:
    """Returns the 406 for a list asked for as one object, or the reverse; the message names the Go type."""
    kind = scope.kind
    go_type = f"{kind.internal_type}{suffix}"
    if scope.resource.custom:
        go_type = f"unstructured.Unstructured{suffix}"
    wanted = "PartialObjectMetadata" if suffix else "PartialObjectMetadataList"
    return status.not_acceptable(f"you requested {wanted}, but {problem} (*{go_type})")


# --- Tables -----------------------------------------------------------------------------------------------------------

Pairs = tuple[list[Document], list[Document]]
"""Stored documents, and the same in the requested version."""
Keep = Callable[[Hashable, Callable[[], table.Rows]], table.Rows]
"""Returns the cached value of a key, or makes it."""


def _pairs(resource: Resource, listing: Listing) -> Pairs:
    documents = listing.documents
    return documents, conversion.all_shown(resource, documents)


def _not_kept(_key: Hashable, make: Callable[[], table.Rows]) -> table.Rows:
    return make()


def _table(
    scope: Scope,
    chosen: MediaType,
    convertor: TableConvertor,
    pairs: Callable[[], Pairs],
    metadata: Object,
    *,
    keep: Keep = _not_kept,
) -> bytes | Chunks:
    """Builds a Table. In compact JSON, the rows are joined from encoded cells that are cached with their objects."""
    assert chosen.target is not None
    api_version, now = chosen.target.api_version, scope.backend.clock.now()
    shown = _Rows(scope, api_version)
    if chosen.format == "json" and not chosen.pretty:
        kept = keep((convertor, api_version, *shown.key), lambda: table.Rows(convertor, *shown.parts(convertor, pairs())))
        return table.table_json(convertor, api_version, kept, metadata=metadata, now=now)
    whole = Document(table.table(convertor, api_version, list(map(shown.row, *pairs())), metadata, now))
    form, kind = formats.format_of(chosen.format, pretty=chosen.pretty), _table_kind(api_version)
    return form.object(form.encoded_item(whole, kind), kind)


def _table_metadata(shown: Document) -> Object:
    """Returns the ListMeta of a table with one row (an object that a dry run creates has no revision)."""
    revision = shown.object["metadata"].get("resourceVersion")
    return {"resourceVersion": revision} if revision else {}


def _table_kind(api_version: str) -> Kind:
    return Kind(api_version, "Table", custom=True)


def _convertor(scope: Scope) -> TableConvertor:
    resource, subresource = scope.resource, scope.subresource
    if subresource is not None and subresource.projection is not None:
        if resource.custom:
            return custom.convertor(custom.SCALE_COLUMNS)
        return table.convertor_for("autoscaling", "v1", "scales", scale=True, minor=resource.emulation.version)
    if resource.custom:
        return custom.convertor(resource.printer_columns)
    return table.convertor_for(resource.group, resource.version, resource.plural, minor=resource.emulation.version)


class _Rows:
    """Builds rows for a value of the query parameter includeObject. Raises StatusError 400."""

    def __init__(self, scope: Scope, api_version: str) -> None:
        self._include = scope.request.query.get("includeObject") or ""
        problem = table.include_object_error(self._include)
        if problem:
            raise status.bad_request(problem)
        self.key = (scope.resource, self._include)
        """The cache key of rows, besides the objects."""
        self._custom = scope.resource.custom
        self._kind = Kind(scope.kind.api_version, scope.kind.kind, custom=self._custom)
        self._metadata_of = _metadata_of(scope, api_version)
        self._api_version, self._resource = api_version, (scope.resource.group, scope.resource.plural)

    def row(self, stored: Document, shown: Document) -> Row:
        carried = self._get_row_object(stored, shown)
        whole = None if carried is None else self._kind.add_type_meta(carried.object) if carried is shown else carried.object
        return Row((shown if self._custom else stored).object, whole)

    def parts(self, convertor: TableConvertor, pairs: Pairs) -> tuple[list[Document], list[bytes], table.Around]:
        """Returns arguments of `table.Rows`: the printed objects, the JSON of those in the rows, and what that stands between."""
        stored, shown = pairs
        printed = shown if self._custom else stored
        if self._include in _METADATA:
            if self._custom:
                makers = (table.template_maker(convertor), table.json_maker(self._resource, custom=True))
                encode_all(printed, dict(makers))
            carried = table.metadata_json(printed, self._resource, custom=self._custom)
            return printed, carried, table.around_metadata(self._api_version)
        return printed, list(map(self._carried_json, stored, shown)), (b"", b"")

    def _carried_json(self, stored: Document, shown: Document) -> bytes:
        carried = self._get_row_object(stored, shown)
        if carried is None:
            return b"null"
        return self._kind.whole_json(carried.json) if carried is shown else carried.json

    def _get_row_object(self, stored: Document, shown: Document) -> Document | None:
        """Returns the object in the row: None, the object in the requested version, or its metadata."""
        annotations = shown.tree["metadata"].get("annotations") or {}
        if self._include == "None" and INITIAL_EVENTS_END not in annotations:
            return None
        return shown if self._include == "Object" else self._metadata_of(shown if self._custom else stored)


# --- Watch events -----------------------------------------------------------------------------------------------------


class EventTransform:
    """Transforms the objects of one watch. Only the first Table of a watch has column definitions."""

    def __init__(self, scope: Scope, chosen: MediaType) -> None:
        assert chosen.target is not None
        self._api_version = chosen.target.api_version
        self._is_table = chosen.target.kind == "Table"
        self.kind = _table_kind(self._api_version) if self._is_table else table.kind(self._api_version)
        self.shares = not self._is_table
        """The encoded events are the same for all watchers."""
        self._scope = scope
        self._metadata_of = _metadata_of(scope, self._api_version)
        self._headers = True
        if self._is_table:
            self._rows = _Rows(scope, self._api_version)
            self._convertor = _convertor(scope)

    def __call__(self, stored: Document, shown: Document) -> Document:
        if not self._is_table:
            return self._metadata_of(shown if self._scope.resource.custom else stored)
        headers, self._headers = self._headers, False
        now = self._scope.backend.clock.now()
        row = self._rows.row(stored, shown)
        made = table.table(self._convertor, self._api_version, [row], _table_metadata(shown), now, headers=headers)
        return Document(made)


def event_transform(scope: Scope, chosen: MediaType) -> EventTransform | None:
    """Returns the transformation of a watch's objects; None if there is none. Raises StatusError 400."""
    assert chosen.target is not None
    if chosen.target.kind == "PartialObjectMetadataList":
        return None  # no event is a list: the real server fails to transform each one, and sends it untransformed
    return EventTransform(scope, chosen)


STATUS = Kind("v1", "Status", type_of("k8s.io/apimachinery/pkg/apis/meta/v1.Status"), custom=True)


@forgettable
@lru_cache(maxsize=256)  # an entry holds the compiled schema of a definition, which may be gone
def kind_of(resource: Resource) -> Kind:
    """Returns the encoding properties of the objects of a resource."""
    return Kind(resource.api_version, resource.kind, None if resource.custom else resource.type, resource.custom)


@forgettable
@lru_cache(maxsize=256)
def _list_kind_of(resource: Resource) -> Kind:
    return Kind(resource.api_version, resource.list_kind, None, resource.custom)


# --- Whole answers ----------------------------------------------------------------------------------------------------


@with_deep_stack
def object_response(scope: Scope, chosen: MediaType, code: int, document: Document) -> Response:
    """Returns a response with one object of the scope's resource."""
    shown = document if scope.resource.from_storage is None else conversion.to_version(scope.resource, document)
    if chosen.target is not None:
        return _transform_object(scope, chosen, code, document, shown)
    form, kind = formats.format_of(chosen.format, pretty=chosen.pretty), kind_of(scope.resource)
    return _response(chosen, code, form.object(form.encoded_item(shown, kind), kind))


def list_response(scope: Scope, chosen: MediaType, listing: Listing) -> Response:
    """Returns a response with a collection."""
    resource, metadata = scope.resource, _list_metadata(listing)
    if chosen.target is not None:
        return _transform_list(scope, chosen, listing, metadata)
    if listing.shards is not None and not resource.custom:
        metadata["shardInfo"] = {"selector": str(listing.shards)}
    form, kind = formats.format_of(chosen.format, pretty=chosen.pretty), kind_of(resource)
    items = listing.encoding((form, kind), lambda: form.items(conversion.all_shown(resource, listing.documents), kind))
    if resource.custom:  # an unstructured list: its members are sorted, and `continue` is always present
        metadata = dict(sorted({"continue": "", **metadata}.items()))
    return _response(chosen, 200, form.list(items, _list_kind_of(resource), metadata))


def _list_metadata(listing: Listing) -> Object:
    """Returns the ListMeta that a page has in all representations."""
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
        return _transform_plain(scope, chosen, code, obj, kind)
    form = formats.format_of(chosen.format, pretty=chosen.pretty)
    return _response(chosen, code, form.object(form.encoded_item(Document(obj), kind), kind))


# --- Watch events -----------------------------------------------------------------------------------------------------


class UnencodableError(Exception):
    """An event cannot be encoded in the negotiated representation; the real server ends the watch."""


@lru_cache(maxsize=4096)
def encoding_key(*_parts: Hashable) -> object:
    """Returns one object for equal arguments, as a key for `Event.encodings` that is cheap to look up."""
    return object()


class EventEncoder:
    """Encodes the events of a watch in one representation; each event is encoded once for all watchers."""

    def __init__(self, scope: Scope, chosen: MediaType, transform: EventTransform | None = None) -> None:
        """`transform`: the transformation of objects into the target of `chosen`, if it exists already."""
        self._scope = scope
        self._resource = scope.resource
        self._chosen = chosen
        self._form = formats.format_of(chosen.format, pretty=chosen.pretty)
        if transform is None and chosen.target is not None:
            transform = event_transform(scope, chosen)
        self._transform = transform
        self._kind = self._transform.kind if self._transform else kind_of(scope.resource)
        self._encodes = chosen.target is None or self._transform is not None
        shares = self._transform is None or self._transform.shares
        self.key = encoding_key(scope.resource.api_version, chosen) if shares else None
        """The same for encoders of one bucket that encode an event as the same bytes; None if no other one does."""

    @with_deep_stack
    def encode_added(self, record: Record[Document]) -> bytes:
        """Encodes an object of the initial state."""
        return self._write("ADDED", *self._convert(record.value))

    @with_deep_stack
    def event(self, event_type: str, event: Event[Document]) -> bytes:
        """Encodes a change for the watchers that get it with this type of event."""
        if self.key is None:
            return self._write(event_type, *self._documents(event_type, event))
        key = (event_type, self.key)
        frame: bytes | None = event.encodings.get(key)
        if frame is None:
            frame = event.encodings[key] = self._write(event_type, *self._documents(event_type, event))
        return frame

    def _convert(self, stored: Document) -> tuple[Document, Document]:
        """Returns the stored document, and the document in the requested version."""
        return stored, conversion.to_version(self._resource, stored)

    def _documents(self, event_type: str, event: Event[Document]) -> tuple[Document, Document]:
        """Returns the documents of an event; DELETED has the last state at the revision of the change."""
        if event_type != "DELETED":
            assert event.record is not None
            return self._convert(event.record.value)
        assert event.previous is not None
        stored, shown = self._convert(event.previous.value)
        at_the_end = _set_revision(stored, event.revision)
        return at_the_end, at_the_end if shown is stored else _set_revision(shown, event.revision)

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


def _set_revision(document: Document, revision: int) -> Document:
    obj = document.object
    return Document({**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}})
