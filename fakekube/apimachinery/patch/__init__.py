"""Applies patches to objects: JSON patch, merge patch, strategic merge patch, and server-side apply.

The functions take plain objects and the schema of their type, and return plain objects; they do not depend on HTTP or
the store. Invariant: arguments are never changed; results share unchanged parts with them. Errors are the
`StatusError`s that the client gets.
"""

from __future__ import annotations

from typing import Final

from fakekube.apimachinery.errors import StatusError
from fakekube.apimachinery.errors.status import GENERIC_MESSAGES, generic

# --- Errors ------------------------------------------------------------------------------------------------------------
# Specified by: k8s.io/apiserver/pkg/endpoints/handlers/patch.go.


def unprocessable() -> StatusError:
    """Returns a 422 without causes: the patch is well-formed but cannot be applied to the object."""
    return StatusError(422, "Invalid", GENERIC_MESSAGES[422], {})


def uninterpreted_error(message: str) -> StatusError:
    """Returns a 500 without a reason: an error that is not an API status in the real server."""
    return generic(500, "", message)


# --- Media types -----------------------------------------------------------------------------------------------------
# Specified by: k8s.io/apimachinery/pkg/types/patch.go (PatchType).


JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_YAML: Final = "application/apply-patch+yaml"
APPLY_CBOR: Final = "application/apply-patch+cbor"
