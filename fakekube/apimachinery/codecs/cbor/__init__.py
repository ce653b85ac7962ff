"""CBOR in Kubernetes' profile.

Specified by: k8s.io/apimachinery/pkg/runtime/serializer/cbor.
"""

from __future__ import annotations

from fakekube.apimachinery.codecs.cbor.codec import (
    SELF_DESCRIBED,
    diagnosis,
    dumps,
    encode_item,
    head,
    holds_bytes,
    joined,
    load_map,
    loads,
    loads_lenient,
    read,
    type_errors,
)

__all__ = [
    "SELF_DESCRIBED",
    "diagnosis",
    "dumps",
    "encode_item",
    "head",
    "holds_bytes",
    "joined",
    "load_map",
    "loads",
    "loads_lenient",
    "read",
    "type_errors",
]
