"""Reads kind and apiVersion of a document, with the errors for missing and unregistered ones.

Specified by: k8s.io/apimachinery/pkg/runtime (error.go), pkg/runtime/serializer/json/meta.go.
"""

from __future__ import annotations

from typing import Any

from fakekube.apimachinery.patch.errors import type_mismatch
from fakekube.base.golang.quoting import go_quote

#: The name of the scheme in error messages: the Go source line that creates it.
_SCHEME = "pkg/runtime/scheme.go:111"
_TYPE_META = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
_FAILED = "couldn't get version/kind; json parse error"


class TypeMetaError(ValueError):
    """A document is not an object, or its kind or apiVersion is not a string; has Go's error message."""


def type_meta(value: Any) -> tuple[str, str]:
    """Returns the kind and apiVersion of a document, "" for a missing one. Raises TypeMetaError."""
    if not isinstance(value, dict):
        raise TypeMetaError(f"{_FAILED}: {type_mismatch(value, f'Go value of type {_TYPE_META}')}")
    for name, item in value.items():
        if name in ("kind", "apiVersion") and not isinstance(item, str | None):
            raise TypeMetaError(f"{_FAILED}: {type_mismatch(item, f'Go struct field .{name} of type string')}")
    return value.get("kind") or "", value.get("apiVersion") or ""


def not_registered(kind: str, api_version: str) -> str:
    """Returns the error message for a kind that is not registered in the scheme."""
    return f"no kind {go_quote(kind)} is registered for version {go_quote(api_version)} in scheme {go_quote(_SCHEME)}"
