"""Conversion webhooks: review requests, failures, and the changes that are permitted."""

from __future__ import annotations

import base64
import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from tests.behaviour.webhook_server import JSON, LOCAL, TEXT, Authority, Reply, Webhook

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


# ---------------------------------------------------------------- a webhook


def objects_of(review: dict[str, Any], **changes: Any) -> list[dict[str, Any]]:
    """The objects of a review in the desired version; a change of None removes the member."""
    changed = []
    for obj in review["request"]["objects"]:
        new = {**obj, "apiVersion": review["request"]["desiredAPIVersion"], **changes}
        changed.append({name: value for name, value in new.items() if value is not None})
    return changed


def answer(review: dict[str, Any], *, objects: Any = None, **more: Any) -> Reply:
    """A valid response, optionally with changed members."""
    found = objects_of(review) if objects is None else objects
    response = {"uid": review["request"]["uid"], "result": {"status": "Success"}, "convertedObjects": found, **more}
    response = {name: value for name, value in response.items() if value is not None}
    return 200, JSON, json.dumps({"kind": "ConversionReview", "apiVersion": review["apiVersion"], "response": response}).encode()


def converted(review: dict[str, Any]) -> Reply:
    """v1 has one `host`, v2 the same as `hosts`."""
    found = objects_of(review)
    for obj in found:
        spec = dict(obj.get("spec") or {})
        if obj["apiVersion"].endswith("v2") and "host" in spec:
            spec["hosts"] = [spec.pop("host")]
        elif obj["apiVersion"].endswith("v1") and "hosts" in spec:
            spec["host"] = spec.pop("hosts")[0]
        obj["spec"] = spec
    return answer(review, objects=found)


def metadata(**changes: Any) -> Callable[[dict[str, Any]], Reply]:
    """Respond with changed metadata; None removes a member."""

    def behave(review: dict[str, Any]) -> Reply:
        new = {**review["request"]["objects"][0]["metadata"], **changes}
        kept = {name: value for name, value in new.items() if value is not None}
        return answer(review, objects=objects_of(review, metadata=kept))

    return behave


def broken(_review: dict[str, Any]) -> Reply:
    return 500, TEXT, b"out of order"


# ---------------------------------------------------------------- definitions

#: What errors about a stored object begin with since 1.37: those of reads with all of it, those of writes with the last part.
_CORRUPT = re.compile(
    r"(Internal error occurred: StorageError: corrupt object, Code: 7, Key: /GROUP/gates/\S+, ResourceVersion: 0, "
    r"AdditionalErrorMsg: )?object not decodable revision=\d+: "
)


@dataclass
class Gates:
    """A definition with two versions, v1 stored, and a webhook between them."""

    api: Any
    group: str
    webhook: Webhook

    def path(self, *rest: str, version: str = "v2") -> str:
        return "/".join((f"/apis/{self.group}/{version}/gates", *rest))

    def of(self, name: str = "one", version: str = "v1", **fields: Any) -> dict[str, Any]:
        fields = fields or {"spec": {"host" if version == "v1" else "hosts": "a" if version == "v1" else ["a"]}}
        return {"apiVersion": f"{self.group}/{version}", "kind": "Gate", "metadata": {"name": name}, **fields}

    def create(self, name: str = "one", version: str = "v1", **fields: Any) -> Any:
        made = self.api.post(self.path(version=version), self.of(name, version, **fields))
        assert made.status == 201, made.body
        return made

    def problem(self, reply: Any) -> str:
        """The message of a 500, without what differs from test to test."""
        assert reply.status == 500, reply.body
        text = reply.at("message").replace(self.group, "GROUP").replace(f"{self.webhook.port}", "PORT")
        text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID", text)
        return _CORRUPT.sub("", text, count=1).removeprefix("conversion webhook for GROUP/v1, Kind=Gate ")

    def settle(self) -> None:
        """Wait until written objects have been converted for watches."""
        end = time.monotonic() + 60
        last = self.api.get(self.path(version="v1")).at("metadata", "resourceVersion")
        while self.api.get(self.path(), {"resourceVersion": last}).status != 200:
            assert time.monotonic() < end


