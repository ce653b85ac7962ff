"""Serves /metrics: the metrics of an API server that a fake can measure, in the formats of Prometheus.

Counting a request costs two additions under a lock; `encode` encodes the metrics when they are requested, in the text
format, as delimited Protobuf messages, or as Protobuf text. Names, labels and buckets are those of the real server. Metrics of
parts that a fake does not have (etcd, the Go runtime, queues) are omitted.

Invariant: labels and names are plain ASCII, so that all escaping schemes give the same result.

Specified by: k8s.io/apiserver/pkg/endpoints/metrics/metrics.go, k8s.io/component-base/metrics/prometheus (feature, version),
kube-aggregator/pkg/controllers/status/metrics; github.com/prometheus/common/expfmt (Negotiate, MetricFamilyToText, NewEncoder)
and client_model's metrics.proto.
"""

from __future__ import annotations

import os
import resource as limits
import struct
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from fakekube.apimachinery.codecs.protobuf.wire import encode_varint
from fakekube.apimachinery.features import DEFAULT, PRE_ALPHA, Emulation
from fakekube.apiserver.endpoints import negotiation
from fakekube.apiserver.endpoints.request import RequestInfo, Response
from fakekube.apiserver.http.healthz import CHECKS, checks_of
from fakekube.apiserver.http.nonresource_paths import version_info
from fakekube.base.golang.strings import bytes_of
from fakekube.base.objects import group_resource

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"

_PROTOBUF: Final = "application/vnd.google.protobuf"
_MESSAGE: Final = "io.prometheus.client.MetricFamily"
_ESCAPINGS: Final = ("allow-utf-8", "underscores", "dots", "values")

#: Metric type → its number in MetricType, and the field of Metric that holds the value.
_TYPES: Final = {COUNTER: (0, 3), GAUGE: (1, 2), HISTOGRAM: (4, 7)}


@dataclass(frozen=True, slots=True)
class Histogram:
    """The counts of a histogram by bucket."""

    bounds: Sequence[float]
    """Without the infinite one."""
    counts: Sequence[float]
    """In each bucket alone; the last is above all bounds."""
    total: float

    def cumulative(self) -> list[int]:
        """Returns the cumulative counts of the buckets; the last is the total."""
        found, count = [], 0.0
        for one in self.counts:
            count += one
            found.append(int(count))
        return found


class Sample(NamedTuple):
    """One value of a metric, with its labels."""

    labels: Mapping[str, str]
    value: float | Histogram


@dataclass(frozen=True, slots=True)
class Family:
    """A metric family: a metric with all its samples."""

    name: str
    kind: str
    help: str
    samples: Sequence[Sample]


def encode(families: Iterable[Family], accept: str) -> tuple[str, bytes]:
    """Returns content type and body for an Accept header. Families without samples are omitted."""
    encoding, escaping = _negotiate(accept)
    told = [family for family in families if family.samples]
    if encoding is None:
        content_type = f"text/plain; version=0.0.4; charset=utf-8; escaping={escaping}"
        return content_type, bytes_of("".join(map(_text, told)))
    content_type = f"{_PROTOBUF}; proto={_MESSAGE}; encoding={encoding}; escaping={escaping}"
    return content_type, b"".join(map(_ENCODERS[encoding], told))


def _negotiate(accept: str) -> tuple[str | None, str]:
    """Negotiates the encoding of messages (None: the text format) and the escaping scheme."""
    escaping = "underscores"
    for clause in negotiation.clauses(accept):
        parameters = dict(clause.parameters)
        if parameters.get("escaping") in _ESCAPINGS:
            escaping = parameters["escaping"]
        media_type = f"{clause.type}/{clause.subtype}"
        if media_type == _PROTOBUF and parameters.get("proto") == _MESSAGE and parameters.get("encoding") in _ENCODERS:
            return parameters["encoding"], escaping
        if media_type == "text/plain" and parameters.get("version", "0.0.4") == "0.0.4":
            break
    return None, escaping


# --- The text form ----------------------------------------------------------------------------------------------------


def _text(family: Family) -> str:
    lines = [f"# HELP {family.name} {_escape(family.help)}\n# TYPE {family.name} {family.kind}\n"]
    for labels, value in family.samples:
        if isinstance(value, Histogram):
            lines += _histogram_lines(family.name, labels, value)
        else:
            lines.append(_line(family.name, labels, value))
    return "".join(lines)


def _histogram_lines(name: str, labels: Mapping[str, str], histogram: Histogram) -> Iterator[str]:
    counts = histogram.cumulative()
    edges = [*map(_number, histogram.bounds), "+Inf"]
    for edge, count in zip(edges, counts, strict=True):
        yield _line(f"{name}_bucket", {**labels, "le": edge}, count)
    yield _line(f"{name}_sum", labels, histogram.total)
    yield _line(f"{name}_count", labels, counts[-1])


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    shown = ",".join(f'{label}="{_quote(text)}"' for label, text in labels.items())
    return f"{name}{{{shown}}} {_number(value)}\n" if shown else f"{name} {_number(value)}\n"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quote(text: str) -> str:
    return _escape(text).replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


