"""Builds the pods of a DaemonSet, and decides which nodes need one and which of its pods are to be deleted.

A pod gets the affinity for the name of its node, and the default tolerations of daemons.

A node should run a pod if it matches the node name and the required node affinity of the template, and all of its taints
with the effects NoSchedule and NoExecute are tolerated. An existing pod may continue to run unless a NoExecute taint is not
tolerated. Resources are not checked here, but by the scheduler.

Specified by: pkg/controller/daemon/util/daemonset_util.go, pkg/controller/daemon/daemon_controller.go (NodeShouldRunDaemonPod,
podsShouldBeOnNode).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from fakekube.apimachinery.selectors.nodes import required_node_affinity, untolerated
from fakekube.apis.core.pods.validation_options import REQUIRED
from fakekube.apis.well_known import CONTROLLER_REVISION_HASH_LABEL, DEPRECATED_TEMPLATE_GENERATION
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.controller_utils import is_pod_available, is_pod_ready, phase_of

GENERATION_LABEL: Final = "pod-template-generation"

_TOLERATED: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_NETWORK: Final = ("node.kubernetes.io/network-unavailable", "NoSchedule")


def get_template_generation(daemon_set: Object) -> int | None:
    """Returns the generation of the template from its annotation; None if that is absent or not a number."""
    text = (daemon_set["metadata"].get("annotations") or {}).get(DEPRECATED_TEMPLATE_GENERATION, "")
    try:
        return int(text)
    except ValueError:
        return None


def is_pod_updated(pod: Object, hash_: str, generation: int | None) -> bool:
    """Reports whether the pod was created from the present template."""
    labels = pod["metadata"].get("labels") or {}
    by_generation = generation is not None and labels.get(GENERATION_LABEL) == str(generation)
    return by_generation or (bool(hash_) and labels.get(CONTROLLER_REVISION_HASH_LABEL) == hash_)


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
        labels[CONTROLLER_REVISION_HASH_LABEL] = hash_
    spec = dict(template["spec"])
    spec["tolerations"] = [dict(one) for one in spec.get("tolerations") or ()]
    spec = add_daemon_pod_tolerations(spec)
    spec["affinity"] = _replace_node_affinity(spec.get("affinity") or {}, node)
    return {**template, "metadata": {**metadata, "labels": labels}, "spec": spec}


def _replace_node_affinity(affinity: Object, node: str) -> Object:
    """Returns the affinity with a term for the node's name instead of all node selector terms."""
    of_nodes = affinity.get("nodeAffinity") or {}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {**(of_nodes.get(REQUIRED) or {}), "nodeSelectorTerms": [term]}
    return {**affinity, "nodeAffinity": {**of_nodes, REQUIRED: required}}


def get_target_node_name(pod: Object) -> str | None:
    """Returns the node that the pod is assigned to or was created for; None if it names none (GetTargetNodeName)."""
    name: str = pod["spec"].get("nodeName", "")
    if name:
        return name
    of_nodes = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    for term in (of_nodes.get(REQUIRED) or {}).get("nodeSelectorTerms") or ():
        for requirement in term.get("matchFields") or ():
            if requirement["key"] == "metadata.name" and requirement["operator"] == "In":
                values: list[str] = requirement.get("values") or []
                return values[0] if len(values) == 1 else None
    return None


#: Seconds.
FIRST_BACKOFF: Final = 1.0
MAX_BACKOFF: Final = 900.0


def node_should_run_daemon_pod(node: StoredObject, daemon_set: Object) -> tuple[bool, bool]:
    """Returns whether the node should run a pod, and whether an existing pod should continue to run (NodeShouldRunDaemonPod)."""
    spec = daemon_set["spec"]["template"]["spec"]
    if spec.get("nodeName") not in (None, "", node["metadata"]["name"]):
        return False, False
    fits = required_node_affinity(spec)
    if fits is not None and not fits(node):
        return False, False
    taints = node["spec"].get("taints") or ()
    if not taints:
        return True, True
    spec = add_daemon_pod_tolerations({**spec, "tolerations": [dict(one) for one in spec.get("tolerations") or ()]})
    tolerations = spec["tolerations"]
    if untolerated(taints, tolerations) is None:
        return True, True
    return False, untolerated(taints, tolerations, ("NoExecute",)) is None


def by_creation(pod: Object) -> tuple[bool, str, str]:
    """A sort key of pods: assigned pods first, then by age, the oldest first (podByCreationTimestampAndPhase)."""
    metadata = pod["metadata"]
    return not pod["spec"].get("nodeName"), metadata["creationTimestamp"], metadata["name"]