def definition(group: str, client_config: dict[str, Any], **conversion: Any) -> dict[str, Any]:
    schemas = {
        "v1": {"host": {"type": "string"}, "size": {"type": "integer", "default": 1}},
        "v2": {
            "hosts": {"type": "array", "items": {"type": "string"}},
            "size": {"type": "integer"},
            "late": {"type": "string", "default": "x"},
        },
    }
    webhook = {"clientConfig": client_config, "conversionReviewVersions": ["v1"], **conversion}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gates.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": "gates", "kind": "Gate"},
            "conversion": {"strategy": "Webhook", "webhook": webhook},
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == "v1",
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {"type": "object", "properties": properties},
                                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                            },
                        }
                    },
                }
                for name, properties in schemas.items()
            ],
        },
    }


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def webhooks(tmp_path: Path, authority: Authority) -> Iterator[Callable[..., Webhook]]:
    made: list[Webhook] = []

    def start(*names: x509.GeneralName, signed_by: Authority = authority, **dates: timedelta) -> Webhook:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Webhook(folder, signed_by, names or LOCAL, converted, **dates))
        return made[-1]

    yield start
    for webhook in made:
        webhook.close()


@pytest.fixture
def define(api: Any, webhooks: Callable[..., Webhook]) -> Iterator[Callable[..., Gates]]:
    made: list[str] = []

    def define(webhook: Webhook | None = None, client_config: dict[str, Any] | None = None, **conversion: Any) -> Gates:
        webhook = webhook or webhooks()
        group = f"c{api.suffix}{len(made)}.example.com"
        body = definition(group, client_config or webhook.client_config, **conversion)
        created = api.post(DEFINITIONS, body)
        assert created.status == 201, created.body
        made.append(body["metadata"]["name"])
        gates = Gates(api, group, webhook)
        end = time.monotonic() + 60
        while api.get(gates.path(version="v1")).status != 200:
            assert time.monotonic() < end
        return gates

    yield define
    for name in made:
        api.delete(f"{DEFINITIONS}/{name}")


@pytest.fixture
def gates(define: Callable[..., Gates]) -> Gates:
    return define()


# ---------------------------------------------------------------- conversion requests


def test_conversion_review_request(gates: Gates) -> None:
    gates.create()
    gates.webhook.seen.clear()
    gates.webhook.requests.clear()
    assert gates.api.get(gates.path("one")).at("spec") == {"hosts": ["a"], "size": 1}  # no defaults of v2
    path, headers = gates.webhook.requests[-1]
    assert (path, headers["Content-Type"]) == ("/convert?timeout=30s", "application/json")
    review = gates.webhook.seen[-1]
    assert list(review) == ["kind", "apiVersion", "request", "response"]
    assert (review["kind"], review["apiVersion"]) == ("ConversionReview", "apiextensions.k8s.io/v1")
    assert review["request"]["desiredAPIVersion"] == f"{gates.group}/v2"
    (sent,) = review["request"]["objects"]
    assert sent["spec"] == {"host": "a", "size": 1}
    assert sorted(sent["metadata"]) == ["creationTimestamp", "generation", "managedFields", "name", "uid"]


def test_first_supported_conversion_review_version_is_used(define: Callable[..., Gates]) -> None:
    gates = define(conversionReviewVersions=["v7", "v1beta1", "v1"])
    gates.create()
    gates.webhook.behave = lambda review: answer(review, objects=objects_of(review), uid="another")  # nobody looks
    assert gates.api.get(gates.path("one")).status == 200
    assert gates.webhook.seen[-1]["apiVersion"] == "apiextensions.k8s.io/v1beta1"


def test_lists_send_one_conversion_request_per_object(gates: Gates) -> None:
    for name in ("one", "two", "three"):
        gates.create(name)
    assert [item["spec"]["hosts"] for item in gates.api.get(gates.path()).at("items")] == [["a"]] * 3
    assert {len(review["request"]["objects"]) for review in gates.webhook.seen} == {1}


