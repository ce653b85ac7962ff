"""The sync of autoscalers: reads the Scale, computes the replica count from metrics, writes the Scale and the status.

An autoscaler is synced when it is created or its spec changes, and then every 15 seconds of the clock. If minReplicas or
maxReplicas alone has changed the size, it is synced again at once, because metrics were not read.

Without `spec.behavior` the highest recommendation of the last five minutes is used, and the replica count may at most double (or
grow to four). With it, each direction has its own stabilization window and policies.

Invariant: a recommendation older than the stabilization windows is replaced by a new one, so that the list does not grow.

Specified by: pkg/controller/podautoscaler/horizontal.go (normalizeDesiredReplicas, normalizeDesiredReplicasWithBehaviors).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import ceil
from typing import Final, NamedTuple

from fakekube.apimachinery.schema.quantity import parse as parse_quantity
from fakekube.apimachinery.selectors import LabelSelector, SelectorError, parse_labels
from fakekube.apis.rest.resource import Resource
from fakekube.apis.validation.objectmeta import has_condition, set_status_condition
from fakekube.base.golang.strconv import MAX_INT32
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError
from fakekube.controllers.podautoscaler.replica_calculator import (
    FailedMetric,
    MetricsClient,
    MetricSources,
    Proposal,
    Tolerances,
    client_go_message,
)
from fakekube.controllers.reconciler import Key, Reconciler

#: Seconds (--horizontal-pod-autoscaler-downscale-stabilization).
DOWNSCALE_WINDOW: Final = 300.0
#: Without `spec.behavior`, a sync scales up to at most so many times the present count, or to so many replicas.
SCALE_UP_FACTOR: Final = 2
SCALE_UP_MINIMUM: Final = 4

_LOWER: Final = "recent recommendations were lower than current one, applying the lowest recent recommendation"
_HIGHER: Final = "recent recommendations were higher than current one, applying the highest recent recommendation"
_READY: Final = ("ReadyForNewScale", "recommended size matches current size")
_IN_RANGE: Final = ("DesiredWithinRange", "the desired count is within the acceptable range")
_TOO_MANY: Final = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW: Final = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
_UP_LIMIT: Final = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
_DOWN_LIMIT: Final = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")


class Bounds(NamedTuple):
    """minReplicas and maxReplicas of an autoscaler."""

    minimum: int
    maximum: int


class Decision(NamedTuple):
    """The replica count, and the conditions that explain it."""

    replicas: int
    able: tuple[str, str]
    """Reason and message of the condition AbleToScale."""
    limited: bool
    """The status of the condition ScalingLimited."""
    limit: tuple[str, str]
    """Reason and message of the condition ScalingLimited."""


class _Sample(NamedTuple):
    """A recommendation or a change of the replica count, and its time."""

    value: int
    time: float


@dataclass(slots=True)
class History:
    """The recommendations and scale events of one autoscaler. Times are monotonic seconds of the clock."""

    recommendations: list[_Sample] = field(default_factory=list)
    ups: list[_Sample] = field(default_factory=list)
    downs: list[_Sample] = field(default_factory=list)

    def record_initial_recommendation(self, current: int, now: float) -> None:
        """Adds the current replica count, if there is no recommendation yet (recordInitialRecommendation)."""
        if not self.recommendations:
            self.recommendations.append(_Sample(current, now))

    # --- Without behavior ---------------------------------------------------------------------------------------------

    def normalize(self, desired: int, current: int, bounds: Bounds, now: float) -> Decision:
        """Stabilizes and limits a replica count (normalizeDesiredReplicas).

        Args:
            desired: the replica count that the metrics recommend.
            current: the current replica count.
            bounds: minReplicas and maxReplicas.
            now: the monotonic time.
        """
        minimum, maximum = bounds
        cutoff = now - DOWNSCALE_WINDOW
        stable = max([desired, *(one.value for one in self.recommendations if one.time >= cutoff)])
        self._record_recommendation(desired, now, cutoff)
        able = ("ScaleDownStabilized", _HIGHER) if stable != desired else _READY
        limit = max(SCALE_UP_FACTOR * current, SCALE_UP_MINIMUM)
        allowed, reason = (limit, _UP_LIMIT) if maximum > limit else (maximum, _TOO_MANY)
        if stable < minimum:
            return Decision(minimum, able, True, _TOO_FEW)
        if stable > allowed:
            return Decision(allowed, able, True, reason)
        return Decision(stable, able, False, _IN_RANGE)

    def _record_recommendation(self, desired: int, now: float, cutoff: float) -> None:
        """Replaces the last outdated recommendation, if there is one, by a new one; else appends it."""
        outdated = [index for index, one in enumerate(self.recommendations) if one.time < cutoff]
        if outdated:
            self.recommendations[outdated[-1]] = _Sample(desired, now)
        else:
            self.recommendations.append(_Sample(desired, now))

    # --- With behavior ------------------------------------------------------------------------------------------------

    def normalize_with_behaviors(self, behavior: Object, desired: int, current: int, bounds: Bounds, now: float) -> Decision:
        """As `normalize`, with the rules of `spec.behavior` (normalizeDesiredReplicasWithBehaviors)."""
        minimum, maximum = bounds
        up, down = behavior["scaleUp"], behavior["scaleDown"]
        stable = self._stabilize_recommendation(up, down, desired, current, now)
        able = _READY
        if stable != desired:
            able = ("ScaleUpStabilized", _LOWER) if desired >= current else ("ScaleDownStabilized", _HIGHER)
        if stable > current:
            limit = max(self._calculate_limit(up, current, now, 1), current)
            allowed, reason = (limit, _UP_LIMIT) if maximum > limit else (maximum, _TOO_MANY)
            if stable > allowed:
                return Decision(allowed, able, True, reason)
        elif stable < current:
            limit = min(self._calculate_limit(down, current, now, -1), current)
            allowed, reason = (limit, _DOWN_LIMIT) if minimum < limit else (minimum, _TOO_FEW)
            if stable < allowed:
                return Decision(allowed, able, True, reason)
        return Decision(stable, able, False, _IN_RANGE)

    def _stabilize_recommendation(self, up: Object, down: Object, desired: int, current: int, now: float) -> int:
        """Returns the replica count that the recommendations of both stabilization windows allow."""
        since_up = now - up.get("stabilizationWindowSeconds", 0)
        since_down = now - down.get("stabilizationWindowSeconds", DOWNSCALE_WINDOW)
        lowest = min([desired, *(one.value for one in self.recommendations if one.time > since_up)])
        highest = max([desired, *(one.value for one in self.recommendations if one.time > since_down)])
        self._record_recommendation(desired, now, min(since_up, since_down))
        return min(max(current, lowest), highest)

    def _calculate_limit(self, rules: Object, current: int, now: float, sign: int) -> int:
        """Returns the replica count that the policies allow; `sign` is 1 for scaling up and -1 for scaling down."""
        select = rules.get("selectPolicy", "Max")
        if select == "Disabled":
            return current
        choose: Callable[..., int] = max if (select == "Max") == (sign > 0) else min
        limits = []
        for policy in rules.get("policies") or ():
            start = current - self._change_in_period(self.ups, policy, now) + self._change_in_period(self.downs, policy, now)
            if policy["type"] == "Pods":
                limits.append(start + sign * policy["value"])
            elif sign > 0:
                limits.append(ceil(start * (1 + policy["value"] / 100)))
            else:
                limits.append(int(start * (1 - policy["value"] / 100)))
        return choose(limits) if limits else (-MAX_INT32 if choose is max else MAX_INT32)

    @staticmethod
    def _change_in_period(events: list[_Sample], policy: Object, now: float) -> int:
        """Returns the change of the replica count in the policy's period (getReplicasChangePerPeriod)."""
        return sum(event.value for event in events if event.time > now - policy["periodSeconds"])

    def store_scale_event(self, behavior: Object | None, before: int, after: int, now: float) -> None:
        """Adds a change of the replica count, if there is a `spec.behavior` (storeScaleEvent)."""
        if behavior is None:
            return
        events, rules = (self.ups, behavior["scaleUp"]) if after > before else (self.downs, behavior["scaleDown"])
        longest = max((policy["periodSeconds"] for policy in rules.get("policies") or ()), default=0)
        events[:] = [event for event in events if event.time >= now - longest]
        events.append(_Sample(abs(after - before), now))


