"""The autoscaler's loop: read the Scale, ask the metrics, decide, write the Scale and the status.

An autoscaler is looked at when it is made or its spec changes, and then every 15 seconds of the clock; at once again when
its limits alone have changed the size, for the metrics have not been asked then.

Specified by: pkg/controller/podautoscaler/horizontal.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from fakekube.client import ApiError
from fakekube.controllers.podautoscaler.behavior import Bounds, Decision, History
from fakekube.controllers.podautoscaler.metric_sources import FailedMetric, MetricSources, Proposal
from fakekube.controllers.podautoscaler.metrics_client import MetricsClient, plain_message
from fakekube.controllers.podautoscaler.replica_calculator import Tolerances
from fakekube.controllers.reconciler import Key, Object, Reconciler
from fakekube.registry.resource import Resource
from fakekube.schema.quantity import parse as parse_quantity
from fakekube.selectors import LabelSelector, SelectorError, parse_labels

__all__ = ["HorizontalPodAutoscalerController"]

SYNC_PERIOD = 15.0
RESOURCE = "horizontalpodautoscalers.autoscaling"
_ABOVE = "Current number of replicas above Spec.MaxReplicas"
_BELOW = "Current number of replicas below Spec.MinReplicas"


class HorizontalPodAutoscalerController(Reconciler):
    """Scales what autoscalers name."""

    name = "horizontal-pod-autoscaler-controller"
    component = "horizontal-pod-autoscaler"
    watches = (RESOURCE, "pods")

    def started(self) -> None:
        self._histories: dict[Key, History] = {}
        self.selectors: dict[Key, LabelSelector] = {}
        """Of the scale targets, by autoscaler: no two may select the same pod."""

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        return resource == RESOURCE

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None = None) -> Iterable[Key]:
        if resource != RESOURCE:
            return ()
        key = Key(obj["metadata"]["namespace"], obj["metadata"]["name"])
        if event_type == "DELETED":
            self._histories.pop(key, None)
            self.selectors.pop(key, None)
            return ()
        return () if old is not None and old["spec"] == obj["spec"] else (key,)

    def reconcile(self, key: Key) -> None:
        autoscaler = self.cache.get(RESOURCE, *key)
        if autoscaler is None:
            return
        self.requeue_after(key, SYNC_PERIOD)
        look = _Look(self, key, autoscaler, self._histories.setdefault(key, History()))
        try:
            look.run()
        except _GiveUp:
            pass
        finally:
            look.write_status()

    def ambiguous(self, key: Key, selector: LabelSelector, pods: list[Object]) -> list[Key]:
        """The autoscalers whose targets have some of these pods."""
        self.selectors[key] = selector
        return [
            other
            for other, found in self.selectors.items()
            if other.namespace == key.namespace and any(found.matches(pod["metadata"].get("labels")) for pod in pods)
        ]


class _GiveUp(Exception):
    """Nothing more can be done until the next look."""


class _Look:
    """One look at an autoscaler.

    Args:
        controller: whose client, clock and recorder are used.
        key: of the autoscaler.
        autoscaler: as it stands.
        history: what is remembered of it.
    """

    def __init__(self, controller: HorizontalPodAutoscalerController, key: Key, autoscaler: Object, history: History) -> None:
        self._controller = controller
        self._key = key
        self._autoscaler = autoscaler
        self._history = history
        self._now = controller.clock.monotonic()
        self.status = dict(autoscaler.get("status") or {})

    # ---- what it says

    def _event(self, reason: str, message: str, type_: str = "Warning") -> None:
        self._controller.recorder.event(self._autoscaler, type_, reason, message)

    def _set_condition(self, type_: str, verdict: bool, reason: str, message: str) -> None:
        status, conditions = "True" if verdict else "False", list(self.status.get("conditions") or ())
        made = {
            "type": type_,
            "status": status,
            "lastTransitionTime": self._controller.client.now(),
            "reason": reason,
            "message": message,
        }
        for index, one in enumerate(conditions):
            if one["type"] == type_:
                if one["status"] == status:
                    made["lastTransitionTime"] = one["lastTransitionTime"]
                conditions[index] = made
                break
        else:
            conditions.append(made)
        self.status["conditions"] = conditions

    def write_status(self) -> None:
        """Write the status if it has changed."""
        if self.status == (self._autoscaler.get("status") or {}):
            return
        try:
            self._controller.client.update({**self._autoscaler, "status": self.status}, subresource="status")
        except ApiError as error:
            self._event("FailedUpdateStatus", str(error))

    # ---- the target

    def _fail_scale(self, message: str) -> _GiveUp:
        self._event("FailedGetScale", message)
        text = f"the HPA controller was unable to get the target's current scale: {message}"
        self._set_condition("AbleToScale", False, "FailedGetScale", text)
        return _GiveUp()

    def _scale(self) -> tuple[str, Object]:
        """The path of the target's Scale, and the Scale. Raises _GiveUp."""
        target = self._autoscaler["spec"]["scaleTargetRef"]
        version = target.get("apiVersion", "")
        if version.count("/") > 1:
            raise self._fail_scale(f"unexpected GroupVersion string: {version}")
        group = version.rpartition("/")[0]
        found = self._resource(target["kind"], group)
        if found is None:
            raise self._fail_scale(f'no matches for kind "{target["kind"]}" in group "{group}"')
        path = self._controller.client.path(found, self._key.namespace, target["name"], "scale")
        try:
            scale = self._controller.client.call("GET", path)
        except ApiError as error:
            raise self._fail_scale(plain_message(error)) from None
        text = "the HPA controller was able to get the target's current scale"
        self._set_condition("AbleToScale", True, "SucceededGetScale", text)
        return path, scale

    def _resource(self, kind: str, group: str) -> Resource | None:
        """A resource of the kind and the group, of whatever version."""
        resources = self._controller.context.registry
        return next((one for one in resources if one.kind == kind and one.group == group and one.namespaced), None)

    # ---- the decision

    def run(self) -> None:
        """Scale the target if need be. Raises _GiveUp."""
        path, scale = self._scale()
        spec, current = self._autoscaler["spec"], scale["spec"].get("replicas", 0)
        bounds = least, most = Bounds(spec.get("minReplicas", 1), spec["maxReplicas"])
        self._history.begin(current, self._now)
        if current == 0:
            text = "scaling is disabled since the replica count of the target is zero"
            self._set_condition("ScalingActive", False, "ScalingDisabled", text)
            self._set_numbers(0, 0, None)
        elif current > most or current < least:
            self._rescale(path, scale, min(max(current, least), most), _ABOVE if current > most else _BELOW, None)
            self._controller.enqueue(self._key)
        else:
            self._by_metrics(path, scale, current, bounds)

    def _by_metrics(self, path: str, scale: Object, current: int, bounds: Bounds) -> None:
        proposal, statuses = self._proposals(scale, current)
        behavior = self._autoscaler["spec"].get("behavior")
        desired = proposal.replicas
        reason = f"{proposal.name} above target" if desired > current else "All metrics below target"
        if behavior is None:
            decision = self._history.decide(desired, current, bounds, self._now)
        else:
            decision = self._history.decide_by(behavior, desired, current, bounds, self._now)
        self._tell(decision)
        if decision.replicas == current:
            self._set_numbers(current, current, statuses)
        else:
            self._rescale(path, scale, decision.replicas, reason if desired != current else "", statuses)

    def _tell(self, decision: Decision) -> None:
        self._set_condition("AbleToScale", True, *decision.able)
        self._set_condition("ScalingLimited", decision.limited, *decision.limit)

    def _set_numbers(self, current: int, desired: int, metrics: list[Object] | None) -> None:
        self.status["desiredReplicas"] = desired
        self.status["currentMetrics"] = metrics
        if current:
            self.status["currentReplicas"] = current
        else:
            self.status.pop("currentReplicas", None)

    def _rescale(self, path: str, scale: Object, desired: int, reason: str, metrics: list[Object] | None) -> None:
        """Write the Scale. Raises _GiveUp."""
        client, current = self._controller.client, scale["spec"].get("replicas", 0)
        try:
            client.call("PUT", path, {**scale, "spec": {**scale["spec"], "replicas": desired}})
        except ApiError as error:
            self._event("FailedRescale", f"New size: {desired}; reason: {reason}; error: {error}")
            text = f"the HPA controller was unable to update the target scale: {error}"
            self._set_condition("AbleToScale", False, "FailedUpdateScale", text)
            self._set_numbers(current, self.status.get("desiredReplicas", 0), metrics)
            raise _GiveUp from None
        text = f"the HPA controller was able to update the target scale to {desired}"
        self._set_condition("AbleToScale", True, "SucceededRescale", text)
        self._event("SuccessfulRescale", f"New size: {desired}; reason: {reason}", "Normal")
        self._history.scaled(self._autoscaler["spec"].get("behavior"), current, desired, self._now)
        self._set_numbers(current, desired, metrics)
        self.status["lastScaleTime"] = client.now()

    # ---- the metrics

    def _proposals(self, scale: Object, current: int) -> tuple[Proposal, list[Object]]:
        """The largest proposal, and the status of each metric. Raises _GiveUp."""
        metrics = self._autoscaler["spec"].get("metrics") or []
        statuses: list[Object] = []
        failures: list[FailedMetric] = []
        best: Proposal | None = None
        try:
            sources = self._sources(scale, current)
        except _InvalidSelector as error:
            self._set_numbers(current, self.status.get("desiredReplicas", 0), None)
            self._event("FailedComputeMetricsReplicas", str(error))
            raise _GiveUp from None
        for metric in metrics:
            try:
                proposal = sources.propose(metric)
            except FailedMetric as failure:
                self._event(failure.reason, failure.text)
                failures.append(failure)
                statuses.append({"type": ""})
                continue
            statuses.append(proposal.status)
            if best is None or proposal.replicas > best.replicas:
                best = proposal
        if best is None or (failures and best.replicas < current):
            self._fail_metrics(failures, len(metrics), current, statuses)
            raise _GiveUp
        text = f"the HPA was able to successfully calculate a replica count from {best.name}"
        self._set_condition("ScalingActive", True, "ValidMetricFound", text)
        return best, statuses

    def _fail_metrics(self, failures: list[FailedMetric], total: int, current: int, statuses: list[Object]) -> None:
        if failures:
            text = f"the HPA was unable to compute the replica count: {failures[0].text}"
            self._set_condition("ScalingActive", False, failures[0].reason, text)
            message = f"invalid metrics ({len(failures)} invalid out of {total}), first error is: {failures[0]}"
            self._event("FailedComputeMetricsReplicas", message)
        self._set_numbers(current, self.status.get("desiredReplicas", 0), statuses)

    def _sources(self, scale: Object, current: int) -> MetricSources:
        """What computes proposals for the target. Raises _InvalidSelector."""
        text = (scale.get("status") or {}).get("selector", "")
        if not text:
            self._event("SelectorRequired", "selector is required")
            missing = "the HPA target's scale is missing a selector"
            self._set_condition("ScalingActive", False, "InvalidSelector", missing)
            raise _InvalidSelector("selector is required")
        try:
            selector = parse_labels(text)
        except SelectorError as error:
            what = "couldn't convert selector into a corresponding internal selector object"
            raise self._invalid("InvalidSelector", f"{what}: {error}") from None
        found = self._controller.cache.list("pods", self._key.namespace)
        pods = [pod for pod in found if selector.matches(pod["metadata"].get("labels"))]
        rivals = self._controller.ambiguous(self._key, selector, pods)
        if len(rivals) > 1:
            shown = " ".join(f"{rival.namespace}/{rival.name}" for rival in rivals)
            raise self._invalid("AmbiguousSelector", f"pods by selector {text} are controlled by multiple HPAs: [{shown}]")
        reported = (scale.get("status") or {}).get("replicas", 0)
        client = MetricsClient(self._controller.client, self._key.namespace)
        return MetricSources(client, pods, text, current, reported, self._tolerances(), self._controller.clock.now())

    def _invalid(self, reason: str, message: str) -> _InvalidSelector:
        self._event(reason, message)
        self._set_condition("ScalingActive", False, reason, message)
        return _InvalidSelector(message)

    def _tolerances(self) -> Tolerances:
        behavior, default = self._autoscaler["spec"].get("behavior") or {}, Tolerances()
        down, up = ((behavior.get(name) or {}).get("tolerance") for name in ("scaleDown", "scaleUp"))
        return Tolerances(
            default.down if down is None else float(parse_quantity(down).amount),
            default.up if up is None else float(parse_quantity(up).amount),
        )


class _InvalidSelector(Exception):
    """The target's pods cannot be told."""
