"""Encodes objects, lists and watch events in each format, from cached encoded items.

An *encoded item* is an object as it is encoded in a list: bytes for JSON, CBOR and Protobuf, and the object itself for YAML
and indented JSON, whose layout depends on the position. From encoded items

* `object` makes a response with one object: it prepends `kind` and `apiVersion`, which stored objects of built-in
  kinds do not contain (custom resources do);
* `items` collects the encoded items of a collection, and `list` makes the collection. Items cache their joined
  bytes; a large list is joined while it is sent (`chunks`);
* `event` makes one frame of a watch.

Responses are the same bytes as the real server's: compact JSON ends with a newline, indented JSON does not.

Specified by: the serializers of k8s.io/apimachinery/pkg/runtime/serializer; RawExtension and WatchEvent of
meta/v1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from fakekube.apimachinery.codecs import EncodeError, cbor, json, protobuf, yaml
from fakekube.apimachinery.codecs.document import Chunks, Document, Items, enclose, encodings_of, json_of
from fakekube.base.objects import Object, StoredObject

if TYPE_CHECKING:
    from fakekube.apimachinery.schema.model import Type


# --- The frames of the events of a watch ------------------------------------------------------------------------------
# A frame contains one event: JSON appends a newline; Protobuf prepends the length as four bytes, most significant
# first; the items of a CBOR sequence (RFC 8742) delimit themselves. Watches do not support YAML, whose documents
# begin with `---`.
#
# Specified by: the framers of k8s.io/apimachinery/pkg/runtime/serializer/{json,protobuf,cbor}.


def json_frame(event: bytes) -> bytes:
    """Frames an event as a line."""
    return event + b"\n"


def yaml_frame(document: bytes) -> bytes:
    """Frames a document, which ends with a newline, for a stream of documents."""
    return b"---\n" + document


def protobuf_frame(event: bytes) -> bytes:
    """Prepends the length of an event."""
    return len(event).to_bytes(4, "big") + event


@dataclass(eq=False)
class Kind:
    """The properties of a kind that encoders need.

    Make one per served kind and reuse it: encoded items are cached by its name, so Kinds with the same name must be equal.
    """

    api_version: str
    kind: str
    type: Type | None = None
    """The type of the objects; None if they have no Protobuf form."""
    custom: bool = False
    """Stored objects contain kind and apiVersion (custom resources, metadata only); their keys are sorted."""

    @cached_property
    def name(self) -> str:
        return f"{self.api_version}/{self.kind}"

    @cached_property
    def json_head(self) -> bytes:
        """`{"kind":"Pod","apiVersion":"v1"`"""
        return json.dumps({"kind": self.kind, "apiVersion": self.api_version})[:-1]

    @cached_property
    def cbor_members(self) -> bytes:
        """The kind and apiVersion as encoded CBOR members."""
        return cbor.encode_item({"kind": self.kind, "apiVersion": self.api_version})[1:]

    def add_type_meta(self, obj: Object) -> Object:
        """Returns the object with its kind and apiVersion."""
        return obj if self.custom else {"kind": self.kind, "apiVersion": self.api_version, **obj}

    def whole_json(self, item: bytes) -> bytes:
        """Returns the compact JSON of an object with its kind and apiVersion."""
        if self.custom:
            return item
        return b",".join((self.json_head, item[1:])) if len(item) > 2 else self.json_head + b"}"


class Format(Protocol):
    """The encoder of a format. Implementations have no state."""

    def encoded_item(self, document: Document, kind: Kind) -> Any:
        """Returns the encoded item of a list; cached in the document."""

    def items(self, documents: Iterable[Document], kind: Kind) -> Any:
        """Collects the encoded items of documents; the result can be used for several lists."""

    def object(self, item: Any, kind: Kind) -> bytes:
        """Encodes a response with one object."""

    def list(self, items: Any, kind: Kind, metadata: Object) -> bytes | Chunks:
        """Encodes a response with a collection; `kind` is that of the list, `metadata` its ListMeta."""

    def event(self, event_type: str, item: Any, kind: Kind) -> bytes:
        """Encodes one frame of a watch; event_type is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""


class JSON:
    """Compact JSON."""

    def encoded_item(self, document: Document, kind: Kind) -> bytes:
        return document.json

    def items(self, documents: Iterable[Document], kind: Kind) -> Items:
        return Items(json_of(documents), b",")

    def object(self, item: bytes, kind: Kind) -> bytes:
        return kind.whole_json(item) + b"\n"

    def list(self, items: Items, kind: Kind, metadata: Object) -> bytes | Chunks:
        meta = json.dumps(metadata)
        if kind.custom:
            version, name = json.dumps(kind.api_version), json.dumps(kind.kind)
            closing = b'],"kind":%b,"metadata":%b}\n' % (name, meta)
            return enclose(b'{"apiVersion":%b,"items":[' % version, items, closing)
        return enclose(b'%b,"metadata":%b,"items":[' % (kind.json_head, meta), items, b"]}\n")

    def event(self, event_type: str, item: bytes, kind: Kind) -> bytes:
        return json_frame(b'{"type":"%b","object":%b}' % (event_type.encode(), kind.whole_json(item)))