#: Seconds (--horizontal-pod-autoscaler-sync-period).
SYNC_PERIOD: Final = 15.0
RESOURCE: Final = "horizontalpodautoscalers.autoscaling"
#: A gate and its condition, the first minor with that condition, and the first one that names two rivals only.
_SCALE_TO_ZERO, _SCALED_TO_ZERO = "HPAScaleToZero", "ScaledToZero"
_SCALED_TO_ZERO_SINCE, _EXAMPLES_SINCE = 36, 37
_ABOVE: Final = "Current number of replicas above Spec.MaxReplicas"
_BELOW: Final = "Current number of replicas below Spec.MinReplicas"


class HorizontalPodAutoscalerController(Reconciler):
    """Scales the targets of autoscalers."""

    name = "horizontal-pod-autoscaler-controller"
    component = "horizontal-pod-autoscaler"
    watches = (RESOURCE, "pods")

    def on_start(self) -> None:
        self._histories: dict[Key, History] = {}
        self.selectors: dict[Key, LabelSelector] = {}
        """Autoscaler → the selector of its target; two of them must not select the same pod."""

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        return resource == RESOURCE

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None = None) -> Iterable[Key]:
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
        sync = _Sync(self, key, autoscaler, self._histories.setdefault(key, History()))
        try:
            sync.run()
        except _StopSync:
            pass
        finally:
            sync.write_status()

    def autoscalers_for_pods(self, key: Key, selector: LabelSelector, pods: list[Object]) -> list[Key]:
        """Stores the selector of an autoscaler, and returns all autoscalers that select some of these pods."""
        self.selectors[key] = selector
        return [
            other
            for other, found in self.selectors.items()
            if other.namespace == key.namespace and any(found.matches(pod["metadata"].get("labels")) for pod in pods)
        ]


