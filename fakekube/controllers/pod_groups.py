"""The controller that protects groups of pods: it removes the finalizer of a deleted group without active pods.

Specified by: pkg/controller/scheduling/podgroupprotection/podgroup_protection_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fakekube.apis.well_known import POD_GROUP_PROTECTION_FINALIZER
from fakekube.base.objects import StoredObject
from fakekube.controllers.controller_utils import is_deletion_candidate, is_pod_terminal, remove_finalizer
from fakekube.controllers.reconciler import Key, Reconciler

POD_GROUPS: Final = "podgroups.scheduling.k8s.io"


class PodGroupProtection(Reconciler):
    """See the module; keys are groups."""

    name = "podgroup-protection-controller"
    watches = (POD_GROUPS, "pods")

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        if resource == "pods":
            return bool(_group_name(obj)) and (obj is old or is_pod_terminal(obj))
        return obj is not old and is_deletion_candidate(obj, POD_GROUP_PROTECTION_FINALIZER)

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if resource == "pods":
            name = _group_name(obj)
            return (Key(metadata["namespace"], name),) if name and (event_type == "DELETED" or is_pod_terminal(obj)) else ()
        deleted = event_type != "DELETED" and is_deletion_candidate(obj, POD_GROUP_PROTECTION_FINALIZER)
        return (Key(metadata["namespace"], metadata["name"]),) if deleted else ()

    def reconcile(self, key: Key) -> None:
        group = self.cache.get(POD_GROUPS, key.namespace, key.name)
        if group is None or not is_deletion_candidate(group, POD_GROUP_PROTECTION_FINALIZER):
            return
        pods = self.cache.list("pods", key.namespace)
        if any(_group_name(pod) == key.name and not is_pod_terminal(pod) for pod in pods):
            return
        self.client.update(remove_finalizer(group, POD_GROUP_PROTECTION_FINALIZER))


def _group_name(pod: StoredObject) -> str:
    name: str = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName") or ""
    return name
