"""Reads metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io, which aggregated API servers may serve.

Values are in thousandths, as in the real controller.

Specified by: pkg/controller/podautoscaler/metrics/client.go, k8s.io/metrics/pkg/client.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from fakekube.apimachinery.schema.quantity import parse as parse_quantity
from fakekube.base.golang.durations import parse_duration
from fakekube.controllers.client import ApiError, Client
from fakekube.controllers.controller_utils import parse_time
from fakekube.controllers.objects import Object

__all__ = ["MetricError", "MetricsClient", "PodMetric", "client_go_message", "milli_value"]


DEFAULT_WINDOW = timedelta(minutes=1)

#: The messages of client-go for responses that are not a Status.
_GENERIC_MESSAGES = {
    404: "the server could not find the requested resource",
    503: "the server is currently unable to handle the request",
    401: "the server has asked for the client to provide credentials",
    405: "the server does not allow this method on the requested resource",
}


class MetricError(Exception):
    """A metric could not be read, or is invalid.

    Args:
        text: The message of conditions and events.
        context: The prefix of the message in the error about all metrics.
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
        error: The error response.
        request: The request, such as "get pods.metrics.k8s.io", which is added if the response is not a Status.
    """
    if error.status.get("kind") == "Status":
        return str(error)
    other = f"the server responded with the status code {error.code} but did not return more information"
    text = _GENERIC_MESSAGES.get(error.code, other)
    return f"{text} ({request})" if request else text


def _timestamp(item: Object) -> datetime:
    """Returns the time of a metric; the earliest time if it has none."""
    time = item.get("timestamp")
    return parse_time(time) if time else datetime.min.replace(tzinfo=UTC)


@contextmanager
def _decoding(kind: str) -> Iterator[None]:
    """Raises MetricError if the response of an extension API server is not a list of metrics."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise MetricError(f"unable to fetch metrics from {kind} metrics API: {error!r}") from None


class MetricsClient:
    """Reads metrics for one autoscaler.

    Args:
        client: Sends the requests.
        namespace: The namespace of the autoscaler.
    """

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self.namespace = namespace

    def get_resource_metric(self, name: str, selector: str, container: str) -> dict[str, PodMetric]:
        """Returns the usage of a resource by pods, or by one container of each, by the pod's name. Raises MetricError."""
        path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{self.namespace}/pods"
        items = self._items(path, {"labelSelector": selector}, "pods.metrics.k8s.io", "resource")
        found = {}
        with _decoding("resource"):
            for item in items:
                usages = [one["usage"] for one in item.get("containers") or () if container in ("", one["name"])]
                if not usages or any(name not in usage for usage in usages):
                    continue
                value = sum(milli_value(usage[name]) for usage in usages)
                window = timedelta(microseconds=parse_duration(item.get("window") or "0s") // 1000)
                found[item["metadata"]["name"]] = PodMetric(value, _timestamp(item), window)
        return found

    def get_raw_metric(self, metric: str, selector: str, metric_selector: str) -> dict[str, PodMetric]:
        """Returns a custom metric of pods, by their names. Raises MetricError."""
        query = {"labelSelector": selector, "metricLabelSelector": metric_selector}
        items = self._items(f"{self._custom_root()}/pods/*/{quote(metric)}", query, "", "custom")
        found = {}
        with _decoding("custom"):
            for item in items:
                seconds = item.get("windowSeconds", item.get("window"))
                window = DEFAULT_WINDOW if seconds is None else timedelta(seconds=seconds)
                found[item["describedObject"]["name"]] = PodMetric(milli_value(item["value"]), _timestamp(item), window)
        return found

    def get_object_metric(self, metric: str, described: Object, metric_selector: str) -> int:
        """Returns a custom metric of an object. Raises MetricError."""
        root, group = self._custom_root(), described.get("apiVersion", "").rpartition("/")[0]
        if described["kind"] == "Namespace" and not group:
            path = f"{root}/metrics/{quote(metric)}"
        else:
            resource = self._client.resource(described["kind"], described.get("apiVersion") or None)
            name = f"{resource.plural}.{group}" if group else resource.plural
            path = f"{root}/{name}/{quote(described['name'])}/{quote(metric)}"
        items = self._items(path, {"metricLabelSelector": metric_selector}, "", "custom")
        with _decoding("custom"):
            return milli_value(items[0]["value"])

    def get_external_metric(self, metric: str, metric_selector: str) -> list[int]:
        """Returns the values of an external metric. Raises MetricError."""
        path = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{self.namespace}/{quote(metric)}"
        items = self._items(path, {"labelSelector": metric_selector}, f"{metric}.external.metrics.k8s.io", "external")
        with _decoding("external"):
            return [milli_value(item["value"]) for item in items]

    def _items(self, path: str, query: dict[str, str], resource: str, kind: str) -> list[Object]:
        try:
            answer = self._client.call("GET", path, None, {name: value for name, value in query.items() if value})
        except ApiError as error:
            text = client_go_message(error, f"get {resource}" if resource else "")
            raise MetricError(f"unable to fetch metrics from {kind} metrics API: {text}") from None
        items: list[Object] = list(answer.get("items") or ())
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
