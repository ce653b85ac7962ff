"""What people read of a cluster: the state of an object in one word and one line, and one sentence for a change.

    ready, waiting, bad or unknown
    replicaset-controller created the Pod web-5d79-vh5b7 of the ReplicaSet web-5d79
    horizontal-pod-autoscaler changed spec.replicas of the Deployment web from 3 to 5

A sentence says who changed what, and where it can be told, why.

Invariants: only the object itself decides about its state; nothing is read. A sentence has at most `MAX_LENGTH` characters, and
contains values of the object as JSON.

Specified by: pkg/printers/internalversion/printers.go (printPod) for the reasons of pods; the conventions for conditions
(sig-architecture, api-conventions.md) for all other kinds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from fakekube.base.objects import StoredObject
from fakekube.powers.differences import ABSENT, Difference

OK, WAITING, BAD, UNKNOWN = "ok", "waiting", "bad", "unknown"

_MAX_TEXT: Final = 200
#: Conditions that say in one word whether an object is in order, the most telling first.
_CONDITIONS: Final = ("Ready", "Available", "Synced", "Established", "Complete", "Succeeded")
_BAD_CONDITIONS: Final = ("Failed", "Stalled", "Degraded")
_BAD_REASONS: Final = ("BackOff", "Error", "Err", "Failed", "OOMKilled", "Invalid", "Unschedulable", "Evicted")


def health(bucket: str, obj: StoredObject) -> tuple[str, str]:
    """Returns the state (`ok`, `waiting`, `bad` or `unknown`) and a short text.

    Args:
        bucket: of the object, such as `deployments.apps`.
        obj: the object as stored.
    """
    status = obj.get("status")
    read = _KINDS.get(bucket)
    try:
        state, text = read(obj, status if isinstance(status, dict) else {}) if read else _by_conditions(status)
    except (TypeError, AttributeError, ValueError, KeyError):  # an object of a custom resource may have any shape
        state, text = UNKNOWN, "-"
    if (obj.get("metadata") or {}).get("deletionTimestamp"):
        return WAITING, f"deleting ({text})" if text != "-" else "deleting"
    return state, text[:_MAX_TEXT]


def _by_conditions(status: Any) -> tuple[str, str]:
    if not isinstance(status, dict):
        return UNKNOWN, "-"
    conditions = status.get("conditions")
    found = (
        {one["type"]: one for one in conditions if isinstance(one, dict) and "type" in one}
        if isinstance(conditions, list)
        else {}
    )
    for name in _BAD_CONDITIONS:
        if found.get(name, {}).get("status") == "True":
            return BAD, _describe(found[name])
    for name in _CONDITIONS:
        if name in found:
            value = found[name].get("status")
            return (OK, name) if value == "True" else (WAITING if value == "Unknown" else BAD, _describe(found[name]))
    phase = status.get("phase")
    if isinstance(phase, str) and phase:
        return (BAD if phase in ("Failed", "Lost", "Error") else OK, phase)
    return UNKNOWN, "-"


def _describe(condition: Mapping[str, Any]) -> str:
    reason = condition.get("reason") or condition.get("message") or ""
    shown = condition["type"] if condition.get("status") == "True" else f"not {condition['type']}"
    return f"{shown}: {reason}" if reason else str(shown)


def _replicas(obj: StoredObject, status: StoredObject) -> tuple[str, str]:
    wanted: int = obj.get("spec", {}).get("replicas", 1)
    ready: int = status.get("readyReplicas", 0)
    conditions = {one.get("type"): one for one in status.get("conditions") or ()}
    for name, value in (("ReplicaFailure", "True"), ("Progressing", "False")):
        one = conditions.get(name)
        if one is not None and one.get("status") == value:
            return BAD, f"{ready}/{wanted} ready: {one.get('reason', name)}"
    observed = status.get("observedGeneration", 0) >= (obj["metadata"].get("generation") or 0)
    updated = status.get("updatedReplicas", wanted)
    if ready == wanted and observed and updated >= wanted and status.get("replicas", ready) == wanted:
        return OK, f"{ready}/{wanted} ready"
    return WAITING, f"{ready}/{wanted} ready" + (f", {updated} updated" if updated < wanted else "")


def _daemon_set(_obj: StoredObject, status: StoredObject) -> tuple[str, str]:
    wanted, ready = status.get("desiredNumberScheduled", 0), status.get("numberReady", 0)
    return OK if ready == wanted else WAITING, f"{ready}/{wanted} ready"


def _pod(obj: StoredObject, status: StoredObject) -> tuple[str, str]:
    containers = status.get("containerStatuses") or []
    ready = sum(1 for one in containers if one.get("ready"))
    of = f"{ready}/{len(obj.get('spec', {}).get('containers') or containers)}"
    phase = status.get("reason") or status.get("phase") or "Pending"
    for kind, reason in _reasons_of_containers(status):
        if any(word in reason for word in _BAD_REASONS):
            return BAD, f"{reason} {of}"
        if kind == "waiting" and phase != "Pending":
            phase = reason
    if phase == "Running":
        return (OK, f"Running {of}") if ready == len(containers) and containers else (WAITING, f"Running {of}")
    if phase == "Succeeded":
        return OK, "Succeeded"
    if phase in ("Failed", "Evicted"):
        return BAD, str(phase)
    for one in status.get("conditions") or ():
        if one.get("type") == "PodScheduled" and one.get("status") == "False":
            return BAD, str(one.get("reason") or "not scheduled")
    return WAITING, f"{phase} {of}" if containers else str(phase)


def _reasons_of_containers(status: StoredObject) -> Iterator[tuple[str, str]]:
    """Yields why containers wait or have ended: "waiting" or "terminated", and the reason."""
    for one in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        for kind in ("waiting", "terminated"):
            reason = ((one.get("state") or {}).get(kind) or {}).get("reason")
            if reason:
                yield kind, reason


def _job(obj: StoredObject, status: StoredObject) -> tuple[str, str]:
    done, wanted = status.get("succeeded", 0), obj.get("spec", {}).get("completions", 1)
    for one in status.get("conditions") or ():
        if one.get("status") == "True" and one.get("type") == "Failed":
            return BAD, f"failed: {one.get('reason', '')}".rstrip(": ")
        if one.get("status") == "True" and one.get("type") in ("Complete", "Suspended"):
            return (OK if one["type"] == "Complete" else WAITING), f"{one['type'].lower()} {done}/{wanted}"
    failed = f", {status['failed']} failed" if status.get("failed") else ""
    return WAITING, f"{done}/{wanted} done, {status.get('active', 0)} active{failed}"


def _node(obj: StoredObject, status: StoredObject) -> tuple[str, str]:
    ready: StoredObject = next((one for one in status.get("conditions") or () if one.get("type") == "Ready"), {})
    cordoned = ", cordoned" if obj.get("spec", {}).get("unschedulable") else ""
    return (OK, f"Ready{cordoned}") if ready.get("status") == "True" else (BAD, f"not ready{cordoned}")


def _phase(*good: str) -> Callable[[StoredObject, StoredObject], tuple[str, str]]:
    def read(_obj: StoredObject, status: StoredObject) -> tuple[str, str]:
        phase = status.get("phase") or "-"
        return (OK if phase in good else BAD if phase in ("Lost", "Failed") else WAITING), phase

    return read


#: Bucket → how its objects tell their state; all other kinds by their conditions.
_KINDS: Mapping[str, Callable[[StoredObject, StoredObject], tuple[str, str]]] = {
    "deployments.apps": _replicas,
    "replicasets.apps": _replicas,
    "statefulsets.apps": _replicas,
    "replicationcontrollers": _replicas,
    "daemonsets.apps": _daemon_set,
    "pods": _pod,
    "jobs.batch": _job,
    "nodes": _node,
    "namespaces": _phase("Active"),
    "persistentvolumes": _phase("Available", "Bound"),
    "persistentvolumeclaims": _phase("Bound"),
}


# --- One sentence for a change ----------------------------------------------------------------------------------------


MAX_LENGTH: Final = 300
_MAX_VALUE: Final = 40

#: Reason of a change without a request → who it was.
_REASONS: Final = {
    "load": "Loading a state",
    "restore": "Restoring a snapshot",
    "replay": "The replay",
    "initial": "The start of the cluster",
    "cluster": "The API server",
}


def sentence(
    *,
    actor: str,
    reason: str,
    type_: str,
    kind: str,
    before: StoredObject | None,
    after: StoredObject | None,
    changed: Sequence[Difference],
    subresource: str = "",
) -> str:
    """Returns a sentence without a period.

    Args:
        actor: who sent the request; "" if there was none.
        reason: why there was a change without a request.
        type_: ADDED, MODIFIED or DELETED.
        kind: of the object.
        before, after: the object, as far as it is known.
        changed: its differences.
        subresource: of the request, such as `status`.
    """
    obj: StoredObject = after or before or {}
    who = actor or _REASONS.get(reason, "Somebody")
    what = f"the {kind} {(obj.get('metadata') or {}).get('name', '')}"
    return _shorten(f"{who} {_activity(type_, what, obj, changed, subresource)}", MAX_LENGTH)


def _activity(type_: str, what: str, obj: StoredObject, changed: Sequence[Difference], subresource: str) -> str:
    if type_ == "ADDED":
        return f"created {what}{_of_owner(obj)}"
    if type_ == "DELETED":
        return f"deleted {what}{_of_owner(obj)}"
    told = {one.path: one for one in changed}
    if "metadata.deletionTimestamp" in told and told["metadata.deletionTimestamp"].old is ABSENT:
        waits = (obj.get("metadata") or {}).get("finalizers")
        held = f"; it waits for {', '.join(map(str, waits))}" if waits else ""
        return f"marked {what} for deletion{held}"
    if "spec.nodeName" in told and told["spec.nodeName"].old is ABSENT:
        return f"assigned {what} to the node {told['spec.nodeName'].new}"
    phase = told.get("status.phase")
    if phase is not None:
        return f"set the phase of {what} to {phase.new}"
    if not changed:
        return f"wrote {what} without a change"
    if len(changed) == 1:
        return _one_path(changed[0], what)
    names = ", ".join(one.path for one in changed[:3])
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    return f"{'reported' if subresource == 'status' else 'changed'} {names}{more} of {what}"


def _one_path(one: Difference, what: str) -> str:
    if one.old is ABSENT:
        return f"set {one.path} of {what} to {_value(one.new)}"
    if one.new is ABSENT:
        return f"removed {one.path} of {what}"
    return f"changed {one.path} of {what} from {_value(one.old)} to {_value(one.new)}"


def _of_owner(obj: StoredObject) -> str:
    references = (obj.get("metadata") or {}).get("ownerReferences")
    for one in references if isinstance(references, list) else ():
        if isinstance(one, dict) and one.get("controller"):
            return f" of the {one.get('kind')} {one.get('name')}"
    return ""


def _value(value: Any) -> str:
    try:
        return _shorten(json.dumps(value, ensure_ascii=False), _MAX_VALUE)
    except (RecursionError, TypeError):
        return "…"


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
