"""PersistentVolumeClaims of a StatefulSet's pods: names, and the owner references of the retention policy.

With `whenDeleted: Delete` the StatefulSet owns the claims of its replicas, and with `whenScaled: Delete` a pod with an ordinal
beyond the replicas owns its claims. The garbage collector deletes the claims with their owner.

Specified by: pkg/controller/statefulset/stateful_set_utils.go (isClaimOwnerUpToDate, updateClaimOwnerRefForSetAndPod).
"""

from __future__ import annotations

from fakekube.controllers.objects import Object, new_controller_ref

__all__ = [
    "get_persistent_volume_claim_name",
    "get_persistent_volume_claim_retention_policy",
    "get_persistent_volume_claims",
    "has_stale_owner_ref",
    "has_unexpected_controller",
    "is_claim_owner_up_to_date",
    "update_claim_owner_refs",
]


def get_persistent_volume_claim_name(stateful_set: Object, template: Object, ordinal: int) -> str:
    """Returns the name of the claim of a template for the pod with this ordinal."""
    return f"{template['metadata']['name']}-{stateful_set['metadata']['name']}-{ordinal}"


def get_persistent_volume_claims(stateful_set: Object, ordinal: int) -> list[Object]:
    """Returns the claims that the pod with this ordinal needs, for a creation."""
    claims = []
    matched = (stateful_set["spec"].get("selector") or {}).get("matchLabels") or {}
    for template in stateful_set["spec"].get("volumeClaimTemplates") or ():
        metadata = {
            **template["metadata"],
            "name": get_persistent_volume_claim_name(stateful_set, template, ordinal),
            "namespace": stateful_set["metadata"]["namespace"],
            "labels": {**(template["metadata"].get("labels") or {}), **matched},
        }
        claims.append({**template, "kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": metadata})
    return claims


def get_persistent_volume_claim_retention_policy(stateful_set: Object) -> tuple[bool, bool]:
    """Returns whether claims are deleted with the StatefulSet, and whether they are deleted when it is scaled down."""
    policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return policy.get("whenDeleted") == "Delete", policy.get("whenScaled") == "Delete"


def _owners(claim: Object) -> list[Object]:
    return claim["metadata"].get("ownerReferences") or []


def _matches_ref(reference: Object, owner: Object) -> bool:
    """Whether the reference has the owner's apiVersion, kind and name; the uid may differ."""
    identity = (owner["apiVersion"], owner["kind"], owner["metadata"]["name"])
    return (reference["apiVersion"], reference["kind"], reference["name"]) == identity


def _has_owner_ref(claim: Object, owner: Object) -> bool:
    return any(reference["uid"] == owner["metadata"].get("uid") for reference in _owners(claim))


def has_stale_owner_ref(claim: Object, owner: Object) -> bool:
    """Whether a former object with the owner's name owns the claim."""
    found = next((reference for reference in _owners(claim) if _matches_ref(reference, owner)), None)
    return found is not None and found["uid"] != owner["metadata"].get("uid")


def has_unexpected_controller(claim: Object, stateful_set: Object, pod: Object) -> bool:
    """Whether another object controls the claim, so that the retention policy cannot be applied."""
    if not any(get_persistent_volume_claim_retention_policy(stateful_set)):
        return False
    for reference in _owners(claim):
        ours = next((owner for owner in (stateful_set, pod) if _matches_ref(reference, owner)), None)
        if ours is not None:
            if reference["uid"] != ours["metadata"].get("uid"):
                return True
        elif reference.get("controller"):
            return True
    return False


def _expected_owners(stateful_set: Object, scaled_down: bool) -> tuple[bool, bool]:
    """Returns whether the StatefulSet, and whether the pod should own the pod's claims.

    Args:
        stateful_set: The StatefulSet.
        scaled_down: The ordinal of the pod is beyond the replicas.
    """
    when_deleted, when_scaled = get_persistent_volume_claim_retention_policy(stateful_set)
    return when_deleted and not (when_scaled and scaled_down), when_scaled and scaled_down


def is_claim_owner_up_to_date(claim: Object, stateful_set: Object, pod: Object, scaled_down: bool) -> bool:
    """Whether the claim's owner references follow the retention policy, or must not be changed."""
    if has_stale_owner_ref(claim, stateful_set) or has_stale_owner_ref(claim, pod):
        return True
    owned = _has_owner_ref(claim, stateful_set), _has_owner_ref(claim, pod)
    if has_unexpected_controller(claim, stateful_set, pod):
        return not any(owned)
    uids = {owner["metadata"].get("uid") for owner in (stateful_set, pod)}
    if any(one["uid"] in uids and not one.get("controller") for one in _owners(claim)):
        return False
    return owned == _expected_owners(stateful_set, scaled_down)


def update_claim_owner_refs(claim: Object, stateful_set: Object, pod: Object, scaled_down: bool) -> Object:
    """Returns the claim with the owner references of the retention policy (updateClaimOwnerRefForSetAndPod)."""
    references = [one for one in _owners(claim) if not (_matches_ref(one, stateful_set) or _matches_ref(one, pod))]
    if not has_unexpected_controller(claim, stateful_set, pod):
        by_set, by_pod = _expected_owners(stateful_set, scaled_down)
        references += [new_controller_ref(stateful_set)] * by_set + [new_controller_ref(pod)] * by_pod
    return {**claim, "metadata": {**claim["metadata"], "ownerReferences": references}}
