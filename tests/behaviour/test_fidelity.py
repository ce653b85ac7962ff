"""Rules that only odd requests show: preconditions, half-empty versions, members given twice, writes that change nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.behaviour.conftest import Api

APPLY, MERGE, JSON_PATCH = "application/apply-patch+yaml", "application/merge-patch+json", "application/json-patch+json"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DRY = {"dryRun": "All"}
POD = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}


def config_map(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"a": "b"}}


@pytest.fixture
def widgets(api: Api) -> Iterator[tuple[str, dict[str, Any]]]:
    """The path of a custom resource with a scale, and an object of it."""
    group = f"{api.name('group')}.example.com"
    numbers = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"spec": numbers, "status": numbers}}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, "subresources": {"scale": scale}}
    spec = {"group": group, "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}, "versions": [version]}
    assert api.post(DEFINITIONS, {"metadata": {"name": f"widgets.{group}"}, "spec": spec}).status == 201
    path = f"/apis/{group}/v1/namespaces/{api.namespace}/widgets"
    while api.get(path).status != 200:
        pass
    obj = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "one"}, "spec": {"replicas": 1}}
    assert api.post(path, obj).status == 201
    yield path, obj
    api.delete(f"{DEFINITIONS}/widgets.{group}")


# ---------------------------------------------------------------- members given twice


def test_a_null_after_a_struct_leaves_it(api: Api) -> None:
    body = json.dumps(config_map("one"))[:-1] + ', "metadata": null}'
    assert api.post(api.path("configmaps"), body, {"fieldValidation": "Ignore"}).at("metadata", "name") == "one"


def test_a_null_after_a_map_is_none(api: Api) -> None:
    body = json.dumps(config_map("one"))[:-1] + ', "data": null}'
    made = api.post(api.path("configmaps"), body, {"fieldValidation": "Ignore"})
    assert (made.status, made.at("data")) == (201, None)


# ---------------------------------------------------------------- preconditions


def test_a_scale_may_mean_an_object_that_has_gone(api: Api, widgets: tuple[str, dict[str, Any]]) -> None:
    path, obj = widgets
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "one", "uid": "x"}, "spec": {"replicas": 3}}
    refused = api.put(f"{path}/one/scale", scale, DRY)
    assert (refused.status, refused.at("reason")) == (409, "Conflict")
    group = obj["apiVersion"].partition("/")[0]
    assert refused.at("message").startswith(
        f'Operation cannot be fulfilled on widgets.{group} "one": StorageError: invalid object, Code: 4, Key: /{group}/widgets/'
    )
    assert "Precondition failed: UID in precondition: x, UID in object meta: " in refused.at("message")


def test_a_dry_run_shows_the_revision_that_an_apply_names(api: Api) -> None:
    body = config_map("none", resourceVersion="123")
    made = api.patch(api.path("configmaps", "none"), body, APPLY, {"fieldManager": "m", **DRY})
    assert (made.status, made.at("metadata", "resourceVersion")) == (201, "123")
    made = api.patch(api.path("configmaps", "none"), body, APPLY, {"fieldManager": "m"})
    assert (made.status, made.at("metadata", "resourceVersion") == "123") == (201, False)


def test_an_apply_that_creates_drops_the_self_link(api: Api) -> None:
    made = api.patch(api.path("configmaps", "one"), config_map("one", selfLink="/x"), APPLY, {"fieldManager": "m"})
    assert (made.status, made.at("metadata", "selfLink")) == (201, None)


# ---------------------------------------------------------------- writes that change nothing


@pytest.mark.parametrize(("metadata", "writes"), [({}, True), ({"labels": {"app": "x"}}, False)])
def test_a_job_is_first_written_with_the_labels_of_its_template(api: Api, metadata: dict[str, Any], writes: bool) -> None:
    template = {"metadata": metadata, "spec": POD}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "one"}, "spec": {"template": template}}
    path = api.path("jobs", "one", group="batch/v1")
    revisions = [
        api.patch(path, body, APPLY, {"fieldManager": "m"}).at("metadata", "resourceVersion") for _ in range(3)
    ]
    assert (revisions[0] != revisions[1], revisions[1] != revisions[2]) == (writes, False)


# ---------------------------------------------------------------- lengths and compression


@pytest.mark.parametrize(("path", "accept_encoding", "headers"), [
    ("/api", "gzip", {"content-length": True, "content-encoding": None}),
    ("/apis", "gzip", {"content-length": False, "content-encoding": None}),
    ("/openapi/v3/api/v1", "gzip", {"content-length": True, "content-encoding": None}),
    ("/openapi/v2", "", {"content-length": True, "content-encoding": None}),
    ("/openapi/v2", "GZIP", {"content-length": False, "content-encoding": "gzip"}),
    ("/metrics", "gzip", {"content-length": False, "content-encoding": "gzip"}),
])  # fmt: skip
def test_what_is_told_of_a_body(api: Api, path: str, accept_encoding: str, headers: dict[str, Any]) -> None:
    found = api.get(path, headers={"Accept": "*/*", "Accept-Encoding": accept_encoding}).headers
    assert ("content-length" in found) == headers["content-length"]
    assert found.get("content-encoding") == headers["content-encoding"]


# ---------------------------------------------------------------- metrics

_FAMILIES = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding="
_PLAIN = "text/plain; version=0.0.4; charset=utf-8; escaping="


@pytest.mark.parametrize(("accept", "content_type", "contained"), [
    ("*/*", f"{_PLAIN}underscores", 'kubernetes_feature_enabled{name="AllAlpha",stage="ALPHA"} 0\n'),
    ("application/openmetrics-text;version=1.0.0", f"{_PLAIN}underscores", "# TYPE kubernetes_feature_enabled gauge\n"),
    ("text/plain;escaping=values", f"{_PLAIN}values", 'aggregator_unavailable_apiservice{name="v1.apps"} 0\n'),
    (f"text/plain;q=0.9,{_FAMILIES}text;q=0.5", f"{_PLAIN}underscores", "# HELP kubernetes_feature_enabled "),
    (f"{_FAMILIES}delimited", f"{_FAMILIES}delimited;escaping=underscores".replace(";", "; "),
     "\x12\x08AllAlpha\n\x0e\n\x05stage\x12\x05ALPHA\x12\t\t\0\0\0\0\0\0\0\0"),
    (f"{_FAMILIES}compact-text", f"{_FAMILIES}compact-text;escaping=underscores".replace(";", "; "),
     'metric:{label:{name:"name"  value:"AllAlpha"}  label:{name:"stage"  value:"ALPHA"}  gauge:{value:0}}'),
    (f"{_FAMILIES}text", f"{_FAMILIES}text;escaping=underscores".replace(";", "; "),
     'metric:  {\n  label:  {\n    name:  "name"\n    value:  "AllAlpha"\n  }\n  label:  {\n'),
])  # fmt: skip
def test_forms_of_metrics(api: Api, accept: str, content_type: str, contained: str) -> None:
    reply = api.get("/metrics", headers={"Accept": accept})
    assert reply.headers["content-type"] == content_type
    assert contained in reply.body.decode("latin-1")


# ---------------------------------------------------------------- half-empty versions


@pytest.mark.parametrize("version", ["group/", "/v1", "other/v1"])
def test_a_version_in_a_body_that_is_another(api: Api, widgets: tuple[str, dict[str, Any]], version: str) -> None:
    path, obj = widgets
    shown = version.lstrip("/")
    said = f"the API version in the data ({shown}) does not match the expected API version ({obj['apiVersion']})"
    for refused in (
        api.post(path, {**obj, "apiVersion": version}, DRY), api.put(f"{path}/one", {**obj, "apiVersion": version}, DRY),
    ):
        assert (refused.status, refused.at("message")) == (400, said)


def test_a_version_in_a_body_that_is_null(api: Api, widgets: tuple[str, dict[str, Any]]) -> None:
    path, obj = widgets
    refused = api.post(path, {**obj, "apiVersion": None}, DRY)
    problem = ".apiVersion accessor error: <nil> is of the type <nil>, expected string"
    assert (refused.status, refused.at("message")) == (400, f'Widget in version "" cannot be handled as a Widget: {problem}')


@pytest.mark.parametrize(("version", "code", "said"), [
    ("group/", 500, "Internal error occurred: Object 'apiVersion' is missing in 'object has no apiVersion field'"),
    ("/", 500, "Internal error occurred: Object 'apiVersion' is missing in 'object has no apiVersion field'"),
    ("/v1", 422, 'Widget "one" is invalid: apiVersion: Invalid value: "v1": must be {wanted}'),
])  # fmt: skip
def test_a_version_in_a_patch(api: Api, widgets: tuple[str, dict[str, Any]], version: str, code: int, said: str) -> None:
    path, obj = widgets
    for refused in (
        api.patch(f"{path}/one", {"apiVersion": version}, MERGE, DRY),
        api.patch(f"{path}/one", [{"op": "replace", "path": "/apiVersion", "value": version}], JSON_PATCH, DRY),
    ):
        assert (refused.status, refused.at("message")) == (code, said.format(wanted=obj["apiVersion"]))
