"""The forms in which metrics are written; the texts are as the Go library writes them."""

from __future__ import annotations

import pytest

from fakekube.apiserver.http.metrics import COUNTER, GAUGE, HISTOGRAM, Family, Histogram, Sample, encode

PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding="
FAMILIES = [
    Family("a", GAUGE, 'says "b"', [Sample({"name": "x"}, 1), Sample({"name": 'y"'}, 0.5)]),
    Family("none", GAUGE, "is not told", []),
    Family("c", COUNTER, "c", [Sample({}, 3)]),
    Family("h", HISTOGRAM, "h", [Sample({}, Histogram((0.5, 1.0), (1, 0, 2), 7.25))]),
]


def test_text_format() -> None:
    content_type, body = encode(FAMILIES, "")
    assert content_type == "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
    assert body.decode().splitlines() == [
        '# HELP a says "b"', "# TYPE a gauge", 'a{name="x"} 1', 'a{name="y\\""} 0.5', "# HELP c c", "# TYPE c counter", "c 3",
        "# HELP h h", "# TYPE h histogram", 'h_bucket{le="0.5"} 1', 'h_bucket{le="1"} 1', 'h_bucket{le="+Inf"} 3',
        "h_sum 7.25", "h_count 3",
    ]  # fmt: skip


def test_protobuf_format() -> None:
    content_type, body = encode(FAMILIES[2:], PROTOBUF + "delimited")
    assert content_type == (
        "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; escaping=underscores"
    )
    counter = b"\x0a\x01c\x12\x01c\x18\x00\x22\x0b\x1a\x09\x09\x00\x00\x00\x00\x00\x00\x08@"
    assert body.startswith(bytes([len(counter)]) + counter)
    buckets = (
        b"\x1a\x0b\x08\x01\x11\x00\x00\x00\x00\x00\x00\xe0?", b"\x1a\x0b\x08\x01\x11\x00\x00\x00\x00\x00\x00\xf0?"
    )  # fmt: skip
    histogram = b"\x08\x03\x11\x00\x00\x00\x00\x00\x00\x1d@" + b"".join(buckets)
    assert body.endswith(
        b"\x0a\x01h\x12\x01h\x18\x04\x22" + bytes([len(histogram) + 2]) + b"\x3a" + bytes([len(histogram)]) + histogram
    )


def test_protobuf_text_formats() -> None:
    assert encode(FAMILIES[3:], PROTOBUF + "compact-text")[1].decode() == (
        'name:"h"  help:"h"  type:HISTOGRAM  metric:{histogram:{sample_count:3  sample_sum:7.25  '
        "bucket:{cumulative_count:1  upper_bound:0.5}  bucket:{cumulative_count:1  upper_bound:1}}}\n"
    )
    assert encode(FAMILIES[:1], PROTOBUF + "text")[1].decode().splitlines()[:14] == [
        'name:  "a"', 'help:  "says \\"b\\""', "type:  GAUGE", "metric:  {", "  label:  {", '    name:  "name"', '    value:  "x"',
        "  }", "  gauge:  {", "    value:  1", "  }", "}", "metric:  {", "  label:  {",
    ]  # fmt: skip


@pytest.mark.parametrize(("accept", "expected"), [
    ("*/*", "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"),
    ("application/openmetrics-text;version=1.0.0", "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"),
    (PROTOBUF + "unheard", "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"),
    ("text/plain;escaping=values", "text/plain; version=0.0.4; charset=utf-8; escaping=values"),
    ("text/plain;escaping=unheard", "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"),
    (f"text/plain;version=0.0.4;q=0.9,{PROTOBUF}text;q=0.5", "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"),
    (f"text/plain;version=1.0.0,{PROTOBUF}text;q=0.5",
     "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=text; escaping=underscores"),
])  # fmt: skip
def test_content_negotiation(accept: str, expected: str) -> None:
    assert encode(FAMILIES, accept)[0] == expected
