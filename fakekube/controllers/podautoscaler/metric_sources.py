"""What each kind of metric of an autoscaler proposes, and what its status shows of it.

Specified by: pkg/controller/podautoscaler/horizontal.go (computeReplicasForMetric and what it calls).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil
from typing import Any

from fakekube.controllers.disruption import label_selector_string
from fakekube.controllers.podautoscaler.metrics_client import MetricError, MetricsClient, milli
from fakekube.controllers.podautoscaler.replica_calculator import Calculator, Tolerances, replicas_by_ratio, requests_of
from fakekube.schema.quantity import Format, Quantity
from fakekube.selectors import from_label_selector

__all__ = ["FailedMetric", "MetricSources", "Proposal"]

Object = dict[str, Any]

_MAX_INT64 = 2**63 - 1


class FailedMetric(Exception):
    """A metric proposes nothing.

    Args:
        reason: of the condition and the event.
        text: of the event.
        whole: what the autoscaler's own error says.
    """

    def __init__(self, reason: str, text: str, whole: str) -> None:
        super().__init__(whole)
        self.reason = reason
        self.text = text


@dataclass(slots=True, frozen=True)
class Proposal:
    """What a metric proposes."""

    replicas: int
    name: str
    """As the reason of a rescale names it."""
    status: Object
    """For status.currentMetrics."""


@dataclass(slots=True)
class MetricSources:
    """Computes proposals for one scale target.

    Args:
        client: of the metrics.
        pods: of the target.
        selector: of the target, as text.
        specified, reported: replicas in the spec and the status of the Scale.
        tolerances: of the autoscaler.
        now: of the clock.
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
            "Resource": ("resource", "FailedGetResourceMetric", "failed to get {name} resource metric value", self._resource),
            "ContainerResource": (
                "containerResource",
                "FailedGetContainerResourceMetric",
                "failed to get {container} container metric value",
                self._resource,
            ),
            "Pods": ("pods", "FailedGetPodsMetric", "failed to get pods metric value", self._of_pods),
            "Object": ("object", "FailedGetObjectMetric", "failed to get object metric value", self._of_object),
            "External": ("external", "FailedGetExternalMetric", "failed to get {metric} external metric value", self._external),
        }

    def propose(self, metric: Object) -> Proposal:
        """What a metric of the autoscaler's spec proposes. Raises FailedMetric."""
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
            raise FailedMetric(reason, str(error), f"{prefix.format(**named)}: {error.around}{error}") from None
        return Proposal(proposal.replicas, proposal.name, {"type": metric["type"], member: proposal.status})

    # ---- of the pods

    def _calculator(self) -> Calculator:
        return Calculator(self.pods, self.specified, self.tolerances, self.now)

    def _resource(self, source: Object) -> Proposal:
        name, container, target = source["name"], source.get("container", ""), source["target"]
        shown = {"name": name, **({"container": container} if container else {})}
        if target.get("averageValue") is not None:
            try:
                metrics = self._resource_metrics(name, container)
                replicas, usage = self._calculator().by_usage(metrics, milli(target["averageValue"]), name)
            except MetricError as error:
                raise MetricError(f"failed to get {name} usage: {error}") from None
            return Proposal(replicas, f"{name} resource", {**shown, "current": {"averageValue": _quantity(usage, name)}})
        if target.get("averageUtilization") is None:
            missing = "neither an average utilization target nor an average value (usage) target was set"
            raise MetricError(f"invalid resource metric source: {missing}")
        try:
            metrics = self._resource_metrics(name, container)
            requests = requests_of(self.pods, container, name) if self.pods else {}
            wanted = target["averageUtilization"]
            replicas, percent, usage = self._calculator().by_utilization(metrics, requests, wanted, name)
        except MetricError as error:
            raise MetricError(f"failed to get {name} utilization: {error}") from None
        kind = "container resource" if container else "resource"
        current = {"averageUtilization": percent, "averageValue": _quantity(usage, name)}
        return Proposal(replicas, f"{name} {kind} utilization (percentage of request)", {**shown, "current": current})

    def _resource_metrics(self, name: str, container: str) -> Any:
        try:
            return self.client.resource(name, self.selector, container)
        except MetricError as error:
            raise MetricError(f"unable to get metrics for resource {name}: {error}") from None

    def _of_pods(self, source: Object) -> Proposal:
        metric = source["metric"]
        try:
            metrics = self.client.pods(metric["name"], self.selector, _text(metric.get("selector")))
        except MetricError as error:
            raise MetricError(f"unable to get metric {metric['name']}: {error}") from None
        target = milli(source["target"]["averageValue"])
        replicas, usage = self._calculator().by_usage(metrics, target, "")
        status = {"metric": metric, "current": {"averageValue": _quantity(usage)}}
        return Proposal(replicas, f"pods metric {metric['name']}", status)

    # ---- of other things

    def _of_object(self, source: Object) -> Proposal:
        metric, described, target = source["metric"], source["describedObject"], source["target"]
        by_value = target["type"] == "Value" and target.get("value") is not None
        if not by_value and not (target["type"] == "AverageValue" and target.get("averageValue") is not None):
            missing = "neither a value target nor an average value target was set"
            raise MetricError(f"invalid object metric source: {missing}")
        try:
            usage = self.client.object(metric["name"], described, _text(metric.get("selector")))
        except MetricError as error:
            place = f"{described['kind']} on {self.client.namespace} {described['name']}"
            around = "" if by_value else f"failed to get {metric['name']} object metric: "
            raise MetricError(f"unable to get metric {metric['name']}: {place}/{error}", around=around) from None
        shown = {"metric": metric, "describedObject": described}
        if by_value:
            replicas = replicas_by_ratio(usage / milli(target["value"]), self.specified, self.pods, self.tolerances)
            name = f"{described['kind']} metric {metric['name']}"
            return Proposal(replicas, name, {**shown, "current": {"value": _quantity(usage)}})
        replicas, average = self._per_pod(usage, milli(target["averageValue"]))
        return Proposal(replicas, _external_name(metric), {**shown, "current": {"averageValue": _quantity(average)}})

    def _external(self, source: Object) -> Proposal:
        metric, target = source["metric"], source["target"]
        averages = target.get("averageValue") is not None
        if not averages and target.get("value") is None:
            missing = "neither a value target nor an average value target was set"
            raise MetricError(f"invalid external metric source: {missing}")
        try:
            usage = min(sum(self.client.external(metric["name"], _text(metric.get("selector")))), _MAX_INT64)
        except MetricError as error:
            what = f"{metric['name']} external metric" if averages else f"external metric {metric['name']}"
            text = f"unable to get external metric {self.client.namespace}/{metric['name']}/{_go_selector(metric)}: {error}"
            raise MetricError(text, around=f"failed to get {what}: ") from None
        if averages:
            replicas, average = self._per_pod(usage, milli(target["averageValue"]))
            current = {"averageValue": _quantity(average)}
        else:
            replicas = replicas_by_ratio(usage / milli(target["value"]), self.specified, self.pods, self.tolerances)
            current = {"value": _quantity(usage)}
        return Proposal(replicas, _external_name(metric), {"metric": metric, "current": current})

    def _per_pod(self, usage: int, target: int) -> tuple[int, int]:
        """Replicas, and the average usage, of a metric that all pods share."""
        present = max(self.reported, 1)
        within = self.reported and self.tolerances.within(usage / (target * self.reported))
        return (self.reported if within else ceil(usage / target)), ceil(usage / present)


def _text(selector: Object | None) -> str:
    """A metric's selector as a query has it; without one all metrics are meant."""
    return "" if selector is None else str(from_label_selector(selector))


def _quantity(thousandths: int, resource: str = "") -> str:
    return str(Quantity(thousandths, -3, Format.BINARY_SI if resource == "memory" else Format.DECIMAL_SI))


def _go_selector(metric: Object) -> str:
    """A selector as %+v prints it."""
    selector = metric.get("selector")
    return "nil" if selector is None else label_selector_string(selector)


def _external_name(metric: Object) -> str:
    return f"external metric {metric['name']}({_go_selector(metric)})"
