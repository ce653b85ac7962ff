"""Encodes and decodes Kubernetes' Protobuf: messages of the built-in types, in an envelope with their kind.

The envelope is four bytes (`k8s` and a zero) and a message runtime.Unknown: the kind and version, the
content, and two empty strings. Lists are joined from the encoded items.

Specified by: k8s.io/apimachinery/pkg/runtime/serializer/protobuf, runtime (generated.proto: Unknown,
TypeMeta), meta/v1 (WatchEvent, ListMeta).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any, Final

from fakekube.apimachinery.codecs import ContentError, DecodeError
from fakekube.apimachinery.codecs.document import Chunks, Document, Items, enclose
from fakekube.apimachinery.codecs.protobuf.decoder import read_struct
from fakekube.apimachinery.codecs.protobuf.encoder import content_of, encode_time
from fakekube.apimachinery.codecs.protobuf.templates import template_encoder
from fakekube.apimachinery.codecs.protobuf.wire import Member, Table, encode_varint, scan
from fakekube.apimachinery.data import DEFAULT
from fakekube.apimachinery.schema.builtin import Builtins, builtins, type_of
from fakekube.apimachinery.schema.model import Type
from fakekube.apimachinery.schema.trees import holds_raw_values
from fakekube.base.golang.strings import text_of

#: The prefix of every document.
_MAGIC: Final = b"k8s\0"


def encode(type_: Type, obj: dict[str, Any]) -> bytes:
    """Encodes an object as a message of its type, without kind and apiVersion.

    Raises:
        EncodeError: the object does not fit the type.
    """
    return content_of(type_)(obj)


def decode(type_: Type, content: bytes) -> dict[str, Any]:
    """Decodes a message of this type into an object, without kind and apiVersion.

    Raises:
        DecodeError: the message is malformed.
    """
    return read_struct(type_, content)


# --- The envelope -----------------------------------------------------------------------------------------------------


def _delimit(number: int, data: bytes) -> bytes:
    return encode_varint(number << 3 | 2) + encode_varint(len(data)) + data


@lru_cache(maxsize=1024)
def _envelope_head(api_version: str, kind: str) -> bytes:
    type_meta = _delimit(1, api_version.encode()) + _delimit(2, kind.encode())
    return _MAGIC + _delimit(1, type_meta)


#: The end of an envelope: empty contentEncoding and contentType.
_ENVELOPE_TAIL: Final = b"\x1a\0\x22\0"


def encode_item(type_: Type, obj: dict[str, Any]) -> bytes:
    """Encodes an object as field 2, its field number both in the envelope and in the items of a list.

    Raises:
        EncodeError: the object does not fit the type.
    """
    return _delimit(2, content_of(type_)(obj))


@cache
def item_encoder_by_templates(type_: Type) -> Callable[[Document], bytes | None] | None:
    """Returns the function that encodes a document like those before it, or returns None.

    None if objects of the type may hold values whose text JSON does not show.
    """
    return None if holds_raw_values(type_) else template_encoder(partial(encode_item, type_), encode_time)


def document(api_version: str, kind: str, made: bytes) -> bytes:
    """Encodes a document from an encoded item."""
    return b"%b%b%b" % (_envelope_head(api_version, kind), made, _ENVELOPE_TAIL)


def list_document(api_version: str, kind: str, metadata: dict[str, Any], items: Items) -> bytes | Chunks:
    """Encodes a list document from its ListMeta and the parts of its items."""
    meta = _delimit(1, encode(type_of("k8s.io/apimachinery/pkg/apis/meta/v1.ListMeta"), metadata))
    opening = b"%b\x12%b%b" % (_envelope_head(api_version, kind), encode_varint(len(meta) + items.length), meta)
    return enclose(opening, items, _ENVELOPE_TAIL)


def event(event_type: str, document: bytes) -> bytes:
    """Encodes a WatchEvent that contains a document (with its envelope)."""
    return _delimit(1, event_type.encode()) + _delimit(2, _delimit(1, document))


def _text(name: str) -> Member:
    return Member(2, name, lambda into, content: into.__setitem__(name, text_of(content)))


_TYPE_META: Final = Table({1: _text("APIVersion"), 2: _text("Kind")})
_UNKNOWN: Final = Table(
    {
        1: Member(2, "TypeMeta", lambda into, content: scan(content, _TYPE_META, into, "TypeMeta")),
        2: Member(2, "Raw", lambda into, content: into.__setitem__("Raw", content)),
        3: _text("ContentEncoding"),
        4: _text("ContentType"),
    }
)

_RAW_EXTENSION: Final = Table({1: Member(2, "Raw", lambda into, content: into.__setitem__("Raw", content))})
_WATCH_EVENT: Final = Table(
    {1: _text("Type"), 2: Member(2, "Object", lambda into, content: scan(content, _RAW_EXTENSION, into, "RawExtension"))}
)


def read_event(content: bytes) -> tuple[str, bytes]:
    """Returns the type of a WatchEvent, and the document in it with its envelope. Raises DecodeError."""
    found: dict[str, Any] = {}
    scan(content, _WATCH_EVENT, found, "WatchEvent")
    return found.get("Type", ""), found.get("Raw", b"")


def loads(
    body: bytes, api_version: str, kind: str, *, any_version: bool = False, types: Builtins | None = None
) -> dict[str, Any]:
    """Decodes a document.

    Args:
        body: the document with its envelope.
        api_version: the default if the envelope has none.
        kind: the default if the envelope has none.
        any_version: decode an object of this kind as one of v1, regardless of the version in the envelope.
        types: those of a minor; by default the newest.

    Returns:
        The object, beginning with apiVersion and kind; only these two if the kind is unknown.

    Raises:
        ContentError: the message of the object is malformed.
        DecodeError: the envelope is missing or malformed.
    """
    if not body:
        raise DecodeError("empty data")
    if not body.startswith(_MAGIC):
        problem = "provided data does not appear to be a protobuf message, expected prefix"
        raise DecodeError(f"{problem} [{' '.join(map(str, _MAGIC))}]")
    if len(body) == len(_MAGIC):
        raise DecodeError("empty body")
    unknown: dict[str, Any] = {}
    scan(body[len(_MAGIC) :], _UNKNOWN, unknown, "Unknown")
    said = unknown.get("APIVersion", "")
    if said.count("/") > 1:  # no group and version: the real server reports no error
        said = ""
    head = {"apiVersion": said or api_version, "kind": unknown.get("Kind") or kind}
    group, _, version = head["apiVersion"].rpartition("/")
    types = types or builtins(DEFAULT)
    type_ = types.kind_type(group, version, head["kind"])
    if type_ is None and any_version and head["kind"] == kind:
        type_ = types.kind_type("", "v1", kind)
    if type_ is None:
        return head
    try:
        return head | decode(type_, unknown.get("Raw", b""))
    except DecodeError as error:
        raise ContentError(str(error), head["apiVersion"], head["kind"]) from None
