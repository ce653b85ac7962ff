"""The Protobuf form of the built-in types.

Specified by: k8s.io/apimachinery/pkg/runtime/serializer/protobuf, the generated code of k8s.io/api.
"""

from __future__ import annotations

from fakekube.apimachinery.codecs.protobuf.codec import (
    MAGIC,
    decode,
    document,
    encode,
    encode_item,
    event,
    list_document,
    loads,
    read_event,
)

__all__ = ["MAGIC", "decode", "document", "encode", "encode_item", "event", "list_document", "loads", "read_event"]
