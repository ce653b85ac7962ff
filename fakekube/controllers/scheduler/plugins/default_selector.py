"""The default selector of a pod: the labels of its Services and of the workload that controls it.

Specified by: pkg/scheduler/framework/plugins/helper/spread.go (DefaultSelector).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fakekube.apimachinery.selectors import LabelSelector, from_label_selector
from fakekube.controllers.objects import get_controller_of
from fakekube.controllers.scheduler.cycle import Lister

__all__ = ["default_selector"]

#: The workloads whose selectors are used: (apiVersion, kind) → resource.
_OWNERS: Final = {
    ("apps/v1", "ReplicaSet"): "replicasets.apps",
    ("apps/v1", "StatefulSet"): "statefulsets.apps",
    ("v1", "ReplicationController"): "replicationcontrollers",
}


def default_selector(pod: Mapping[str, Any], lister: Lister) -> LabelSelector:
    """Returns the selector; it is empty if no Service selects the pod and no workload controls it."""
    namespace = pod["metadata"]["namespace"]
    labels: dict[str, str] = {}
    pod_labels = pod["metadata"].get("labels") or {}
    for service in lister.list("services", namespace):
        selector = service["spec"].get("selector")
        if selector and selector.items() <= pod_labels.items():
            labels |= selector
    owner = get_controller_of(pod)
    resource = _OWNERS.get((owner["apiVersion"], owner["kind"])) if owner else None
    found = lister.get(resource, namespace, owner["name"]) if owner and resource else None
    if found is None:
        return from_label_selector({"matchLabels": labels})
    if resource == "replicationcontrollers":
        return from_label_selector({"matchLabels": labels | (found["spec"].get("selector") or {})})
    of_owner = from_label_selector(found["spec"].get("selector"))
    if not labels:
        return of_owner
    return LabelSelector((*from_label_selector({"matchLabels": labels}).requirements, *of_owner.requirements))
