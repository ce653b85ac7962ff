"""Frames the events of a watch stream.

A frame contains one event: JSON appends a newline; Protobuf prepends the length as four bytes, most significant
first; the items of a CBOR sequence (RFC 8742) delimit themselves. Watches do not support YAML, whose documents
begin with `---`.

Specified by: the framers of k8s.io/apimachinery/pkg/runtime/serializer/{json,protobuf,cbor}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final


def json_frame(event: bytes) -> bytes:
    """Frames an event as a line."""
    return event + b"\n"


def yaml_frame(document: bytes) -> bytes:
    """Frames a document, which ends with a newline, for a stream of documents."""
    return b"---\n" + document


def protobuf_frame(event: bytes) -> bytes:
    """Prepends the length of an event."""
    return len(event).to_bytes(4, "big") + event


def cbor_frame(event: bytes) -> bytes:
    """Returns the event unchanged: items of a sequence delimit themselves."""
    return event


#: The framers by the name of the format (`MediaType.format`).
FRAMES: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "json": json_frame,
    "yaml": yaml_frame,
    "protobuf": protobuf_frame,
    "cbor": cbor_frame,
}