# ---------------------------------------------------------------- writes, reads, watches


def test_writes_in_a_non_storage_version_are_converted(gates: Gates) -> None:
    made = gates.create(version="v2")
    assert made.at("apiVersion") == f"{gates.group}/v2"
    assert made.at("spec") == {"hosts": ["a"], "size": 1}  # `late` is unknown to the stored version
    assert gates.api.get(gates.path("one", version="v1")).at("spec") == {"host": "a", "size": 1}
    patched = gates.api.patch(gates.path("one"), {"spec": {"hosts": ["b", "c"]}}, MERGE)
    assert (patched.status, patched.at("spec", "hosts"), patched.at("metadata", "generation")) == (200, ["b"], 2)
    replaced = gates.api.put(gates.path("one"), {**patched.json, "spec": {"hosts": ["d"]}})
    assert (replaced.status, replaced.at("spec")) == (200, {"hosts": ["d"], "size": 1})
    status = gates.api.patch(gates.path("one", "status"), {"status": {"open": True}}, MERGE)
    assert (status.status, status.at("status"), status.at("metadata", "generation")) == (200, {"open": True}, 3)


def test_tables_show_converted_metadata(gates: Gates) -> None:
    gates.create()
    gates.webhook.behave = metadata(labels={"converted": "yes"})
    row = gates.api.get(gates.path("one"), headers={"Accept": TABLE}).at("rows", 0, "object")
    assert row["metadata"]["labels"] == {"converted": "yes"}


def test_label_selectors_match_the_converted_object(gates: Gates) -> None:
    gates.webhook.behave = metadata(labels={"converted": "yes"})
    gates.create()
    names = lambda version, selector: [  # noqa: E731
        item["metadata"]["name"] for item in gates.api.get(gates.path(version=version), {"labelSelector": selector}).at("items")
    ]
    assert names("v2", "converted=yes") == ["one"]
    assert names("v1", "converted=yes") == []


def test_apply_tracks_managed_fields_per_version(gates: Gates) -> None:
    first = gates.api.patch(gates.path("one", version="v1"), gates.of(), APPLY, {"fieldManager": "first"})
    assert first.status == 201, first.body
    second = {**gates.of(version="v2"), "spec": {"size": 4}}
    conflict = gates.api.patch(gates.path("one"), second, APPLY, {"fieldManager": "second"})
    assert conflict.status == 200, conflict.body
    books = [(entry["manager"], entry["apiVersion"]) for entry in conflict.at("metadata", "managedFields")]
    assert books == [("first", f"{gates.group}/v1"), ("second", f"{gates.group}/v2")]
    other = {**gates.of(version="v2"), "spec": {"size": 5}}
    assert gates.api.patch(gates.path("one"), other, APPLY, {"fieldManager": "third"}).status == 409


def test_watch_events_are_converted_to_the_requested_version(gates: Gates) -> None:
    last = gates.create().at("metadata", "resourceVersion")
    gates.create("two", "v2")
    gates.api.patch(gates.path("one"), {"spec": {"hosts": ["z"]}}, MERGE)
    gates.api.delete(gates.path("two"))
    query = {"resourceVersion": last, "timeoutSeconds": "10"}
    shown = {
        version: [
            (event["type"], event["object"]["spec"]) for event in gates.api.watch(gates.path(version=version), query, count=3)
        ]
        for version in ("v1", "v2")
    }
    assert shown == {
        "v1": [
            ("ADDED", {"host": "a", "size": 1}),
            ("MODIFIED", {"host": "z", "size": 1}),
            ("DELETED", {"host": "a", "size": 1}),
        ],
        "v2": [
            ("ADDED", {"hosts": ["a"], "size": 1}),
            ("MODIFIED", {"hosts": ["z"], "size": 1}),
            ("DELETED", {"hosts": ["a"], "size": 1}),
        ],
    }


