"""Builds the pods of a DaemonSet: adds the affinity for the name of the node, and the default tolerations of daemons.

Specified by: pkg/controller/daemon/util/daemonset_util.go.
"""

from __future__ import annotations

from fakekube.controllers.objects import Object

__all__ = [
    "HASH_LABEL",
    "add_daemon_pod_tolerations",
    "create_pod_template",
    "get_target_node_name",
    "get_template_generation",
    "is_pod_updated",
]


HASH_LABEL = "controller-revision-hash"
GENERATION_LABEL = "pod-template-generation"
GENERATION_ANNOTATION = "deprecated.daemonset.template.generation"

_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def get_template_generation(daemon_set: Object) -> int | None:
    """Returns the generation of the template from its annotation; None if that is absent or not a number."""
    text = (daemon_set["metadata"].get("annotations") or {}).get(GENERATION_ANNOTATION, "")
    try:
        return int(text)
    except ValueError:
        return None


def is_pod_updated(pod: Object, hash_: str, generation: int | None) -> bool:
    """Whether the pod was created from the present template."""
    labels = pod["metadata"].get("labels") or {}
    by_generation = generation is not None and labels.get(GENERATION_LABEL) == str(generation)
    return by_generation or (bool(hash_) and labels.get(HASH_LABEL) == hash_)


def add_daemon_pod_tolerations(spec: Object) -> Object:
    """Returns the pod spec with the tolerations that every daemon pod has (AddOrUpdateDaemonPodTolerations)."""
    tolerations = list(spec.get("tolerations") or ())
    for key, effect in (*_TOLERATED, *((_NETWORK,) if spec.get("hostNetwork") else ())):
        added = {"key": key, "operator": "Exists", "effect": effect}
        if not any(_replace_matching(one, added) for one in tolerations):
            tolerations.append(added)
    return {**spec, "tolerations": tolerations}


def _replace_matching(one: Object, added: Object) -> bool:
    """Replaces a toleration that equals the added one but for tolerationSeconds. Returns whether it does."""
    if any((one.get(name) or "") != added.get(name, "") for name in ("key", "operator", "effect", "value")):
        return False
    one.pop("tolerationSeconds", None)
    return True


def create_pod_template(daemon_set: Object, node: str, hash_: str) -> Object:
    """Returns the template of the pod for a node (CreatePodTemplate)."""
    template = daemon_set["spec"]["template"]
    metadata = template.get("metadata") or {}
    labels = dict(metadata.get("labels") or {})
    generation = get_template_generation(daemon_set)
    if generation is not None:
        labels[GENERATION_LABEL] = str(generation)
    if hash_:
        labels[HASH_LABEL] = hash_
    spec = dict(template["spec"])
    spec["tolerations"] = [dict(one) for one in spec.get("tolerations") or ()]
    spec = add_daemon_pod_tolerations(spec)
    spec["affinity"] = _replace_node_affinity(spec.get("affinity") or {}, node)
    return {**template, "metadata": {**metadata, "labels": labels}, "spec": spec}


def _replace_node_affinity(affinity: Object, node: str) -> Object:
    """Returns the affinity with a term for the node's name instead of all node selector terms."""
    of_nodes = affinity.get("nodeAffinity") or {}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {**(of_nodes.get(_REQUIRED) or {}), "nodeSelectorTerms": [term]}
    return {**affinity, "nodeAffinity": {**of_nodes, _REQUIRED: required}}


def get_target_node_name(pod: Object) -> str | None:
    """Returns the node that the pod is assigned to or was created for; None if it names none (GetTargetNodeName)."""
    name: str = pod["spec"].get("nodeName", "")
    if name:
        return name
    of_nodes = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    for term in (of_nodes.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field["key"] == "metadata.name" and field["operator"] == "In":
                values: list[str] = field.get("values") or []
                return values[0] if len(values) == 1 else None
    return None
