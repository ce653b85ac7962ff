"""CBOR as Kubernetes profiles it: documents, the parts that lists and events are joined from, and
explanations.

Specified by: k8s.io/apimachinery/pkg/runtime/serializer/cbor; see `cbor_encoder`, `cbor_decoder`,
`cbor_items`.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import Any

from fakekube.codecs.cbor.decoder import Reader, quick
from fakekube.codecs.cbor.diagnosis import diagnosis
from fakekube.codecs.cbor.encoder import encoded, holds_bytes, with_bytes
from fakekube.codecs.cbor.explanation import explain, type_meta
from fakekube.codecs.cbor.items import SELF_DESCRIBED, SIZES, StumbledError, check, head
from fakekube.codecs.errors import ContentError, DecodeError
from fakekube.schema.model import Type

__all__ = [
    "SELF_DESCRIBED", "diagnosis", "dumps", "explain", "head", "holds_bytes", "joined", "load_map", "loads", "part", "read",
    "salvaged",
]


def dumps(value: Any, type_: Type | None = None) -> bytes:
    """One document.

    Args:
        value: plain JSON data.
        type_: of a built-in object, so that []byte fields are written as bytes.

    Raises:
        EncodeError: NaN, or an infinity.
    """
    return SELF_DESCRIBED + part(value, type_)


def part(value: Any, type_: Type | None = None) -> bytes:
    """The same without the tag in front: what stands in a list."""
    return encoded(value if type_ is None else with_bytes(type_, value))


def joined(container: bytes, members: bytes, count: int) -> bytes:
    """A map with further members in front: their bytes, and how many they are."""
    low = container[0] & 31
    size = SIZES.get(low, 0)
    number = low if not size else int.from_bytes(container[1 : 1 + size], "big")
    return head(5, number + count) + members + container[1 + size :]


def loads(body: bytes, *, untyped: bool = False) -> Any:
    """Read one document.

    Kind and version are looked for as a struct has them, first of all; of what is `untyped`, only if there is
    something wrong with it.

    Args:
        body: the bytes.
        untyped: the document is of a kind that has no Go type.

    Raises:
        ContentError: well formed, but with something in it that is not accepted; its kind, if it tells one.
        DecodeError: not well formed, or no object.
    """
    return read(body, untyped=untyped)[0]


def read(body: bytes, *, untyped: bool = False) -> tuple[Any, bool]:
    """The same, and whether all is written as usual, so that the plain data tell what it is."""
    try:
        return quick(body), True
    except _STUMBLED:
        pass
    return _read_carefully(body, untyped=untyped), False


def _read_carefully(body: bytes, *, untyped: bool) -> Any:
    try:
        check(body)
        if untyped:
            with suppress(StumbledError):
                return Reader(body).content()
        api_version, kind = type_meta(body)
    except StumbledError as problem:
        raise DecodeError(f"unable to determine group/version/kind: {problem}") from None
    try:
        return Reader(body).content() if untyped else Reader(body).value()
    except StumbledError as problem:
        raise ContentError(str(problem), api_version, kind) from None


def load_map(body: bytes) -> dict[str, Any] | None:
    """Read a map or null, whatever kind it is of. Raises DecodeError."""
    try:
        found: dict[str, Any] | None = quick(body)
    except _STUMBLED:
        try:
            check(body)
            found = Reader(body).content()
        except StumbledError as problem:
            raise DecodeError(str(problem)) from None
    return found


#: What may come of reading something unusual quickly.
_STUMBLED = (StumbledError, LookupError, ValueError, TypeError, struct.error, RecursionError)


def salvaged(body: bytes) -> Any:
    """Read a document that `loads` calls well formed, without the values that it refuses.

    They may stand where a built-in type knows no field: then nobody reads them.
    """
    return Reader(body, leniently=True).value()
