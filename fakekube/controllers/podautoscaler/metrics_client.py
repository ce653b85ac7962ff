"""Asks metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io, which an aggregated API server may serve.

Values are in thousandths, as the autoscaler counts.

Specified by: pkg/controller/podautoscaler/metrics/client.go, k8s.io/metrics/pkg/client.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from fakekube.client import ApiError, Client
from fakekube.controllers.controller_utils import parse_time
from fakekube.golang.durations import parse_duration
from fakekube.schema.quantity import parse as parse_quantity

__all__ = ["MetricError", "MetricsClient", "PodMetric", "milli", "plain_message"]

Object = dict[str, Any]

DEFAULT_WINDOW = timedelta(minutes=1)

_GENERIC = {
    404: "the server could not find the requested resource",
    503: "the server is currently unable to handle the request",
    401: "the server has asked for the client to provide credentials",
    405: "the server does not allow this method on the requested resource",
}
"""What client-go says where an answer is no Status."""


class MetricError(Exception):
    """A metric cannot be had, or makes no sense.

    Args:
        text: why, as conditions and events say it.
        around: what the autoscaler's own error says in front of it.
    """

    def __init__(self, text: str, *, around: str = "") -> None:
        super().__init__(text)
        self.around = around


@dataclass(slots=True, frozen=True)
class PodMetric:
    """What one pod uses."""

    value: int
    time: datetime
    window: timedelta


def milli(quantity: str) -> int:
    """A quantity in thousandths."""
    return parse_quantity(str(quantity)).milli_value()


def plain_message(error: ApiError, request: str = "") -> str:
    """The error as client-go words it.

    Args:
        error: the answer.
        request: what was asked, such as "get pods.metrics.k8s.io"; told where the answer was no Status.
    """
    if error.status.get("kind") == "Status":
        return str(error)
    other = f"the server responded with the status code {error.code} but did not return more information"
    text = _GENERIC.get(error.code, other)
    return f"{text} ({request})" if request else text


def _time_of(item: Object) -> datetime:
    """When a metric was measured; the beginning of time if it does not say."""
    time = item.get("timestamp")
    return parse_time(time) if time else datetime.min.replace(tzinfo=UTC)


@contextmanager
def _decoding(kind: str) -> Iterator[None]:
    """What an extension server sends may be anything: what is no list of metrics raises MetricError."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise MetricError(f"unable to fetch metrics from {kind} metrics API: {error!r}") from None


class MetricsClient:
    """Reads metrics for one autoscaler's namespace.

    Args:
        client: asks.
        namespace: of the autoscaler.
    """

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self.namespace = namespace

    def resource(self, name: str, selector: str, container: str) -> dict[str, PodMetric]:
        """What pods (or one of their containers) use of a resource, by the pod's name. Raises MetricError."""
        path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{self.namespace}/pods"
        items = self._items(path, {"labelSelector": selector}, "pods.metrics.k8s.io", "resource")
        found = {}
        with _decoding("resource"):
            for item in items:
                usages = [one["usage"] for one in item.get("containers") or () if container in ("", one["name"])]
                if not usages or any(name not in usage for usage in usages):
                    continue
                value = sum(milli(usage[name]) for usage in usages)
                window = timedelta(microseconds=parse_duration(item.get("window") or "0s") // 1000)
                found[item["metadata"]["name"]] = PodMetric(value, _time_of(item), window)
        return found

    def pods(self, metric: str, selector: str, metric_selector: str) -> dict[str, PodMetric]:
        """A custom metric of pods, by their names. Raises MetricError."""
        query = {"labelSelector": selector, "metricLabelSelector": metric_selector}
        items = self._items(f"{self._custom_root()}/pods/*/{quote(metric)}", query, "", "custom")
        found = {}
        with _decoding("custom"):
            for item in items:
                seconds = item.get("windowSeconds", item.get("window"))
                window = DEFAULT_WINDOW if seconds is None else timedelta(seconds=seconds)
                found[item["describedObject"]["name"]] = PodMetric(milli(item["value"]), _time_of(item), window)
        return found

    def object(self, metric: str, described: Object, metric_selector: str) -> int:
        """A custom metric of an object. Raises MetricError."""
        root, group = self._custom_root(), described.get("apiVersion", "").rpartition("/")[0]
        if described["kind"] == "Namespace" and not group:
            path = f"{root}/metrics/{quote(metric)}"
        else:
            resource = self._client.resource(described["kind"], described.get("apiVersion") or None)
            name = f"{resource.plural}.{group}" if group else resource.plural
            path = f"{root}/{name}/{quote(described['name'])}/{quote(metric)}"
        items = self._items(path, {"metricLabelSelector": metric_selector}, "", "custom")
        with _decoding("custom"):
            return milli(items[0]["value"])

    def external(self, metric: str, metric_selector: str) -> list[int]:
        """The values of an external metric. Raises MetricError."""
        path = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{self.namespace}/{quote(metric)}"
        items = self._items(path, {"labelSelector": metric_selector}, f"{metric}.external.metrics.k8s.io", "external")
        with _decoding("external"):
            return [milli(item["value"]) for item in items]

    def _items(self, path: str, query: dict[str, str], resource: str, kind: str) -> list[Object]:
        try:
            answer = self._client.call("GET", path, None, {name: value for name, value in query.items() if value})
        except ApiError as error:
            text = plain_message(error, f"get {resource}" if resource else "")
            raise MetricError(f"unable to fetch metrics from {kind} metrics API: {text}") from None
        items: list[Object] = list(answer.get("items") or ())
        if not items:
            raise MetricError(f"no metrics returned from {kind} metrics API")
        return items

    def _custom_root(self) -> str:
        """Where the preferred version of the custom metrics API serves the namespace. Raises MetricError."""
        try:
            group = self._client.call("GET", "/apis/custom.metrics.k8s.io")
        except ApiError:
            text = "no custom metrics API (custom.metrics.k8s.io) registered"
            raise MetricError(f"unable to fetch metrics from custom metrics API: {text}") from None
        return f"/apis/{group['preferredVersion']['groupVersion']}/namespaces/{self.namespace}"
