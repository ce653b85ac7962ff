"""Computes the replica count for each type of metric of an autoscaler, and the metric's status.

Specified by: pkg/controller/podautoscaler/horizontal.go (computeReplicasForMetric).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil
from typing import Any, Final

from fakekube.apimachinery.schema.quantity import Format, Quantity
from fakekube.apimachinery.selectors import from_label_selector
from fakekube.controllers.disruption import label_selector_string
from fakekube.controllers.objects import Object
from fakekube.controllers.podautoscaler.replica_calculator import (
    MetricError,
    MetricsClient,
    ReplicaCalculator,
    Tolerances,
    calculate_pod_requests,
    get_usage_ratio_replicas,
    milli_value,
)

__all__ = ["FailedMetric", "MetricSources", "Proposal"]


_MAX_INT64: Final = 2**63 - 1


class FailedMetric(Exception):
    """A metric could not be read or evaluated.

    Args:
        reason: the reason of the condition and the event.
        text: the message of the event.
        whole: the text in the error about all metrics.
    """

    def __init__(self, reason: str, text: str, whole: str) -> None:
        super().__init__(whole)
        self.reason = reason
        self.text = text


@dataclass(slots=True, frozen=True)
class Proposal:
    """The replica count for a metric."""

    replicas: int
    name: str
    """The name of the metric in the reason of a rescale."""
    status: Object
    """The entry of status.currentMetrics."""


@dataclass(slots=True)
class MetricSources:
    """Computes replica counts for one scale target.

    Args:
        client: reads the metrics.
        pods: the pods of the target.
        selector: the selector of the target.
        specified: spec.replicas of the Scale.
        reported: status.replicas of the Scale.
        tolerances: the tolerances of the autoscaler.
        now: the time of the clock.
    """

    client: MetricsClient
    pods: list[Object]
    selector: str
    specified: int
    reported: int
    tolerances: Tolerances
    now: datetime
    _kinds: dict[str, tuple[str, str, str, Callable[[Object], Proposal]]] = field(init=False)

    def __post_init__(self) -> None:
        self._kinds = {
            "Resource": (
                "resource",
                "FailedGetResourceMetric",
                "failed to get {name} resource metric value",
                self._resource_metric,
            ),
            "ContainerResource": (
                "containerResource",
                "FailedGetContainerResourceMetric",
                "failed to get {container} container metric value",
                self._resource_metric,
            ),
            "Pods": ("pods", "FailedGetPodsMetric", "failed to get pods metric value", self._pods_metric),
            "Object": ("object", "FailedGetObjectMetric", "failed to get object metric value", self._object_metric),
            "External": (
                "external",
                "FailedGetExternalMetric",
                "failed to get {metric} external metric value",
                self._external_metric,
            ),
        }

    def compute_replicas(self, metric: Object) -> Proposal:
        """Returns the replica count for a metric of the autoscaler's spec. Raises FailedMetric."""
        kind = self._kinds.get(metric["type"])
        if kind is None:
            text = f'unknown metric source type "{metric["type"]}"'
            raise FailedMetric("InvalidMetricSourceType", text, text)
        member, reason, prefix, compute = kind
        source = metric[member]
        try:
            proposal = compute(source)
        except MetricError as error:
            named = {**source, "metric": (source.get("metric") or {}).get("name", "")}
            raise FailedMetric(reason, str(error), f"{prefix.format(**named)}: {error.context}{error}") from None
        return Proposal(proposal.replicas, proposal.name, {"type": metric["type"], member: proposal.status})

    # ---- metrics of pods

    def _new_calculator(self) -> ReplicaCalculator:
        return ReplicaCalculator(self.pods, self.specified, self.tolerances, self.now)

    def _resource_metric(self, source: Object) -> Proposal:
        name, container, target = source["name"], source.get("container", ""), source["target"]
        status = {"name": name, **({"container": container} if container else {})}
        if target.get("averageValue") is not None:
            try:
                metrics = self._resource_metrics(name, container)
                replicas, usage = self._new_calculator().plain_metric_replicas(metrics, milli_value(target["averageValue"]), name)
            except MetricError as error:
                raise MetricError(f"failed to get {name} usage: {error}") from None
            return Proposal(replicas, f"{name} resource", {**status, "current": {"averageValue": _print_quantity(usage, name)}})
        if target.get("averageUtilization") is None:
            missing = "neither an average utilization target nor an average value (usage) target was set"
            raise MetricError(f"invalid resource metric source: {missing}")
        try:
            metrics = self._resource_metrics(name, container)
            requests = calculate_pod_requests(self.pods, container, name) if self.pods else {}
            utilization = target["averageUtilization"]
            replicas, percent, usage = self._new_calculator().resource_replicas(metrics, requests, utilization, name)
        except MetricError as error:
            raise MetricError(f"failed to get {name} utilization: {error}") from None
        kind = "container resource" if container else "resource"
        current = {"averageUtilization": percent, "averageValue": _print_quantity(usage, name)}
        return Proposal(replicas, f"{name} {kind} utilization (percentage of request)", {**status, "current": current})

    def _resource_metrics(self, name: str, container: str) -> Any:
        try:
            return self.client.get_resource_metric(name, self.selector, container)
        except MetricError as error:
            raise MetricError(f"unable to get metrics for resource {name}: {error}") from None

    def _pods_metric(self, source: Object) -> Proposal:
        metric = source["metric"]
        try:
            metrics = self.client.get_raw_metric(metric["name"], self.selector, _selector_text(metric.get("selector")))
        except MetricError as error:
            raise MetricError(f"unable to get metric {metric['name']}: {error}") from None
        target = milli_value(source["target"]["averageValue"])
        replicas, usage = self._new_calculator().plain_metric_replicas(metrics, target, "")
        status = {"metric": metric, "current": {"averageValue": _print_quantity(usage)}}
        return Proposal(replicas, f"pods metric {metric['name']}", status)

    # ---- metrics of other objects

    def _object_metric(self, source: Object) -> Proposal:
        metric, described, target = source["metric"], source["describedObject"], source["target"]
        by_value = target["type"] == "Value" and target.get("value") is not None
        if not by_value and not (target["type"] == "AverageValue" and target.get("averageValue") is not None):
            missing = "neither a value target nor an average value target was set"
            raise MetricError(f"invalid object metric source: {missing}")
        try:
            usage = self.client.get_object_metric(metric["name"], described, _selector_text(metric.get("selector")))
        except MetricError as error:
            place = f"{described['kind']} on {self.client.namespace} {described['name']}"
            context = "" if by_value else f"failed to get {metric['name']} object metric: "
            raise MetricError(f"unable to get metric {metric['name']}: {place}/{error}", context=context) from None
        status = {"metric": metric, "describedObject": described}
        if by_value:
            replicas = get_usage_ratio_replicas(usage / milli_value(target["value"]), self.specified, self.pods, self.tolerances)
            name = f"{described['kind']} metric {metric['name']}"
            return Proposal(replicas, name, {**status, "current": {"value": _print_quantity(usage)}})
        replicas, average = self._per_pod_replicas(usage, milli_value(target["averageValue"]))
        return Proposal(replicas, _external_name(metric), {**status, "current": {"averageValue": _print_quantity(average)}})

    def _external_metric(self, source: Object) -> Proposal:
        metric, target = source["metric"], source["target"]
        averages = target.get("averageValue") is not None
        if not averages and target.get("value") is None:
            missing = "neither a value target nor an average value target was set"
            raise MetricError(f"invalid external metric source: {missing}")
        try:
            values = self.client.get_external_metric(metric["name"], _selector_text(metric.get("selector")))
            usage = min(sum(values), _MAX_INT64)
        except MetricError as error:
            what = f"{metric['name']} external metric" if averages else f"external metric {metric['name']}"
            text = f"unable to get external metric {self.client.namespace}/{metric['name']}/{_go_selector(metric)}: {error}"
            raise MetricError(text, context=f"failed to get {what}: ") from None
        if averages:
            replicas, average = self._per_pod_replicas(usage, milli_value(target["averageValue"]))
            current = {"averageValue": _print_quantity(average)}
        else:
            replicas = get_usage_ratio_replicas(usage / milli_value(target["value"]), self.specified, self.pods, self.tolerances)
            current = {"value": _print_quantity(usage)}
        return Proposal(replicas, _external_name(metric), {"metric": metric, "current": current})

    def _per_pod_replicas(self, usage: int, target: int) -> tuple[int, int]:
        """Returns the replica count, and the average usage, for a metric with a target per pod."""
        present = max(self.reported, 1)
        within = self.reported and self.tolerances.within(usage / (target * self.reported))
        return (self.reported if within else ceil(usage / target)), ceil(usage / present)


def _selector_text(selector: Object | None) -> str:
    """Returns a metric's selector as a query parameter; "" selects all metrics."""
    return "" if selector is None else str(from_label_selector(selector))


def _print_quantity(thousandths: int, resource: str = "") -> str:
    return str(Quantity(thousandths, -3, Format.BINARY_SI if resource == "memory" else Format.DECIMAL_SI))


def _go_selector(metric: Object) -> str:
    """Formats a metric's selector as %+v of Go does."""
    selector = metric.get("selector")
    return "nil" if selector is None else label_selector_string(selector)


def _external_name(metric: Object) -> str:
    return f"external metric {metric['name']}({_go_selector(metric)})"
