"""The order of the request filters, and the response headers that each of them sets."""

from __future__ import annotations

import gzip
import re

import pytest

from fakekube.apiserver import server as assembly
from fakekube.apiserver.endpoints.request import Request, Response
from fakekube.apiserver.http.application import Application

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
FLOW = "X-Kubernetes-Pf-Flowschema-Uid"


def test_every_response_has_an_audit_id(call) -> None:
    first, second = call("GET", "/version"), call("GET", "/api/v1/watch")
    assert UUID.fullmatch(first.header("Audit-Id"))
    assert first.header("Audit-Id") != second.header("Audit-Id")
    assert call("GET", "/version", audit_id="mine").header("Audit-Id") == "mine"


def test_response_headers_depend_on_the_failing_filter(call) -> None:
    given_up = call("GET", "/api/v1/watch")
    assert (given_up.status, given_up.header("Cache-Control"), given_up.header(FLOW)) == (500, None, None)
    unknown = call("GET", "/version", authorization="Bearer wrong")
    assert (unknown.status, unknown.header("Cache-Control"), unknown.header(FLOW)) == (401, "no-cache, private", None)
    assert unknown.header("X-Content-Type-Options") is None
    refused = call("GET", "/api/v1/nodes", authorization="Bearer user-token")
    assert refused.status == 403
    assert refused.header("X-Content-Type-Options") == "nosniff"
    assert refused.header(FLOW)
    missing = call("GET", "/api/v1/namespaces/nope")
    assert missing.status == 404
    assert missing.header("X-Content-Type-Options") is None
    assert missing.header(FLOW)


def test_order_of_the_request_filters(call) -> None:
    wrong, query = "Bearer wrong", "timeout=x"
    assert call("GET", "/api/v1/watch", query, authorization=wrong).status == 500
    assert call("GET", "/api/v1/nope", query, authorization=wrong).status == 400
    assert call("GET", "/api/v1/nope", authorization=wrong, impersonate_group="x").status == 401
    assert call("GET", "/api/v1/nope", authorization="Bearer user-token", impersonate_group="x").status == 400
    assert call("GET", "/api/v1/nope", authorization="Bearer user-token").status == 403
    assert call("GET", "/api/v1/nope").status == 404


def test_flow_schemas_distinguish_users_and_probes(call) -> None:
    bearer = "Bearer user-token"
    admin = call("GET", "/version").header(FLOW)
    alice = call("GET", "/version", authorization=bearer).header(FLOW)
    probe = call("GET", "/healthz", authorization=bearer).header(FLOW)
    assert len({admin, alice, probe}) == 3
    assert call("GET", "/version", authorization="").header(FLOW) == alice


def test_head_response_has_content_length_but_no_body(call) -> None:
    answer = call("HEAD", "/api")
    assert (answer.status, answer.body) == (405, b"")
    assert int(answer.header("Content-Length")) > 100
    assert call("HEAD", "/apis").header("Content-Length") is None


def test_errors_use_the_requested_format(call) -> None:
    assert call("GET", "/api/v1/nope", accept="application/yaml").body.startswith(b"apiVersion: v1\ncode: 404\n")
    assert call("GET", "/api/v1/nope", accept="text/html").body.startswith(b"{\n  ")
    assert call("GET", "/api/v1/nope", "pretty=true").body.startswith(b"{\n  ")
    assert call("GET", "/api/v1/nope", user_agent="curl/8").body.startswith(b"{\n  ")
    assert call("GET", "/api/v1/nope").body.startswith(b'{"kind":"Status"')
    assert call("GET", "/api/v1/nope", accept="application/vnd.kubernetes.protobuf").body.startswith(b"k8s\0")


