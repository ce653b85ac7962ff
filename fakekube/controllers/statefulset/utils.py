"""The identity of a StatefulSet's pods: names, ordinals, labels, volumes, revisions and PersistentVolumeClaims.

With `whenDeleted: Delete` the StatefulSet owns the claims of its replicas, and with `whenScaled: Delete` a pod with an ordinal
beyond the replicas owns its claims. The garbage collector deletes the claims with their owner.

Specified by: pkg/controller/statefulset/stateful_set_utils.go (isClaimOwnerUpToDate, updateClaimOwnerRefForSetAndPod).
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from fakekube.apis.well_known import CONTROLLER_REVISION_HASH_LABEL
from fakekube.base.golang.strconv import MAX_INT32
from fakekube.base.objects import Object
from fakekube.controllers.controller_utils import get_pod_from_template, is_pod_available, is_pod_ready, phase_of
from fakekube.controllers.informers import new_controller_ref


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
    """Reports whether claims are deleted with the StatefulSet, and whether they are deleted when it is scaled down."""
    policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return policy.get("whenDeleted") == "Delete", policy.get("whenScaled") == "Delete"


def _owner_references(claim: Object) -> list[Object]:
    return claim["metadata"].get("ownerReferences") or []


def _matches_ref(reference: Object, owner: Object) -> bool:
    """Reports whether the reference has the owner's apiVersion, kind and name; the uid may differ."""
    identity = (owner["apiVersion"], owner["kind"], owner["metadata"]["name"])
    return (reference["apiVersion"], reference["kind"], reference["name"]) == identity


def _has_owner_ref(claim: Object, owner: Object) -> bool:
    return any(reference["uid"] == owner["metadata"].get("uid") for reference in _owner_references(claim))


def has_stale_owner_ref(claim: Object, owner: Object) -> bool:
    """Reports whether a former object with the owner's name owns the claim."""
    found = next((reference for reference in _owner_references(claim) if _matches_ref(reference, owner)), None)
    return found is not None and found["uid"] != owner["metadata"].get("uid")


def has_unexpected_controller(claim: Object, stateful_set: Object, pod: Object) -> bool:
    """Reports whether another object controls the claim, so that the retention policy cannot be applied."""
    if not any(get_persistent_volume_claim_retention_policy(stateful_set)):
        return False
    for reference in _owner_references(claim):
        ours = next((owner for owner in (stateful_set, pod) if _matches_ref(reference, owner)), None)
        if ours is not None:
            if reference["uid"] != ours["metadata"].get("uid"):
                return True
        elif reference.get("controller"):
            return True
    return False


def _expected_owners(stateful_set: Object, scaled_down: bool) -> tuple[bool, bool]:
    """Reports whether the StatefulSet, and whether the pod should own the pod's claims.

    Args:
        stateful_set: the StatefulSet.
        scaled_down: the ordinal of the pod is beyond the replicas.
    """
    when_deleted, when_scaled = get_persistent_volume_claim_retention_policy(stateful_set)
    return when_deleted and not (when_scaled and scaled_down), when_scaled and scaled_down


def is_claim_owner_up_to_date(claim: Object, stateful_set: Object, pod: Object, scaled_down: bool) -> bool:
    """Reports whether the claim's owner references follow the retention policy, or must not be changed."""
    if has_stale_owner_ref(claim, stateful_set) or has_stale_owner_ref(claim, pod):
        return True
    owned = _has_owner_ref(claim, stateful_set), _has_owner_ref(claim, pod)
    if has_unexpected_controller(claim, stateful_set, pod):
        return not any(owned)
    uids = {owner["metadata"].get("uid") for owner in (stateful_set, pod)}
    if any(one["uid"] in uids and not one.get("controller") for one in _owner_references(claim)):
        return False
    return owned == _expected_owners(stateful_set, scaled_down)


def update_claim_owner_refs(claim: Object, stateful_set: Object, pod: Object, scaled_down: bool) -> Object:
    """Returns the claim with the owner references of the retention policy (updateClaimOwnerRefForSetAndPod)."""
    references = [one for one in _owner_references(claim) if not (_matches_ref(one, stateful_set) or _matches_ref(one, pod))]
    if not has_unexpected_controller(claim, stateful_set, pod):
        by_set, by_pod = _expected_owners(stateful_set, scaled_down)
        references += [new_controller_ref(stateful_set)] * by_set + [new_controller_ref(pod)] * by_pod
    return {**claim, "metadata": {**claim["metadata"], "ownerReferences": references}}


NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"
_NAME: Final = re.compile(r"(.*)-([0-9]+)$")


