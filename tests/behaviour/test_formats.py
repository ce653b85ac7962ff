"""Content negotiation, and the formats of request and response bodies."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
KNOWN = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
NOT_ACCEPTED = f"only the following media types are accepted: {KNOWN}"
STREAMS = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
NOT_ROUTED = f"406: Not Acceptable\n\nAvailable representations: {KNOWN}"


@pytest.fixture
def config(api) -> str:
    """The path of a config map."""
    assert api.post(api.path("configmaps"), {"metadata": {"name": "m"}, "data": {"k": "<v>"}}).status == 201
    return api.path("configmaps", "m")


def varint(number: int) -> bytes:
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + varint(number >> 7)


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def document(api_version: str, kind: str, content: bytes) -> bytes:
    return b"k8s\0" + field(1, field(1, api_version.encode()) + field(2, kind.encode())) + field(2, content)


# ---------------------------------------------------------------- content negotiation


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        ("", "application/json"),
        ("application/json;q=0.5", "application/json"),
        ("application/yaml;q=0.5,application/json;q=0.1", YAML),
        ("application/json;q=0,application/yaml", YAML),
        ("application/json;q=x", "application/json"),
        ("text/html, application/json", "application/json"),
        ("text/html;q=0.9, */*;q=0.1", "application/json"),
        ("application/json; charset=utf-8", "application/json"),
        ("application/json;stream=watch", "application/json"),
        (f"{PROTOBUF};q=0", PROTOBUF),
        (f"{PROTOBUF},application/json", PROTOBUF),
        ("application/json;as=Table;v=v1;g=meta.k8s.io;q=0.1,application/json", "application/json"),
    ],
)
def test_accept_header_chooses_the_content_type(api, config: str, accept: str, chosen: str) -> None:
    reply = api.get(config, headers={"Accept": accept})
    assert (reply.status, reply.headers["content-type"]) == (200, chosen)


@pytest.mark.parametrize("accept", ["*", "application/*", "text/plain", "Application/JSON", ",", "application", "/json"])
def test_unroutable_accept_header_returns_406(api, config: str, accept: str) -> None:
    reply = api.get(config, headers={"Accept": accept})
    assert (reply.status, reply.at("message"), reply.at("details")) == (406, NOT_ROUTED, {})
    listing = api.get(api.path("configmaps"), headers={"Accept": accept})
    assert listing.at("message") == f"{NOT_ROUTED}, {STREAMS}"


@pytest.mark.parametrize(
    "parameters",
    [
        "as=Nope;v=v1;g=meta.k8s.io", "as=Table", "as=Table;v=v1", "as=Table;v=v2;g=meta.k8s.io", "as=Table;v=v1;g=other",
        "v=v1;g=meta.k8s.io", "stream=other",
    ],
)  # fmt: skip
def test_unsupported_media_type_parameters_return_406(api, config: str, parameters: str) -> None:
    reply = api.get(config, headers={"Accept": f"application/json;{parameters}"})
    assert (reply.status, reply.at("message"), reply.at("reason")) == (406, NOT_ACCEPTED, "NotAcceptable")


def test_errors_use_the_negotiated_content_type(api) -> None:
    absent = api.path("configmaps", "absent")
    reply = api.get(absent, headers={"Accept": YAML})
    assert (reply.status, reply.headers["content-type"]) == (404, YAML)
    assert yaml.safe_load(reply.body)["reason"] == "NotFound"
    reply = api.get(absent, headers={"Accept": PROTOBUF})
    assert reply.body.startswith(b"k8s\0\n\x0c\n\x02v1\x12\x06Status")
    assert b'configmaps "absent" not found' in reply.body


# ---------------------------------------------------------------- JSON


def test_compact_and_pretty_json(api, config: str) -> None:
    compact = api.get(config)
    assert compact.body.startswith(b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"m",')
    assert compact.body.endswith(rb'"data":{"k":"\u003cv\u003e"}}' + b"\n")
    for query, headers in (
        ("pretty=1", {}),
        ("pretty=true", {}),
        ("", {"User-Agent": "curl/8"}),
        ("", {"Accept": "application/json;pretty=1"}),
    ):
        pretty = api.get(config, query, headers=headers)
        assert pretty.body.startswith(b'{\n  "kind": "ConfigMap",\n  "apiVersion": "v1",\n  "metadata": {\n    "name": "m",\n')
        assert pretty.body.endswith(b"\n}")
        assert pretty.json == compact.json
    for query, headers in (
        ("pretty=0", {"User-Agent": "curl/8"}),
        ("pretty=no", {"User-Agent": "curl/8"}),
        ("", {"Accept": "application/json;pretty=0"}),
    ):
        assert api.get(config, query, headers=headers).body == compact.body


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("{", "unexpected end of JSON input"),
        ("[", "unexpected end of JSON input"),
        ("{'a':1}", r"invalid character '\'' looking for beginning of object key string"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ("{} {}", "invalid character '{' after top-level value"),
        ("[" * 10_001, "invalid character '[' exceeded max depth"),
        ('{"a":tru', "invalid character ' ' in literal true (expecting 'e')"),
        ('{"a":1.', "invalid character ' ' after decimal point in numeric literal"),
        ('{"kind":1}', "json: cannot unmarshal number into Go struct field .kind of type string"),
        ('{"KIND":[],"kind":"ConfigMap"}', "json: cannot unmarshal array into Go struct field .kind of type string"),
        ('{"kind":{},"kind":"ConfigMap"}', "json: cannot unmarshal object into Go struct field .kind of type string"),
    ],
)
def test_invalid_json_is_rejected(api, body: str, problem: str) -> None:
    reply = api.post(api.path("configmaps"), body)
    assert (reply.status, reply.at("reason")) == (400, "BadRequest")
    message = (
        f"the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: {problem}"
    )
    assert reply.at("message").startswith(message)


@pytest.mark.parametrize("content_type", ["application/json", YAML])
def test_kind_and_api_version_are_matched_case_insensitively(api, content_type: str) -> None:
    """The differently spelled members are still reported as unknown fields."""
    reply = api.post(api.path("configmaps"), '{"metadata":{"name":"x"},"KIND":"Other"}', content_type=content_type)
    start = 'Other in version "v1" cannot be handled as a ConfigMap: no kind "Other" is registered for version "v1"'
    assert (reply.status, reply.at("message").startswith(start)) == (400, True)
    reply = api.post(api.path("configmaps"), '{"metadata":{"name":"x"},"KIND":"ConfigMap"}', content_type=content_type)
    assert (reply.status, reply.headers["warning"]) == (201, '299 - "unknown field \\"KIND\\""')


def test_overridden_duplicate_members_are_still_type_checked(api) -> None:
    """Earlier values of a duplicate member are checked as well, although the last one is used."""
    reply = api.post(api.path("configmaps"), '{"metadata":{"name":"x"},"data":{"a":1},"data":{"a":"b"}}')
    assert (reply.status, reply.at("message")) == (
        400,
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field '
        "ConfigMap.data of type string",
    )


def test_delete_options_of_unknown_kind_are_rejected(api) -> None:
    reply = api.delete(api.path("configmaps", "x"), '{"kind":"X"}')
    assert reply.at("message").startswith('no kind "X" is registered for version "meta.k8s.io/v1" in scheme')


@pytest.mark.parametrize("api_version", ["v1", "meta.k8s.io/v1", "apps/v1", "nope/v9"])
def test_delete_options_are_accepted_in_any_api_version(api, config: str, api_version: str) -> None:
    options = document(api_version, "DeleteOptions", field(2, field(1, b"other")))
    assert api.delete(config, options, content_type=PROTOBUF).status == 409


@pytest.mark.parametrize("api_version", ["v1", "apps/v1", "nope/v9"])
def test_unversioned_kinds_are_known_in_every_version(api, api_version: str) -> None:
    reply = api.post(api.path("configmaps"), {"apiVersion": api_version, "kind": "Status"})
    problem = "cannot be handled as a ConfigMap: converting (v1.Status) to (core.ConfigMap): unknown conversion"
    assert reply.at("message") == f'Status in version "{api_version.rpartition("/")[2]}" {problem}'


@pytest.mark.parametrize(
    ("number", "shown"),
    [("18446744073709551615", "18446744073709551615"), ("-9223372036854775809", "-9223372036854776000"), ("1e22", "1e+22")],
)
@pytest.mark.parametrize("body", ["spec: {activeDeadlineSeconds: %s}", '{"spec":{"activeDeadlineSeconds":%s}}'])
def test_large_numbers_in_yaml(api, body: str, number: str, shown: str) -> None:
    reply = api.post(api.path("pods"), body % number, content_type=YAML)
    problem = f"json: cannot unmarshal number {shown} into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64"
    assert reply.at("message") == f'Pod in version "v1" cannot be handled as a Pod: {problem}'


def test_invalid_unicode_in_json_is_replaced(api) -> None:
    body = b'{"metadata":{"name":"u"},"data":{"k":"\xff\\ud800"}}'
    assert api.post(api.path("configmaps"), body).at("data", "k") == "\ufffd\ufffd"


def test_invalid_utf8_in_protobuf_is_preserved(api) -> None:
    """Protobuf responses contain the original bytes; in JSON they are replaced."""
    content = field(1, field(1, b"raw")) + field(2, field(1, b"k") + field(2, b"a\xff\xc3<"))
    made = api.post(api.path("configmaps"), document("v1", "ConfigMap", content), content_type=PROTOBUF)
    assert (made.status, made.at("data", "k")) == (201, "a\ufffd\ufffd<")
    assert made.body.endswith(b'"data":{"k":"a\\ufffd\\ufffd\\u003c"}}\n')
    assert b"\x12\x09\n\x01k\x12\x04a\xff\xc3<" in api.get(api.path("configmaps", "raw"), headers={"Accept": PROTOBUF}).body
    assert yaml.safe_load(api.get(api.path("configmaps", "raw"), headers={"Accept": YAML}).body)["data"] == {
        "k": "a\ufffd\ufffd<"
    }
    refused = api.post(api.path("configmaps"), document("v1", "ConfigMap", field(1, field(1, b"\xffa"))), content_type=PROTOBUF)
    assert refused.status == 422
    assert refused.at("message").startswith(r'ConfigMap "\xffa" is invalid: metadata.name: Invalid value: "\xffa": ')
    assert refused.at("details", "name") == "\ufffda"


# ---------------------------------------------------------------- YAML

MANIFEST = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: manifest
  labels: &labels {a: 'true'}
  annotations: *labels
data:
  bool: 'yes'
  number: '0x1f'
  'null': 'null'
  lines: |
    one
    two
  colon: 'a: b'
  date: '2001-01-01'
  emoji: "\\U0001F642"
"""


