"""The disruption controller: writes the status of PodDisruptionBudgets.

Percentages of a budget refer to the sizes of the pods' controllers, not to the number of existing pods. A pod in
status.disruptedPods, which the eviction API has added, counts as disrupted for two minutes. The condition DisruptionTarget of a
pod that is not deleted is reset after two minutes.

Specified by: pkg/controller/disruption/disruption.go, k8s.io/component-helpers/apps/poddisruptionbudget.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from fakekube.apimachinery.selectors import from_label_selector
from fakekube.apis.validation.objectmeta import find_condition, set_status_condition
from fakekube.base.golang.strings import label_selector_string
from fakekube.base.objects import Object, StoredObject, group_resource
from fakekube.controllers.client import ApiError, UnknownResource
from fakekube.controllers.controller_utils import POD_PREFIX, get_scaled_value, is_pod_ready, is_pod_terminal, parse_time
from fakekube.controllers.informers import get_controller_of
from fakekube.controllers.reconciler import Key, Reconciler

DELETION_TIMEOUT: Final = timedelta(minutes=2)
STALE_TIMEOUT: Final = timedelta(minutes=2)

#: Cached controllers, by group and kind. The size of other ones is read from their subresource scale.
_CACHED: Final = {
    ("", "ReplicationController"): "replicationcontrollers",
    ("apps", "ReplicaSet"): "replicasets.apps",
    ("extensions", "ReplicaSet"): "replicasets.apps",
    ("apps", "StatefulSet"): "statefulsets.apps",
}


class ExpectedPodCountError(Exception):
    """The number of expected pods cannot be calculated."""


class DisruptionController(Reconciler):
    """Writes the status of PodDisruptionBudgets."""

    name = "disruption-controller"
    component = "controllermanager"
    watches = ("poddisruptionbudgets.policy", "pods")

    # --- Events -------------------------------------------------------------------------------------------------------

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None = None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if resource != "pods":
            yield Key(metadata["namespace"], metadata["name"])
            return
        budget = self._get_pdb_for_pod(obj)
        if budget is not None:
            yield Key(metadata["namespace"], budget["metadata"]["name"])
        wait = self._seconds_until_stale(obj) if event_type != "DELETED" else None
        if wait is not None:
            self.requeue_after(Key(metadata["namespace"], POD_PREFIX + metadata["name"]), wait)

    def _get_pdb_for_pod(self, pod: StoredObject) -> Object | None:
        """Returns the budget that selects the pod; if there are several, any of them, after an event."""
        metadata = pod["metadata"]
        found = [
            budget
            for budget in self.cache.list("poddisruptionbudgets.policy", metadata["namespace"])
            if from_label_selector(budget["spec"].get("selector")).matches(metadata.get("labels"))
        ]
        if len(found) > 1:
            text = (
                f'Pod "{metadata["namespace"]}"/"{metadata["name"]}" matches multiple PodDisruptionBudgets.  '
                f'Chose "{found[0]["metadata"]["name"]}" arbitrarily.'
            )
            self.recorder.event(pod, "Warning", "MultiplePodDisruptionBudgets", text)
        return found[0] if found else None

    def reconcile(self, key: Key) -> None:
        if key.name.startswith(POD_PREFIX):
            self._sync_stale_pod_disruption(key)
            return
        budget = self.cache.get("poddisruptionbudgets.policy", key.namespace, key.name)
        if budget is None:
            return
        try:
            self._try_sync(key, budget)
        except (ApiError, ExpectedPodCountError) as error:
            if isinstance(error, ApiError) and error.reason == "Conflict":
                raise
            self._fail_safe(budget, str(error))

    # --- Sync ---------------------------------------------------------------------------------------------------------

    def _try_sync(self, key: Key, budget: Object) -> None:
        selector = from_label_selector(budget["spec"].get("selector"))
        found = self.cache.list("pods", key.namespace)
        pods = [pod for pod in found if selector.matches(pod["metadata"].get("labels"))]
        if not pods:
            self.recorder.event(budget, "Normal", "NoPods", "No matching pods found")
        try:
            expected, desired = self._get_expected_pod_count(budget, pods)
        except (ApiError, ExpectedPodCountError) as error:
            text = f"Failed to calculate the number of expected pods: {error}"
            self.recorder.event(budget, "Warning", "CalculateExpectedPodCountFailed", text)
            raise
        disrupted = self._build_disrupted_pods(key, budget, pods)
        healthy = sum(
            "deletionTimestamp" not in pod["metadata"] and pod["metadata"]["name"] not in disrupted and is_pod_ready(pod)
            for pod in pods
        )
        self._update_status(budget, healthy, desired, expected, disrupted)

    def _get_expected_pod_count(self, budget: Object, pods: list[Object]) -> tuple[int, int]:
        """Returns expectedPods and desiredHealthy. Raises ApiError, ExpectedPodCountError."""
        spec = budget["spec"]
        min_available, max_unavailable = spec.get("minAvailable"), spec.get("maxUnavailable")
        if max_unavailable is None and not isinstance(min_available, str):
            return (len(pods), min_available) if min_available is not None else (0, 0)
        expected = self._get_expected_scale(budget, pods)
        if max_unavailable is not None:
            return expected, max(expected - get_scaled_value(max_unavailable, expected, round_up=True), 0)
        return expected, get_scaled_value(min_available, expected, round_up=True)

    def _get_expected_scale(self, budget: Object, pods: list[Object]) -> int:
        """Returns the sum of the sizes of the pods' controllers. Raises ApiError, ExpectedPodCountError."""
        scales: dict[str, int] = {}
        unmanaged = False
        for pod in pods:
            owner = get_controller_of(pod)
            if owner is None:
                unmanaged = True
            elif owner["uid"] not in scales:
                uid, scale = self._find_controller_scale(pod, owner)
                scales[uid] = scale
        if unmanaged:
            selector = label_selector_string(budget["spec"].get("selector"))
            self.recorder.event(
                budget,
                "Warning",
                "UnmanagedPods",
                f"Pods selected by this PodDisruptionBudget (selector: {selector}) were "
                "found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result "
                'in undefined behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an '
                "integer value.",
            )
        return sum(scales.values())

    def _find_controller_scale(self, pod: Object, owner: Object) -> tuple[str, int]:
        """Returns uid and size of the pod's controller, which is the Deployment for pods of a Deployment's ReplicaSet."""
        namespace, group = pod["metadata"]["namespace"], owner["apiVersion"].rpartition("/")[0]
        resource = _CACHED.get((group, owner["kind"]))
        found = self.cache.get(resource, namespace, owner["name"]) if resource is not None else None
        if found is not None and found["metadata"]["uid"] == owner["uid"]:
            above = get_controller_of(found)
            if resource == "replicasets.apps" and above is not None and above["kind"] == "Deployment":
                found = self.cache.get("deployments.apps", namespace, above["name"])
            if found is not None and (above is None or found["metadata"]["uid"] in (above["uid"], owner["uid"])):
                return found["metadata"]["uid"], found["spec"].get("replicas", 0)
        scale = self._get_scale(namespace, owner)
        if scale is None or scale["metadata"].get("uid") != owner["uid"]:
            raise ExpectedPodCountError(f'found no controllers for pod "{pod["metadata"]["name"]}"')
        return owner["uid"], scale["spec"].get("replicas", 0)

    def _get_scale(self, namespace: str, owner: Object) -> Object | None:
        """Reads the Scale of any controller; None if it is not found. Raises ApiError, ExpectedPodCountError."""
        group = owner["apiVersion"].rpartition("/")[0]
        try:
            resource = self.client.resource(owner["kind"], owner["apiVersion"])
        except UnknownResource:
            text = f'no matches for kind "{owner["kind"]}" in version "{owner["apiVersion"]}"'
            raise ExpectedPodCountError(text) from None
        try:
            return self.client.call("GET", self.client.path(resource, namespace, owner["name"], "scale"))
        except ApiError as error:
            if error.code != 404:
                raise
            if "scale" not in resource.subresources:
                full = group_resource(group, resource.plural)
                raise ExpectedPodCountError(f"{full} does not implement the scale subresource") from None
            return None

    def _build_disrupted_pods(self, key: Key, budget: Object, pods: list[Object]) -> dict[str, str]:
        """Returns the entries of status.disruptedPods that have not expired and whose pods are not being deleted."""
        disrupted = (budget.get("status") or {}).get("disruptedPods") or {}
        now, kept, waits = self.clock.now(), {}, []
        for pod in pods:
            name = pod["metadata"]["name"]
            if name not in disrupted or "deletionTimestamp" in pod["metadata"]:
                continue
            left = parse_time(disrupted[name]) + DELETION_TIMEOUT - now
            if left < timedelta():
                namespace = budget["metadata"]["namespace"]
                text = f"Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't"
                self.recorder.event(pod, "Warning", "NotDeleted", text)
            else:
                kept[name] = disrupted[name]
                waits.append(left.total_seconds())
        if waits:
            self.requeue_after(key, min(waits) + 0.001)
        return kept

    # --- Status -------------------------------------------------------------------------------------------------------

    def _update_status(self, budget: Object, healthy: int, desired: int, expected: int, disrupted: dict[str, str]) -> None:
        """Writes the status if it has changed."""
        old = budget.get("status") or {}
        allowed = max(healthy - desired, 0) if expected > 0 else 0
        generation = budget["metadata"].get("generation", 0)
        status: Object = {
            "observedGeneration": generation,
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
        }
        reason, verdict = ("SufficientPods", "True") if allowed else ("InsufficientPods", "False")
        conditions = self._set_condition(old, verdict, reason, "", generation)
        known = {name: old.get(name, 0) for name in status}
        former = find_condition(old, "DisruptionAllowed") or {}
        same = known == status and (old.get("disruptedPods") or {}) == disrupted
        if same and (former.get("status"), former.get("reason")) == (verdict, reason):
            return
        if disrupted:
            status["disruptedPods"] = disrupted
        self.client.update({**budget, "status": {**status, "conditions": conditions}}, subresource="status")

    def _set_condition(self, status: Object, verdict: str, reason: str, message: str, generation: int) -> list[Any]:
        """Returns the conditions with a new DisruptionAllowed (meta.SetStatusCondition)."""
        made = {
            "type": "DisruptionAllowed",
            "status": verdict,
            "observedGeneration": generation,
            "lastTransitionTime": self.client.now(),
            "reason": reason,
            "message": message,
        }
        return set_status_condition(status.get("conditions"), made)

    def _fail_safe(self, budget: Object, message: str) -> None:
        """Allows no disruptions, because the sync has failed."""
        old = budget.get("status") or {}
        numbers = {name: old.get(name, 0) for name in ("currentHealthy", "desiredHealthy", "expectedPods")}
        conditions = self._set_condition(old, "False", "SyncFailed", message, old.get("observedGeneration", 0))
        status = {**old, **numbers, "disruptionsAllowed": 0, "conditions": conditions}
        self.client.update({**budget, "status": status}, subresource="status")

    # --- Stale conditions ---------------------------------------------------------------------------------------------

    def _seconds_until_stale(self, pod: StoredObject) -> float | None:
        """Returns the seconds until the condition DisruptionTarget of the pod is reset; None if it need not be."""
        if "deletionTimestamp" in pod["metadata"] or is_pod_terminal(pod):
            return None
        condition = find_condition(pod.get("status") or {}, "DisruptionTarget")
        if condition is None or condition["status"] != "True" or condition.get("reason") == "TerminationByKubelet":
            return None
        since = condition.get("lastTransitionTime")
        left = STALE_TIMEOUT - (self.clock.now() - parse_time(since)) if since else timedelta()
        return max(left.total_seconds(), 0.0)

    def _sync_stale_pod_disruption(self, key: Key) -> None:
        pod = self.cache.get("pods", key.namespace, key.name.removeprefix(POD_PREFIX))
        wait = self._seconds_until_stale(pod) if pod is not None else None
        if pod is None or wait is None:
            return
        if wait > 0:
            self.requeue_after(key, wait)
            return
        conditions = [
            {"type": "DisruptionTarget", "status": "False", "lastTransitionTime": self.client.now(), "lastProbeTime": None}
            if one["type"] == "DisruptionTarget"
            else one
            for one in pod["status"]["conditions"]
        ]
        self.client.update({**pod, "status": {**pod["status"], "conditions": conditions}}, subresource="status")
