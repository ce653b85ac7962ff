"""Endpoints beside the resources (version, health, metrics), and general rules of requests."""

from __future__ import annotations

import math
import re
import time

import pytest

OTHER_USER = {"Authorization": "Bearer user-token"}


def test_version(api) -> None:
    version = api.get("/version").json
    assert (version["major"], version["minor"]) == ("1", "37")
    assert version["gitVersion"].startswith("v1.37")
    assert {"gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"} <= version.keys()
    assert api.get("/version/").status == 200


@pytest.mark.parametrize("endpoint", ["/healthz", "/livez", "/readyz"])
def test_health_endpoints(api, endpoint: str) -> None:
    reply = api.get(endpoint)
    assert (reply.status, reply.body) == (200, b"ok")
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    verbose = api.get(endpoint, "verbose").body.decode()
    assert "[+]ping ok\n" in verbose
    assert verbose.endswith(f"{endpoint[1:]} check passed\n")
    assert api.get(f"{endpoint}/ping").body == b"ok"
    assert api.get(f"{endpoint}/nope").status == 404
    assert "[+]ping excluded: ok\n" in api.get(endpoint, "verbose&exclude=ping").body.decode()
    assert (
        'warn: some health checks cannot be excluded: no matches for "nope"\n'
        in api.get(endpoint, "verbose&exclude=nope").body.decode()
    )


def test_root_path_lists_all_paths(api) -> None:
    paths = api.get("/").json["paths"]
    assert {"/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz", "/version", "/openapi/v3", "/metrics"} <= set(
        paths
    )
    assert paths == sorted(paths)


def test_nominal_seats_of_priority_levels(api) -> None:
    """Each level has its share of the 600 requests that are served at once, rounded up."""
    path, name = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations", api.name("level")
    limited = {"nominalConcurrencyShares": 7, "limitResponse": {"type": "Reject"}}
    body = {"kind": "PriorityLevelConfiguration", "metadata": {"name": name}, "spec": {"type": "Limited", "limited": limited}}
    assert api.post(path, body).status == 201
    try:
        levels = {level["metadata"]["name"]: level["spec"] for level in api.get(path).at("items")}
        shares = {level: (spec.get("limited") or spec["exempt"])["nominalConcurrencyShares"] for level, spec in levels.items()}
        end = time.monotonic() + 60
        while f'priority_level="{name}"' not in (text := api.get("/metrics").body.decode()):
            assert time.monotonic() < end
    finally:
        api.delete(f"{path}/{name}")
    seats = dict(re.findall(r'^apiserver_flowcontrol_nominal_limit_seats{priority_level="(.*)"} (.*)$', text, re.MULTILINE))
    assert seats == {level: str(math.ceil(600 * share / sum(shares.values()))) for level, share in shares.items()}


def test_metrics(api) -> None:
    api.get(api.path("pods"))
    text = api.get("/metrics").body.decode()
    assert re.search(r'^apiserver_request_total\{code="200",.*resource="pods",.*verb="LIST",version="v1"\} [1-9]', text, re.M)
    assert "# TYPE apiserver_request_duration_seconds histogram\n" in text


def test_openid_configuration_and_jwks(api) -> None:
    document = api.get("/.well-known/openid-configuration").json
    keys = api.get("/openid/v1/jwks", headers={"Accept": "application/jwk-set+json"})
    assert keys.status == 200
    assert {key["alg"] for key in keys.json["keys"]} <= set(document["id_token_signing_alg_values_supported"])


# ---------------------------------------------------------------- unusual requests


@pytest.mark.parametrize("path", ["/api//v1/nodes", "/api/v1/../v1/nodes", "//version", "/healthz/", "/api/v1//nodes", "/V1"])
def test_paths_are_not_normalized(api, path: str) -> None:
    """Paths are neither cleaned nor redirected."""
    assert api.get(path).status == 404


@pytest.mark.parametrize("path", ["/apis/", "/apis/apps/", "/apis/apps/v1/", "/api/", "/api/v1/", "/version/"])
def test_trailing_slash_serves_the_same_document(api, path: str) -> None:
    assert api.get(path).body == api.get(path.rstrip("/")).body


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("PATCH", "/api/v1/namespaces", 405),
        ("PUT", "/api/v1/nodes", 405),
        ("POST", "/api/v1/nodes/n", 405),
        ("FOO", "/api/v1/nodes", 405),
        ("POST", "/api/v1/componentstatuses", 405),
        ("OPTIONS", "/api/v1/nodes", 405),
    ],
)
def test_allowed_methods(api, method: str, path: str, status: int) -> None:
    assert api.request(method, path).status == status