def test_yaml_request_and_response(api) -> None:
    reply = api.post(api.path("configmaps"), MANIFEST, content_type=YAML, headers={"Accept": YAML})
    assert (reply.status, reply.headers["content-type"]) == (201, YAML)
    assert reply.body.decode().startswith(
        """apiVersion: v1
data:
  bool: "yes"
  colon: 'a: b'
  date: "2001-01-01"
  emoji: "\\U0001F642"
  lines: |
    one
    two
  "null": "null"
  number: "0x1f"
kind: ConfigMap
metadata:
  annotations:
    a: "true"
"""
    )
    assert yaml.safe_load(reply.body) == api.get(api.path("configmaps", "manifest")).json


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("metadata: [", "yaml: line 1: did not find expected node content"),
        ("a: b\n  c: d", "yaml: line 2: mapping values are not allowed in this context"),
        ("a: *b", "yaml: unknown anchor 'b' referenced"),
        ('a: b\nc: "d\\/e"', "yaml: line 2: found unknown escape character"),
        ("~: 1e3", "unsupported map key of type: %!s(<nil>), key: <nil>, value: 1000"),
    ],
)
def test_invalid_yaml_is_rejected(api, body: str, problem: str) -> None:
    reply = api.post(api.path("configmaps"), body, content_type=YAML)
    shown = body.encode().hex()
    message = f"the object provided is unrecognized (must be of type ConfigMap): {problem} ({shown})"
    assert (reply.status, reply.at("message")) == (400, message)


