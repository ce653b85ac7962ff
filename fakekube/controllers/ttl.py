"""The TTL controller: annotates nodes with the time for which kubelets may cache Secrets and ConfigMaps, by the cluster's size.

Specified by: pkg/controller/ttl/ttl_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from fakekube.controllers.objects import StoredObject
from fakekube.controllers.reconciler import Key, Reconciler

__all__ = ["TTLController", "step_for"]

ANNOTATION: Final = "node.alpha.kubernetes.io/ttl"

#: (minimum of nodes, maximum of nodes, seconds). The ranges overlap, so that the value does not flap.
STEPS: Final = ((0, 100, 0), (90, 500, 15), (450, 1000, 30), (900, 2000, 60), (1800, 10000, 300))


def step_for(nodes: int, step: int) -> int:
    """Returns the step for so many nodes, given the present step."""
    while step < len(STEPS) - 1 and nodes > STEPS[step][1]:
        step += 1
    while step > 0 and nodes < STEPS[step][0]:
        step -= 1
    return step


class TTLController(Reconciler):
    """Annotates nodes; keys are nodes."""

    name: ClassVar[str] = "ttl-controller"
    watches: ClassVar[tuple[str, ...]] = ("nodes",)

    def on_start(self) -> None:
        self._step = 0
        for node in self.cache.list("nodes"):
            self.enqueue(Key("", node["metadata"]["name"]))

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        return old is None or obj is old or ANNOTATION not in (obj["metadata"].get("annotations") or {})

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        nodes = list(self.cache.list("nodes"))
        before, self._step = self._step, step_for(len(nodes), self._step)
        if self._step != before:
            return [Key("", node["metadata"]["name"]) for node in nodes]
        return () if event_type == "DELETED" else (Key("", obj["metadata"]["name"]),)

    def reconcile(self, key: Key) -> None:
        node = self.cache.get("nodes", "", key.name)
        value = str(STEPS[self._step][2])
        if node is not None and (node["metadata"].get("annotations") or {}).get(ANNOTATION) != value:
            self.client.patch("nodes", key.name, {"metadata": {"annotations": {ANNOTATION: value}}})
