"""Reads the metrics APIs, and computes the replica count for a metric: the current count times usage over target, rounded up.

Aggregated API servers may serve metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io. Invariant: values are in
thousandths, as in the real controller, until they are printed.

Pods that are not ready or have no metrics must not enlarge a change: when scaling up they count as unused, when scaling down as
fully used. If the direction changes because of them, the count stays as it is.

`MetricSources` does so for each type of metric of an autoscaler, and computes the status of the metric.

Specified by: pkg/controller/podautoscaler/{replica_calculator,metrics/client,metrics/utilization}.go, k8s.io/metrics/pkg/client;
pkg/controller/podautoscaler/horizontal.go (computeReplicasForMetric).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Final, TypeVar
from urllib.parse import quote

from fakekube.apimachinery.features import Emulation
from fakekube.apimachinery.schema.quantity import Format, Quantity
from fakekube.apimachinery.schema.quantity import parse as parse_quantity
from fakekube.apimachinery.selectors import from_label_selector
from fakekube.apiserver.webhooks.caller import generic_message
from fakekube.base.golang.strconv import MAX_INT32, MAX_INT64
from fakekube.base.golang.strings import label_selector_string
from fakekube.base.golang.timestamps import parse_duration
from fakekube.base.objects import Object, group_resource
from fakekube.controllers.client import ApiError, Client
from fakekube.controllers.controller_utils import get_pod_ready_condition, is_pod_ready, parse_time, phase_of

DEFAULT_WINDOW: Final = timedelta(minutes=1)
#: The first minors that read requests of whole pods and print memory in powers of two, and that name an object in one piece.
_POD_REQUESTS_SINCE, _PLACES_SINCE = 34, 37


class MetricError(Exception):
    """A metric could not be read, or is invalid.

    Args:
        text: the message of conditions and events.
        context: the prefix of the message in the error about all metrics.
    """

    def __init__(self, text: str, *, context: str = "") -> None:
        super().__init__(text)
        self.context = context


@dataclass(slots=True, frozen=True)
class PodMetric:
    """The metric of one pod."""

    value: int
    time: datetime
    window: timedelta


def milli_value(quantity: str) -> int:
    """Returns a quantity in thousandths."""
    return parse_quantity(str(quantity)).milli_value()


def client_go_message(error: ApiError, request: str = "") -> str:
    """Returns the message of the error that client-go makes of a response.

    Args:
        error: the error response.
        request: the request, such as "get pods.metrics.k8s.io", which is added if the response is not a Status.
    """
    if error.status.get("kind") == "Status":
        return str(error)
    text = generic_message(error.code)
    return f"{text} ({request})" if request else text


def _parse_timestamp(item: Object) -> datetime:
    """Returns the time of a metric; the earliest time if it has none."""
    time = item.get("timestamp")
    return parse_time(time) if time else datetime.min.replace(tzinfo=UTC)


@contextmanager
def _raise_metric_error(kind: str) -> Iterator[None]:
    """Raises MetricError if the response of an extension API server is not a list of metrics."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise MetricError(f"unable to fetch metrics from {kind} metrics API: {error!r}") from None