def test_strings_that_yaml_cannot_represent(api) -> None:
    """YAML responses show the JSON as a YAML parser reads it."""
    made = api.post(api.path("configmaps"), {"metadata": {"name": "x"}, "data": {"k": "a\x85b"}})
    assert made.status == 201
    assert yaml.safe_load(api.get(api.path("configmaps", "x"), headers={"Accept": YAML}).body)["data"] == {"k": "a b"}
    made = api.post(api.path("configmaps"), {"metadata": {"name": "y"}, "data": {"k": "\x7f"}}, headers={"Accept": YAML})
    problem = {"message": "yaml: control characters are not allowed", "status": "Failure", "code": 500, "metadata": {}}
    assert (made.status, yaml.safe_load(made.body)) == (500, {"kind": "Status", "apiVersion": "v1", **problem})
    assert api.get(api.path("configmaps", "y")).at("data", "k") == "\x7f"
    assert api.get(api.path("configmaps"), headers={"Accept": YAML}).status == 500
    assert api.delete(api.path("configmaps", "y")).status == 200  # or nobody could list all config maps so


def test_unquoted_yaml_scalars_have_the_wrong_type(api) -> None:
    """A bare y is true, a bare number a number."""
    reply = api.post(api.path("configmaps"), "metadata: {name: x}\ndata: {n: y}", content_type=YAML)
    assert reply.status == 400
    assert reply.at("message").endswith("json: cannot unmarshal bool into Go struct field ConfigMap.data of type string")