def test_watch_list_events_are_converted(gates: Gates) -> None:
    gates.create()
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    added, bookmark = gates.api.watch(gates.path(), query, count=2)
    assert (added["type"], added["object"]["spec"]) == ("ADDED", {"hosts": ["a"], "size": 1})
    assert (bookmark["type"], bookmark["object"]["apiVersion"]) == ("BOOKMARK", f"{gates.group}/v2")


def test_watch_waits_while_the_conversion_webhook_fails(gates: Gates) -> None:
    last = gates.create().at("metadata", "resourceVersion")
    gates.settle()
    gates.webhook.behave = broken
    gates.create("two")
    assert gates.api.get(gates.path("one")).status == 500
    assert gates.api.get(gates.path("one", version="v1")).status == 200
    assert gates.api.post(gates.path(), gates.of("three", "v2")).status == 500
    assert gates.api.delete(gates.path("one")).status == 500
    gates.webhook.behave = converted
    (event,) = gates.api.watch(gates.path(), {"resourceVersion": last, "timeoutSeconds": "10"}, count=1)
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "two")


# ---------------------------------------------------------------- errors


FAILED = "failed: "
GVK = "apiextensions.k8s.io/v1, Kind=ConversionReview"


@pytest.mark.parametrize(
    ("behave", "expected"),
    [
        (lambda _: (404, TEXT, b"nobody"), "failed: the server could not find the requested resource"),
        (lambda _: (400, JSON, b"{}"), "failed: the server rejected our request for an unknown reason"),
        (lambda _: (403, TEXT, b" not you \n"), "failed: not you"),
        (
            lambda _: (418, {}, b"teapot"),
            "failed: the server responded with the status code 418 but did not return more information",
        ),
        (broken, 'failed: an error on the server ("out of order") has prevented the request from succeeding'),
        (lambda _: (500, JSON, b"{}"), 'failed: an error on the server ("unknown") has prevented the request from succeeding'),
        (lambda _: (503, {}, b""), "failed: the server is currently unable to handle the request"),
        (lambda _: (500, JSON, b'{"kind":"Status","status":"Failure","message":"told"}'), "failed: told"),
        (lambda _: (200, JSON, b""), "failed: 0-length response with status code: 200 and content type: application/json"),
        (lambda _: (200, JSON, b"{}"), f"failed: expected webhook response of {GVK}, got /, Kind="),
        (
            lambda r: (200, JSON, answer(r)[2].replace(b'"ConversionReview"', b'"Other"')),
            'failed: no kind "Other" is registered for version "apiextensions.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"',
        ),
        (
            lambda r: (200, JSON, answer(r)[2].replace(b"io/v1", b"io/v1beta1")),
            "failed: converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion",
        ),
        (
            lambda _: (200, JSON, json.dumps({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}).encode()),
            "failed: no response provided",
        ),
        (lambda r: answer(r, uid="another"), 'failed: expected response.uid="UID", got "another"'),
        (
            lambda r: answer(r, uid=7),
            "failed: json: cannot unmarshal number into Go struct field ConversionResponse.response.uid of type types.UID",
        ),
        (lambda r: answer(r, result={"status": "Failure", "message": "cannot"}), "failed: cannot"),
        (lambda r: answer(r, result={"status": "Maybe"}), "failed: response.result.status was 'Maybe', not 'Success'"),
        (lambda r: answer(r, objects=[]), "returned 0 objects, expected 1"),
        (lambda r: answer(r, objects=objects_of(r) * 2), "returned 2 objects, expected 1"),
        (lambda r: answer(r, objects=[None]), "unexpected end of JSON input"),
        (lambda r: answer(r, objects=["x"]), "json: cannot unmarshal string into Go value of type map[string]interface {}"),
        (lambda r: answer(r, objects=[{}]), "Object 'Kind' is missing in '{}'"),
        (
            lambda r: answer(r, objects=r["request"]["objects"]),
            "returned invalid object at index 0: invalid groupVersion (expected GROUP/v2, received GROUP/v1)",
        ),
        (
            lambda r: answer(r, objects=objects_of(r, kind="Door")),
            "returned invalid object at index 0: invalid kind (expected Gate, received Door)",
        ),
        (lambda r: answer(r, objects=objects_of(r, metadata="x")), "returned invalid object: must have the same name: one != "),
        (metadata(name="two"), "returned invalid object: must have the same name: one != two"),
        (metadata(namespace="two"), "returned invalid object: must have the same namespace:  != two"),
        (metadata(uid="two"), "returned invalid object: must have the same UID: UID != two"),
        (metadata(labels="x"), "returned invalid metadata: invalid metadata.labels of type string in converted object"),
        (
            metadata(annotations={"a": 5}),
            "returned invalid metadata: metadata.annotations[a] must be a string, but is int64 in converted object",
        ),
    ],
)
def test_failing_conversion_responses_are_reported(
    gates: Gates, behave: Callable[[dict[str, Any]], Reply], expected: str
) -> None:
    gates.create()
    gates.webhook.behave = behave
    assert gates.problem(gates.api.get(gates.path("one"))) == expected


