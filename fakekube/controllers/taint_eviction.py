"""The taint eviction controller: deletes pods from nodes with NoExecute taints, when their tolerationSeconds are over.

Invariant: the time of a pod starts when the controller first sees it on a node with such taints; taints and tolerations that
change later neither shorten nor prolong it, unless the pod is then not evicted at all, or at once.

Specified by: pkg/controller/tainteviction/taint_eviction.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from fakekube.apimachinery.selectors.nodes import tolerates
from fakekube.apis.well_known import TAINT_EFFECT_NO_EXECUTE
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError
from fakekube.controllers.reconciler import Key, Reconciler


def get_no_execute_taints(node: StoredObject | None) -> list[Object]:
    """Returns the taints of a node with the effect NoExecute."""
    return [one for one in ((node or {}).get("spec") or {}).get("taints") or () if one.get("effect") == TAINT_EFFECT_NO_EXECUTE]


def get_matching_tolerations(taints: Sequence[Object], tolerations: Sequence[Object]) -> list[Object] | None:
    """Returns the first toleration of each taint; None if one is not tolerated (GetMatchingTolerations)."""
    used = []
    for taint in taints:
        found = next((one for one in tolerations if tolerates(one, taint)), None)
        if found is None:
            return None
        used.append(found)
    return used


def get_min_toleration_time(used: Sequence[Object]) -> float | None:
    """Returns for how many seconds the taints of these tolerations are tolerated; None for ever (getMinTolerationTime)."""
    limits = [max(one["tolerationSeconds"], 0) for one in used if one.get("tolerationSeconds") is not None]
    return float(min(limits)) if limits else None


def _eviction_fields(pod: StoredObject) -> tuple[object, object]:
    """Returns the fields of a pod that its eviction depends on."""
    return pod["spec"].get("nodeName"), pod["spec"].get("tolerations")


class TaintEvictionController(Reconciler):
    """Deletes pods; keys are pods."""

    name: ClassVar[str] = "taint-eviction-controller"
    watches: ClassVar[tuple[str, ...]] = ("nodes", "pods")

    def on_start(self) -> None:
        self._scheduled: dict[Key, float | None] = {}
        """Pod → the time of its deletion; None if it was deleted."""
        self._tainted: set[str] = {node["metadata"]["name"] for node in self.cache.list("nodes") if get_no_execute_taints(node)}
        for pod in self.cache.list("pods"):
            if pod["spec"].get("nodeName") in self._tainted:
                self.enqueue(Key(pod["metadata"]["namespace"], pod["metadata"]["name"]))

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        if resource == "nodes":
            return bool(get_no_execute_taints(obj) or get_no_execute_taints(old))
        return old is None or obj is old or obj["spec"] != old["spec"]

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if resource == "pods":
            key = Key(metadata["namespace"], metadata["name"])
            if event_type == "DELETED":
                self._cancel_eviction(key)
                return ()
            unchanged = old is not None and _eviction_fields(obj) == _eviction_fields(old)
            return (key,) if not unchanged and obj["spec"].get("nodeName") in self._tainted else ()
        taints = [] if event_type == "DELETED" else get_no_execute_taints(obj)
        known = metadata["name"] in self._tainted
        if not taints and not known:
            return ()
        (self._tainted.add if taints else self._tainted.discard)(metadata["name"])
        return [
            Key(pod["metadata"]["namespace"], pod["metadata"]["name"])
            for pod in self.cache.list("pods")
            if pod["spec"].get("nodeName") == metadata["name"]
        ]

    def reconcile(self, key: Key) -> None:
        pod = self.cache.get("pods", key.namespace, key.name)
        if pod is None or not pod["spec"].get("nodeName"):
            return
        taints = get_no_execute_taints(self.cache.get("nodes", "", pod["spec"]["nodeName"]))
        used = get_matching_tolerations(taints, pod["spec"].get("tolerations") or ())
        if used is None:
            self._cancel_eviction(key)
            self._evict_pod(key, pod)
        elif not taints or (seconds := get_min_toleration_time(used)) is None:
            self._cancel_eviction(key)
        else:
            now = self.clock.monotonic()
            due = self._scheduled.setdefault(key, now + seconds)
            if due is not None and due > now:
                self.requeue_after(key, due - now)
            elif due is not None:
                self._evict_pod(key, pod)

    def _cancel_eviction(self, key: Key) -> None:
        if self._scheduled.pop(key, None) is not None:
            self._record_event(key, "Cancelling deletion of")

    def _evict_pod(self, key: Key, pod: Object) -> None:
        metadata = pod["metadata"]
        self._record_event(key, "Marking for deletion")
        now = self.client.now()
        condition: dict[str, Any] = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": now,
            "lastProbeTime": None,
            "observedGeneration": metadata.get("generation", 0),
        }
        body = {"metadata": {"uid": metadata["uid"]}, "status": {"conditions": [condition]}}
        try:
            name, namespace = metadata["name"], metadata["namespace"]
            self.client.strategic_patch("pods", name, body, namespace=namespace, subresource="status")
            self.client.delete("pods", name, namespace=namespace)
        except ApiError as error:
            if error.code != 404:
                raise
        self._scheduled[key] = None

    def _record_event(self, key: Key, action: str) -> None:
        about = {"kind": "Pod", "apiVersion": "v1", "namespace": key.namespace, "name": key.name}
        self.recorder.event(about, "Normal", "TaintManagerEviction", f"{action} Pod {key.namespace}/{key.name}")
