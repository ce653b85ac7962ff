"""The DaemonSet controller: builds the pods of a DaemonSet, one on each node that needs one, and replaces them in updates.

A pod gets the affinity for the name of its node, and the default tolerations of daemons.

A node should run a pod if it matches the node name and the required node affinity of the template, and all of its taints
with the effects NoSchedule and NoExecute are tolerated. An existing pod may continue to run unless a NoExecute taint is not
tolerated. Resources are not checked here, but by the scheduler.

Specified by: pkg/controller/daemon/util/daemonset_util.go, pkg/controller/daemon/daemon_controller.go (NodeShouldRunDaemonPod,
podsShouldBeOnNode), pkg/controller/daemon/update.go (constructHistory, snapshot, cleanupHistory, rollingUpdate).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from fakekube.apimachinery.schema.trees import in_order
from fakekube.apimachinery.selectors.nodes import find_untolerated_taint, required_node_affinity
from fakekube.apis.core.pods.validation_options import REQUIRED
from fakekube.apis.well_known import (
    CONTROLLER_REVISION_HASH_LABEL,
    DEPRECATED_TEMPLATE_GENERATION,
    TAINT_EFFECT_NO_EXECUTE,
    TAINT_EFFECT_NO_SCHEDULE,
    TAINT_NODE_DISK_PRESSURE,
    TAINT_NODE_MEMORY_PRESSURE,
    TAINT_NODE_NETWORK_UNAVAILABLE,
    TAINT_NODE_NOT_READY,
    TAINT_NODE_PID_PRESSURE,
    TAINT_NODE_UNREACHABLE,
    TAINT_NODE_UNSCHEDULABLE,
)
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers import history
from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_ref_manager import ControllerRefManager, keys_of_controllers, selector_of
from fakekube.controllers.controller_utils import (
    PodControl,
    find_min_next_pod_availability_check,
    get_pod_from_template,
    get_scaled_value,
    is_pod_available,
    is_pod_ready,
    is_pod_terminal,
    phase_of,
)
from fakekube.controllers.hash import compute_hash
from fakekube.controllers.informers import get_controller_of, new_controller_ref
from fakekube.controllers.reconciler import Key, Reconciler
from fakekube.controllers.replicaset import slow_start_batch

GENERATION_LABEL: Final = "pod-template-generation"

#: Key and effect of the taints that all daemon pods tolerate, and of that which those on the host's network tolerate, too.
_TOLERATED: Final = (
    (TAINT_NODE_NOT_READY, TAINT_EFFECT_NO_EXECUTE),
    (TAINT_NODE_UNREACHABLE, TAINT_EFFECT_NO_EXECUTE),
    (TAINT_NODE_DISK_PRESSURE, TAINT_EFFECT_NO_SCHEDULE),
    (TAINT_NODE_MEMORY_PRESSURE, TAINT_EFFECT_NO_SCHEDULE),
    (TAINT_NODE_PID_PRESSURE, TAINT_EFFECT_NO_SCHEDULE),
    (TAINT_NODE_UNSCHEDULABLE, TAINT_EFFECT_NO_SCHEDULE),
)
_TOLERATED_ON_HOST_NETWORK: Final = (TAINT_NODE_NETWORK_UNAVAILABLE, TAINT_EFFECT_NO_SCHEDULE)


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
    for key, effect in (*_TOLERATED, *((_TOLERATED_ON_HOST_NETWORK,) if spec.get("hostNetwork") else ())):
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
    """Reports whether the node should run a pod, and whether an existing pod should continue to run (NodeShouldRunDaemonPod)."""
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
    if find_untolerated_taint(taints, tolerations) is None:
        return True, True
    return False, find_untolerated_taint(taints, tolerations, (TAINT_EFFECT_NO_EXECUTE,)) is None


def by_creation(pod: Object) -> tuple[bool, str, str]:
    """Returns a sort key of pods: assigned pods first, then by age, the oldest first (podByCreationTimestampAndPhase)."""
    metadata = pod["metadata"]
    return not pod["spec"].get("nodeName"), metadata["creationTimestamp"], metadata["name"]


@dataclass(slots=True)
class Backoff:
    """The back-off before a failed pod is deleted again: one second, then twice as long each time, at most 15 minutes."""

    entries: dict[tuple[str, int, str], tuple[float, datetime]] = field(default_factory=dict)

    def seconds_until_retry(self, key: tuple[str, int, str], now: datetime) -> float:
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
        wait = self.backoff.seconds_until_retry(key, self.now)
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


# --- The controller ---------------------------------------------------------------------------------------------------
# The deletion of a node does not trigger a sync, so that its pod is counted until the pod is deleted, as in a real cluster.
#
# The name of a ControllerRevision contains the hash of the template.
#
# Without surge an old pod is deleted first, and `manage` creates the new one: unavailable old pods at once, others as far as
# maxUnavailable allows. With surge the new pod is created first, and the old one is deleted when the new one is available.
#
# Specified by: pkg/controller/daemon/daemon_controller.go; pkg/controller/daemon/update.go (constructHistory, snapshot,
# cleanupHistory, rollingUpdate).


class Revisions:
    """The revisions of one DaemonSet.

    Args:
        controller: provides the client and the cache.
        daemon_set: the owner of the revisions.
    """

    def __init__(self, controller: Reconciler, daemon_set: Object) -> None:
        self._controller = controller
        self._set = daemon_set
        self._data = in_order(history.template_patch(daemon_set["spec"]["template"]))

    def construct_history(self, pods: Iterable[Object]) -> tuple[Object, list[Object]]:
        """Returns the revision of the present template, which it creates if it is missing, and the other revisions.

        Args:
            pods: the pods of the DaemonSet. If several revisions have the present template, one is kept, and the pods of
                the others get its label.

        Raises:
            ApiError: the API server rejected a request, or the name is taken; status.collisionCount has been incremented then.
        """
        found = history.sort_controller_revisions(self._controlled_histories())
        current = [one for one in found if history.has_data(one, self._data)]
        old = [one for one in found if not history.has_data(one, self._data)]
        number = history.next_revision(old)
        if not current:
            return self._create_snapshot(number), old
        kept = current[-1]
        for one in current[:-1]:
            self._dedup_revisions(one, kept, pods)
        if kept.get("revision", 0) < number:
            history.update_controller_revision(self._controller.client, kept, number)
        return kept, old

    def _controlled_histories(self) -> list[Object]:
        """Returns the revisions of the DaemonSet, and adds the hash label where it is missing."""
        selector = selector_of(self._set)
        manager = ControllerRefManager(
            self._controller.client,
            self._set,
            "daemonsets.apps",
            history.RESOURCE,
            lambda one: selector.matches(one["metadata"].get("labels")),
        )
        return list(map(self._label_revision, manager.claim_from(self._controller.cache)))

    def _label_revision(self, revision: Object) -> Object:
        metadata = revision["metadata"]
        labels = metadata.get("labels") or {}
        if CONTROLLER_REVISION_HASH_LABEL in labels:
            return revision
        labels = {**labels, CONTROLLER_REVISION_HASH_LABEL: metadata["name"]}
        return self._controller.client.update({**revision, "metadata": {**metadata, "labels": labels}})

    def _create_snapshot(self, number: int) -> Object:
        client, metadata, status = self._controller.client, self._set["metadata"], self._set.get("status") or {}
        hash_ = compute_hash(self._set["spec"]["template"], status.get("collisionCount"), self._controller.context.version)
        labels = (self._set["spec"]["template"].get("metadata") or {}).get("labels") or {}
        name = f"{metadata['name']}-{hash_}"
        revision = {
            "kind": "ControllerRevision",
            "apiVersion": "apps/v1",
            "metadata": {
                "name": name,
                "namespace": metadata["namespace"],
                "labels": {**labels, CONTROLLER_REVISION_HASH_LABEL: hash_},
                "annotations": dict(metadata.get("annotations") or {}),
                "ownerReferences": [new_controller_ref(self._set)],
            },
            "data": self._data,
            "revision": number,
        }
        try:
            return client.create(revision)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            existing = client.get(history.RESOURCE, name, namespace=metadata["namespace"])
            if history.has_data(existing, self._data):
                return existing
            collided = {**status, "collisionCount": (status.get("collisionCount") or 0) + 1}
            client.update({**self._set, "status": collided}, subresource="status")
            raise

    def _dedup_revisions(self, revision: Object, kept: Object, pods: Iterable[Object]) -> None:
        """Labels the pods of a duplicate revision with the hash of the kept one, and deletes the duplicate."""
        client, hash_ = self._controller.client, kept["metadata"]["labels"][CONTROLLER_REVISION_HASH_LABEL]
        for pod in pods:
            metadata = pod["metadata"]
            if (
                (metadata.get("labels") or {}).get(CONTROLLER_REVISION_HASH_LABEL)
                == revision["metadata"]["labels"][CONTROLLER_REVISION_HASH_LABEL]
                != hash_
            ):
                patch = {"metadata": {"labels": {CONTROLLER_REVISION_HASH_LABEL: hash_}}}
                client.patch("pods", metadata["name"], patch, namespace=metadata["namespace"])
        self._delete_revision(revision)

    def _delete_revision(self, revision: Object) -> None:
        metadata = revision["metadata"]
        self._controller.client.delete(history.RESOURCE, metadata["name"], namespace=metadata["namespace"])

    def cleanup_history(self, old: list[Object], pods: Iterable[Object]) -> None:
        """Deletes the oldest revisions without pods, until revisionHistoryLimit is kept."""
        surplus = len(old) - self._set["spec"].get("revisionHistoryLimit", 10)
        live = {(pod["metadata"].get("labels") or {}).get(CONTROLLER_REVISION_HASH_LABEL) for pod in pods}
        unused = [one for one in old if one["metadata"]["labels"].get(CONTROLLER_REVISION_HASH_LABEL) not in live]
        for one in unused[: max(surplus, 0)]:
            self._delete_revision(one)


def _rolling_update_strategy(daemon_set: Object) -> Object | None:
    strategy = daemon_set["spec"].get("updateStrategy") or {}
    return strategy.get("rollingUpdate") or {} if strategy.get("type") == "RollingUpdate" else None


def allows_surge(daemon_set: Object) -> bool:
    """Reports whether an update may run two pods on a node."""
    rolling = _rolling_update_strategy(daemon_set)
    return rolling is not None and get_scaled_value(rolling.get("maxSurge"), 1, round_up=True) > 0


@dataclass(slots=True)
class _Plan:
    """Pods to delete, and nodes to create pods for."""

    delete: list[Object] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)


def rolling_update(
    daemon_set: Object, nodes: Sequence[Object], pods_of: Mapping[str, list[Object]], hash_: str, now: datetime
) -> tuple[list[Object], list[str]]:
    """Returns the pods to delete next, and the names of the nodes to create pods for.

    Args:
        daemon_set: the DaemonSet.
        nodes: all nodes.
        pods_of: the pods by their target node.
        hash_: the hash of the present template.
        now: the time from which availability is calculated.
    """
    desired = [node["metadata"]["name"] for node in nodes if node_should_run_daemon_pod(node, daemon_set)[0]]
    rolling = _rolling_update_strategy(daemon_set) or {}
    surge = get_scaled_value(rolling.get("maxSurge"), len(desired), round_up=True)
    unavailable = get_scaled_value(rolling.get("maxUnavailable"), len(desired), round_up=True)
    if desired and not surge and not unavailable:
        unavailable = 1
    pods_by_node = {**{name: [] for name in desired}, **pods_of}
    update = _Update(daemon_set, hash_, now, {node["metadata"]["name"]: node for node in nodes})
    if surge:
        return update.with_surge(pods_by_node, surge, len(desired))
    return update.without_surge(pods_by_node, unavailable), []


@dataclass(slots=True)
class _Update:
    daemon_set: Object
    hash_: str
    now: datetime
    nodes: Mapping[str, Object]

    def _is_pod_available(self, pod: Object) -> bool:
        return is_pod_available(pod, self.daemon_set["spec"].get("minReadySeconds", 0), self.now)

    def _find_updated_pods(self, pods: Sequence[Object]) -> tuple[Object | None, Object | None] | None:
        """Returns the new and the old pod of a node; None if there are several new or several old ones."""
        generation = get_template_generation(self.daemon_set)
        alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        new = [pod for pod in alive if is_pod_updated(pod, self.hash_, generation)]
        old = [pod for pod in alive if not is_pod_updated(pod, self.hash_, generation)]
        if len(new) > 1 or len(old) > 1:
            return None
        return new[0] if new else None, old[0] if old else None

    def without_surge(self, pods_by_node: Mapping[str, list[Object]], limit: int) -> list[Object]:
        """Returns the old pods to delete."""
        at_once, candidates, unavailable = [], [], 0
        for pods in pods_by_node.values():
            new, old = self._find_updated_pods(pods) or (None, None)
            if (new is None) == (old is None):
                unavailable += 1
            elif new is not None:
                unavailable += not self._is_pod_available(new)
            elif old is not None and not self._is_pod_available(old):
                at_once.append(old)
                unavailable += 1
            elif old is not None and unavailable < limit:
                candidates.append(old)
        return at_once + candidates[: max(limit - unavailable, 0)]

    def with_surge(self, pods_by_node: Mapping[str, list[Object]], limit: int, desired: int) -> tuple[list[Object], list[str]]:
        """Returns the old pods to delete, and the names of the nodes to create new ones for."""
        plan, candidates, misplaced = _Plan(), _Plan(), []
        surging = available = 0
        for name, pods in pods_by_node.items():
            pair = self._find_updated_pods(pods)
            if pair is None:
                surging += 1
                continue
            new, old = pair
            oldest = old or new
            available += oldest is not None and self._is_pod_available(oldest)
            if old is None:
                continue
            if new is not None:
                if self._is_pod_available(new):
                    plan.delete.append(old)
                else:
                    surging += 1
                continue
            runs = name in self.nodes and node_should_run_daemon_pod(self.nodes[name], self.daemon_set)[0]
            if not self._is_pod_available(old):
                if runs:
                    plan.nodes.append(name)
                else:
                    plan.delete.append(old)
            elif not runs:
                misplaced.append(old)
            elif surging < limit:
                candidates.nodes.append(name)
        plan.delete += misplaced[: max(available - desired, 0)]
        return plan.delete, plan.nodes + candidates.nodes[: max(limit - surging, 0)]


BURST_REPLICAS: Final = 250


class DaemonSetController(Reconciler):
    """Creates and deletes the pods of DaemonSets."""

    name = "daemonset-controller"
    watches = ("daemonsets.apps", "pods", "nodes", "controllerrevisions.apps")

    def on_start(self) -> None:
        self._backoff = Backoff()

    # --- Events -------------------------------------------------------------------------------------------------------

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        return resource != "nodes" or old is None or _scheduling_fields(obj) != _scheduling_fields(old)

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None = None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if resource == "nodes":
            changed = event_type == "ADDED" or (old is not None and _scheduling_fields(obj) != _scheduling_fields(old))
            return self._keys_of_node(obj) if changed else ()
        if resource == "daemonsets.apps":
            return (Key(metadata["namespace"], metadata["name"]),)
        is_owned_revision = resource == "controllerrevisions.apps" and get_controller_of(obj) is not None
        if is_owned_revision and event_type != "DELETED" and (old is None or _synced_fields(obj) == _synced_fields(old)):
            return ()  # a sync now would merge equal revisions earlier than the real controller does, whose addHistory only logs
        return keys_of_controllers(self.cache, obj, old, kind="DaemonSet", resource="daemonsets.apps")

    def _keys_of_node(self, node: StoredObject) -> Iterable[Key]:
        """Yields the keys of the DaemonSets that lack a pod on the node, or have one that may not run there."""
        name = node["metadata"]["name"]
        for daemon_set in self.cache.list("daemonsets.apps"):
            metadata = daemon_set["metadata"]
            run, stay = node_should_run_daemon_pod(node, daemon_set)
            pods = self.cache.dependents_of("pods", metadata["uid"])
            scheduled = any(pod["spec"].get("nodeName") == name for pod in pods)
            misplaced = (daemon_set.get("status") or {}).get("numberMisscheduled", 0)
            if (run and not scheduled) or (scheduled and (not stay or misplaced)):
                yield Key(metadata["namespace"], metadata["name"])

    # --- Sync ---------------------------------------------------------------------------------------------------------

    def reconcile(self, key: Key) -> None:
        daemon_set = self.cache.get("daemonsets.apps", key.namespace, key.name)
        if daemon_set is None or "deletionTimestamp" in daemon_set["metadata"]:
            return
        if not any((daemon_set["spec"].get("selector") or {}).values()):
            text = "This daemon set is selecting all pods. A non-empty selector is required."
            self.recorder.event(daemon_set, "Warning", "SelectingAll", text)
            return
        revisions = Revisions(self, daemon_set)
        current, old = revisions.construct_history(self._claim_pods(daemon_set))
        hash_ = current["metadata"]["labels"][CONTROLLER_REVISION_HASH_LABEL]
        failure = None
        try:
            if not self._manage_pods(key, daemon_set, hash_):
                self._rolling_update(daemon_set, hash_)
            revisions.cleanup_history(old, self._claim_pods(daemon_set))
        except ApiError as error:
            failure = error
        self._update_status(key, daemon_set, hash_)
        if failure is not None:
            raise failure

    def _claim_pods(self, daemon_set: Object) -> list[Object]:
        selector = selector_of(daemon_set)
        manager = ControllerRefManager(
            self.client, daemon_set, "daemonsets.apps", "pods", lambda pod: selector.matches(pod["metadata"].get("labels"))
        )
        return manager.claim_from(self.cache)

    def _get_nodes_to_daemon_pods(self, daemon_set: Object) -> dict[str, list[Object]]:
        """Returns the pods by their target node, without terminated pods that are being deleted."""
        found: dict[str, list[Object]] = {}
        for pod in self._claim_pods(daemon_set):
            node = get_target_node_name(pod)
            if node is not None and not (is_pod_terminal(pod) and "deletionTimestamp" in pod["metadata"]):
                found.setdefault(node, []).append(pod)
        return found

    def _manage_pods(self, key: Key, daemon_set: Object, hash_: str) -> bool:
        """Creates missing pods and deletes superfluous ones. Returns whether there were any."""
        pods = self._get_nodes_to_daemon_pods(daemon_set)
        nodes = list(self.cache.list("nodes"))
        placement = Placement(daemon_set, hash_, allows_surge(daemon_set), self._backoff, self.clock.now())
        for node in nodes:
            placement.pods_should_be_on_node(node, pods.get(node["metadata"]["name"]))
        known = {node["metadata"]["name"] for node in nodes}
        for name, found in pods.items():
            if name not in known:
                placement.delete += [pod for pod in found if not pod["spec"].get("nodeName")]
        for event in placement.events:
            self.recorder.event(daemon_set, *event)
        for wait in placement.retry_after:
            self.requeue_after(key, wait)
        self._sync_nodes(daemon_set, placement.delete, placement.nodes, hash_)
        return bool(placement.delete or placement.nodes)

    def _rolling_update(self, daemon_set: Object, hash_: str) -> None:
        if (daemon_set["spec"].get("updateStrategy") or {}).get("type") != "RollingUpdate":
            return
        nodes, pods = list(self.cache.list("nodes")), self._get_nodes_to_daemon_pods(daemon_set)
        self._sync_nodes(daemon_set, *rolling_update(daemon_set, nodes, pods, hash_, self.clock.now()), hash_)

    def _sync_nodes(self, daemon_set: Object, delete: list[Object], nodes: list[str], hash_: str) -> None:
        """Creates pods for nodes, and deletes pods. Raises the first ApiError after all requests."""
        control = PodControl(self.client, self.recorder)
        waiting = iter(nodes)

        def create() -> None:
            control.create(get_pod_from_template(create_pod_template(daemon_set, next(waiting), hash_), daemon_set), daemon_set)

        failure = slow_start_batch(min(len(nodes), BURST_REPLICAS), create)
        for pod in delete[:BURST_REPLICAS]:
            try:
                control.delete(pod, daemon_set)
            except ApiError as error:
                if error.code != 404:
                    failure = failure or error
        if failure is not None:
            raise failure

    # --- Status -------------------------------------------------------------------------------------------------------

    def _update_status(self, key: Key, daemon_set: Object, hash_: str) -> None:
        """Writes the status if it has changed, and requeues the key for the time at which a pod becomes available."""
        old = daemon_set.get("status") or {}
        counts = self._count_pods(daemon_set, hash_)
        generation = daemon_set["metadata"].get("generation", 0)
        if any(old.get(name, 0) != count for name, count in counts.items()) or old.get("observedGeneration", 0) < generation:
            status = {**old, **counts, "observedGeneration": generation}
            self.client.update({**daemon_set, "status": status}, subresource="status")
        min_ready = daemon_set["spec"].get("minReadySeconds", 0)
        if min_ready and counts["numberReady"] != counts["numberAvailable"]:
            pods = self.cache.dependents_of("pods", daemon_set["metadata"]["uid"])
            wait = find_min_next_pod_availability_check(pods, min_ready, self.clock.now())
            if wait is not None:
                self.requeue_after(key, wait)

    def _count_pods(self, daemon_set: Object, hash_: str) -> dict[str, int]:
        pods, generation = self._get_nodes_to_daemon_pods(daemon_set), get_template_generation(daemon_set)
        min_ready, now = daemon_set["spec"].get("minReadySeconds", 0), self.clock.now()
        desired, scheduled, misplaced = 0, [], 0
        for node in self.cache.list("nodes"):
            found = pods.get(node["metadata"]["name"])
            if not node_should_run_daemon_pod(node, daemon_set)[0]:
                misplaced += found is not None
                continue
            desired += 1
            if found:
                scheduled.append(min(found, key=by_creation))
        available = sum(is_pod_available(pod, min_ready, now) for pod in scheduled)
        return {
            "desiredNumberScheduled": desired,
            "currentNumberScheduled": len(scheduled),
            "numberMisscheduled": misplaced,
            "numberReady": sum(map(is_pod_ready, scheduled)),
            "updatedNumberScheduled": sum(is_pod_updated(pod, hash_, generation) for pod in scheduled),
            "numberAvailable": available,
            "numberUnavailable": desired - available,
        }


def _scheduling_fields(node: StoredObject) -> tuple[object, object]:
    """Returns the labels and taints of a node, which decide whether it runs daemon pods."""
    return node["metadata"].get("labels") or {}, (node.get("spec") or {}).get("taints") or []


def _synced_fields(revision: StoredObject) -> tuple[object, ...]:
    """Returns what a sync looks at in a revision; after any other change of it there is nothing to do."""
    metadata = revision["metadata"]
    hash_ = (metadata.get("labels") or {}).get(CONTROLLER_REVISION_HASH_LABEL)
    return metadata.get("ownerReferences"), metadata.get("deletionTimestamp"), hash_, revision.get("revision")
