"""/metrics: what scrapers of an API server look for and a fake can truly tell, in the text form of
Prometheus.

Counting a request is two additions under a lock; text is only made when somebody asks. Names, labels and
buckets are those of the real server; what would be invented (etcd, Go's runtime, queues) is left out.

Specified by: k8s.io/apiserver/pkg/endpoints/metrics/metrics.go.
"""

from __future__ import annotations

import os
import resource as limits
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from fakekube.api import health
from fakekube.api.version import git_version
from fakekube.golang.strings import bytes_of
from fakekube.registry.request import RequestInfo, Response

__all__ = ["Labels", "Metrics", "labels_of"]

_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
_DURATION_BUCKETS: Final = (
    0.005,
    0.025,
    0.05,
    0.1,
    0.2,
    0.4,
    0.6,
    0.8,
    1.0,
    1.25,
    1.5,
    2.0,
    3.0,
    4.0,
    5.0,
    6.0,
    8.0,
    10.0,
    15.0,
    20.0,
    30.0,
    45.0,
    60.0,
)
_METHOD_OF: Final = {
    "get": "GET",
    "list": "LIST",
    "watch": "WATCH",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
    "proxy": "CONNECT",
}
_PROCESS_START: Final = time.time()
#: More kinds of requests than these are not told apart: paths are the clients' to invent.
_MAXIMUM_LABELS: Final = 2000

Sample = tuple[str, float]
"""A line: name with labels, and value."""


class Labels(NamedTuple):
    """How requests are told apart."""

    component: str
    dry_run: str
    group: str
    resource: str
    scope: str
    subresource: str
    verb: str
    version: str


_OTHERS: Final = Labels("", "", "", "", "", "", "other", "")


def labels_of(info: RequestInfo, *, dry_run: bool) -> Labels:
    """The labels under which a request is counted."""
    if not info.is_resource_request:
        return Labels("", "", "", "", "", info.path, info.verb.upper(), "")
    scope = (
        "resource" if info.name and info.verb not in ("list", "watch") else "namespace" if info.namespace else "cluster"
    )
    return Labels(
        "apiserver",
        "All" if dry_run else "",
        info.group,
        info.resource,
        scope,
        info.subresource,
        _METHOD_OF.get(info.verb, "other"),
        info.version,
    )


class Metrics:
    """The counters of one cluster.

    Args:
        objects: how many objects are stored, by group and resource.
        seats: how many requests each priority level might serve at once.
        version: the emulated minor.
    """

    def __init__(
        self, objects: Callable[[], Iterable[tuple[str, str, int]]], seats: Callable[[], Mapping[str, int]], version: str
    ) -> None:
        self._objects, self._seats = objects, seats
        self._version = version
        self._lock = threading.Lock()
        self._requests: dict[tuple[Labels, int], int] = {}
        self._durations: dict[Labels, list[float]] = {}

    def answered(self, labels: Labels, code: int, seconds: float) -> None:
        """A request was answered with this code after so long."""
        with self._lock:
            histogram = self._durations.get(labels)
            if histogram is None:
                if len(self._durations) >= _MAXIMUM_LABELS:
                    labels = _OTHERS
                histogram = self._durations.setdefault(labels, [0.0] * (len(_DURATION_BUCKETS) + 2))
            key = (labels, code)
            self._requests[key] = self._requests.get(key, 0) + 1
            histogram[bisect_left(_DURATION_BUCKETS, seconds)] += 1
            histogram[-1] += seconds

    def reset(self) -> None:
        """Count from nothing."""
        with self._lock:
            self._requests.clear()
            self._durations.clear()

    # ------------------------------------------------------------ text

    def response(self) -> Response:
        """Everything."""
        return _response(self._families())

    def health_response(self) -> Response:
        """/metrics/slis: what became of the health checks."""
        return _response([_health()])

    def _families(self) -> Iterator[str]:
        with self._lock:
            requests = dict(self._requests)
            durations = {labels: list(histogram) for labels, histogram in self._durations.items()}
        objects = sorted(self._objects())
        yield _family(
            "apiserver_flowcontrol_nominal_limit_seats",
            "gauge",
            "Requests that a priority level might serve at once.",
            (
                (_line("apiserver_flowcontrol_nominal_limit_seats", {"priority_level": level}), seats)
                for level, seats in self._seats().items()
            ),
        )
        yield _family(
            "apiserver_request_duration_seconds",
            "histogram",
            "How long requests took.",
            (sample for labels, histogram in sorted(durations.items()) for sample in _histogram(labels, histogram)),
        )
        yield _family(
            "apiserver_request_total",
            "counter",
            "Requests that were answered.",
            (
                (_line("apiserver_request_total", {"code": str(code), **labels._asdict()}), count)
                for (labels, code), count in sorted(requests.items())
            ),
        )
        yield _family(
            "apiserver_resource_objects",
            "gauge",
            "Objects that are stored.",
            (
                (_line("apiserver_resource_objects", {"group": group, "resource": resource}), count)
                for group, resource, count in objects
            ),
        )
        yield _family(
            "apiserver_storage_objects",
            "gauge",
            "Objects that are stored, under their older name.",
            (
                (_line("apiserver_storage_objects", {"resource": f"{resource}.{group}" if group else resource}), count)
                for group, resource, count in objects
            ),
        )
        yield _build(self._version)
        yield _health()
        yield from _process()