class MetricsClient:
    """Reads metrics for one autoscaler.

    Args:
        client: sends the requests.
        namespace: the namespace of the autoscaler.
    """

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self.namespace = namespace

    def get_resource_metric(self, name: str, selector: str, container: str) -> dict[str, PodMetric]:
        """Returns the usage of a resource by pods, or by one container of each, by the pod's name (GetResourceMetric).

        Raises MetricError, also for a pod without the container.
        """
        path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{self.namespace}/pods"
        items = self._list_metrics(path, {"labelSelector": selector}, "pods.metrics.k8s.io", "resource")
        found = {}
        with _raise_metric_error("resource"):
            for item in items:
                usages = [one["usage"] for one in item.get("containers") or () if container in ("", one["name"])]
                if container and not usages:
                    pod = f"{self.namespace}/{item['metadata']['name']}"
                    missing = f"container {container} not present in metrics for pod {pod}"
                    raise MetricError(f"failed to get container metrics: {missing}")
                if not usages or any(name not in usage for usage in usages):
                    continue
                value = sum(milli_value(usage[name]) for usage in usages)
                window = timedelta(microseconds=parse_duration(item.get("window") or "0s") // 1000)
                found[item["metadata"]["name"]] = PodMetric(value, _parse_timestamp(item), window)
        return found

    def get_raw_metric(self, metric: str, selector: str, metric_selector: str) -> dict[str, PodMetric]:
        """Returns a custom metric of pods, by their names. Raises MetricError."""
        query = {"labelSelector": selector, "metricLabelSelector": metric_selector}
        items = self._list_metrics(f"{self._custom_root()}/pods/*/{quote(metric)}", query, "", "custom")
        found = {}
        with _raise_metric_error("custom"):
            for item in items:
                seconds = item.get("windowSeconds", item.get("window"))
                window = DEFAULT_WINDOW if seconds is None else timedelta(seconds=seconds)
                found[item["describedObject"]["name"]] = PodMetric(milli_value(item["value"]), _parse_timestamp(item), window)
        return found

    def get_object_metric(self, metric: str, described: Object, metric_selector: str) -> int:
        """Returns a custom metric of an object. Raises MetricError."""
        root, group = self._custom_root(), described.get("apiVersion", "").rpartition("/")[0]
        if described["kind"] == "Namespace" and not group:
            path = f"{root}/metrics/{quote(metric)}"
        else:
            resource = self._client.resource(described["kind"], described.get("apiVersion") or None)
            name = group_resource(group, resource.plural)
            path = f"{root}/{name}/{quote(described['name'])}/{quote(metric)}"
        items = self._list_metrics(path, {"metricLabelSelector": metric_selector}, "", "custom")
        with _raise_metric_error("custom"):
            return milli_value(items[0]["value"])

    def get_external_metric(self, metric: str, metric_selector: str) -> list[int]:
        """Returns the values of an external metric. Raises MetricError."""
        path = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{self.namespace}/{quote(metric)}"
        items = self._list_metrics(path, {"labelSelector": metric_selector}, f"{metric}.external.metrics.k8s.io", "external")
        with _raise_metric_error("external"):
            return [milli_value(item["value"]) for item in items]

    def _list_metrics(self, path: str, query: dict[str, str], resource: str, kind: str) -> list[Object]:
        """Returns the items of a response, of which there is at least one. Raises MetricError.

        Args:
            path: the path of the request.
            query: its parameters; empty ones are left out.
            resource: the resource in the message of an error that is no Status; "" if client-go does not name it.
            kind: "resource", "custom" or "external", for the messages.
        """
        try:
            response = self._client.call("GET", path, None, {name: value for name, value in query.items() if value})
        except ApiError as error:
            text = client_go_message(error, f"get {resource}" if resource else "")
            raise MetricError(f"unable to fetch metrics from {kind} metrics API: {text}") from None
        with _raise_metric_error(kind):
            items: list[Object] = list(response.get("items") or ())
        if not items:
            raise MetricError(f"no metrics returned from {kind} metrics API")
        return items

    def _custom_root(self) -> str:
        """Returns the path for the namespace in the preferred version of the custom metrics API. Raises MetricError."""
        try:
            group = self._client.call("GET", "/apis/custom.metrics.k8s.io")
        except ApiError:
            text = "no custom metrics API (custom.metrics.k8s.io) registered"
            raise MetricError(f"unable to fetch metrics from custom metrics API: {text}") from None
        return f"/apis/{group['preferredVersion']['groupVersion']}/namespaces/{self.namespace}"


CPU_INITIALIZATION: Final = timedelta(minutes=5)
INITIAL_READINESS_DELAY: Final = timedelta(seconds=30)


@dataclass(slots=True, frozen=True)
class Tolerances:
    """By how much usage over target may differ from 1 without a change."""

    down: float = 0.1
    up: float = 0.1

    def is_within(self, ratio: float) -> bool:
        """Reports whether the ratio is close enough to 1."""
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


_Values = TypeVar("_Values")
#: Returns usage over target for metrics of pods, and the values of which the status consists.
_Ratio = Callable[[Mapping[str, PodMetric]], tuple[float, _Values]]


@dataclass(slots=True, frozen=True)
class ReplicaCalculator:
    """Computes replica counts from the metrics of pods.

    Args:
        pods: the pods of the scale target.
        current: the current replica count.
        tolerances: the tolerances of the autoscaler.
        now: the time of the clock.
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
            metrics: the usage by pod; changed by the call.
            requests: the requests by pod, in thousandths.
            target: the target utilization in percent.
            resource: the resource, such as "cpu" or "memory".

        Returns:
            the replica count, the utilization in percent, and the average usage in thousandths.

        Raises:
            MetricError: no metric matches a pod.
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

        replicas, (percent, average) = self._calculate_replicas(metrics, ratio, full, resource)
        return replicas, percent, average

    def plain_metric_replicas(self, metrics: dict[str, PodMetric], target: int, resource: str) -> tuple[int, int]:
        """Returns the replica count and the average usage for a target value (calcPlainMetricReplicas). Raises MetricError."""

        def ratio(known: Mapping[str, PodMetric]) -> tuple[float, int]:
            average = sum(metric.value for metric in known.values()) // len(known)
            return average / target, average

        return self._calculate_replicas(metrics, ratio, lambda name: target, resource)

    def _calculate_replicas(
        self, metrics: dict[str, PodMetric], ratio_of: _Ratio[_Values], full: Callable[[str], int], resource: str
    ) -> tuple[int, _Values]:
        """Returns the replica count, and the values of `ratio_of` for the metrics that there are (calcPlainMetricReplicas).

        Args:
            metrics: the usage by pod; changed by the call.
            ratio_of: see `_Ratio`.
            full: returns the value of a pod that is fully used.
            resource: the resource; "" for other metrics.

        Raises MetricError.
        """
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
            return (self.current if self.tolerances.is_within(ratio) else ceil(ratio * groups.ready)), values
        blank = next(iter(metrics.values()))
        for name in groups.missing if ratio != 1.0 else ():
            metrics[name] = PodMetric(full(name) if ratio < 1.0 else 0, blank.time, blank.window)
        for name in groups.unready if scale_up_with_unready else ():
            metrics[name] = PodMetric(0, blank.time, blank.window)
        new_ratio, _ = ratio_of(metrics)
        direction_changed = (ratio < 1.0 < new_ratio) or (new_ratio < 1.0 < ratio)
        replicas = ceil(new_ratio * len(metrics))
        against = (new_ratio < 1.0 and replicas > self.current) or (new_ratio > 1.0 and replicas < self.current)
        return (self.current if self.tolerances.is_within(new_ratio) or direction_changed or against else replicas), values


def get_usage_ratio_replicas(ratio: float, current: int, pods: list[Object], tolerances: Tolerances) -> int:
    """Returns the replica count for a metric that is not of the pods: usage over target times the number of ready pods.

    Raises MetricError if there are no pods (getUsageRatioReplicaCount).
    """
    if not current:
        return ceil(ratio)
    if tolerances.is_within(ratio):
        return current
    if not pods:
        text = "no pods returned by selector while calculating replica count"
        raise MetricError(f"unable to calculate ready pods: {text}")
    ready = sum(phase_of(pod) == "Running" and is_pod_ready(pod) for pod in pods)
    return min(ceil(ratio * ready), MAX_INT32)


def calculate_pod_requests(pods: Iterable[Object], container: str, resource: str, *, whole_pods: bool = True) -> dict[str, int]:
    """Returns the requests of pods, or of one container of each, in thousandths, by the pod's name.

    Args:
        pods: the pods.
        container: the name of the container; "" for all.
        resource: the name of the resource.
        whole_pods: the requests of a pod as a whole take precedence over those of its containers.

    Raises MetricError.
    """
    return {pod["metadata"]["name"]: _calculate_requests(pod, container, resource, whole_pods) for pod in pods}


def _calculate_requests(pod: Object, container: str, resource: str, whole_pods: bool) -> int:
    """Returns the request of one pod, see `calculate_pod_requests` (calculateRequests)."""
    spec, name = pod["spec"], pod["metadata"]["name"]
    whole = (spec.get("resources") or {}).get("requests") or {}
    if whole and whole_pods and not container:
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
        emulation: the minor and the gates.
    """

    client: MetricsClient
    pods: list[Object]
    selector: str
    specified: int
    reported: int
    tolerances: Tolerances
    now: datetime
    emulation: Emulation
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

    # --- Metrics of pods ----------------------------------------------------------------------------------------------

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
            return Proposal(
                replicas, f"{name} resource", {**status, "current": {"averageValue": self._print_quantity(usage, name)}}
            )
        if target.get("averageUtilization") is None:
            missing = "neither an average utilization target nor an average value (usage) target was set"
            raise MetricError(f"invalid resource metric source: {missing}")
        try:
            metrics = self._resource_metrics(name, container)
            whole_pods = self.emulation.minor >= _POD_REQUESTS_SINCE and self.emulation.enabled("PodLevelResources")
            requests = calculate_pod_requests(self.pods, container, name, whole_pods=whole_pods) if self.pods else {}
            utilization = target["averageUtilization"]
            replicas, percent, usage = self._new_calculator().resource_replicas(metrics, requests, utilization, name)
        except MetricError as error:
            raise MetricError(f"failed to get {name} utilization: {error}") from None
        kind = "container resource" if container else "resource"
        current = {"averageUtilization": percent, "averageValue": self._print_quantity(usage, name)}
        return Proposal(replicas, f"{name} {kind} utilization (percentage of request)", {**status, "current": current})

    def _print_quantity(self, thousandths: int, resource: str) -> str:
        """Prints an amount of a resource (buildQuantity)."""
        return _print_quantity(thousandths, resource if self.emulation.minor >= _POD_REQUESTS_SINCE else "")

    def _resource_metrics(self, name: str, container: str) -> dict[str, PodMetric]:
        """Returns the usage of a resource by pods, by their names. Raises MetricError."""
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

    # --- Metrics of other objects -------------------------------------------------------------------------------------

    def _object_metric(self, source: Object) -> Proposal:
        metric, described, target = source["metric"], source["describedObject"], source["target"]
        by_value = target["type"] == "Value" and target.get("value") is not None
        if not by_value and not (target["type"] == "AverageValue" and target.get("averageValue") is not None):
            missing = "neither a value target nor an average value target was set"
            raise MetricError(f"invalid object metric source: {missing}")
        try:
            usage = self.client.get_object_metric(metric["name"], described, _selector_text(metric.get("selector")))
        except MetricError as error:
            context = "" if by_value else f"failed to get {metric['name']} object metric: "
            text = f"unable to get metric {metric['name']}"
            if self.emulation.minor >= _PLACES_SINCE:
                text = f"{text} on {described['kind']} {self.client.namespace}/{described['name']}: {error}"
            else:
                text = f"{text}: {described['kind']} on {self.client.namespace} {described['name']}/{error}"
            raise MetricError(text, context=context) from None
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
            usage = min(sum(values), MAX_INT64)
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
        within = self.reported and self.tolerances.is_within(usage / (target * self.reported))
        return (self.reported if within else ceil(usage / target)), ceil(usage / present)


def _selector_text(selector: Object | None) -> str:
    """Returns a metric's selector as a query parameter; "" selects all metrics."""
    return "" if selector is None else str(from_label_selector(selector))


def _print_quantity(thousandths: int, resource: str = "") -> str:
    return str(Quantity(thousandths, -3, Format.BINARY_SI if resource == "memory" else Format.DECIMAL_SI))


def _go_selector(metric: Object) -> str:
    """Formats a metric's selector as %+v of Go does."""
    return label_selector_string(metric.get("selector"))


def _external_name(metric: Object) -> str:
    return f"external metric {metric['name']}({_go_selector(metric)})"
