"""JSON merge patches.

The semantics are RFC 7386 with one deviation of evanphx/json-patch: if a value replaces something other than an
object, the nulls within its objects are dropped even inside lists; if a list replaces an object, they are kept.

Invariant: neither the document nor the patch is changed; the result shares with both. Objects that both have
are merged with sorted keys, as the real server prints them.

Specified by: RFC 7386, gopkg.in/evanphx/json-patch.v4/merge.go,
k8s.io/apiserver/pkg/endpoints/handlers/patch.go.
"""

from __future__ import annotations

from typing import Any, Final

from fakekube.apimachinery.errors.status import bad_request
from fakekube.base.golang.strconv import UNTYPED_OBJECT, json_kind, unmarshal_error

#: The message about a body that is not a merge patch, unless strict decoding has found its own words before.
INVALID: Final = "Invalid JSON Patch"


def decode_merge_patch(patch: Any, *, strict: bool) -> Any:
    """Checks that a parsed body is a merge patch.

    Args:
        strict: fieldValidation is Warn or Strict: it must be an object. Otherwise it may be a list, too.

    Raises:
        StatusError: 400 if it is not.
    """
    if strict and patch is not None and not isinstance(patch, dict):
        raise bad_request(f"error decoding patch: {unmarshal_error(json_kind(patch), UNTYPED_OBJECT)}")
    if not isinstance(patch, dict | list):
        raise bad_request(INVALID)
    return patch


def apply_merge_patch(document: dict[str, Any], patch: Any) -> Any:
    """Applies the patch to `document`. Returns an object, or the patch itself if that is a list."""
    return _merge(document, patch) if isinstance(patch, dict) else _prune(patch)


def _merge(document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    merged = dict(document)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
            continue
        current = document.get(key)
        if not isinstance(current, dict):
            merged[key] = _prune(value)
        elif isinstance(value, dict):
            merged[key] = _merge(current, value)
        else:
            merged[key] = value
    return dict(sorted(merged.items()))


def _prune(value: Any) -> Any:
    """Drops the null members of objects; null items of lists are kept."""
    if isinstance(value, dict):
        return {key: _prune(item) for key, item in sorted(value.items()) if item is not None}
    if isinstance(value, list):
        return [_prune(item) for item in value]
    return value
