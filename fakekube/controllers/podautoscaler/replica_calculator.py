"""Computes the replica count for a metric: the current count times usage over target, rounded up.

Pods that are not ready or have no metrics must not enlarge a change: when scaling up they count as unused, when scaling down as
fully used. If the direction changes because of them, the count stays as it is.

Specified by: pkg/controller/podautoscaler/replica_calculator.go, pkg/controller/podautoscaler/metrics/utilization.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

from fakekube.controllers.controller_utils import get_pod_ready_condition, is_pod_ready, parse_time, phase_of
from fakekube.controllers.objects import Object
from fakekube.controllers.podautoscaler.metrics_client import MetricError, PodMetric, milli_value

__all__ = ["PodGroups", "ReplicaCalculator", "Tolerances", "calculate_pod_requests", "get_usage_ratio_replicas", "group_pods"]


CPU_INITIALIZATION = timedelta(minutes=5)
INITIAL_READINESS_DELAY = timedelta(seconds=30)
_MAX_INT32 = 2**31 - 1


@dataclass(slots=True, frozen=True)
class Tolerances:
    """By how much usage over target may differ from 1 without a change."""

    down: float = 0.1
    up: float = 0.1

    def within(self, ratio: float) -> bool:
        """Whether the ratio is close enough to 1."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up


@dataclass(slots=True)
class PodGroups:
    """The names of pods, by the state of their metrics, and the number of ready pods."""

    ready: int = 0
    unready: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    ignored: set[str] = field(default_factory=set)


def group_pods(pods: Iterable[Object], metrics: Mapping[str, PodMetric], resource: str, now: datetime) -> PodGroups:
    """Groups pods (groupPods). For `cpu`, pods that are starting count as unready."""
    found = PodGroups()
    for pod in pods:
        name, phase = pod["metadata"]["name"], phase_of(pod)
        if "deletionTimestamp" in pod["metadata"] or phase == "Failed":
            found.ignored.add(name)
        elif phase == "Pending":
            found.unready.add(name)
        elif name not in metrics:
            found.missing.add(name)
        elif resource == "cpu" and _is_starting(pod, metrics[name], now):
            found.unready.add(name)
        else:
            found.ready += 1
    return found


def _is_starting(pod: Object, metric: PodMetric, now: datetime) -> bool:
    condition, start = get_pod_ready_condition(pod), pod["status"].get("startTime")
    if condition is None or start is None:
        return True
    since = condition.get("lastTransitionTime")
    changed = parse_time(since) if since else datetime.min.replace(tzinfo=UTC)
    unready = condition["status"] == "False"
    if parse_time(start) + CPU_INITIALIZATION > now:
        return unready or metric.time < changed + metric.window
    return unready and parse_time(start) + INITIAL_READINESS_DELAY > changed


_Ratio = Callable[[Mapping[str, PodMetric]], tuple[float, Any]]


