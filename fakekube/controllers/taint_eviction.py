"""The taint eviction controller: deletes pods from nodes with NoExecute taints, when their tolerationSeconds are over.

Invariant: the time of a pod starts when the controller first sees it on a node with such taints, and once only.

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


def get_min_toleration_time(taints: Sequence[Object], tolerations: Sequence[Object]) -> float | None:
    """Returns for how many seconds the taints are tolerated: 0 if one is not tolerated, None for ever (getMinTolerationTime)."""
    used = []
    for taint in taints:
        tolerating = [one for one in tolerations if tolerates(one, taint)]
        if not tolerating:
            return 0.0
        used.append(tolerating[0])
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
        self._scheduled: dict[Key, tuple[str, float, float]] = {}
        """Pod → its uid, the time since when it is tainted, and the time of its deletion."""
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
                self._scheduled.pop(key, None)
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
        seconds = get_min_toleration_time(taints, pod["spec"].get("tolerations") or ()) if taints else None
        if seconds is None:
            self._cancel_eviction(key, pod)
            return
        now = self.clock.monotonic()
        uid = pod["metadata"]["uid"]
        known = self._scheduled.get(key)
        start = known[1] if known is not None and known[0] == uid else now
        due = start + seconds
        if due > now:
            self._scheduled[key] = (uid, start, due)
            self.requeue_after(key, due - now)
            return
        self._scheduled.pop(key, None)
        self._evict_pod(pod)

    def _cancel_eviction(self, key: Key, pod: Object) -> None:
        if self._scheduled.pop(key, None) is not None:
            self._record_event(pod, f"Cancelling deletion of Pod {key.namespace}/{key.name}")

    def _evict_pod(self, pod: Object) -> None:
        metadata = pod["metadata"]
        self._record_event(pod, f"Marking for deletion Pod {metadata['namespace']}/{metadata['name']}")
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

    def _record_event(self, pod: Object, message: str) -> None:
        metadata = pod["metadata"]
        about = {"kind": "Pod", "apiVersion": "v1", "namespace": metadata["namespace"], "name": metadata["name"]}
        self.recorder.event(about, "Normal", "TaintManagerEviction", message)
