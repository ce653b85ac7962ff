"""PodDisruptionBudgets: how many of the pods that a budget selects are healthy, and how many may be disrupted.

What a budget's shares are of is what the pods' controllers want, not what is there. A pod that the eviction API has promised
to let go (status.disruptedPods) counts as gone for two minutes. A pod that is marked DisruptionTarget and lives on loses the
mark after two minutes.

Specified by: pkg/controller/disruption/disruption.go, k8s.io/component-helpers/apps/poddisruptionbudget.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from fakekube.client import ApiError, UnknownResource
from fakekube.controllers.owners import controller_of
from fakekube.controllers.percentages import scaled_value
from fakekube.controllers.pods import is_ready, is_terminal, moment
from fakekube.controllers.reconciler import Key, Object, Reconciler
from fakekube.selectors import from_label_selector

__all__ = ["DisruptionController", "go_text"]

DELETION_TIMEOUT = timedelta(minutes=2)
STALE_TIMEOUT = timedelta(minutes=2)
_POD = "/pod/"
"""Keys of pods that may hold a stale condition begin with this, as no name does."""

_SCALED = {
    ("", "ReplicationController"): "replicationcontrollers",
    ("apps", "ReplicaSet"): "replicasets.apps",
    ("extensions", "ReplicaSet"): "replicasets.apps",
    ("apps", "StatefulSet"): "statefulsets.apps",
}
"""Controllers whose objects are cached, by group and kind; the scale of others is asked for."""


class CannotCount(Exception):
    """The number of expected pods cannot be found out."""


class DisruptionController(Reconciler):
    """Keeps the status of budgets."""

    name = "disruption-controller"
    component = "controllermanager"
    watches = ("poddisruptionbudgets.policy", "pods")

    # ---- what wakes it

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None = None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if resource != "pods":
            yield Key(metadata["namespace"], metadata["name"])
            return
        budget = self._budget_of(obj)
        if budget is not None:
            yield Key(metadata["namespace"], budget["metadata"]["name"])
        wait = self._stale_in(obj) if event_type != "DELETED" else None
        if wait is not None:
            self.requeue_after(Key(metadata["namespace"], _POD + metadata["name"]), wait)

    def _budget_of(self, pod: Object) -> Object | None:
        """The budget that selects the pod; of several one, with an event."""
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
        if key.name.startswith(_POD):
            self._clear_stale(key)
            return
        budget = self.cache.get("poddisruptionbudgets.policy", key.namespace, key.name)
        if budget is None:
            return
        try:
            self._sync(key, budget)
        except (ApiError, CannotCount) as error:
            if isinstance(error, ApiError) and error.reason == "Conflict":
                raise
            self._fail_safe(budget, str(error))

    # ---- a budget

    def _sync(self, key: Key, budget: Object) -> None:
        selector = from_label_selector(budget["spec"].get("selector"))
        found = self.cache.list("pods", key.namespace)
        pods = [pod for pod in found if selector.matches(pod["metadata"].get("labels"))]
        if not pods:
            self.recorder.event(budget, "Normal", "NoPods", "No matching pods found")
        try:
            expected, desired = self._expected_and_desired(budget, pods)
        except (ApiError, CannotCount) as error:
            text = f"Failed to calculate the number of expected pods: {error}"
            self.recorder.event(budget, "Warning", "CalculateExpectedPodCountFailed", text)
            raise
        disrupted = self._disrupted(key, budget, pods)
        healthy = sum(
            "deletionTimestamp" not in pod["metadata"] and pod["metadata"]["name"] not in disrupted and is_ready(pod)
            for pod in pods
        )
        self._update_status(budget, healthy, desired, expected, disrupted)

    def _expected_and_desired(self, budget: Object, pods: list[Object]) -> tuple[int, int]:
        """How many pods there are to be, and how many of them are to be healthy. Raises ApiError, CannotCount."""
        spec = budget["spec"]
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        if most is None and not isinstance(least, str):
            return (len(pods), least) if least is not None else (0, 0)
        expected = self._expected_scale(budget, pods)
        if most is not None:
            return expected, max(expected - scaled_value(most, expected, round_up=True), 0)
        return expected, scaled_value(least, expected, round_up=True)

    def _expected_scale(self, budget: Object, pods: list[Object]) -> int:
        """How many pods the controllers of these pods want."""
        scales: dict[str, int] = {}
        unmanaged = False
        for pod in pods:
            owner = controller_of(pod)
            if owner is None:
                unmanaged = True
            elif owner["uid"] not in scales:
                uid, scale = self._scale_of(pod, owner)
                scales[uid] = scale
        if unmanaged:
            self.recorder.event(
                budget,
                "Warning",
                "UnmanagedPods",
                f"Pods selected by this PodDisruptionBudget (selector: {go_text(budget['spec'].get('selector'))}) were "
                "found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result "
                'in undefined behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an '
                "integer value.",
            )
        return sum(scales.values())

    def _scale_of(self, pod: Object, owner: Object) -> tuple[str, int]:
        """Uid and size of the controller that decides about the pod: of a ReplicaSet's owner, if it is a Deployment."""
        namespace, group = pod["metadata"]["namespace"], owner["apiVersion"].rpartition("/")[0]
        resource = _SCALED.get((group, owner["kind"]))
        found = self.cache.get(resource, namespace, owner["name"]) if resource is not None else None
        if found is not None and found["metadata"]["uid"] == owner["uid"]:
            above = controller_of(found)
            if resource == "replicasets.apps" and above is not None and above["kind"] == "Deployment":
                found = self.cache.get("deployments.apps", namespace, above["name"])
            if found is not None and (above is None or found["metadata"]["uid"] in (above["uid"], owner["uid"])):
                return found["metadata"]["uid"], found["spec"].get("replicas", 0)
        scale = self._asked_scale(namespace, owner)
        if scale is None or scale["metadata"].get("uid") != owner["uid"]:
            raise CannotCount(f'found no controllers for pod "{pod["metadata"]["name"]}"')
        return owner["uid"], scale["spec"].get("replicas", 0)

    def _asked_scale(self, namespace: str, owner: Object) -> Object | None:
        """The Scale of any controller; None if it is gone. Raises ApiError, CannotCount."""
        group, _, version = owner["apiVersion"].rpartition("/")
        try:
            resource = self.client.resource(owner["kind"], owner["apiVersion"])
        except UnknownResource:
            place = f"{group}/{version}" if group else version
            raise CannotCount(f'no matches for kind "{owner["kind"]}" in version "{place}"') from None
        try:
            return self.client.call("GET", self.client.path(resource, namespace, owner["name"], "scale"))
        except ApiError as error:
            if error.code != 404:
                raise
            if "scale" not in resource.subresources:
                full = f"{resource.plural}.{group}" if group else resource.plural
                raise CannotCount(f"{full} does not implement the scale subresource") from None
            return None

    def _disrupted(self, key: Key, budget: Object, pods: list[Object]) -> dict[str, str]:
        """The pods that an eviction has promised to let go, and that have time left for it."""
        promised = (budget.get("status") or {}).get("disruptedPods") or {}
        now, kept, waits = self.clock.now(), {}, []
        for pod in pods:
            name = pod["metadata"]["name"]
            if name not in promised or "deletionTimestamp" in pod["metadata"]:
                continue
            left = moment(promised[name]) + DELETION_TIMEOUT - now
            if left < timedelta():
                namespace = budget["metadata"]["namespace"]
                text = f"Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't"
                self.recorder.event(pod, "Warning", "NotDeleted", text)
            else:
                kept[name] = promised[name]
                waits.append(left.total_seconds())
        if waits:
            self.requeue_after(key, min(waits) + 0.001)
        return kept

    # ---- its status

    def _update_status(self, budget: Object, healthy: int, desired: int, expected: int, disrupted: dict[str, str]) -> None:
        """Write the status if it has changed."""
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
        conditions = self._with_condition(old, verdict, reason, "", generation)
        known = {name: old.get(name, 0) for name in status}
        told = {one["type"]: (one["status"], one["reason"]) for one in old.get("conditions") or ()}
        same = known == status and (old.get("disruptedPods") or {}) == disrupted
        if same and told.get("DisruptionAllowed") == (verdict, reason):
            return
        if disrupted:
            status["disruptedPods"] = disrupted
        self.client.update({**budget, "status": {**status, "conditions": conditions}}, subresource="status")

    def _with_condition(self, status: Object, verdict: str, reason: str, message: str, generation: int) -> list[Any]:
        """The conditions with DisruptionAllowed as it is now (meta.SetStatusCondition)."""
        made = {
            "type": "DisruptionAllowed",
            "status": verdict,
            "observedGeneration": generation,
            "lastTransitionTime": self.client.now(),
            "reason": reason,
            "message": message,
        }
        conditions = list(status.get("conditions") or ())
        for index, one in enumerate(conditions):
            if one["type"] == made["type"]:
                if one["status"] == verdict:
                    made["lastTransitionTime"] = one["lastTransitionTime"]
                conditions[index] = made
                return conditions
        return [*conditions, made]

    def _fail_safe(self, budget: Object, message: str) -> None:
        """Allow nothing while it is not known what may be allowed."""
        old = budget.get("status") or {}
        numbers = {name: old.get(name, 0) for name in ("currentHealthy", "desiredHealthy", "expectedPods")}
        conditions = self._with_condition(old, "False", "SyncFailed", message, old.get("observedGeneration", 0))
        status = {**old, **numbers, "disruptionsAllowed": 0, "conditions": conditions}
        self.client.update({**budget, "status": status}, subresource="status")

    # ---- stale conditions

    def _stale_in(self, pod: Object) -> float | None:
        """Seconds until the pod loses the mark that it is about to be disrupted; None if it has none."""
        if "deletionTimestamp" in pod["metadata"] or is_terminal(pod):
            return None
        for condition in (pod.get("status") or {}).get("conditions") or ():
            if condition["type"] != "DisruptionTarget":
                continue
            if condition["status"] != "True" or condition.get("reason") == "TerminationByKubelet":
                return None
            since = condition.get("lastTransitionTime")
            left = STALE_TIMEOUT - (self.clock.now() - moment(since)) if since else timedelta()
            return max(left.total_seconds(), 0.0)
        return None

    def _clear_stale(self, key: Key) -> None:
        pod = self.cache.get("pods", key.namespace, key.name.removeprefix(_POD))
        wait = self._stale_in(pod) if pod is not None else None
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


def go_text(selector: Object | None) -> str:
    """A LabelSelector as its String method in Go prints it."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{one['key']},Operator:{one['operator']},Values:[{' '.join(one.get('values') or ())}],}},"
        for one in selector.get("matchExpressions") or ()
    )
    parts = f"MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},"
    return f"&LabelSelector{{{parts}}}"
