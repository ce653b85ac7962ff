"""Which nodes run a pod of a DaemonSet, and which of the pods there are too many or wrong.

A node runs a pod if its name and labels fit and all of its taints NoSchedule and NoExecute are tolerated; a pod that is
there may stay as long as no taint NoExecute drives it out. Whether it fits in, the scheduler says.

Specified by: pkg/controller/daemon/daemon_controller.go (NodeShouldRunDaemonPod, podsShouldBeOnNode).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fakekube.controllers.daemon.template import HASH_LABEL, tolerant_spec
from fakekube.controllers.pods import is_available, is_ready, phase_of
from fakekube.selectors.nodes import required_node_affinity
from fakekube.selectors.taints import untolerated

__all__ = ["Backoff", "Placement", "by_age", "should_run"]

Object = dict[str, Any]

FIRST_BACKOFF = 1.0
MAX_BACKOFF = 900.0


def should_run(node: Object, daemon_set: Object) -> tuple[bool, bool]:
    """Is a pod to be made on the node, and may one that is there stay?"""
    spec = daemon_set["spec"]["template"]["spec"]
    if spec.get("nodeName") not in (None, "", node["metadata"]["name"]):
        return False, False
    fits = required_node_affinity(spec)
    if fits is not None and not fits(node):
        return False, False
    taints = node["spec"].get("taints") or ()
    if not taints:
        return True, True
    tolerations = tolerant_spec({**spec, "tolerations": [dict(one) for one in spec.get("tolerations") or ()]})["tolerations"]
    if untolerated(taints, tolerations) is None:
        return True, True
    return False, untolerated(taints, tolerations, ("NoExecute",)) is None


def by_age(pod: Object) -> tuple[bool, str, str]:
    """Sorts pods: those on a node first, then the oldest."""
    metadata = pod["metadata"]
    return not pod["spec"].get("nodeName"), metadata["creationTimestamp"], metadata["name"]


@dataclass(slots=True)
class Backoff:
    """When a failed pod may be deleted again: after one second, then twice as long each time, to 15 minutes."""

    entries: dict[tuple[str, int, str], tuple[float, datetime]] = field(default_factory=dict)

    def remaining(self, key: tuple[str, int, str], now: datetime) -> float:
        """How long it has to wait; 0 if it has not."""
        wait, since = self.entries.get(key, (0.0, now))
        return wait if (now - since).total_seconds() < wait else 0.0

    def next(self, key: tuple[str, int, str], now: datetime) -> None:
        """It is deleted now."""
        wait, since = self.entries.get(key, (0.0, now))
        expired = (now - since).total_seconds() > 2 * MAX_BACKOFF
        self.entries[key] = (FIRST_BACKOFF if not wait or expired else min(2 * wait, MAX_BACKOFF)), now


@dataclass(slots=True)
class Placement:
    """What is to be done on the nodes.

    Args:
        daemon_set: whose pods they are.
        hash_: of the present template.
        allows_surge: may there be two pods on a node during an update?
        backoff: of failed pods.
        now: what availability and back-off are counted to.
    """

    daemon_set: Object
    hash_: str
    allows_surge: bool
    backoff: Backoff
    now: datetime
    nodes: list[str] = field(default_factory=list)
    """That need a pod."""
    delete: list[Object] = field(default_factory=list)
    """Pods that are to go."""
    events: list[tuple[str, str, str]] = field(default_factory=list)
    """(type, reason, message) of what was found."""
    look_again: list[float] = field(default_factory=list)
    """Seconds after which failed pods may be deleted."""

    def look_at(self, node: Object, pods: list[Object] | None) -> None:
        """Decide about one node and its pods (None: there are none, not even ended ones)."""
        name = node["metadata"]["name"]
        run, stay = should_run(node, self.daemon_set)
        if run and pods is None:
            self.nodes.append(name)
        elif stay:
            self._keep(name, run, sorted(self._running(name, pods or ()), key=by_age))
        elif pods:
            self.delete += [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def _running(self, node: str, pods: Iterable[Object]) -> Iterable[Object]:
        """The pods that have not ended; those that have are deleted."""
        for pod in pods:
            if "deletionTimestamp" in pod["metadata"]:
                continue
            phase, place = phase_of(pod), f"{pod['metadata']['namespace']}/{pod['metadata']['name']} on node {node}"
            if phase == "Failed":
                self._retry(node, pod, f"Found failed daemon pod {place}, will try to kill it")
            elif phase == "Succeeded":
                text = f"Found succeeded daemon pod {place}, will try to delete it"
                self.events.append(("Normal", "SucceededDaemonPod", text))
                self.delete.append(pod)
            else:
                yield pod

    def _retry(self, node: str, pod: Object, message: str) -> None:
        observed = (self.daemon_set.get("status") or {}).get("observedGeneration", 0)
        key = self.daemon_set["metadata"]["uid"], observed, node
        wait = self.backoff.remaining(key, self.now)
        if wait:
            self.look_again.append(wait)
            return
        self.backoff.next(key, self.now)
        self.events.append(("Warning", "FailedDaemonPod", message))
        self.delete.append(pod)

    def _keep(self, node: str, run: bool, running: list[Object]) -> None:
        """Keep the oldest pod, and during an update with surge the oldest of each template."""
        if not self.allows_surge:
            self.delete += running[1:]
            return
        if not running and run:
            self.nodes.append(node)
        if len(running) <= 1:
            return
        new, old = self._of_each_template(running)
        self.delete += [pod for pod in running if pod is not new and pod is not old]
        if new is not None and old is not None:
            min_ready = self.daemon_set["spec"].get("minReadySeconds", 0)
            if not is_ready(old) or is_available(new, min_ready, self.now):
                self.delete.append(old)

    def _of_each_template(self, running: list[Object]) -> tuple[Object | None, Object | None]:
        """The oldest pod of the present template, and of former ones."""

        def is_new(pod: Object) -> bool:
            return (pod["metadata"].get("labels") or {}).get(HASH_LABEL) == self.hash_

        new = next((pod for pod in running if is_new(pod)), None)
        return new, next((pod for pod in running if not is_new(pod)), None)
