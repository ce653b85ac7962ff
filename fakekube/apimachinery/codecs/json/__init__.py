"""JSON with the behaviour of Go's encoding/json.

Specified by: encoding/json, sigs.k8s.io/json.
"""

from __future__ import annotations

from fakekube.apimachinery.codecs.json.codec import (
    Overflow,
    dumps,
    dumps_pretty,
    first_values,
    float_text,
    literals,
    loads,
    members,
    reread,
    untyped,
    utf8,
)

__all__ = [
    "Overflow",
    "dumps",
    "dumps_pretty",
    "first_values",
    "float_text",
    "literals",
    "loads",
    "members",
    "reread",
    "untyped",
    "utf8",
]