def test_paths_of_other_objects_of_a_collection_are_not_parsed_again(call, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_info(_method: str, path: str, _query: object) -> None:
        raise RuntimeError(path)

    call("GET", "/api/v1/nodes/first-sibling")
    monkeypatch.setattr("fakekube.apiserver.http.application.request_info", no_info)
    for name in ("second-sibling", "third-sibling"):
        answer = call("GET", f"/api/v1/nodes/{name}")
        assert (answer.status, answer.json["message"]) == (404, f'nodes "{name}" not found')
    for path in ("/api/v1/nodes/second-sibling/", "/api/v1/nodes/second-sibling/status", "/api/v1//nodes/second-sibling"):
        assert call("GET", path).status == 500
    assert call("DELETE", "/api/v1/nodes/second-sibling").status == 500


class _Verbs:
    """Stands in for the verbs."""

    def __init__(self, answer: Response | Exception) -> None:
        self._answer = answer

    def handle(self, request: Request, _backend: object, _resource: object) -> Response:
        if isinstance(self._answer, Exception):
            raise self._answer
        request.warnings.append("mind that")
        return Response(self._answer.status, list(self._answer.headers), self._answer.body)


@pytest.fixture
def answer_with(machinery: assembly.Machinery, monkeypatch: pytest.MonkeyPatch, caller_of):
    def answer_with(answer: Response | Exception):
        monkeypatch.setattr("fakekube.apiserver.http.application.handlers", _Verbs(answer))
        return caller_of(Application(machinery.backend, machinery.access, machinery.aggregator))

    return answer_with


def test_unexpected_exception_returns_500_and_is_logged(answer_with, caplog: pytest.LogCaptureFixture) -> None:
    answer = answer_with(RuntimeError("secret"))("GET", "/api/v1/pods")
    assert answer.status == 500
    assert answer.json["reason"] == "InternalError"
    assert b"secret" not in answer.body
    assert "secret" in caplog.text


def test_warnings_are_sent_as_headers(answer_with) -> None:
    answer = answer_with(Response(200, [], b"{}"))("GET", "/api/v1/pods")
    assert answer.header("Warning") == '299 - "mind that"'


def test_large_responses_are_compressed_if_accepted(answer_with) -> None:
    large = b"x" * (128 * 1024 + 1)
    call = answer_with(Response(200, [("Content-Type", "application/json")], large))
    packed = call("GET", "/api/v1/pods", accept_encoding="br, gzip")
    assert packed.header("Content-Encoding") == "gzip"
    assert packed.header("Vary") == "Accept-Encoding"
    assert gzip.decompress(packed.body) == large
    assert int(packed.header("Content-Length")) == len(packed.body) < 2048
    for encodings in ("", "deflate", "gzip;q=1"):
        assert call("GET", "/api/v1/pods", accept_encoding=encodings).body == large


def test_small_or_text_responses_are_not_compressed(answer_with) -> None:
    small = answer_with(Response(200, [("Content-Type", "application/json")], b"x" * 128 * 1024))
    assert small("GET", "/api/v1/pods", accept_encoding="gzip").header("Content-Encoding") is None
    text = answer_with(Response(200, [("Content-Type", "text/plain")], b"x" * 200_000))
    assert text("GET", "/api/v1/pods", accept_encoding="gzip").header("Content-Encoding") is None


class _Stream:
    def __iter__(self):
        yield b"frame"


def test_streams_are_returned_unchanged(machinery, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = _Stream()
    monkeypatch.setattr("fakekube.apiserver.http.application.handlers", _Verbs(Response(200, [], stream)))  # type: ignore[arg-type]
    environ = {
        "REQUEST_METHOD": "GET", "PATH_INFO": "/api/v1/pods", "QUERY_STRING": "watch=1", "wsgi.url_scheme": "http",
    }  # fmt: skip
    seen = []
    body = Application(machinery.backend, machinery.access, machinery.aggregator)(
        environ, lambda _, headers: seen.extend(headers)
    )
    assert body is stream
    assert "Content-Length" not in dict(seen)


def test_timeout_must_be_a_duration(call) -> None:
    assert call("GET", "/version", "timeout=1s").status == 200
    answer = call("GET", "/version", "timeout=x")
    assert (answer.status, answer.json["reason"]) == (400, "BadRequest")


def test_unknown_target_error_is_escaped_plain_text(call) -> None:
    answer = call("GET", "/api/v1/watch", "a=<b>&c")
    assert answer.header("Content-Type") == "text/plain; charset=utf-8"
    assert b"/api/v1/watch?a=&lt;b&gt;&amp;c" in answer.body
