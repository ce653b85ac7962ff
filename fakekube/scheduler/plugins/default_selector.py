"""The pods that a pod belongs with: those of its services and of the workload that controls it.

Specified by: pkg/scheduler/framework/plugins/helper/spread.go (DefaultSelector).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fakekube.scheduler.cycle import Catalog
from fakekube.selectors import LabelSelector, from_label_selector

__all__ = ["default_selector"]

#: Workloads whose selector counts: kind → resource.
_OWNERS: Final = {
    ("apps/v1", "ReplicaSet"): "replicasets.apps",
    ("apps/v1", "StatefulSet"): "statefulsets.apps",
    ("v1", "ReplicationController"): "replicationcontrollers",
}


def default_selector(pod: Mapping[str, Any], catalog: Catalog) -> LabelSelector:
    """Empty if the pod belongs to nobody."""
    namespace = pod["metadata"]["namespace"]
    labels: dict[str, str] = {}
    pod_labels = pod["metadata"].get("labels") or {}
    for service in catalog.list("services", namespace):
        selector = service["spec"].get("selector")
        if selector and selector.items() <= pod_labels.items():
            labels |= selector
    owner = next((one for one in pod["metadata"].get("ownerReferences") or () if one.get("controller")), None)
    resource = _OWNERS.get((owner["apiVersion"], owner["kind"])) if owner else None
    found = catalog.get(resource, namespace, owner["name"]) if owner and resource else None
    if found is None:
        return from_label_selector({"matchLabels": labels})
    if resource == "replicationcontrollers":
        return from_label_selector({"matchLabels": labels | (found["spec"].get("selector") or {})})
    of_owner = from_label_selector(found["spec"].get("selector"))
    if not labels:
        return of_owner
    return LabelSelector((*from_label_selector({"matchLabels": labels}).requirements, *of_owner.requirements))