def _get_parent_name_and_ordinal(pod: Object) -> tuple[str, int]:
    """Returns the part of the name before the last dash, and the number after it; ("", -1) if there is none."""
    match = _NAME.match(pod["metadata"]["name"])
    if match is None:
        return "", -1
    ordinal = int(match[2])
    return match[1], ordinal if ordinal <= MAX_INT32 else -1


def get_ordinal(pod: Object) -> int:
    """Returns the ordinal in the pod's name; -1 if there is none."""
    return _get_parent_name_and_ordinal(pod)[1]


def is_member_of(pod: Object, stateful_set: Object) -> bool:
    """Reports whether the pod's name is that of a pod of the StatefulSet."""
    return bool(_get_parent_name_and_ordinal(pod)[0] == stateful_set["metadata"]["name"])


def get_start_ordinal(stateful_set: Object) -> int:
    """Returns the lowest ordinal."""
    return (stateful_set["spec"].get("ordinals") or {}).get("start", 0)  # type: ignore[no-any-return]


def pod_in_ordinal_range(pod: Object, stateful_set: Object) -> bool:
    """Reports whether the pod's ordinal is one of the replicas."""
    start = get_start_ordinal(stateful_set)
    replicas: int = stateful_set["spec"].get("replicas", 0)
    return start <= get_ordinal(pod) < start + replicas


def get_pod_revision(pod: Object) -> str:
    """Returns the name of the ControllerRevision that the pod was created from."""
    return (pod["metadata"].get("labels") or {}).get(CONTROLLER_REVISION_HASH_LABEL, "")  # type: ignore[no-any-return]


def is_created(pod: Object) -> bool:
    """Reports whether the pod exists in the API."""
    return phase_of(pod) != ""


def is_running_and_ready(pod: Object) -> bool:
    """Reports whether the pod is running and ready."""
    return phase_of(pod) == "Running" and is_pod_ready(pod)


def is_unavailable(pod: Object, min_ready_seconds: int, now: datetime) -> bool:
    """Reports whether the pod is not available, or is being deleted."""
    return "deletionTimestamp" in pod["metadata"] or not is_pod_available(pod, min_ready_seconds, now)


def new_versioned_pod(stateful_set: Object, ordinal: int, revision: str) -> Object:
    """Returns a new pod of the StatefulSet's template, which must be that of `revision`."""
    name = f"{stateful_set['metadata']['name']}-{ordinal}"
    pod = get_pod_from_template(stateful_set["spec"]["template"], stateful_set)
    metadata = {**pod["metadata"], "name": name}
    metadata["labels"] = {**metadata.get("labels", {}), CONTROLLER_REVISION_HASH_LABEL: revision}
    spec = {**pod["spec"], "hostname": name}
    service = stateful_set["spec"].get("serviceName")
    if service:
        spec["subdomain"] = service
    return update_storage(update_identity({**pod, "metadata": metadata, "spec": spec}), stateful_set)


def identity_matches(pod: Object, stateful_set: Object) -> bool:
    """Reports whether the pod has the right name and the label with its name."""
    parent, ordinal = _get_parent_name_and_ordinal(pod)
    metadata = pod["metadata"]
    name = f"{stateful_set['metadata']['name']}-{ordinal}"
    labelled = (metadata.get("labels") or {}).get(NAME_LABEL) == metadata["name"]
    return ordinal >= 0 and parent == stateful_set["metadata"]["name"] and metadata["name"] == name and labelled


def update_identity(pod: Object) -> Object:
    """Returns the pod with the labels for its name and ordinal."""
    metadata = pod["metadata"]
    labels = {**(metadata.get("labels") or {}), NAME_LABEL: metadata["name"], INDEX_LABEL: str(get_ordinal(pod))}
    return {**pod, "metadata": {**metadata, "labels": labels}}


def storage_matches(pod: Object, stateful_set: Object) -> bool:
    """Reports whether the pod has a volume for each claim template."""
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    for template in stateful_set["spec"].get("volumeClaimTemplates") or ():
        volume = volumes.get(template["metadata"]["name"]) or {}
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim != get_persistent_volume_claim_name(stateful_set, template, get_ordinal(pod)):
            return False
    return True


def update_storage(pod: Object, stateful_set: Object) -> Object:
    """Returns the pod with a volume for each claim template, before its other volumes."""
    templates = stateful_set["spec"].get("volumeClaimTemplates") or ()
    if not templates:
        return pod
    ordinal = get_ordinal(pod)
    claims = {one["metadata"]["name"]: get_persistent_volume_claim_name(stateful_set, one, ordinal) for one in templates}
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in claims.items()]
    others = [volume for volume in pod["spec"].get("volumes") or () if volume["name"] not in claims]
    return {**pod, "spec": {**pod["spec"], "volumes": [*volumes, *others]}}