def test_head_requests(api) -> None:
    """HEAD is accepted by documents, but not by resources and /version."""
    statuses = {
        path: api.request("HEAD", path).status for path in ("/healthz", "/apis", "/openapi/v2", "/version", "/api/v1/nodes")
    }
    assert statuses == {"/healthz": 200, "/apis": 200, "/openapi/v2": 200, "/version": 405, "/api/v1/nodes": 405}
    assert api.request("HEAD", "/apis").body == b""


@pytest.mark.parametrize(
    ("timeout", "problem"),
    [
        ("x", 'invalid duration "x"'), ("1", 'missing unit in duration "1"'), ("-1", 'missing unit in duration "-1"'),
        ("5 s", 'unknown unit " s" in duration "5 s"'), ("1ø", 'unknown unit "\\xc3\\xb8" in duration "1\\xc3\\xb8"'),
        ("1" * 5000 + "s", f'invalid duration "{"1" * 5000}s"'),
    ],
)  # fmt: skip
def test_invalid_timeout_returns_400(api, timeout: str, problem: str) -> None:
    reply = api.get("/api/v1/nodes", {"timeout": timeout})
    assert (reply.status, reply.at("message")) == (400, f"invalid timeout specified in the request URL - time: {problem}")


def test_very_long_numbers_in_queries_return_400(api) -> None:
    """Numbers beyond Python's limit of digits are out of range instead of an internal error."""
    long = "9" * 5000
    reply = api.get("/api/v1/nodes", {"limit": long})
    assert (reply.status, reply.at("message")) == (400, f'strconv.ParseInt: parsing "{long}": value out of range')
    reply = api.get("/api/v1/nodes", {"resourceVersion": long})
    assert (reply.status, reply.at("message").endswith(f'strconv.ParseUint: parsing "{long}": value out of range')) == (400, True)
    reply = api.get("/api/v1/nodes", {"limit": f"{long}x"})
    assert (reply.status, reply.at("message")) == (400, f'strconv.ParseInt: parsing "{long}x": value out of range')


def test_common_response_headers(api) -> None:
    for path in ("/version", "/api/v1/nodes", "/api/v1/namespaces/nope-nope"):
        headers = api.get(path).headers
        assert headers["cache-control"] == "no-cache, private"
        assert re.fullmatch(r"[0-9a-f-]{36}", headers["audit-id"])
        assert re.fullmatch(r"[0-9a-f-]{36}", headers["x-kubernetes-pf-flowschema-uid"])
    assert api.get("/version", headers={"Audit-ID": "mine"}).headers["audit-id"] == "mine"


def test_flow_schema_header_follows_the_flow_schemas(api) -> None:
    schemas = api.get("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas").json["items"]
    names = {schema["metadata"]["uid"]: schema["metadata"]["name"] for schema in schemas}

    def flow(path: str, **headers: str) -> str:
        return names[api.get(path, headers=headers).headers["x-kubernetes-pf-flowschema-uid"]]

    assert flow("/version") == "exempt"
    assert flow("/version", **OTHER_USER) == "global-default"
    assert flow("/healthz", **OTHER_USER) == "probes"


def test_large_responses_are_compressed(api) -> None:
    for number in range(3):
        made = api.post(api.path("configmaps"), {"metadata": {"name": f"c{number}"}, "data": {"x": "y" * 60_000}})
        assert made.status == 201
    packed = api.get(api.path("configmaps"), headers={"Accept-Encoding": "gzip"})
    assert packed.headers.get("content-encoding") == "gzip"
    assert len(packed.body) < 60_000
    assert "content-encoding" not in api.get(api.path("configmaps", "c0"), headers={"Accept-Encoding": "gzip"}).headers


def test_deprecated_api_versions_give_a_warning(api) -> None:
    reply = api.get(api.path("endpoints"))
    assert reply.headers["warning"] == '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"'


@pytest.mark.parametrize(
    ("accept", "start"), [("application/json", b'{"kind":"Status"'), ("application/yaml", b"apiVersion: v1\n")]
)
def test_errors_are_returned_in_the_requested_format(api, accept: str, start: bytes) -> None:
    reply = api.get("/api/v1/nodes/nope-nope", headers={"Accept": accept})
    assert reply.status == 404
    assert reply.body.startswith(start)


def test_not_acceptable_message_lists_media_types(api) -> None:
    reply = api.get("/api/v1/nodes", headers={"Accept": "text/html"})
    assert (reply.status, reply.at("reason")) == (406, "NotAcceptable")
    assert "application/json, application/yaml, application/vnd.kubernetes.protobuf" in reply.at("message")


def test_too_large_body_returns_413(api) -> None:
    reply = api.post(api.path("configmaps"), b'{"x": "' + b"y" * (3 * 1024 * 1024) + b'"}')
    assert (reply.status, reply.at("message")) == (413, "Request entity too large: limit is 3145728")
