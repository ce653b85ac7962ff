"""Encodes and decodes CBOR documents in Kubernetes' profile, and the encoded items from which lists and events are joined.

Specified by: k8s.io/apimachinery/pkg/runtime/serializer/cbor; see `encoder`, `decoder`, `items`.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import Any

from fakekube.apimachinery.codecs import ContentError, DecodeError
from fakekube.apimachinery.codecs.cbor.decoder import Reader, diagnosis, quick
from fakekube.apimachinery.codecs.cbor.items import SELF_DESCRIBED, SIZES, CBORError, check, encode, head, is_stricter, with_bytes
from fakekube.apimachinery.codecs.cbor.type_errors import type_errors, type_meta
from fakekube.apimachinery.schema.model import Type

__all__ = [
    "SELF_DESCRIBED",
    "diagnosis",
    "dumps",
    "encode_item",
    "head",
    "is_stricter",
    "load_map",
    "loads",
    "loads_lenient",
    "prepend_members",
    "read",
    "type_errors",
]


def dumps(value: Any, type_: Type | None = None) -> bytes:
    """Encodes one document.

    Args:
        value: plain JSON data.
        type_: the type of a built-in object; with it, []byte fields are encoded as byte strings.

    Raises:
        EncodeError: the value contains NaN or an infinity.
    """
    return SELF_DESCRIBED + encode_item(value, type_)


def encode_item(value: Any, type_: Type | None = None) -> bytes:
    """Encodes a value without the self-described tag, as an item of a list."""
    return encode(value if type_ is None else with_bytes(type_, value))


def prepend_members(container: bytes, members: bytes, count: int) -> bytes:
    """Prepends `count` encoded members to an encoded map."""
    low = container[0] & 31
    size = SIZES.get(low, 0)
    number = low if not size else int.from_bytes(container[1 : 1 + size], "big")
    return head(5, number + count) + members + container[1 + size :]


def loads(body: bytes) -> Any:
    """Decodes one document.

    The kind and the version are decoded first, into a struct.

    Raises:
        ContentError: the document is well formed, but contains an item that is not accepted. The error has the kind
            of the document, if there is one.
        DecodeError: the document is not well formed, or is not an object.
    """
    return read(body)[0]


def read(body: bytes, *, untyped: bool = False) -> tuple[Any, bool]:
    """Decodes like `loads`. Also reports whether the fast decoder succeeded, so that no information is lost.

    `untyped`: the kind has no Go type; kind and version are decoded first only to report an error.
    """
    try:
        return quick(body), True
    except _FAST_DECODER_ERRORS:
        pass
    return _read_carefully(body, untyped=untyped), False


def _read_carefully(body: bytes, *, untyped: bool) -> Any:
    try:
        check(body)
        if untyped:
            with suppress(CBORError):
                return Reader(body).content()
        api_version, kind = type_meta(body)
    except CBORError as problem:
        raise DecodeError(f"unable to determine group/version/kind: {problem}") from None
    try:
        return Reader(body).content() if untyped else Reader(body).value()
    except CBORError as problem:
        raise ContentError(str(problem), api_version, kind) from None


def load_map(body: bytes) -> dict[str, Any] | None:
    """Decodes a map or null of any kind. Raises DecodeError."""
    try:
        found: dict[str, Any] | None = quick(body)
    except _FAST_DECODER_ERRORS:
        try:
            check(body)
            found = Reader(body).content()
        except CBORError as problem:
            raise DecodeError(str(problem)) from None
    return found


#: The errors of the fast decoder for unusual documents.
_FAST_DECODER_ERRORS = (CBORError, LookupError, ValueError, TypeError, struct.error, RecursionError)


def loads_lenient(body: bytes) -> Any:
    """Decodes a well-formed document leniently: values that `loads` rejects become null.

    Such values are legal in members that the built-in type does not declare, since Go does not decode those.
    """
    return Reader(body, leniently=True).value()
