"""The ephemeral volume controller: creates the claims of pods' ephemeral volumes, and restores them while the pod exists.

Specified by: pkg/controller/volume/ephemeral/controller.go, k8s.io/component-helpers/storage/ephemeral.
"""

from __future__ import annotations

from collections.abc import Iterable

from fakekube.controllers.client import ApiError
from fakekube.controllers.objects import Object, StoredObject, is_controlled_by, new_controller_ref
from fakekube.controllers.reconciler import Key, Reconciler
from fakekube.controllers.volumes.binding import CLAIMS

__all__ = ["EphemeralVolumeController"]


class EphemeralVolumeController(Reconciler):
    """Creates claims; keys are pods."""

    name = "ephemeral-volume-controller"
    component = "ephemeral_volume"
    watches = ("pods", CLAIMS)

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        return obj is old if resource == CLAIMS else old is None and _has_ephemeral_volumes(obj)

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if resource == "pods":
            added = event_type == "ADDED" and "deletionTimestamp" not in metadata and _has_ephemeral_volumes(obj)
            return (Key(metadata["namespace"], metadata["name"]),) if added else ()
        if event_type != "DELETED":
            return ()
        owners = [one["name"] for one in metadata.get("ownerReferences") or () if one["kind"] == "Pod"]
        return [Key(metadata["namespace"], name) for name in owners]

    def reconcile(self, key: Key) -> None:
        pod = self.cache.get("pods", key.namespace, key.name)
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            return
        for volume in pod["spec"].get("volumes") or ():
            if "ephemeral" in volume:
                self._handle_volume(pod, volume)

    def _handle_volume(self, pod: Object, volume: Object) -> None:
        metadata = pod["metadata"]
        name = f"{metadata['name']}-{volume['name']}"
        claim = self.cache.get(CLAIMS, metadata["namespace"], name)
        if claim is None:
            try:
                self.client.create(_new_claim(pod, volume, name))
                return
            except ApiError as error:
                self._record_failure(pod, volume, f"create PVC {name}: {error}")
                raise
        if not is_controlled_by(claim, pod):
            namespace, pod_name = metadata["namespace"], metadata["name"]
            problem = f"PVC {namespace}/{name} was not created for pod {namespace}/{pod_name} (pod is not owner)"
            self._record_failure(pod, volume, problem)
            self.requeue_rate_limited(Key(namespace, pod_name))

    def _record_failure(self, pod: Object, volume: Object, problem: str) -> None:
        self.recorder.event(pod, "Warning", "FailedBinding", f"ephemeral volume {volume['name']}: {problem}")


def _has_ephemeral_volumes(pod: StoredObject) -> bool:
    return any("ephemeral" in volume for volume in pod["spec"].get("volumes") or ())


def _new_claim(pod: Object, volume: Object, name: str) -> Object:
    template = volume["ephemeral"]["volumeClaimTemplate"]
    metadata, template_metadata = pod["metadata"], template.get("metadata") or {}
    kept = {field: template_metadata[field] for field in ("labels", "annotations") if field in template_metadata}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "spec": template["spec"],
        "metadata": {"name": name, "namespace": metadata["namespace"], "ownerReferences": [new_controller_ref(pod)], **kept},
    }