@dataclass(slots=True)
class Backoff:
    """The back-off before a failed pod is deleted again: one second, then twice as long each time, at most 15 minutes."""

    entries: dict[tuple[str, int, str], tuple[float, datetime]] = field(default_factory=dict)

    def remaining(self, key: tuple[str, int, str], now: datetime) -> float:
        """Returns the seconds to wait; 0 if the back-off is over."""
        wait, since = self.entries.get(key, (0.0, now))
        return wait if (now - since).total_seconds() < wait else 0.0

    def next(self, key: tuple[str, int, str], now: datetime) -> None:
        """Starts the next back-off, when a pod is deleted."""
        wait, since = self.entries.get(key, (0.0, now))
        expired = (now - since).total_seconds() > 2 * MAX_BACKOFF
        self.entries[key] = (FIRST_BACKOFF if not wait or expired else min(2 * wait, MAX_BACKOFF)), now


@dataclass(slots=True)
class Placement:
    """Collects the nodes that need a pod and the pods to delete.

    Args:
        daemon_set: the DaemonSet.
        hash_: the hash of its present template.
        allows_surge: whether an update may run two pods on a node.
        backoff: the back-off of failed pods.
        now: the time from which availability and back-off are calculated.
    """

    daemon_set: Object
    hash_: str
    allows_surge: bool
    backoff: Backoff
    now: datetime
    nodes: list[str] = field(default_factory=list)
    """The names of the nodes that need a pod."""
    delete: list[Object] = field(default_factory=list)
    """The pods to delete."""
    events: list[tuple[str, str, str]] = field(default_factory=list)
    """(type, reason, message) of the events to record."""
    retry_after: list[float] = field(default_factory=list)
    """Seconds after which the back-off of a failed pod ends."""

    def pods_should_be_on_node(self, node: Object, pods: list[Object] | None) -> None:
        """Decides about one node and the pods on it; None if there are none, terminated ones included."""
        name = node["metadata"]["name"]
        run, stay = node_should_run_daemon_pod(node, self.daemon_set)
        if run and pods is None:
            self.nodes.append(name)
        elif stay:
            self._keep_oldest_pods(name, run, sorted(self._list_running_pods(name, pods or ()), key=by_creation))
        elif pods:
            self.delete += [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def _list_running_pods(self, node: str, pods: Iterable[Object]) -> Iterable[Object]:
        """Yields the pods that have not terminated, and marks terminated ones for deletion."""
        for pod in pods:
            if "deletionTimestamp" in pod["metadata"]:
                continue
            phase, place = phase_of(pod), f"{pod['metadata']['namespace']}/{pod['metadata']['name']} on node {node}"
            if phase == "Failed":
                self._retry_failed_pod(node, pod, f"Found failed daemon pod {place}, will try to kill it")
            elif phase == "Succeeded":
                text = f"Found succeeded daemon pod {place}, will try to delete it"
                self.events.append(("Normal", "SucceededDaemonPod", text))
                self.delete.append(pod)
            else:
                yield pod

    def _retry_failed_pod(self, node: str, pod: Object, message: str) -> None:
        observed = (self.daemon_set.get("status") or {}).get("observedGeneration", 0)
        key = self.daemon_set["metadata"]["uid"], observed, node
        wait = self.backoff.remaining(key, self.now)
        if wait:
            self.retry_after.append(wait)
            return
        self.backoff.next(key, self.now)
        self.events.append(("Warning", "FailedDaemonPod", message))
        self.delete.append(pod)

    def _keep_oldest_pods(self, node: str, run: bool, running: list[Object]) -> None:
        """Keeps the oldest pod, or with surge the oldest pod of the present template and of former ones."""
        if not self.allows_surge:
            self.delete += running[1:]
            return
        if not running and run:
            self.nodes.append(node)
        if len(running) <= 1:
            return
        new, old = self._oldest_new_and_old(running)
        self.delete += [pod for pod in running if pod is not new and pod is not old]
        if new is not None and old is not None:
            min_ready = self.daemon_set["spec"].get("minReadySeconds", 0)
            if not is_pod_ready(old) or is_pod_available(new, min_ready, self.now):
                self.delete.append(old)

    def _oldest_new_and_old(self, running: list[Object]) -> tuple[Object | None, Object | None]:
        """Returns the oldest pod of the present template, and the oldest pod of a former one."""

        def is_new(pod: Object) -> bool:
            return (pod["metadata"].get("labels") or {}).get(CONTROLLER_REVISION_HASH_LABEL) == self.hash_

        new = next((pod for pod in running if is_new(pod)), None)
        return new, next((pod for pod in running if not is_new(pod)), None)
