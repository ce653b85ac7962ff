"""How many replicas a metric asks for: the present number times usage over target, rounded up.

Pods that are not ready yet, or have no metrics, never make the change larger: if the target would grow they count as idle,
if it would shrink as fully used; if the direction turns with them, nothing changes.

Specified by: pkg/controller/podautoscaler/replica_calculator.go, metrics/utilization.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

from fakekube.controllers.controller_utils import get_pod_ready_condition, is_pod_ready, parse_time, phase_of
from fakekube.controllers.podautoscaler.metrics_client import MetricError, PodMetric, milli

__all__ = ["Calculator", "Grouped", "Tolerances", "group_pods", "replicas_by_ratio", "requests_of"]

Object = dict[str, Any]

CPU_INITIALIZATION = timedelta(minutes=5)
INITIAL_READINESS_DELAY = timedelta(seconds=30)
_MAX_INT32 = 2**31 - 1


@dataclass(slots=True, frozen=True)
class Tolerances:
    """How far usage over target may be from 1 before anything changes."""

    down: float = 0.1
    up: float = 0.1

    def within(self, ratio: float) -> bool:
        """Is the ratio near enough to 1?"""
        return 1.0 - self.down <= ratio <= 1.0 + self.up


@dataclass(slots=True)
class Grouped:
    """Pods by what their metrics are worth."""

    ready: int = 0
    unready: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    ignored: set[str] = field(default_factory=set)


def group_pods(pods: Iterable[Object], metrics: Mapping[str, PodMetric], resource: str, now: datetime) -> Grouped:
    """Sort the pods; for `cpu` the time in which a pod starts does not count."""
    found = Grouped()
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
class Calculator:
    """Computes replicas from the metrics of pods.

    Args:
        pods: of the scale target.
        present: replicas now.
        tolerances: of the autoscaler.
        now: of the clock.
    """

    pods: list[Object]
    present: int
    tolerances: Tolerances
    now: datetime

    def by_utilization(
        self, metrics: dict[str, PodMetric], requests: Mapping[str, int], target: int, resource: str
    ) -> tuple[int, int, int]:
        """What a target in percent of the pods' requests asks for.

        Args:
            metrics: by pod, changed by the call.
            requests: by pod, in thousandths.
            target: percent.
            resource: "cpu", "memory" …

        Returns:
            Replicas, utilization in percent, and the average usage in thousandths.

        Raises:
            MetricError: no metric fits.
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

        replicas, (percent, average) = self._replicas(metrics, ratio, full, resource)
        return replicas, percent, average

    def by_usage(self, metrics: dict[str, PodMetric], target: int, resource: str) -> tuple[int, int]:
        """The same for a target that is an average value: replicas, and the average usage. Raises MetricError."""

        def ratio(known: Mapping[str, PodMetric]) -> tuple[float, int]:
            average = sum(metric.value for metric in known.values()) // len(known)
            return average / target, average

        return self._replicas(metrics, ratio, lambda name: target, resource)

    def _replicas(
        self, metrics: dict[str, PodMetric], ratio_of: _Ratio, full: Callable[[str], int], resource: str
    ) -> tuple[int, Any]:
        if not self.pods:
            raise MetricError("no pods returned by selector while calculating replica count")
        groups = group_pods(self.pods, metrics, resource, self.now)
        for name in groups.ignored | groups.unready:
            metrics.pop(name, None)
        if not metrics:
            raise MetricError("did not receive metrics for targeted pods (pods might be unready)")
        ratio, shown = ratio_of(metrics)
        grows_while_starting = bool(groups.unready) and ratio > 1.0
        if not grows_while_starting and not groups.missing:
            return (self.present if self.tolerances.within(ratio) else ceil(ratio * groups.ready)), shown
        blank = next(iter(metrics.values()))
        for name in groups.missing if ratio != 1.0 else ():
            metrics[name] = PodMetric(full(name) if ratio < 1.0 else 0, blank.time, blank.window)
        for name in groups.unready if grows_while_starting else ():
            metrics[name] = PodMetric(0, blank.time, blank.window)
        again, _ = ratio_of(metrics)
        turned = (ratio < 1.0 < again) or (again < 1.0 < ratio)
        replicas = ceil(again * len(metrics))
        against = (again < 1.0 and replicas > self.present) or (again > 1.0 and replicas < self.present)
        return (self.present if self.tolerances.within(again) or turned or against else replicas), shown


def replicas_by_ratio(ratio: float, present: int, pods: list[Object], tolerances: Tolerances) -> int:
    """What a metric that is not of the pods asks for: usage over target, times the pods that are ready. Raises MetricError."""
    if not present:
        return ceil(ratio)
    if tolerances.within(ratio):
        return present
    if not pods:
        text = "no pods returned by selector while calculating replica count"
        raise MetricError(f"unable to calculate ready pods: {text}")
    ready = sum(phase_of(pod) == "Running" and is_pod_ready(pod) for pod in pods)
    return min(ceil(ratio * ready), _MAX_INT32)


def requests_of(pods: Iterable[Object], container: str, resource: str) -> dict[str, int]:
    """What the pods (or one of their containers) request, in thousandths, by the pod's name. Raises MetricError."""
    return {pod["metadata"]["name"]: _request(pod, container, resource) for pod in pods}


def _request(pod: Object, container: str, resource: str) -> int:
    spec, name = pod["spec"], pod["metadata"]["name"]
    whole = (spec.get("resources") or {}).get("requests") or {}
    if whole and not container:
        if resource not in whole:
            raise MetricError(f"missing pod-level request for {resource} in Pod {name}")
        return milli(whole[resource])
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    chosen = [one for one in (*spec["containers"], *sidecars) if container in ("", one["name"])]
    if not chosen:
        raise MetricError(f"container {container} not found in Pod {name}")
    total = 0
    for one in chosen:
        requests = (one.get("resources") or {}).get("requests") or {}
        if resource not in requests:
            raise MetricError(f"missing request for {resource} in container {one['name']} of Pod {name}")
        total += milli(requests[resource])
    return total
