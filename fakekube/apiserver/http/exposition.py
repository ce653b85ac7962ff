"""Encodes metric families in the Prometheus text format, as delimited Protobuf messages, and as Protobuf text.

Specified by: github.com/prometheus/common/expfmt (Negotiate, MetricFamilyToText, NewEncoder) and client_model's
metrics.proto. Invariant: labels and names are plain ASCII, so that all escaping schemes give the same result.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from fakekube.apimachinery.codecs.protobuf.wire import encode_varint
from fakekube.apiserver.endpoints import negotiation
from fakekube.base.golang.strings import bytes_of

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
    encoding, escaping = _negotiated(accept)
    told = [family for family in families if family.samples]
    if encoding is None:
        content_type = f"text/plain; version=0.0.4; charset=utf-8; escaping={escaping}"
        return content_type, bytes_of("".join(map(_text, told)))
    content_type = f"{_PROTOBUF}; proto={_MESSAGE}; encoding={encoding}; escaping={escaping}"
    return content_type, b"".join(map(_ENCODERS[encoding], told))


def _negotiated(accept: str) -> tuple[str | None, str]:
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


# ---------------------------------------------------------------- the text form


def _text(family: Family) -> str:
    lines = [f"# HELP {family.name} {_escaped(family.help)}\n# TYPE {family.name} {family.kind}\n"]
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
    shown = ",".join(f'{label}="{_quoted(text)}"' for label, text in labels.items())
    return f"{name}{{{shown}}} {_number(value)}\n" if shown else f"{name} {_number(value)}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


# ---------------------------------------------------------------- messages


def _delimited(family: Family) -> bytes:
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


# ---------------------------------------------------------------- messages as text

_Message = list[tuple[str, "str | _Message"]]
"""A type whose fields are encoded in order; the text format has them as they are."""


def _compact(family: Family) -> bytes:
    return bytes_of(_compact_fields(_message(family)) + "\n")


def _compact_fields(message: _Message) -> str:
    return "  ".join(
        f"{name}:{value}" if isinstance(value, str) else f"{name}:{{{_compact_fields(value)}}}" for name, value in message
    )


def _indented(family: Family) -> bytes:
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
        ("name", f'"{_quoted(family.name)}"'), ("help", f'"{_quoted(family.help)}"'), ("type", family.kind.upper()),
    ]  # fmt: skip
    for labels, value in family.samples:
        metric: _Message = [
            ("label", [("name", f'"{_quoted(name)}"'), ("value", f'"{_quoted(text)}"')]) for name, text in labels.items()
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


_ENCODERS: Final[Mapping[str, Callable[[Family], bytes]]] = {"delimited": _delimited, "text": _indented, "compact-text": _compact}