# --- Messages ---------------------------------------------------------------------------------------------------------


def _delimit(family: Family) -> bytes:
    kind, number = _TYPES[family.kind]
    message = _field(1, bytes_of(family.name)) + _field(2, bytes_of(family.help)) + b"\x18" + encode_varint(kind)
    for labels, value in family.samples:
        pairs = b"".join(_field(1, _field(1, bytes_of(n)) + _field(2, bytes_of(text))) for n, text in labels.items())
        body = _histogram(value) if isinstance(value, Histogram) else b"\x09" + struct.pack("<d", value)
        message += _field(4, pairs + _field(number, body))
    return encode_varint(len(message)) + message


def _histogram(histogram: Histogram) -> bytes:
    counts = histogram.cumulative()
    buckets = [
        _field(3, b"\x08" + encode_varint(count) + b"\x11" + struct.pack("<d", bound))
        for bound, count in zip(histogram.bounds, counts, strict=False)
    ]
    return b"\x08" + encode_varint(counts[-1]) + b"\x11" + struct.pack("<d", histogram.total) + b"".join(buckets)


def _field(number: int, content: bytes) -> bytes:
    return encode_varint(number << 3 | 2) + encode_varint(len(content)) + content


# --- Messages as text -------------------------------------------------------------------------------------------------

_Message = list[tuple[str, "str | _Message"]]
"""A type whose fields are encoded in order; the text format has them as they are."""


def _compact(family: Family) -> bytes:
    return bytes_of(_compact_fields(_message(family)) + "\n")


def _compact_fields(message: _Message) -> str:
    return "  ".join(
        f"{name}:{value}" if isinstance(value, str) else f"{name}:{{{_compact_fields(value)}}}" for name, value in message
    )


def _indent(family: Family) -> bytes:
    return bytes_of("".join(_indented_lines(_message(family), "")) + "\n")


def _indented_lines(message: _Message, indent: str) -> Iterator[str]:
    for name, value in message:
        if isinstance(value, str):
            yield f"{indent}{name}:  {value}\n"
        else:
            yield f"{indent}{name}:  {{\n"
            yield from _indented_lines(value, indent + "  ")
            yield f"{indent}}}\n"


def _message(family: Family) -> _Message:
    message: _Message = [
        ("name", f'"{_quote(family.name)}"'), ("help", f'"{_quote(family.help)}"'), ("type", family.kind.upper()),
    ]  # fmt: skip
    for labels, value in family.samples:
        metric: _Message = [
            ("label", [("name", f'"{_quote(name)}"'), ("value", f'"{_quote(text)}"')]) for name, text in labels.items()
        ]
        metric.append((family.kind, _value(value)))
        message.append(("metric", metric))
    return message


def _value(value: float | Histogram) -> _Message:
    if not isinstance(value, Histogram):
        return [("value", _number(value))]
    counts = value.cumulative()
    buckets: _Message = [
        ("bucket", [("cumulative_count", str(count)), ("upper_bound", _number(bound))])
        for bound, count in zip(value.bounds, counts, strict=False)
    ]
    return [("sample_count", str(counts[-1])), ("sample_sum", _number(value.total)), *buckets]


_ENCODERS: Final[Mapping[str, Callable[[Family], bytes]]] = {"delimited": _delimit, "text": _indent, "compact-text": _compact}


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
#: The maximal number of label sets: clients can invent paths without limit.
_MAXIMUM_LABELS: Final = 2000

#: The fields of /version that are labels of kubernetes_build_info.
_BUILD: Final = {
    "build_date": "buildDate",
    "compiler": "compiler",
    "git_commit": "gitCommit",
    "git_tree_state": "gitTreeState",
    "git_version": "gitVersion",
    "go_version": "goVersion",
    "major": "major",
    "minor": "minor",
    "platform": "platform",
}


