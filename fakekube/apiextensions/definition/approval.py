"""Validates the API approval annotation of definitions in protected groups (*.k8s.io, *.kubernetes.io).

Specified by: k8s.io/apiextensions-apiserver/pkg/apihelpers (GetAPIApprovalState), pkg/apis/apiextensions/validation,
pkg/controller/apiapproval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import invalid, required
from fakekube.base.golang.strconv import go_quote
from fakekube.base.golang.urls import parse_url

__all__ = ["ANNOTATION", "CONDITION", "approval_errors", "conformance"]

CONDITION = "KubernetesAPIApprovalPolicyConformant"

Definition = Mapping[str, Any]

ANNOTATION = "api-approved.kubernetes.io"
_PROPOSAL = "https://github.com/kubernetes/enhancements/pull/1111"
_PROTECTED = ("k8s.io", "kubernetes.io")
_WANTED = f"protected groups must have approval annotation {go_quote(ANNOTATION)}"


class _State(Enum):
    """The approval state, with the status and the reason of the condition."""

    MISSING = ("False", "MissingAnnotation")
    BYPASSED = ("False", "UnapprovedAnnotation")
    APPROVED = ("True", "ApprovedAnnotation")
    INVALID = ("False", "InvalidAnnotation")


def approval_errors(definition: Definition, old: Definition | None) -> Iterator[FieldError]:
    """Validates the annotation; an annotation that was invalid before may stay invalid."""
    if not _is_protected(definition):
        return
    state, path = _state(_annotation(definition)), f"metadata.annotations[{ANNOTATION}]"
    if old is not None and _state(_annotation(old)) is state:
        return
    if state is _State.MISSING:
        yield required(path, _explained(state, ""))
    elif state is _State.INVALID:
        yield invalid(path, _annotation(definition), _explained(state, ""))


def conformance(definition: Definition) -> tuple[str, str, str] | None:
    """Returns status, reason and message of the condition; None for groups that are not protected."""
    if not _is_protected(definition):
        return None
    annotation = _annotation(definition)
    state = _state(annotation)
    return (*state.value, _explained(state, annotation))


def _is_protected(definition: Definition) -> bool:
    group = (definition.get("spec") or {}).get("group", "")
    return any(group == domain or group.endswith(f".{domain}") for domain in _PROTECTED)


def _annotation(definition: Definition) -> str:
    return str((definition["metadata"].get("annotations") or {}).get(ANNOTATION, ""))


def _state(annotation: str) -> _State:
    if not annotation:
        return _State.MISSING
    if annotation.startswith("unapproved"):
        return _State.BYPASSED
    try:
        url = parse_url(annotation)
    except ValueError:
        return _State.INVALID
    return _State.APPROVED if url.scheme and url.host else _State.INVALID


def _explained(state: _State, annotation: str) -> str:
    return {
        _State.MISSING: f"{_WANTED}, see {_PROPOSAL}",
        _State.BYPASSED: f"not approved: {go_quote(annotation)}",
        _State.APPROVED: f"approved in {annotation}",
        _State.INVALID: f'{_WANTED} with either a URL or a reason starting with "unapproved", see {_PROPOSAL}',
    }[state]
