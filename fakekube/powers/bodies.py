"""Decodes recorded bodies of any format when a test reads them.

Invariant: a body that cannot be decoded is returned as the bytes that were sent.
"""

from __future__ import annotations

from typing import Any

from fakekube.apimachinery.codecs.errors import DecodeError

__all__ = ["decoded", "decoded_event"]

#: The length of an event precedes it in Protobuf, in this number of bytes.
_PROTOBUF_HEAD = 4


def decoded(body: bytes, content_type: str) -> Any:
    """Returns the object in a body; None for an empty one, bytes for one that cannot be decoded."""
    if not body:
        return None
    media_type = content_type.partition(";")[0].strip().lower()
    try:
        if "protobuf" in media_type:
            from fakekube.apimachinery.codecs import protobuf

            return protobuf.loads(body, "", "")
        if "cbor" in media_type:
            from fakekube.apimachinery.codecs import cbor

            return cbor.loads(body)
        if "yaml" in media_type:
            from fakekube.apimachinery.codecs import yaml

            return yaml.loads(body)[0]
        from fakekube.apimachinery.codecs import json

        return json.reread(body)
    except DecodeError:
        return body


def decoded_event(frame: bytes, content_type: str) -> tuple[str, Any]:
    """Returns the type and the object of an event of a watch; ("", None) if it cannot be decoded."""
    if "protobuf" in content_type:
        from fakekube.apimachinery.codecs import protobuf

        try:
            type_, document = protobuf.read_event(frame[_PROTOBUF_HEAD:])
            return type_, decoded(document, content_type)
        except DecodeError:
            return "", None
    event = decoded(frame, content_type)
    return (str(event.get("type", "")), event.get("object")) if isinstance(event, dict) else ("", None)
