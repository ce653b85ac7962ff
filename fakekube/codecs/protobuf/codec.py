"""Kubernetes' Protobuf: messages of the built-in types, in an envelope that tells their kind.

The envelope is four bytes (`k8s` and a zero) and a message runtime.Unknown: the kind and version, the
content, and two strings that are empty. Lists are joined from the contents of their items.

Specified by: k8s.io/apimachinery/pkg/runtime/serializer/protobuf, runtime (generated.proto: Unknown,
TypeMeta), meta/v1 (WatchEvent, ListMeta).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from fakekube.codecs.errors import ContentError, DecodeError
from fakekube.codecs.pieces import Items, Pieces, enclosed
from fakekube.codecs.protobuf.decoder import Member, Table, read_struct, scan
from fakekube.codecs.protobuf.encoder import content_of
from fakekube.codecs.protobuf.fields import varint
from fakekube.golang.strings import text_of
from fakekube.schema.builtin import kind_type, type_of
from fakekube.schema.model import Type

__all__ = ["MAGIC", "decode", "document", "encode", "event", "list_document", "loads", "part"]

#: What every document begins with.
MAGIC: Final = b"k8s\0"


def encode(type_: Type, obj: dict[str, Any]) -> bytes:
    """The content of an object: a message of its type, without kind and apiVersion.

    Raises:
        EncodeError: the object does not fit the type.
    """
    return content_of(type_)(obj)


def decode(type_: Type, content: bytes) -> dict[str, Any]:
    """The object in a message of this type, without kind and apiVersion.

    Raises:
        DecodeError: in the words of the generated code.
    """
    return read_struct(type_, content)


# ---------------------------------------------------------------- the envelope

def _delimited(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


@lru_cache(maxsize=1024)
def _envelope_head(api_version: str, kind: str) -> bytes:
    type_meta = _delimited(1, api_version.encode()) + _delimited(2, kind.encode())
    return MAGIC + _delimited(1, type_meta)


#: What ends an envelope: no encoding, and no type of the content.
_ENVELOPE_TAIL: Final = b"\x1a\0\x22\0"


def part(type_: Type, obj: dict[str, Any]) -> bytes:
    """The content of an object as field 2: so it stands in the envelope, and in the items of a list.

    Raises:
        EncodeError: the object is not of the type.
    """
    return _delimited(2, content_of(type_)(obj))


def document(api_version: str, kind: str, made: bytes) -> bytes:
    """A document: the part of an object with its kind."""
    return b"%b%b%b" % (_envelope_head(api_version, kind), made, _ENVELOPE_TAIL)


def list_document(api_version: str, kind: str, metadata: dict[str, Any], items: Items) -> bytes | Pieces:
    """A document that is a list, from its ListMeta and the parts of its items."""
    meta = _delimited(1, encode(type_of("k8s.io/apimachinery/pkg/apis/meta/v1.ListMeta"), metadata))
    opening = b"%b\x12%b%b" % (_envelope_head(api_version, kind), varint(len(meta) + items.length), meta)
    return enclosed(opening, items, _ENVELOPE_TAIL)


def event(event_type: str, document: bytes) -> bytes:
    """A WatchEvent around a document (with its envelope)."""
    return _delimited(1, event_type.encode()) + _delimited(2, _delimited(1, document))


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


def loads(body: bytes, api_version: str, kind: str, *, any_version: bool = False) -> dict[str, Any]:
    """Read a document.

    Args:
        body: the document with its envelope.
        api_version: what the object is if it does not say.
        kind: the same of its kind.
        any_version: an object of this kind is read as one of `api_version`, whatever version it claims.

    Returns:
        The object with apiVersion and kind in front. Nothing more if that kind is not known.

    Raises:
        ContentError: the message of the object is broken.
        DecodeError: there is no envelope, or a broken one.
    """
    if not body:
        raise DecodeError("empty data")
    if not body.startswith(MAGIC):
        problem = "provided data does not appear to be a protobuf message, expected prefix"
        raise DecodeError(f"{problem} [{' '.join(map(str, MAGIC))}]")
    if len(body) == len(MAGIC):
        raise DecodeError("empty body")
    unknown: dict[str, Any] = {}
    scan(body[len(MAGIC) :], _UNKNOWN, unknown, "Unknown")
    said = unknown.get("APIVersion", "")
    if said.count("/") > 1:  # no group and version: nobody complains
        said = ""
    head = {"apiVersion": said or api_version, "kind": unknown.get("Kind") or kind}
    group, _, version = head["apiVersion"].rpartition("/")
    type_ = kind_type(group, version, head["kind"])
    if type_ is None and any_version and head["kind"] == kind:
        group, _, version = api_version.rpartition("/")
        type_ = kind_type(group, version, kind)
    if type_ is None:
        return head
    try:
        return head | decode(type_, unknown.get("Raw", b""))
    except DecodeError as error:
        raise ContentError(str(error), head["apiVersion"], head["kind"]) from None
