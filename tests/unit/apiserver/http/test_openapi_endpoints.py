"""Forms, conditional requests and caching of the OpenAPI documents."""

from __future__ import annotations

import gzip
import json

import pytest

V2, V3 = "/openapi/v2", "/openapi/v3"
APPS = f"{V3}/apis/apps/v1"


def test_openapi_v3_index_links_to_cacheable_documents(call) -> None:
    index = call("GET", V3)
    assert index.header("Content-Type") == "text/plain; charset=utf-8"
    assert index.header("Etag") is None
    path, _, query = index.json["paths"]["apis/apps/v1"]["serverRelativeURL"].partition("?")
    assert path == APPS
    document = call("GET", path, query)
    assert document.status == 200
    assert document.header("Etag") == f'"{query.removeprefix("hash=")}"'
    assert document.header("Cache-Control") == "public, immutable"
    assert document.header("Expires").endswith("GMT")
    assert json.loads(document.body)["openapi"] == "3.0.0"


def test_document_without_hash_is_not_cacheable(call) -> None:
    assert call("GET", APPS).header("Cache-Control") == "no-cache, private"
    assert call("GET", APPS).header("Expires") is None


def test_wrong_hash_redirects_to_the_current_document(call) -> None:
    answer = call("GET", APPS, "hash=OLD")
    assert (answer.status, answer.body) == (301, b"")
    assert answer.header("Location") == call("GET", V3).json["paths"]["apis/apps/v1"]["serverRelativeURL"]


@pytest.mark.parametrize("path", [V2, APPS])
def test_conditional_requests(call, path: str) -> None:
    etag = call("GET", path).header("Etag")
    for condition in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        answer = call("GET", path, if_none_match=condition)
        assert (answer.status, answer.body, answer.header("Etag")) == (304, b"", etag)
    assert call("GET", path, if_none_match='"other"').status == 200


@pytest.mark.parametrize(
    ("accept", "v2", "v3"),
    [
        ("", "application/json", "application/json"),
        ("*/*", "application/json", "application/json"),
        ("application/*", "application/json", "application/json"),
        ("text/plain, application/json", "application/json", "application/json"),
        ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", None),
        ("application/com.github.proto-openapi.spec.v3.v1.0+protobuf", None, "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"),
        ("application/yaml", None, None),
        ("text/html", None, None),
    ],
)  # fmt: skip
def test_openapi_content_negotiation(call, accept: str, v2: str | None, v3: str | None) -> None:
    for path, expected in ((V2, v2), (APPS, v3)):
        answer = call("GET", path, accept=accept)
        assert answer.status == (200 if expected else 406)
        if expected:
            assert answer.header("Content-Type") == expected
        else:
            assert answer.body == b""


def test_json_and_protobuf_share_an_etag(call) -> None:
    protobuf = call("GET", APPS, accept="application/com.github.proto-openapi.spec.v3@v1.0+protobuf")
    assert protobuf.header("Etag") == call("GET", APPS).header("Etag")
    assert not protobuf.body.startswith(b"{")


def test_unknown_documents_return_404(call) -> None:
    for path in (f"{V3}/apis/nope/v1", f"{V3}/", f"{V3}/api/v1/"):
        assert call("GET", path).status == 404


def test_openapi_v2_supports_gzip(call) -> None:
    packed = call("GET", V2, accept_encoding="gzip")
    assert packed.header("Content-Encoding") == "gzip"
    assert gzip.decompress(packed.body) == call("GET", V2).body
