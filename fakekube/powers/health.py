"""The state of an object in one word and one line, for people: ready, waiting, bad or unknown.

Invariant: only the object itself decides; nothing is read.

Specified by: pkg/printers/internalversion/printers.go (printPod) for the reasons of pods; the conventions for conditions
(sig-architecture, api-conventions.md) for all other kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fakekube.base.objects import StoredObject

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
    for one in (*(status.get("initContainerStatuses") or ()), *containers):
        for kind in ("waiting", "terminated"):
            detail = (one.get("state") or {}).get(kind) or {}
            reason = detail.get("reason") or ""
            if reason and any(word in reason for word in _BAD_REASONS):
                return BAD, f"{reason} {of}"
            if kind == "waiting" and reason and phase != "Pending":
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