def test_watch_as_yaml_returns_406(api) -> None:
    reply = api.get(api.path("configmaps"), "watch=1&timeoutSeconds=1", headers={"Accept": YAML})
    assert (reply.status, reply.headers["content-type"]) == (406, YAML)
    assert yaml.safe_load(reply.body)["message"] == f"only the following media types are accepted: {STREAMS}"


# ---------------------------------------------------------------- Protobuf


def test_protobuf_request_and_response(api) -> None:
    content = field(1, field(1, b"p") + field(11, field(1, b"l") + field(2, b"v"))) + field(2, field(1, b"k") + field(2, b"v"))
    made = api.post(api.path("configmaps"), document("v1", "ConfigMap", content), content_type=PROTOBUF)
    assert (made.status, made.at("data"), made.at("metadata", "labels")) == (201, {"k": "v"}, {"l": "v"})
    read = api.get(api.path("configmaps", "p"), headers={"Accept": PROTOBUF})
    assert read.headers["content-type"] == PROTOBUF
    assert read.body.startswith(b"k8s\0\n\x0f\n\x02v1\x12\tConfigMap\x12")
    assert read.body.endswith(field(2, field(1, b"k") + field(2, b"v")) + b"\x1a\0\x22\0")
    again = api.put(api.path("configmaps", "p"), read.body, content_type=PROTOBUF)
    assert (again.status, again.json) == (200, made.json)


def test_lists_and_watches_as_protobuf(api, config: str) -> None:
    selector = {"fieldSelector": "metadata.name=m"}
    item = api.get(config, headers={"Accept": PROTOBUF}).body.removesuffix(b"\x1a\0\x22\0")
    content = item[item.index(b"\n", 20) :]
    listing = api.get(api.path("configmaps"), selector, headers={"Accept": PROTOBUF})
    assert listing.body.startswith(b"k8s\0\n\x13\n\x02v1\x12\rConfigMapList\x12")
    assert listing.body.count(content) == 1
    query = {**selector, "watch": "1", "timeoutSeconds": "1"}
    watched = api.get(api.path("configmaps"), query, headers={"Accept": PROTOBUF}, elapse=1.1)
    assert watched.headers["content-type"] == f"{PROTOBUF};stream=watch"
    assert int.from_bytes(watched.body[:4], "big") == len(watched.body) - 4
    assert watched.body[4:].startswith(field(1, b"ADDED"))
    assert watched.body.count(content) == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            b"{}",
            "the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be a protobuf message, "
            "expected prefix [107 56 115 0] ({})",
        ),
        (
            document("v1", "ConfigMap", b"\x08\1"),
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: proto: wrong wireType = 0 for field ObjectMeta',
        ),
        (document("v1", "ConfigMap", b"\x0a\x05"), 'ConfigMap in version "v1" cannot be handled as a ConfigMap: unexpected EOF'),
    ],
)
def test_invalid_protobuf_is_rejected(api, body: bytes, message: str) -> None:
    reply = api.post(api.path("configmaps"), body, content_type=PROTOBUF)
    assert (reply.status, reply.at("message")) == (400, message)


# ---------------------------------------------------------------- content types of requests


@pytest.mark.parametrize(
    "content_type", ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/json;"]
)
def test_accepted_request_content_types(api, content_type: str) -> None:
    assert api.post(api.path("configmaps"), {"metadata": {"name": "x"}}, content_type=content_type).status == 201


@pytest.mark.parametrize(
    "content_type", ["text/plain", "*/*", "application/xml", "application/json;a=b;a=c", "application/json,"]
)
def test_unknown_request_content_types_return_415(api, content_type: str) -> None:
    reply = api.post(api.path("configmaps"), {"metadata": {"name": "x"}}, content_type=content_type)
    message = f"the body of the request was in an unknown format - accepted media types include: {KNOWN}"
    assert (reply.status, reply.at("reason"), reply.at("message")) == (415, "UnsupportedMediaType", message)


def test_unknown_patch_content_type_returns_415(api, config: str) -> None:
    reply = api.patch(config, {}, "application/json")
    assert (reply.status, reply.at("message")) == (415, "415: Unsupported Media Type")


def test_all_formats_have_the_same_content(api, config: str) -> None:
    obj: Any = api.get(config).json
    assert yaml.safe_load(api.get(config, headers={"Accept": YAML}).body) == obj
    listing: Any = api.get(api.path("configmaps"), {"fieldSelector": "metadata.name=m"}).json
    del obj["kind"], obj["apiVersion"]
    assert listing["items"] == [obj]