@dataclass(slots=True, frozen=True)
class ReplicaCalculator:
    """Computes replica counts from the metrics of pods.

    Args:
        pods: The pods of the scale target.
        current: The current replica count.
        tolerances: The tolerances of the autoscaler.
        now: The time of the clock.
    """

    pods: list[Object]
    current: int
    tolerances: Tolerances
    now: datetime

    def resource_replicas(
        self, metrics: dict[str, PodMetric], requests: Mapping[str, int], target: int, resource: str
    ) -> tuple[int, int, int]:
        """Returns the replica count for a target in percent of the pods' requests (GetResourceReplicas).

        Args:
            metrics: The usage by pod; changed by the call.
            requests: The requests by pod, in thousandths.
            target: The target utilization in percent.
            resource: The resource, such as "cpu" or "memory".

        Returns:
            The replica count, the utilization in percent, and the average usage in thousandths.

        Raises:
            MetricError: No metric matches a pod.
        """

        def ratio(known: Mapping[str, PodMetric]) -> tuple[float, tuple[int, int]]:
            matched = [name for name in known if name in requests]
            used, requested = sum(known[name].value for name in matched), sum(requests[name] for name in matched)
            if not requested:
                raise MetricError("no metrics returned matched known pods")
            percent = used * 100 // requested
            return percent / target, (percent, used // len(matched))

        def full(name: str) -> int:
            return requests[name] * max(100, target) // 100

        replicas, (percent, average) = self._calculate(metrics, ratio, full, resource)
        return replicas, percent, average

    def plain_metric_replicas(self, metrics: dict[str, PodMetric], target: int, resource: str) -> tuple[int, int]:
        """Returns the replica count and the average usage for a target value (calcPlainMetricReplicas). Raises MetricError."""

        def ratio(known: Mapping[str, PodMetric]) -> tuple[float, int]:
            average = sum(metric.value for metric in known.values()) // len(known)
            return average / target, average

        return self._calculate(metrics, ratio, lambda name: target, resource)

    def _calculate(
        self, metrics: dict[str, PodMetric], ratio_of: _Ratio, full: Callable[[str], int], resource: str
    ) -> tuple[int, Any]:
        if not self.pods:
            raise MetricError("no pods returned by selector while calculating replica count")
        groups = group_pods(self.pods, metrics, resource, self.now)
        for name in groups.ignored | groups.unready:
            metrics.pop(name, None)
        if not metrics:
            raise MetricError("did not receive metrics for targeted pods (pods might be unready)")
        ratio, values = ratio_of(metrics)
        scale_up_with_unready = bool(groups.unready) and ratio > 1.0
        if not scale_up_with_unready and not groups.missing:
            return (self.current if self.tolerances.within(ratio) else ceil(ratio * groups.ready)), values
        blank = next(iter(metrics.values()))
        for name in groups.missing if ratio != 1.0 else ():
            metrics[name] = PodMetric(full(name) if ratio < 1.0 else 0, blank.time, blank.window)
        for name in groups.unready if scale_up_with_unready else ():
            metrics[name] = PodMetric(0, blank.time, blank.window)
        new_ratio, _ = ratio_of(metrics)
        direction_changed = (ratio < 1.0 < new_ratio) or (new_ratio < 1.0 < ratio)
        replicas = ceil(new_ratio * len(metrics))
        against = (new_ratio < 1.0 and replicas > self.current) or (new_ratio > 1.0 and replicas < self.current)
        return (self.current if self.tolerances.within(new_ratio) or direction_changed or against else replicas), values


def get_usage_ratio_replicas(ratio: float, current: int, pods: list[Object], tolerances: Tolerances) -> int:
    """Returns the replica count for a metric that is not of the pods: usage over target times the number of ready pods.

    Raises MetricError if there are no pods (getUsageRatioReplicaCount).
    """
    if not current:
        return ceil(ratio)
    if tolerances.within(ratio):
        return current
    if not pods:
        text = "no pods returned by selector while calculating replica count"
        raise MetricError(f"unable to calculate ready pods: {text}")
    ready = sum(phase_of(pod) == "Running" and is_pod_ready(pod) for pod in pods)
    return min(ceil(ratio * ready), _MAX_INT32)


def calculate_pod_requests(pods: Iterable[Object], container: str, resource: str) -> dict[str, int]:
    """Returns the requests of pods, or of one container of each, in thousandths, by the pod's name. Raises MetricError."""
    return {pod["metadata"]["name"]: _request(pod, container, resource) for pod in pods}


def _request(pod: Object, container: str, resource: str) -> int:
    spec, name = pod["spec"], pod["metadata"]["name"]
    whole = (spec.get("resources") or {}).get("requests") or {}
    if whole and not container:
        if resource not in whole:
            raise MetricError(f"missing pod-level request for {resource} in Pod {name}")
        return milli_value(whole[resource])
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    chosen = [one for one in (*spec["containers"], *sidecars) if container in ("", one["name"])]
    if not chosen:
        raise MetricError(f"container {container} not found in Pod {name}")
    total = 0
    for one in chosen:
        requests = (one.get("resources") or {}).get("requests") or {}
        if resource not in requests:
            raise MetricError(f"missing request for {resource} in container {one['name']} of Pod {name}")
        total += milli_value(requests[resource])
    return total
