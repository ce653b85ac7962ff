"""Pods of a DaemonSet: bound to their node by an affinity to its name, and tolerant of what nodes suffer from.

Specified by: pkg/controller/daemon/util/daemonset_util.go.
"""

from __future__ import annotations

from typing import Any

__all__ = ["HASH_LABEL", "is_updated", "node_of", "pod_template", "template_generation", "tolerant_spec"]

Object = dict[str, Any]

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


def template_generation(daemon_set: Object) -> int | None:
    """The generation of the template, which an annotation tells."""
    text = (daemon_set["metadata"].get("annotations") or {}).get(GENERATION_ANNOTATION, "")
    try:
        return int(text)
    except ValueError:
        return None


def is_updated(pod: Object, hash_: str, generation: int | None) -> bool:
    """Was the pod made of the present template?"""
    labels = pod["metadata"].get("labels") or {}
    by_generation = generation is not None and labels.get(GENERATION_LABEL) == str(generation)
    return by_generation or (bool(hash_) and labels.get(HASH_LABEL) == hash_)


def tolerant_spec(spec: Object) -> Object:
    """The pod's spec with the tolerations of every daemon."""
    tolerations = list(spec.get("tolerations") or ())
    for key, effect in (*_TOLERATED, *((_NETWORK,) if spec.get("hostNetwork") else ())):
        wanted = {"key": key, "operator": "Exists", "effect": effect}
        if not any(_matches(one, wanted) for one in tolerations):
            tolerations.append(wanted)
    return {**spec, "tolerations": tolerations}


def _matches(one: Object, wanted: Object) -> bool:
    """Do they differ at most in seconds? Then the wanted one takes its place."""
    if any((one.get(name) or "") != wanted.get(name, "") for name in ("key", "operator", "effect", "value")):
        return False
    one.pop("tolerationSeconds", None)
    return True


def pod_template(daemon_set: Object, node: str, hash_: str) -> Object:
    """The template of the pod for a node."""
    template = daemon_set["spec"]["template"]
    metadata = template.get("metadata") or {}
    labels = dict(metadata.get("labels") or {})
    generation = template_generation(daemon_set)
    if generation is not None:
        labels[GENERATION_LABEL] = str(generation)
    if hash_:
        labels[HASH_LABEL] = hash_
    spec = dict(template["spec"])
    spec["tolerations"] = [dict(one) for one in spec.get("tolerations") or ()]
    spec = tolerant_spec(spec)
    spec["affinity"] = _bound(spec.get("affinity") or {}, node)
    return {**template, "metadata": {**metadata, "labels": labels}, "spec": spec}


def _bound(affinity: Object, node: str) -> Object:
    """The affinity with the node's name in place of all node selector terms."""
    of_nodes = affinity.get("nodeAffinity") or {}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {**(of_nodes.get(_REQUIRED) or {}), "nodeSelectorTerms": [term]}
    return {**affinity, "nodeAffinity": {**of_nodes, _REQUIRED: required}}


def node_of(pod: Object) -> str | None:
    """The node that the pod is on, or is made for; None if it does not say."""
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
