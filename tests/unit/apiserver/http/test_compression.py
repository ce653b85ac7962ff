"""Which responses are compressed."""

from __future__ import annotations

import gzip

import pytest

from fakekube.apiserver.endpoints.request import Response
from fakekube.apiserver.http.compression import accepts_gzip, compress, gzip_body, prefers_gzip, takes_gzip

BODY = b"x" * 200_000


@pytest.mark.parametrize(
    ("header", "taken"),
    [("gzip", True), ("deflate, gzip", True), ("", False), ("*", False), ("gzip;q=1", False), ("GZIP", False)],
)
def test_accept_encoding_with_gzip(header: str, taken: bool) -> None:
    assert takes_gzip(header) is taken


@pytest.mark.parametrize(
    ("header", "openapi", "metrics"),
    [
        ("gzip;q=0.5", True, True),
        ("gzip;q=0", False, False),
        ("GZIP", True, False),
        ("*", False, False),
        ("gzip;q=0.5, identity", True, False),
        ("gzip;x=1", True, False),
        ("gzip;q=0.5;x=1", True, True),
        ("gzip;q=x", False, False),
        (",gzip", True, False),
        ("gzip,", True, True),
    ],
)
def test_openapi_and_metrics_read_qualities(header: str, openapi: bool, metrics: bool) -> None:
    assert accepts_gzip(header) is openapi
    assert prefers_gzip(header) is metrics


@pytest.mark.parametrize(
    "media_type", ["application/json", "application/json;stream=watch", "application/vnd.kubernetes.protobuf"]
)
def test_json_responses_are_compressed(media_type: str) -> None:
    response = Response(200, [("Content-Type", media_type)], BODY)
    assert gzip.decompress(compress(response, BODY, "gzip")) == BODY
    assert response.headers[1:] == [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]


@pytest.mark.parametrize(
    ("media_type", "accepted"), [("text/plain", "gzip"), ("application/json", "br"), ("application/json", "")]
)
def test_other_responses_are_not_compressed(media_type: str, accepted: str) -> None:
    response = Response(200, [("Content-Type", media_type)], BODY)
    assert compress(response, BODY, accepted) is BODY
    assert len(response.headers) == 1


def test_compression_is_deterministic() -> None:
    assert gzip_body(BODY) == gzip_body(BODY)