class _Written:
    """A format whose layout depends on the position: objects are encoded for each response."""

    def encoded_item(self, document: Document, kind: Kind) -> Object:
        return document.object

    def object(self, item: Object, kind: Kind) -> bytes:
        return self.dumps(kind.add_type_meta(item))

    def dumps(self, obj: Object) -> bytes:
        raise NotImplementedError


class PrettyJSON(_Written):
    """Indented JSON. Watches are never indented."""

    def items(self, documents: Iterable[Document], kind: Kind) -> list[StoredObject]:
        return [document.tree for document in documents]

    def list(self, items: list[StoredObject], kind: Kind, metadata: Object) -> bytes:
        listing: Object = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
        listing["items"] = items
        return self.dumps(dict(sorted(listing.items())) if kind.custom else listing)

    def dumps(self, obj: Object) -> bytes:
        return json.dumps_pretty(obj)

    def event(self, event_type: str, item: Object, kind: Kind) -> bytes:
        return json_frame(json.dumps({"type": event_type, "object": kind.add_type_meta(item)}))


class YAML(_Written):
    """YAML with sorted keys. Watches do not support it (negotiation rejects it)."""

    def items(self, documents: Iterable[Document], kind: Kind) -> Items:
        return Items(encodings_of(documents, ("yaml", kind.name), yaml.item))

    def list(self, items: Items, kind: Kind, metadata: Object) -> bytes | Chunks:
        opening = yaml.dumps({"apiVersion": kind.api_version}) + (b"items:\n" if items.count else b"items: []\n")
        return enclose(opening, items, yaml.dumps({"kind": kind.kind, "metadata": metadata}))

    def dumps(self, obj: Object) -> bytes:
        return yaml.dumps(obj)

    def event(self, event_type: str, item: Object, kind: Kind) -> bytes:
        return yaml_frame(self.dumps({"type": event_type, "object": kind.add_type_meta(item)}))


class CBOR:
    """CBOR; a watch is a sequence of items."""

    def encoded_item(self, document: Document, kind: Kind) -> bytes:
        return document.encoding(("cbor", kind.name), partial(cbor.encode_item, type_=kind.type))

    def items(self, documents: Iterable[Document], kind: Kind) -> Items:
        return Items(encodings_of(documents, ("cbor", kind.name), partial(cbor.encode_item, type_=kind.type)))

    def object(self, item: bytes, kind: Kind) -> bytes:
        return cbor.SELF_DESCRIBED + self._add_type_meta(item, kind)

    def list(self, items: Items, kind: Kind, metadata: Object) -> bytes | Chunks:
        listing = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata, "items": None}
        opening = cbor.encode_item(listing)[:-1]  # without the null
        return enclose(cbor.SELF_DESCRIBED + opening + cbor.head(4, items.count), items, b"")

    def event(self, event_type: str, item: bytes, kind: Kind) -> bytes:
        opening = cbor.encode_item({"type": event_type, "object": None})[:-1]
        return cbor.SELF_DESCRIBED + opening + self.object(item, kind)  # a sequence of CBOR needs no frames

    def _add_type_meta(self, item: bytes, kind: Kind) -> bytes:
        return item if kind.custom else cbor.prepend_members(item, kind.cbor_members, 2)


class Protobuf:
    """Protobuf. Kinds without a type do not support it (negotiation rejects it)."""

    def encoded_item(self, document: Document, kind: Kind) -> bytes:
        if kind.type is None:
            raise EncodeError(f"{kind.name} has no Protobuf form")
        return document.encoding(("protobuf", kind.name), partial(protobuf.encode_item, kind.type))

    def items(self, documents: Iterable[Document], kind: Kind) -> Items:
        if kind.type is None:
            raise EncodeError(f"{kind.name} has no Protobuf form")
        make, make_by_text = partial(protobuf.encode_item, kind.type), protobuf.item_encoder_by_templates(kind.type)
        return Items(encodings_of(documents, ("protobuf", kind.name), make, make_by_text))

    def object(self, item: bytes, kind: Kind) -> bytes:
        return protobuf.document(kind.api_version, kind.kind, item)

    def list(self, items: Items, kind: Kind, metadata: Object) -> bytes | Chunks:
        return protobuf.list_document(kind.api_version, kind.kind, metadata, items)

    def event(self, event_type: str, item: bytes, kind: Kind) -> bytes:
        return protobuf_frame(protobuf.event(event_type, self.object(item, kind)))


_JSON: Final = JSON()
_PRETTY: Final = PrettyJSON()
_FORMATS: Final[dict[str, Format]] = {
    "json": _JSON, "yaml": YAML(), "cbor": CBOR(), "protobuf": Protobuf(),
}  # fmt: skip


def format_of(name: str, *, pretty: bool = False) -> Format:
    """Returns the encoder of a format: json, yaml, protobuf or cbor; `pretty`: indented (JSON only)."""
    return _PRETTY if pretty else _FORMATS[name]