def _response(families: Iterable[str]) -> Response:
    headers = [("Content-Type", _CONTENT_TYPE), ("Process-Start-Time-Unix", str(int(_PROCESS_START)))]
    return Response(200, headers, bytes_of("".join(families)))


def _family(name: str, kind: str, help_text: str, samples: Iterable[Sample]) -> str:
    """A metric with all its lines; nothing if there are none."""
    lines = [f"{sample} {_number(value)}\n" for sample, value in samples]
    return f"# HELP {name} {help_text}\n# TYPE {name} {kind}\n{''.join(lines)}" if lines else ""


def _line(name: str, labels: Mapping[str, str]) -> str:
    shown = ",".join(f'{label}="{_escaped(value)}"' for label, value in labels.items())
    return f"{name}{{{shown}}}" if shown else name


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def _histogram(labels: Labels, histogram: list[float]) -> Iterator[Sample]:
    name, shown, total = "apiserver_request_duration_seconds", labels._asdict(), 0.0
    for bound, count in zip((*_DURATION_BUCKETS, None), histogram, strict=False):
        total += count
        edge = "+Inf" if bound is None else _number(bound)
        yield _line(f"{name}_bucket", {**shown, "le": edge}), total
    yield _line(f"{name}_sum", shown), histogram[-1]
    yield _line(f"{name}_count", shown), total


def _build(version: str) -> str:
    major, _, minor = version.partition(".")
    labels = {"git_version": git_version(version), "major": major, "minor": minor}
    return _family(
        "kubernetes_build_info", "gauge", "The emulated release.", [(_line("kubernetes_build_info", labels), 1)]
    )


def _health() -> str:
    return _family(
        "kubernetes_healthcheck",
        "gauge",
        "What became of each health check; 1 is well.",
        (
            (_line("kubernetes_healthcheck", {"name": check, "type": kind}), 1)
            for kind, checks in health.CHECKS.items()
            for check in checks
        ),
    )


def _process() -> Iterator[str]:
    usage = limits.getrusage(limits.RUSAGE_SELF)
    memory = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    yield _single("process_cpu_seconds_total", "counter", "Processor time of this process.", sum(os.times()[:2]))
    yield _single("process_resident_memory_bytes", "gauge", "The most memory that this process had.", memory)
    yield _single("process_start_time_seconds", "gauge", "When this process started.", _PROCESS_START)


def _single(name: str, kind: str, help_text: str, value: float) -> str:
    return _family(name, kind, help_text, [(name, value)])