class Labels(NamedTuple):
    """The labels by which requests are counted."""

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
    """Returns the labels of a request."""
    if not info.is_resource_request:
        return Labels("", "", "", "", "", info.path, info.verb.upper(), "")
    scope = "resource" if info.name and info.verb not in ("list", "watch") else "namespace" if info.namespace else "cluster"
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
        objects: returns the number of stored objects, by group and resource.
        seats: returns the nominal number of seats of each priority level.
        unavailable: returns the names of all APIServices, and whether each is unavailable.
        emulation: the emulated minor version and its feature gates.
    """

    def __init__(
        self,
        objects: Callable[[], Iterable[tuple[str, str, int]]] = list,
        seats: Callable[[], Mapping[str, int]] = dict,
        unavailable: Callable[[], Mapping[str, bool]] = dict,
        emulation: Emulation = DEFAULT,
    ) -> None:
        self._objects, self._seats, self._unavailable = objects, seats, unavailable
        self._emulation = emulation
        self._lock = threading.Lock()
        self._answered: dict[Labels, tuple[dict[int, int], list[float]]] = {}
        """By labels: the number of responses by code, and the histogram of durations with their sum at its end."""

    def count_response(self, labels: Labels, code: int, seconds: float) -> None:
        """Counts a response with its code and duration."""
        with self._lock:
            found = self._answered.get(labels)
            if found is None:
                if len(self._answered) >= _MAXIMUM_LABELS:
                    labels = _OTHERS
                found = self._answered.setdefault(labels, ({}, [0.0] * (len(_DURATION_BUCKETS) + 2)))
            codes, histogram = found
            codes[code] = codes.get(code, 0) + 1
            histogram[bisect_left(_DURATION_BUCKETS, seconds)] += 1
            histogram[-1] += seconds

    def reset(self) -> None:
        """Resets all counters."""
        with self._lock:
            self._answered.clear()

    # --- Exposition ---------------------------------------------------------------------------------------------------

    def response(self, accept: str = "") -> Response:
        """Returns all metrics, in the negotiated format."""
        return _response(self._families(), accept)

    def health_response(self, accept: str = "") -> Response:
        """Returns /metrics/slis: the results of the health checks."""
        return _response([_health(self._emulation)], accept)

    def _families(self) -> Iterator[Family]:
        with self._lock:
            requests = {(labels, code): count for labels, (codes, _) in self._answered.items() for code, count in codes.items()}
            durations = {labels: list(histogram) for labels, (_, histogram) in self._answered.items()}
        objects = sorted(self._objects())
        yield Family(
            "aggregator_unavailable_apiservice",
            GAUGE,
            "APIServices by whether they are not available.",
            [Sample({"name": name}, unavailable) for name, unavailable in sorted(self._unavailable().items())],
        )
        yield Family(
            "apiserver_flowcontrol_nominal_limit_seats",
            GAUGE,
            "Requests that a priority level might serve at once.",
            [Sample({"priority_level": level}, seats) for level, seats in sorted(self._seats().items())],
        )
        yield Family(
            "apiserver_request_duration_seconds",
            HISTOGRAM,
            "How long requests took.",
            [
                Sample(labels._asdict(), Histogram(_DURATION_BUCKETS, measured[:-1], measured[-1]))
                for labels, measured in sorted(durations.items())
            ],
        )
        yield Family(
            "apiserver_request_total",
            COUNTER,
            "Requests that were answered.",
            [Sample({"code": str(code), **labels._asdict()}, count) for (labels, code), count in sorted(requests.items())],
        )
        yield Family(
            "apiserver_resource_objects",
            GAUGE,
            "Objects that are stored.",
            [Sample({"group": group, "resource": resource}, count) for group, resource, count in objects],
        )
        yield Family(
            "apiserver_storage_objects",
            GAUGE,
            "Objects that are stored, under their older name.",
            [Sample({"resource": group_resource(group, resource)}, count) for group, resource, count in objects],
        )
        yield _build(self._emulation.version)
        yield self._features()
        yield _health(self._emulation)
        yield from _process()

    def _features(self) -> Family:
        gates = self._emulation.gates
        told = [(name, gates.spec(name).stage) for name in gates]
        return Family(
            "kubernetes_feature_enabled",
            GAUGE,
            "Feature gates of the emulated release, and whether they are on.",
            [Sample({"name": name, "stage": stage}, gates.enabled(name)) for name, stage in told if stage != PRE_ALPHA],
        )


def _response(families: Iterable[Family], accept: str) -> Response:
    content_type, body = encode(families, accept)
    return Response(200, [("Content-Type", content_type), ("Process-Start-Time-Unix", str(int(_PROCESS_START)))], body)


def _build(version: str) -> Family:
    info = version_info(version)
    labels = {label: info[name] for label, name in _BUILD.items()}
    return Family("kubernetes_build_info", GAUGE, "The emulated release.", [Sample(labels, 1)])


def _health(emulation: Emulation) -> Family:
    return Family(
        "kubernetes_healthcheck",
        GAUGE,
        "What became of each health check; 1 is well.",
        [Sample({"name": check, "type": kind}, 1) for kind in CHECKS for check in checks_of(kind, emulation)],
    )


def _process() -> Iterator[Family]:
    usage = limits.getrusage(limits.RUSAGE_SELF)
    memory = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    yield _single_family("process_cpu_seconds_total", COUNTER, "Processor time of this process.", sum(os.times()[:2]))
    yield _single_family("process_resident_memory_bytes", GAUGE, "The most memory that this process had.", memory)
    yield _single_family("process_start_time_seconds", GAUGE, "When this process started.", _PROCESS_START)


def _single_family(name: str, kind: str, help_text: str, value: float) -> Family:
    return Family(name, kind, help_text, [Sample({}, value)])
