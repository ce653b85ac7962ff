"""The AdmissionReview for a webhook, and the verification of its response.

Kind and apiVersion of a response are read with the errors for missing and unregistered ones.

Specified by: k8s.io/apiserver/pkg/admission/plugin/webhook/request/admissionreview.go; k8s.io/apimachinery/pkg/runtime
(error.go), pkg/runtime/serializer/json/meta.go.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fakekube.apimachinery.errors.status import TYPE_META, uninterpretable
from fakekube.apis.rest.resource import GVK, Resource
from fakekube.apiserver.admission.chain import Attributes
from fakekube.apiserver.admission.matching import Match, VersionedAttributes, namespace_of
from fakekube.base.golang.strconv import go_quote, json_kind, unmarshal_error
from fakekube.base.objects import Object


class TypeMetaError(ValueError):
    """A document is not an object, or its kind or apiVersion is not a string; has Go's error message."""


def type_meta(value: Any) -> tuple[str, str]:
    """Returns the kind and apiVersion of a document, "" for a missing one. Raises TypeMetaError."""
    if not isinstance(value, dict):
        raise TypeMetaError(uninterpretable(unmarshal_error(json_kind(value), TYPE_META)))
    for name, item in value.items():
        if name in ("kind", "apiVersion") and not isinstance(item, str | None):
            raise TypeMetaError(uninterpretable(unmarshal_error(json_kind(item), "string", f".{name}")))
    return value.get("kind") or "", value.get("apiVersion") or ""


_GROUP, _KIND = "admission.k8s.io", "AdmissionReview"
_VERIFIED = "v1"


class InvalidResponseError(Exception):
    """The response of a webhook is invalid; has the message of kube-apiserver."""


@dataclass(slots=True, frozen=True)
class Response:
    """The verified response of a webhook."""

    allowed: bool
    result: Object | None
    """The Status of a denial."""
    patch: bytes
    patch_type: str
    audit_annotations: Mapping[str, str]
    warnings: Sequence[str]


# --- The request ------------------------------------------------------------------------------------------------------


def review_of(versioned: VersionedAttributes, match: Match, version: str, uid: str) -> Object:
    """Builds the AdmissionReview of a request in a version of AdmissionReview."""
    attributes = versioned.attributes
    request: dict[str, Any] = {"uid": uid, "kind": _kind(match.kind), "resource": _resource(match.resource)}
    subresource = {"subResource": attributes.subresource} if attributes.subresource else {}
    request |= subresource
    request |= {"requestKind": _kind(attributes.kind), "requestResource": _resource(attributes.resource)}
    request |= {"requestSubResource": attributes.subresource} if subresource else {}
    name, namespace = attributes.name, namespace_of(attributes)
    request |= {field: text for field, text in (("name", name), ("namespace", namespace)) if text}
    request |= {
        "operation": str(attributes.operation),
        "userInfo": _user(attributes),
        "object": versioned.object,
        "oldObject": versioned.old,
        "dryRun": attributes.context.dry_run,
        "options": attributes.options or None,
    }
    return {"kind": _KIND, "apiVersion": f"{_GROUP}/{version}", "request": request}


def _kind(gvk: GVK) -> Object:
    return {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}


def _resource(resource: Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}


def _user(attributes: Attributes) -> Object:
    context = attributes.context
    user: dict[str, Any] = {"username": context.user, "uid": context.uid, "groups": list(context.groups)}
    user = {field: value for field, value in user.items() if value}
    if context.extra:
        user["extra"] = {key: list(context.extra[key]) for key in sorted(context.extra)}
    return user


# --- The response -----------------------------------------------------------------------------------------------------


def response_in(review: Object, version: str, uid: str, *, mutating: bool) -> Response:
    """Verifies the review that a webhook returned, and returns its response.

    Args:
        review: the returned review, decoded as the type of the one that was sent.
        version: the version of the review that was sent; v1beta1 responses are not verified.
        uid: the UID of the request.
        mutating: whether a patch is allowed.

    Raises:
        InvalidResponseError: the response is invalid, or belongs to another request.
    """
    response = review.get("response")
    if response is None:
        raise InvalidResponseError("webhook response was absent")
    patch, patch_type = b64decode(response.get("patch") or ""), response.get("patchType")
    if version == _VERIFIED:
        _verify(review, response, uid)
        _verify_patch(patch, patch_type, mutating=mutating)
    elif patch:
        patch_type = "JSONPatch"
    return Response(
        bool(response.get("allowed")),
        response.get("status"),
        patch if mutating else b"",
        patch_type or "",
        response.get("auditAnnotations") or {},
        response.get("warnings") or (),
    )


def _verify(review: Object, response: Object, uid: str) -> None:
    if response.get("uid", "") != uid:
        raise InvalidResponseError(f"expected response.uid={go_quote(uid)}, got {go_quote(response.get('uid', ''))}")
    wanted = f"{_GROUP}/{_VERIFIED}, Kind={_KIND}"
    api_version, kind = review.get("apiVersion", ""), review.get("kind", "")
    found = f"{api_version if '/' in api_version else f'/{api_version}'}, Kind={kind}"
    if found != wanted:
        raise InvalidResponseError(f"expected webhook response of {wanted}, got {found}")


def _verify_patch(patch: bytes, patch_type: str | None, *, mutating: bool) -> None:
    if not mutating:
        for field, given in (("patch", bool(patch)), ("patchType", patch_type is not None)):
            if given:
                raise InvalidResponseError(f"validating webhook may not return response.{field}")
        return
    if patch and patch_type is None:
        raise InvalidResponseError("webhook returned response.patch but not response.patchType")
    if not patch and patch_type is not None:
        raise InvalidResponseError("webhook returned response.patchType but not response.patch")
    if patch_type == "":
        raise InvalidResponseError('webhook returned invalid response.patchType of ""')
