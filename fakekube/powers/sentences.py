"""One sentence for a change, for those who watch a cluster: who changed what, and where it can be told, why.

    replicaset-controller created the Pod web-5d79-vh5b7 of the ReplicaSet web-5d79
    horizontal-pod-autoscaler changed spec.replicas of the Deployment web from 3 to 5

Invariant: a sentence has at most `MAX_LENGTH` characters, and contains values of the object as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from fakekube.base.objects import StoredObject
from fakekube.powers.differences import ABSENT, Difference

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
