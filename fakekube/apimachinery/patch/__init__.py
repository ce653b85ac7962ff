"""Applies patches to objects: JSON patch, merge patch, strategic merge patch, and server-side apply.

The functions take plain objects and the schema of their type, and return plain objects; they do not depend on HTTP or
the store. Invariant: arguments are never changed; results share unchanged parts with them. Errors are the
`StatusError`s that the client gets.
"""

from __future__ import annotations

from typing import Any, Final

from fakekube.apimachinery.errors import StatusError
from fakekube.apimachinery.errors.status import GENERIC_MESSAGES, generic

# --- Errors ------------------------------------------------------------------------------------------------------------
# Specified by: k8s.io/apiserver/pkg/endpoints/handlers/patch.go; the type errors are those of Go's
# encoding/json.


def unprocessable() -> StatusError:
    """Returns a 422 without causes: the patch is well-formed but cannot be applied to the object."""
    return StatusError(422, "Invalid", GENERIC_MESSAGES[422], {})


def uninterpreted_error(message: str) -> StatusError:
    """Returns a 500 without a reason: an error that is not an API status in the real server."""
    return generic(500, "", message)


def type_mismatch(value: Any, wanted: str) -> str:
    """Returns Go's error for a JSON value that does not fit a Go type, such as `Go value of type []string`."""
    return f"json: cannot unmarshal {_go_kind(value)} into {wanted}"


def _go_kind(value: Any) -> str:
    """Returns the name of a value's JSON type in encoding/json."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, dict):
        return "object"
    if isinstance(value, list):
        return "array"
    if isinstance(value, str):
        return "string"
    return "number"


# --- Media types -----------------------------------------------------------------------------------------------------
# Specified by: k8s.io/apimachinery/pkg/types/patch.go (PatchType).


JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_YAML: Final = "application/apply-patch+yaml"
APPLY_CBOR: Final = "application/apply-patch+cbor"