def test_invalid_labels_from_a_conversion_webhook_are_rejected(gates: Gates) -> None:
    gates.create()
    gates.webhook.behave = metadata(labels={"a b": "-"})
    problem = gates.problem(gates.api.get(gates.path("one")))
    assert problem.startswith('returned invalid metadata: [metadata.labels: Invalid value: "a b": name part must consist of')
    assert 'metadata.labels: Invalid value: "-": a valid label must be' in problem


def test_conversion_webhook_may_change_only_labels_and_annotations(gates: Gates) -> None:
    gates.create(metadata={"name": "one", "labels": {"a": "b"}, "annotations": {"c": "d"}}, spec={})
    gates.webhook.behave = metadata(
        labels={"x": "y"},
        annotations=None,
        generation=9,
        finalizers=["a/b"],
        managedFields=[],
        resourceVersion="7",
        creationTimestamp="",
    )
    shown = gates.api.get(gates.path("one"))
    plain = gates.api.get(gates.path("one", version="v1"))
    changed = {**plain.at("metadata"), "labels": {"x": "y"}}
    del changed["annotations"]
    assert shown.at("metadata") == changed


def test_converted_objects_are_pruned_but_not_validated(gates: Gates) -> None:
    gates.create()
    gates.webhook.behave = lambda review: answer(review, objects=objects_of(review, spec={"hosts": 5, "unknown": 1}))
    assert gates.api.get(gates.path("one")).at("spec") == {"hosts": 5}
    gates.webhook.behave = lambda review: answer(review, objects=objects_of(review, spec=None))
    assert "spec" not in gates.api.get(gates.path("one")).json


@pytest.mark.parametrize("content_type", ["application/yaml", "text/plain", "application/json; charset=utf-8"])
def test_content_type_of_the_webhook_response_is_ignored(gates: Gates, content_type: str) -> None:
    gates.create()
    gates.webhook.behave = lambda review: (200, {"Content-Type": content_type}, converted(review)[2])
    assert gates.api.get(gates.path("one")).at("spec") == {"hosts": ["a"], "size": 1}


# ---------------------------------------------------------------- connections


def problem_of(define: Callable[..., Gates], webhook: Webhook | None = None, **client_config: Any) -> str:
    gates = define(webhook, {**(webhook.client_config if webhook else {}), **client_config})
    gates.create()
    return gates.problem(gates.api.get(gates.path("one")))


POST = 'failed: Post "https://127.0.0.1:PORT/convert?timeout=30s": '
UNTRUSTED = "tls: failed to verify certificate: x509: "


