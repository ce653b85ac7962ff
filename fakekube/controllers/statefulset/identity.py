"""Names, ordinals and revisions of a StatefulSet's pods.

Specified by: pkg/controller/statefulset/stateful_set_utils.go.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from fakekube.controllers.pods import is_available, is_ready, phase_of, pod_from_template
from fakekube.controllers.statefulset.claims import claim_name

__all__ = [
    "identity_matches",
    "in_range",
    "is_created",
    "is_member",
    "is_running_and_ready",
    "is_unavailable",
    "made_pod",
    "ordinal_of",
    "revision_of",
    "start_ordinal",
    "storage_matches",
    "with_identity",
    "with_storage",
]

Object = dict[str, Any]

REVISION_LABEL = "controller-revision-hash"
NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"
_NAME = re.compile(r"(.*)-([0-9]+)$")
_MAX_INT32 = 2**31 - 1


def _parent_and_ordinal(pod: Object) -> tuple[str, int]:
    """The name before the last dash, and the number after it; -1 if there is none."""
    match = _NAME.match(pod["metadata"]["name"])
    if match is None:
        return "", -1
    ordinal = int(match[2])
    return match[1], ordinal if ordinal <= _MAX_INT32 else -1


def ordinal_of(pod: Object) -> int:
    """The number in the pod's name; -1 if there is none."""
    return _parent_and_ordinal(pod)[1]


def is_member(pod: Object, stateful_set: Object) -> bool:
    """Is the pod named after the StatefulSet?"""
    return bool(_parent_and_ordinal(pod)[0] == stateful_set["metadata"]["name"])


def start_ordinal(stateful_set: Object) -> int:
    """The lowest ordinal."""
    return (stateful_set["spec"].get("ordinals") or {}).get("start", 0)  # type: ignore[no-any-return]


def in_range(pod: Object, stateful_set: Object) -> bool:
    """Is the pod's ordinal one of the replicas'?"""
    start = start_ordinal(stateful_set)
    replicas: int = stateful_set["spec"].get("replicas", 0)
    return start <= ordinal_of(pod) < start + replicas


def revision_of(pod: Object) -> str:
    """The name of the ControllerRevision that the pod was made of."""
    return (pod["metadata"].get("labels") or {}).get(REVISION_LABEL, "")  # type: ignore[no-any-return]


# ---------------------------------------------------------------- states


def is_created(pod: Object) -> bool:
    """Is it in the API?"""
    return phase_of(pod) != ""


def is_running_and_ready(pod: Object) -> bool:
    """Running and ready."""
    return phase_of(pod) == "Running" and is_ready(pod)


def is_unavailable(pod: Object, min_ready_seconds: int, now: datetime) -> bool:
    """Not available, or being deleted."""
    return "deletionTimestamp" in pod["metadata"] or not is_available(pod, min_ready_seconds, now)


# ---------------------------------------------------------------- making pods


def made_pod(stateful_set: Object, ordinal: int, revision: str) -> Object:
    """A new pod of the StatefulSet's template, which is that of `revision`."""
    name = f"{stateful_set['metadata']['name']}-{ordinal}"
    pod = pod_from_template(stateful_set["spec"]["template"], stateful_set)
    metadata = {**pod["metadata"], "name": name}
    metadata["labels"] = {**metadata.get("labels", {}), REVISION_LABEL: revision}
    spec = {**pod["spec"], "hostname": name}
    service = stateful_set["spec"].get("serviceName")
    if service:
        spec["subdomain"] = service
    return with_storage(with_identity({**pod, "metadata": metadata, "spec": spec}), stateful_set)


def identity_matches(pod: Object, stateful_set: Object) -> bool:
    """Are name and labels what they are to be?"""
    parent, ordinal = _parent_and_ordinal(pod)
    metadata = pod["metadata"]
    name = f"{stateful_set['metadata']['name']}-{ordinal}"
    labelled = (metadata.get("labels") or {}).get(NAME_LABEL) == metadata["name"]
    return ordinal >= 0 and parent == stateful_set["metadata"]["name"] and metadata["name"] == name and labelled


def with_identity(pod: Object) -> Object:
    """The pod with the labels that tell its name and ordinal."""
    metadata = pod["metadata"]
    labels = {**(metadata.get("labels") or {}), NAME_LABEL: metadata["name"], INDEX_LABEL: str(ordinal_of(pod))}
    return {**pod, "metadata": {**metadata, "labels": labels}}


def storage_matches(pod: Object, stateful_set: Object) -> bool:
    """Does the pod have a volume for each claim template?"""
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    for template in stateful_set["spec"].get("volumeClaimTemplates") or ():
        volume = volumes.get(template["metadata"]["name"]) or {}
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim != claim_name(stateful_set, template, ordinal_of(pod)):
            return False
    return True


def with_storage(pod: Object, stateful_set: Object) -> Object:
    """The pod with a volume for each claim template, in front of the volumes of other names."""
    templates = stateful_set["spec"].get("volumeClaimTemplates") or ()
    if not templates:
        return pod
    made = {template["metadata"]["name"]: claim_name(stateful_set, template, ordinal_of(pod)) for template in templates}
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in made.items()]
    others = [volume for volume in pod["spec"].get("volumes") or () if volume["name"] not in made]
    return {**pod, "spec": {**pod["spec"], "volumes": [*volumes, *others]}}
