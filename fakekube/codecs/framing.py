"""How the events of a watch follow each other in a stream.

A frame holds one event: JSON ends each with a newline; Protobuf puts the length in front, four bytes, most
significant first; the items of a CBOR sequence (RFC 8742) need nothing between them. YAML cannot be
watched; its documents begin with `---`.

Specified by: the framers of k8s.io/apimachinery/pkg/runtime/serializer/{json,protobuf,cbor}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

__all__ = ["FRAMES", "cbor_frame", "json_frame", "protobuf_frame", "yaml_frame"]


def json_frame(event: bytes) -> bytes:
    """An event on a line of its own."""
    return event + b"\n"


def yaml_frame(document: bytes) -> bytes:
    """A document (with its final newline) in a stream of documents."""
    return b"---\n" + document


def protobuf_frame(event: bytes) -> bytes:
    """An event after its length."""
    return len(event).to_bytes(4, "big") + event


def cbor_frame(event: bytes) -> bytes:
    """An event as it is: items of a sequence delimit themselves."""
    return event


#: By name of the format, as `negotiation.MediaType.format` has it.
FRAMES: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "json": json_frame, "yaml": yaml_frame, "protobuf": protobuf_frame, "cbor": cbor_frame,
}