def test_conversion_webhook_connection_refused(define: Callable[..., Gates]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    expected = f'failed: Post "https://{place}/?timeout=30s": dial tcp {place}: connect: connection refused'
    assert problem_of(define, url=f"https://{place}") == expected


@pytest.mark.parametrize("bundle", ["", base64.b64encode(b" \n").decode(), Authority(name="somebody else").bundle])
def test_conversion_webhook_certificate_from_an_unknown_authority(
    define: Callable[..., Gates], webhooks: Callable[..., Webhook], bundle: str
) -> None:
    expected = f"{POST}{UNTRUSTED}certificate signed by unknown authority"
    assert problem_of(define, webhooks(), caBundle=bundle) == expected


def test_conversion_webhook_certificate_for_another_host(define: Callable[..., Gates], webhooks: Callable[..., Webhook]) -> None:
    webhook = webhooks(x509.DNSName("a.example.com"), x509.DNSName("b.example.com"))
    expected = "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs"
    assert problem_of(define, webhook) == f"{POST}{UNTRUSTED}{expected}"
    by_name = problem_of(define, webhook, url=f"https://localhost:{webhook.port}/convert")
    assert by_name.endswith(f"{UNTRUSTED}certificate is valid for a.example.com, b.example.com, not localhost")


def test_conversion_webhook_certificate_expired_or_not_yet_valid(
    define: Callable[..., Gates], webhooks: Callable[..., Webhook]
) -> None:
    day = timedelta(days=1)
    for dates, word in (({"begins": -3 * day, "ends": -day}, "after"), ({"begins": day, "ends": 2 * day}, "before")):
        problem = problem_of(define, webhooks(**dates))
        found = re.fullmatch(
            r"certificate has expired or is not yet valid: current time \S+Z is (\w+) \S+Z",
            problem.removeprefix(POST + UNTRUSTED),
        )
        assert found is not None, problem
        assert found[1] == word


def test_conversion_webhook_service_not_found(define: Callable[..., Gates]) -> None:
    expected = 'failed: Post "https://nobody.default.svc:443/?timeout=30s": service "nobody" not found'
    assert problem_of(define, service={"name": "nobody", "namespace": "default"}) == expected


def test_conversion_webhook_service_resolution(
    api: Any, define: Callable[..., Gates], webhooks: Callable[..., Webhook], authority: Authority
) -> None:
    def made(name: str, spec: dict[str, Any]) -> None:
        assert api.post(api.path("services"), {"metadata": {"name": name}, "spec": spec}).status == 201

    made("headless", {"clusterIP": "None", "ports": [{"port": 443}]})
    made("other", {"ports": [{"port": 80}]})
    made("outside", {"type": "ExternalName", "externalName": "localhost"})
    for name, expected in (
        ("headless", 'cannot route to service with ClusterIP "None"'),
        ("other", 'no service port 443 found for service "other"'),
    ):
        problem = problem_of(define, service={"name": name, "namespace": api.namespace, "path": "/convert"})
        assert problem == f'failed: Post "https://{name}.{api.namespace}.svc:443/convert?timeout=30s": {expected}'
    webhook = webhooks(x509.DNSName(f"outside.{api.namespace}.svc"))
    service = {"name": "outside", "namespace": api.namespace, "port": webhook.port}
    gates = define(webhook, {"service": service, "caBundle": authority.bundle})
    gates.create()
    assert gates.api.get(gates.path("one")).at("spec") == {"hosts": ["a"], "size": 1}
    assert webhook.requests[-1][0] == "/?timeout=30s"


def test_crd_with_invalid_ca_bundle_is_not_established(api: Any) -> None:
    group = f"b{api.suffix}.example.com"
    body = definition(group, {"url": "https://127.0.0.1:1", "caBundle": base64.b64encode(b"none").decode()})
    made = api.post(DEFINITIONS, body)
    assert made.status == 201
    place = f"{DEFINITIONS}/gates.{group}"

    def established() -> dict[str, str]:
        conditions = api.get(place).at("status", "conditions") or ()
        return next(({n: c[n] for n in ("status", "reason")} for c in conditions if c["type"] == "Established"), {})

    end = time.monotonic() + 60
    while established().get("reason") != "InvalidCABundle":
        assert time.monotonic() < end
    reply = api.get(f"/apis/{group}/v1/gates")
    assert (reply.status, reply.at("message")) == (500, "Internal error occurred: error resolving resource")
    assert api.get(f"/apis/{group}/v1").status == 404
    api.delete(place)