class _StopSync(Exception):
    """The sync ends here; its conditions are written."""


class _Sync:
    """One sync of an autoscaler.

    Args:
        controller: provides the client, the clock and the recorder.
        key: the key of the autoscaler.
        autoscaler: the autoscaler.
        history: its recommendations and scale events.
    """

    def __init__(self, controller: HorizontalPodAutoscalerController, key: Key, autoscaler: Object, history: History) -> None:
        self._controller = controller
        self._key = key
        self._autoscaler = autoscaler
        self._history = history
        self._emulation = controller.context.emulation
        self._now = controller.clock.monotonic()
        self.status = dict(autoscaler.get("status") or {})

    # --- Events, conditions, status -----------------------------------------------------------------------------------

    def _record_event(self, reason: str, message: str, type_: str = "Warning") -> None:
        self._controller.recorder.event(self._autoscaler, type_, reason, message)

    def _set_condition(self, type_: str, verdict: bool, reason: str, message: str) -> None:
        made = {
            "type": type_,
            "status": "True" if verdict else "False",
            "lastTransitionTime": self._controller.client.now(),
            "reason": reason,
            "message": message,
        }
        self.status["conditions"] = set_status_condition(self.status.get("conditions"), made)

    def _remove_condition(self, type_: str) -> None:
        if self.status.get("conditions"):
            self.status["conditions"] = [one for one in self.status["conditions"] if one["type"] != type_]

    def write_status(self) -> None:
        """Writes the status if it has changed."""
        if self.status == (self._autoscaler.get("status") or {}):
            return
        try:
            self._controller.client.update({**self._autoscaler, "status": self.status}, subresource="status")
        except ApiError as error:
            self._record_event("FailedUpdateStatus", str(error))

    # --- The target ---------------------------------------------------------------------------------------------------

    def _fail_scale(self, message: str) -> _StopSync:
        """Reports that there is no Scale, and returns the exception to raise."""
        self._record_event("FailedGetScale", message)
        text = f"the HPA controller was unable to get the target's current scale: {message}"
        self._set_condition("AbleToScale", False, "FailedGetScale", text)
        return _StopSync()

    def _get_scale(self) -> tuple[str, Object]:
        """Returns the path of the target's Scale, and the Scale. Raises _StopSync."""
        target = self._autoscaler["spec"]["scaleTargetRef"]
        version = target.get("apiVersion", "")
        if version.count("/") > 1:
            raise self._fail_scale(f"unexpected GroupVersion string: {version}")
        group = version.rpartition("/")[0]
        found = self._find_resource(target["kind"], group)
        if found is None:
            raise self._fail_scale(f'no matches for kind "{target["kind"]}" in group "{group}"')
        path = self._controller.client.path(found, self._key.namespace, target["name"], "scale")
        try:
            scale = self._controller.client.call("GET", path)
        except ApiError as error:
            raise self._fail_scale(client_go_message(error)) from None
        text = "the HPA controller was able to get the target's current scale"
        self._set_condition("AbleToScale", True, "SucceededGetScale", text)
        return path, scale

    def _find_resource(self, kind: str, group: str) -> Resource | None:
        """Returns a resource with this kind and group, in any version."""
        resources = self._controller.context.registry
        return next((one for one in resources if one.kind == kind and one.group == group and one.namespaced), None)

    # --- The replica count --------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Scales the target if necessary. Raises _StopSync."""
        path, scale = self._get_scale()
        spec, current = self._autoscaler["spec"], scale["spec"].get("replicas", 0)
        bounds = Bounds(spec.get("minReplicas", 1), spec["maxReplicas"])
        self._history.record_initial_recommendation(current, self._now)
        if current == 0 and not self._scales_from_zero(bounds.minimum):
            text = "scaling is disabled since the replica count of the target is zero"
            self._set_condition("ScalingActive", False, "ScalingDisabled", text)
            if not self._emulation.enabled(_SCALE_TO_ZERO):
                self._remove_condition(_SCALED_TO_ZERO)
            self._set_replicas(0, 0, None)
        elif current and not bounds.minimum <= current <= bounds.maximum:
            bounded = min(max(current, bounds.minimum), bounds.maximum)
            self._write_scale(path, scale, bounded, _ABOVE if current > bounds.maximum else _BELOW, None)
            self._controller.enqueue(self._key)
        else:
            self._scale_by_metrics(path, scale, current, bounds)

    @property
    def _was_scaled_to_zero(self) -> bool:
        return has_condition(self.status, _SCALED_TO_ZERO) and self._emulation.enabled(_SCALE_TO_ZERO)

    @property
    def _has_metrics_without_pods(self) -> bool:
        """Whether a metric has a value while there are no pods (hasObjectOrExternalMetrics)."""
        return any(metric["type"] in ("Object", "External") for metric in self._autoscaler["spec"].get("metrics") or ())

    def _scales_from_zero(self, minimum: int) -> bool:
        """Reports whether a target without replicas is scaled (shouldComputeMetricsForZeroReplicas)."""
        if self._emulation.minor < _SCALED_TO_ZERO_SINCE:
            return minimum == 0
        return self._was_scaled_to_zero and (minimum != 0 or self._has_metrics_without_pods)

    def _scale_by_metrics(self, path: str, scale: Object, current: int, bounds: Bounds) -> None:
        proposal, statuses = self._compute_replicas(scale, current)
        behavior = self._autoscaler["spec"].get("behavior")
        desired = proposal.replicas
        reason = f"{proposal.name} above target" if desired > current else "All metrics below target"
        if behavior is None:
            decision = self._history.normalize(desired, current, bounds, self._now)
        else:
            decision = self._history.normalize_with_behaviors(behavior, desired, current, bounds, self._now)
        self._set_decision_conditions(decision)
        if current == 0 and decision.replicas < bounds.minimum and self._was_scaled_to_zero:
            decision = decision._replace(replicas=bounds.minimum)
            reason = reason if desired > current else _BELOW
        if decision.replicas == current:
            self._set_replicas(current, current, statuses)
        else:
            self._write_scale(path, scale, decision.replicas, reason if desired != current else "", statuses)

    def _set_decision_conditions(self, decision: Decision) -> None:
        self._set_condition("AbleToScale", True, *decision.able)
        self._set_condition("ScalingLimited", decision.limited, *decision.limit)

    def _set_replicas(self, current: int, desired: int, metrics: list[Object] | None) -> None:
        self.status["desiredReplicas"] = desired
        self.status["currentMetrics"] = metrics
        if current:
            self.status["currentReplicas"] = current
        else:
            self.status.pop("currentReplicas", None)
        if self._emulation.enabled("HPAGeneration"):
            self.status["observedGeneration"] = self._autoscaler["metadata"].get("generation", 0)
        else:
            self.status.pop("observedGeneration", None)

    def _write_scale(self, path: str, scale: Object, desired: int, reason: str, metrics: list[Object] | None) -> None:
        """Writes the Scale. Raises _StopSync."""
        client, current = self._controller.client, scale["spec"].get("replicas", 0)
        try:
            client.call("PUT", path, {**scale, "spec": {**scale["spec"], "replicas": desired}})
        except ApiError as error:
            self._record_event("FailedRescale", f"New size: {desired}; reason: {reason}; error: {error}")
            text = f"the HPA controller was unable to update the target scale: {error}"
            self._set_condition("AbleToScale", False, "FailedUpdateScale", text)
            self._set_replicas(current, self.status.get("desiredReplicas", 0), metrics)
            raise _StopSync from None
        text = f"the HPA controller was able to update the target scale to {desired}"
        self._set_condition("AbleToScale", True, "SucceededRescale", text)
        self._record_event("SuccessfulRescale", f"New size: {desired}; reason: {reason}", "Normal")
        self._history.store_scale_event(self._autoscaler["spec"].get("behavior"), current, desired, self._now)
        self._set_scaled_to_zero(current, desired)
        self._set_replicas(current, desired, metrics)
        self.status["lastScaleTime"] = client.now()

    def _set_scaled_to_zero(self, current: int, desired: int) -> None:
        """Says in a condition whether this rescale is one to zero, by metrics that can scale from there."""
        if not self._emulation.enabled(_SCALE_TO_ZERO):
            self._remove_condition(_SCALED_TO_ZERO)
        elif self._emulation.minor >= _SCALED_TO_ZERO_SINCE:
            may_be_zero = self._autoscaler["spec"].get("minReplicas", 1) == 0 and self._has_metrics_without_pods
            if current and not desired and may_be_zero:
                self._set_condition(_SCALED_TO_ZERO, True, "ScaledToZero", "the HPA controller scaled the workload to zero")
            else:
                text = "the HPA controller did not scale the workload to zero"
                self._set_condition(_SCALED_TO_ZERO, False, "NotScaledToZero", text)

    # --- The metrics --------------------------------------------------------------------------------------------------

    def _compute_replicas(self, scale: Object, current: int) -> tuple[Proposal, list[Object]]:
        """Returns the largest proposal, and the status of each metric. Raises _StopSync."""
        metrics = self._autoscaler["spec"].get("metrics") or []
        statuses: list[Object] = []
        failures: list[FailedMetric] = []
        best: Proposal | None = None
        try:
            sources = self._metric_sources(scale, current)
        except _InvalidSelector as error:
            self._set_replicas(current, self.status.get("desiredReplicas", 0), None)
            self._record_event("FailedComputeMetricsReplicas", str(error))
            raise _StopSync from None
        for metric in metrics:
            try:
                proposal = sources.compute_replicas(metric)
            except FailedMetric as failure:
                self._record_event(failure.reason, failure.text)
                failures.append(failure)
                statuses.append({"type": ""})
                continue
            statuses.append(proposal.status)
            if best is None or proposal.replicas > best.replicas:
                best = proposal
        if best is None or (failures and best.replicas < current):
            self._fail_metrics(failures, len(metrics), current, statuses)
            raise _StopSync
        text = f"the HPA was able to successfully calculate a replica count from {best.name}"
        self._set_condition("ScalingActive", True, "ValidMetricFound", text)
        return best, statuses

    def _fail_metrics(self, failures: list[FailedMetric], total: int, current: int, statuses: list[Object]) -> None:
        """Reports that the replica count cannot be computed, or must not be reduced, because metrics are invalid."""
        if failures:
            text = f"the HPA was unable to compute the replica count: {failures[0].text}"
            self._set_condition("ScalingActive", False, failures[0].reason, text)
            message = f"invalid metrics ({len(failures)} invalid out of {total}), first error is: {failures[0]}"
            self._record_event("FailedComputeMetricsReplicas", message)
        self._set_replicas(current, self.status.get("desiredReplicas", 0), statuses)

    def _metric_sources(self, scale: Object, current: int) -> MetricSources:
        """Returns the metric sources of the target's pods. Raises _InvalidSelector."""
        text = (scale.get("status") or {}).get("selector", "")
        if not text:
            self._record_event("SelectorRequired", "selector is required")
            missing = "the HPA target's scale is missing a selector"
            self._set_condition("ScalingActive", False, "InvalidSelector", missing)
            raise _InvalidSelector("selector is required")
        try:
            selector = parse_labels(text)
        except SelectorError as error:
            what = "couldn't convert selector into a corresponding internal selector object"
            raise self._invalid_selector("InvalidSelector", f"{what}: {error}") from None
        found = self._controller.cache.list("pods", self._key.namespace)
        pods = [pod for pod in found if selector.matches(pod["metadata"].get("labels"))]
        rivals = self._controller.autoscalers_for_pods(self._key, selector, pods)
        if len(rivals) > 1:
            raise self._invalid_selector(
                "AmbiguousSelector", f"pods by selector {text} are controlled by {self._print_rivals(rivals)}"
            )
        reported = (scale.get("status") or {}).get("replicas", 0)
        client = MetricsClient(self._controller.client, self._key.namespace)
        now = self._controller.clock.now()
        return MetricSources(client, pods, text, current, reported, self._parse_tolerances(), now, self._emulation)

    def _print_rivals(self, rivals: list[Key]) -> str:
        names = [f"{rival.namespace}/{rival.name}" for rival in rivals]
        if self._emulation.minor >= _EXAMPLES_SINCE:
            return f"more than one HPA (e.g. [{' '.join(names[:2])}])"
        return f"multiple HPAs: [{' '.join(names)}]"

    def _invalid_selector(self, reason: str, message: str) -> _InvalidSelector:
        """Reports that the selector of the target cannot be used, and returns the exception to raise."""
        self._record_event(reason, message)
        self._set_condition("ScalingActive", False, reason, message)
        return _InvalidSelector(message)

    def _parse_tolerances(self) -> Tolerances:
        behavior, default = self._autoscaler["spec"].get("behavior") or {}, Tolerances()
        if not self._emulation.enabled("HPAConfigurableTolerance"):
            return default
        down, up = ((behavior.get(name) or {}).get("tolerance") for name in ("scaleDown", "scaleUp"))
        return Tolerances(
            default.down if down is None else float(parse_quantity(down).amount),
            default.up if up is None else float(parse_quantity(up).amount),
        )


class _InvalidSelector(Exception):
    """The selector of the target is missing, malformed or ambiguous."""
