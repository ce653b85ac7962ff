"""PersistentVolumeClaims of a StatefulSet's pods: their names, and who owns them by the retention policy.

With `whenDeleted: Delete` the StatefulSet owns the claims of its replicas, with `whenScaled: Delete` a pod beyond the
replicas owns its own claims: so they go when their owner goes.

Specified by: pkg/controller/statefulset/stateful_set_utils.go (isClaimOwnerUpToDate, updateClaimOwnerRefForSetAndPod).
"""

from __future__ import annotations

from typing import Any

from fakekube.controllers.owners import controller_reference

__all__ = [
    "claim_name",
    "has_stale_owner",
    "has_unexpected_controller",
    "made_claims",
    "owner_is_up_to_date",
    "retention_policy",
    "with_owner",
]

Object = dict[str, Any]


def claim_name(stateful_set: Object, template: Object, ordinal: int) -> str:
    """The name of the claim of a template for the pod with this ordinal."""
    return f"{template['metadata']['name']}-{stateful_set['metadata']['name']}-{ordinal}"


def made_claims(stateful_set: Object, ordinal: int) -> list[Object]:
    """The claims that the pod with this ordinal needs."""
    made = []
    matched = (stateful_set["spec"].get("selector") or {}).get("matchLabels") or {}
    for template in stateful_set["spec"].get("volumeClaimTemplates") or ():
        metadata = {
            **template["metadata"],
            "name": claim_name(stateful_set, template, ordinal),
            "namespace": stateful_set["metadata"]["namespace"],
            "labels": {**(template["metadata"].get("labels") or {}), **matched},
        }
        made.append({**template, "kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": metadata})
    return made


def retention_policy(stateful_set: Object) -> tuple[bool, bool]:
    """Are claims deleted with the StatefulSet, and when it is scaled down?"""
    policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return policy.get("whenDeleted") == "Delete", policy.get("whenScaled") == "Delete"


def _owners(claim: Object) -> list[Object]:
    return claim["metadata"].get("ownerReferences") or []


def _names(reference: Object, owner: Object) -> bool:
    """Does the reference name this object, be it of its uid or not?"""
    named = (owner["apiVersion"], owner["kind"], owner["metadata"]["name"])
    return (reference["apiVersion"], reference["kind"], reference["name"]) == named


def _is_owned_by(claim: Object, owner: Object) -> bool:
    return any(reference["uid"] == owner["metadata"].get("uid") for reference in _owners(claim))


def has_stale_owner(claim: Object, owner: Object) -> bool:
    """Is the claim owned by a former object of the owner's name?"""
    found = next((reference for reference in _owners(claim) if _names(reference, owner)), None)
    return found is not None and found["uid"] != owner["metadata"].get("uid")


def has_unexpected_controller(claim: Object, stateful_set: Object, pod: Object) -> bool:
    """Does somebody else control the claim, so that the retention policy cannot be carried out?"""
    if not any(retention_policy(stateful_set)):
        return False
    for reference in _owners(claim):
        ours = next((owner for owner in (stateful_set, pod) if _names(reference, owner)), None)
        if ours is not None:
            if reference["uid"] != ours["metadata"].get("uid"):
                return True
        elif reference.get("controller"):
            return True
    return False


def _expected_owners(stateful_set: Object, scaled_down: bool) -> tuple[bool, bool]:
    """Do the StatefulSet and the pod own the claims of a pod that is (or not) beyond the replicas?"""
    when_deleted, when_scaled = retention_policy(stateful_set)
    return when_deleted and not (when_scaled and scaled_down), when_scaled and scaled_down


def owner_is_up_to_date(claim: Object, stateful_set: Object, pod: Object, scaled_down: bool) -> bool:
    """Do the claim's owners follow the retention policy, or are they nothing that may be changed?"""
    if has_stale_owner(claim, stateful_set) or has_stale_owner(claim, pod):
        return True
    owned = _is_owned_by(claim, stateful_set), _is_owned_by(claim, pod)
    if has_unexpected_controller(claim, stateful_set, pod):
        return not any(owned)
    uids = {owner["metadata"].get("uid") for owner in (stateful_set, pod)}
    if any(one["uid"] in uids and not one.get("controller") for one in _owners(claim)):
        return False
    return owned == _expected_owners(stateful_set, scaled_down)


def with_owner(claim: Object, stateful_set: Object, pod: Object, scaled_down: bool) -> Object:
    """The claim with the owners that the retention policy wants."""
    references = [one for one in _owners(claim) if not (_names(one, stateful_set) or _names(one, pod))]
    if not has_unexpected_controller(claim, stateful_set, pod):
        by_set, by_pod = _expected_owners(stateful_set, scaled_down)
        references += [controller_reference(stateful_set)] * by_set + [controller_reference(pod)] * by_pod
    return {**claim, "metadata": {**claim["metadata"], "ownerReferences": references}}
