"""What is said of a document that does not tell its kind and version, or tells one that nobody knows.

Specified by: k8s.io/apimachinery/pkg/runtime (error.go), pkg/runtime/serializer/json/meta.go.
"""

from __future__ import annotations

from typing import Any

from fakekube.golang.quoting import go_quote
from fakekube.patch.errors import type_mismatch

__all__ = ["not_an_object", "not_registered"]

#: The schemes of the API server and of its clients have the name of the line of Go that makes them.
_SCHEME = "pkg/runtime/scheme.go:111"
_TYPE_META = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'


def not_an_object(value: Any) -> str:
    """The document is a list, or a scalar."""
    return f"couldn't get version/kind; json parse error: {type_mismatch(value, f'Go value of type {_TYPE_META}')}"


def not_registered(kind: str, api_version: str) -> str:
    """There is no such kind."""
    return f"no kind {go_quote(kind)} is registered for version {go_quote(api_version)} in scheme {go_quote(_SCHEME)}"
