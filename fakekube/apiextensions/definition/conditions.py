"""The state machine of a definition as functions from one state to the next, and the approval of APIs of protected groups.

`next_state` returns what the controllers of the real server would write next: the condition of the API approval, the accepted
names and NamesAccepted, then Established; for a terminating definition, the condition Terminating.

Specified by: k8s.io/apiextensions-apiserver/pkg/controller/status (naming_controller.go), establish, finalizer;
k8s.io/apiextensions-apiserver/pkg/apihelpers (GetAPIApprovalState), pkg/apis/apiextensions/validation,
pkg/controller/apiapproval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import partial
from typing import Any, Final

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import invalid, required
from fakekube.apimachinery.schema.trees import are_equal
from fakekube.apis.validation.objectmeta import condition, has_condition, with_condition
from fakekube.apis.validation.webhooks import has_valid_ca_bundle
from fakekube.base.golang.strconv import go_quote
from fakekube.base.golang.strings import aggregate_errors
from fakekube.base.golang.urls import parse_request_uri
from fakekube.base.objects import Object, Part, StoredObject

#: The finalizer of definitions whose objects are to be deleted first.
FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"

#: The annotation with the approval of an API of a protected group: a URL, or a reason that begins with "unapproved".
ANNOTATION: Final = "api-approved.kubernetes.io"

Change = Callable[[Object], Object]
"""Returns the next state of a definition."""


def is_true(obj: Object, type_: str) -> bool:
    """Reports whether a definition has a condition that is true (IsCRDConditionTrue)."""
    return has_condition(obj.get("status") or {}, type_)


def is_served(obj: Object) -> bool:
    """Reports whether the versions of a definition are served."""
    return is_true(obj, "NamesAccepted") or is_true(obj, "Established")


def is_same_serving(one: Object, other: Object) -> bool:
    """Reports whether two states of a definition are served the same way."""
    return is_same_storage(one, other) and is_served(one) == is_served(other) and is_ending(one) == is_ending(other)


def is_same_storage(one: Object, other: Object) -> bool:
    """Reports whether two states of a definition have the same storage (updateCustomResourceDefinition)."""
    return (
        are_equal(one.get("spec"), other.get("spec"))
        and one["metadata"].get("uid") == other["metadata"].get("uid")
        and accepted_names(one) == accepted_names(other)
    )


def is_ending(obj: Object) -> bool:
    """Reports whether a definition is terminating, with objects that are still to be deleted."""
    meta = obj["metadata"]
    return "deletionTimestamp" in meta and FINALIZER in meta.get("finalizers", ())


def is_released(obj: Object) -> bool:
    """Reports whether a definition is terminating and has no finalizers."""
    return "deletionTimestamp" in obj["metadata"] and not obj["metadata"].get("finalizers")


def next_state(obj: Object, others: Iterable[Object], now: str) -> Change | None:
    """Returns the next state to write; None if there is none.

    Args:
        obj: the definition.
        others: all definitions, of which those of the same group have names that it cannot have.
        now: the time of conditions that change, as objects have it.
    """
    change = _sync_approval(obj, now) or _sync_names(obj, others, now)
    if change is not None:
        return change
    if is_ending(obj):
        return _begin_deletion(now) if condition(obj, "Terminating").get("reason") == "InstanceDeletionPending" else None
    if is_true(obj, "NamesAccepted") and not is_true(obj, "Established"):
        return _sync_established(obj, now)
    return None


def _sync_established(obj: Object, now: str) -> Change | None:
    """Sets Established once the names are accepted; an invalid CA bundle of a conversion webhook prevents it."""
    status, reason, message = "True", "InitialNamesAccepted", "the initial names have been accepted"
    if not has_valid_ca_bundle(obj["spec"]):
        status, reason, message = "False", "InvalidCABundle", "The conversion webhook CABundle is invalid"
    if condition(obj, "Established").get("reason") == reason:
        return None
    return partial(with_condition, type_="Established", status=status, reason=reason, message=message, now=now)


_DELETION_FAILED = "InstanceDeletionFailed"
#: Why the first list of objects fails if it is also the first request for them: their watch cache begins with it.
UNINITIALISED: Final = "storage is (re)initializing"


def _begin_deletion(now: str) -> Change:
    return _terminating("InstanceDeletionInProgress", "CustomResource deletion is in progress", now)


def sync_deletion(obj: Object, problem: str, now: str) -> Change | None:
    """Returns the state after an attempt to list the objects of a terminating definition: its failure, or that it goes on."""
    known = condition(obj, "Terminating")
    if problem:
        reason, message = _DELETION_FAILED, f"could not list instances: {problem}"
        is_known = (known.get("reason"), known.get("message")) == (reason, message)
        return None if is_known else _terminating(reason, message, now)
    return _begin_deletion(now) if has_failed_deletion(obj) else None


def has_failed_deletion(obj: Object) -> bool:
    """Reports whether the objects of a terminating definition could not be listed."""
    return bool(condition(obj, "Terminating").get("reason") == _DELETION_FAILED)


def _terminating(reason: str, message: str, now: str) -> Change:
    return partial(with_condition, type_="Terminating", status="True", reason=reason, message=message, now=now)


def finalize(obj: Object, now: str) -> Object:
    """Returns the state of a terminating definition whose objects are deleted."""
    reason, message = "InstanceDeletionCompleted", "removed all instances"
    if not is_true(obj, "Established"):
        reason, message = "NeverEstablished", "resource was never established"
    obj = with_condition(obj, type_="Terminating", status="False", reason=reason, message=message, now=now)
    finalizers = [name for name in obj["metadata"].get("finalizers", ()) if name != FINALIZER]
    meta = {name: value for name, value in obj["metadata"].items() if name != "finalizers"}
    if finalizers:
        meta["finalizers"] = finalizers
    return {**obj, "metadata": meta}


# --- Names ------------------------------------------------------------------------------------------------------------


def accepted_names(obj: Object) -> Part:
    """Returns the accepted names of a definition; empty if there are none yet."""
    accepted: Part = (obj.get("status") or {}).get("acceptedNames") or {}
    return accepted


def _sync_names(obj: Object, others: Iterable[Object], now: str) -> Change | None:
    """Accepts the names that are free; returns None if nothing changes."""
    if obj["spec"]["names"] == accepted_names(obj):
        return None
    accepted, reason, message = _calculate_names(obj, others)
    names_accepted = ("False" if message else "True", reason, message or "no conflicts found")
    if accepted == accepted_names(obj) and names_accepted == _content(condition(obj, "NamesAccepted")):
        return None

    def change(old: Object) -> Object:
        new = {**old, "status": {**(old.get("status") or {}), "acceptedNames": accepted}}
        status, reason, text = names_accepted
        new = with_condition(new, type_="NamesAccepted", status=status, reason=reason, message=text, now=now)
        if is_true(new, "Established") or (message and condition(new, "Established")):
            return new
        reason, text = "Installing", "the initial names have been accepted"
        if message:
            reason, text = "NotAccepted", "not all names are accepted"
        return with_condition(new, type_="Established", status="False", reason=reason, message=text, now=now)

    return change


def _content(found: Mapping[str, str]) -> tuple[str | None, str | None, str | None]:
    """Returns status, reason and message of a condition."""
    return found.get("status"), found.get("reason"), found.get("message")


#: The names of a definition that no other one of the group may have → the reason of a conflict.
_REASONS: Final = {
    "plural": "PluralConflict",
    "singular": "SingularConflict",
    "shortNames": "ShortNamesConflict",
    "kind": "KindConflict",
    "listKind": "ListKindConflict",
}


def _calculate_names(obj: Object, others: Iterable[Object]) -> tuple[dict[str, Any], str, str]:
    """Returns the names that are free, the reason, and the message of the last conflict ("" if there is none).

    A name that is not free stays as it was accepted before (calculateNamesAndConditions).
    """
    used = {name for other in others if other["spec"]["group"] == obj["spec"]["group"] for name in names_of(other)}
    wanted, accepted = obj["spec"]["names"], dict(accepted_names(obj))
    reason, message = "NoConflicts", ""
    for field, conflict in _REASONS.items():
        space = "kind" if field in ("kind", "listKind") else "resource"
        names, own = _as_list(wanted.get(field)), _as_list(accepted.get(field))
        conflicts = [name for name in names if name not in own and (space, name) in used]
        if conflicts:
            reason, message = conflict, aggregate_errors(f'"{name}" is already in use' for name in conflicts)
        elif wanted.get(field):
            accepted[field] = wanted[field]
        else:
            accepted.pop(field, None)
    if wanted.get("categories"):
        accepted["categories"] = wanted["categories"]
    else:
        accepted.pop("categories", None)
    return accepted, reason, message


def _as_list(names: str | list[str] | None) -> list[str]:
    return [names] if isinstance(names, str) else names or []


def names_of(obj: Object) -> set[tuple[str, str]]:
    """Returns the names of a definition, each with its namespace: resources or kinds."""
    accepted = accepted_names(obj)
    resources = {accepted.get("plural", ""), accepted.get("singular", ""), *(accepted.get("shortNames") or ())}
    kinds = {accepted.get("kind", ""), accepted.get("listKind", "")}
    return {*(("resource", name) for name in resources if name), *(("kind", name) for name in kinds if name)}


# --- The approval of APIs of protected groups -------------------------------------------------------------------------

_CONDITION: Final = "KubernetesAPIApprovalPolicyConformant"
_PROPOSAL: Final = "https://github.com/kubernetes/enhancements/pull/1111"
_PROTECTED: Final = ("k8s.io", "kubernetes.io")
_WANTED: Final = f"protected groups must have approval annotation {go_quote(ANNOTATION)}"


class _State(Enum):
    """The approval state, with the status and the reason of the condition."""

    MISSING = ("False", "MissingAnnotation")
    BYPASSED = ("False", "UnapprovedAnnotation")
    APPROVED = ("True", "ApprovedAnnotation")
    INVALID = ("False", "InvalidAnnotation")


def approval_errors(definition: StoredObject, old: StoredObject | None) -> Iterator[FieldError]:
    """Validates the annotation; an annotation that was invalid before may stay invalid."""
    if not _is_protected(definition):
        return
    state, path = _state(_annotation(definition)), f"metadata.annotations[{ANNOTATION}]"
    if old is not None and _state(_annotation(old)) is state:
        return
    if state is _State.MISSING:
        yield required(path, _explain_state(state, ""))
    elif state is _State.INVALID:
        yield invalid(path, _annotation(definition), _explain_state(state, ""))


def _sync_approval(definition: Object, now: str) -> Change | None:
    """Sets the condition KubernetesAPIApprovalPolicyConformant of a definition in a protected group."""
    if not _is_protected(definition):
        return None
    annotation = _annotation(definition)
    state = _state(annotation)
    status, reason = state.value
    message = _explain_state(state, annotation)
    if (status, reason, message) == _content(condition(definition, _CONDITION)):
        return None
    return partial(with_condition, type_=_CONDITION, status=status, reason=reason, message=message, now=now)


def _is_protected(definition: StoredObject) -> bool:
    group = (definition.get("spec") or {}).get("group", "")
    return any(group == domain or group.endswith(f".{domain}") for domain in _PROTECTED)


def _annotation(definition: StoredObject) -> str:
    return str((definition["metadata"].get("annotations") or {}).get(ANNOTATION, ""))


def _state(annotation: str) -> _State:
    if not annotation:
        return _State.MISSING
    if annotation.startswith("unapproved"):
        return _State.BYPASSED
    try:
        url = parse_request_uri(annotation)
    except ValueError:
        return _State.INVALID
    return _State.APPROVED if url.scheme and url.host else _State.INVALID


def _explain_state(state: _State, annotation: str) -> str:
    return {
        _State.MISSING: f"{_WANTED}, see {_PROPOSAL}",
        _State.BYPASSED: f"not approved: {go_quote(annotation)}",
        _State.APPROVED: f"approved in {annotation}",
        _State.INVALID: f'{_WANTED} with either a URL or a reason starting with "unapproved", see {_PROPOSAL}',
    }[state]
