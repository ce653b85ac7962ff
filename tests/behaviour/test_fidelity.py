"""Edge cases of the real server: preconditions, incomplete versions, duplicate members, writes without changes."""

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
    """The path of a custom resource with a scale subresource, and an object."""
    group = f"{api.name('group')}.example.com"
    numbers = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"spec": numbers, "status": numbers}}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"scale": scale},
    }
    spec = {"group": group, "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}, "versions": [version]}
    assert api.post(DEFINITIONS, {"metadata": {"name": f"widgets.{group}"}, "spec": spec}).status == 201
    path = f"/apis/{group}/v1/namespaces/{api.namespace}/widgets"
    while api.get(path).status != 200:
        pass
    obj = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "one"}, "spec": {"replicas": 1}}
    assert api.post(path, obj).status == 201
    yield path, obj
    api.delete(f"{DEFINITIONS}/widgets.{group}")


# ---------------------------------------------------------------- duplicate members


def test_duplicate_struct_member_null_keeps_the_first_value(api: Api) -> None:
    body = json.dumps(config_map("one"))[:-1] + ', "metadata": null}'
    assert api.post(api.path("configmaps"), body, {"fieldValidation": "Ignore"}).at("metadata", "name") == "one"


def test_duplicate_map_member_null_clears_the_map(api: Api) -> None:
    body = json.dumps(config_map("one"))[:-1] + ', "data": null}'
    made = api.post(api.path("configmaps"), body, {"fieldValidation": "Ignore"})
    assert (made.status, made.at("data")) == (201, None)


# ---------------------------------------------------------------- preconditions


def test_scale_put_with_wrong_uid_returns_conflict(api: Api, widgets: tuple[str, dict[str, Any]]) -> None:
    path, obj = widgets
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "one", "uid": "x"}, "spec": {"replicas": 3}}
    refused = api.put(f"{path}/one/scale", scale, DRY)
    assert (refused.status, refused.at("reason")) == (409, "Conflict")
    group = obj["apiVersion"].partition("/")[0]
    assert refused.at("message").startswith(
        f'Operation cannot be fulfilled on widgets.{group} "one": StorageError: invalid object, Code: 4, Key: /{group}/widgets/'
    )
    assert "Precondition failed: UID in precondition: x, UID in object meta: " in refused.at("message")


def test_dry_run_apply_create_shows_the_given_resource_version(api: Api) -> None:
    body = config_map("none", resourceVersion="123")
    made = api.patch(api.path("configmaps", "none"), body, APPLY, {"fieldManager": "m", **DRY})
    assert (made.status, made.at("metadata", "resourceVersion")) == (201, "123")
    made = api.patch(api.path("configmaps", "none"), body, APPLY, {"fieldManager": "m"})
    assert (made.status, made.at("metadata", "resourceVersion") == "123") == (201, False)


def test_apply_create_drops_self_link(api: Api) -> None:
    made = api.patch(api.path("configmaps", "one"), config_map("one", selfLink="/x"), APPLY, {"fieldManager": "m"})
    assert (made.status, made.at("metadata", "selfLink")) == (201, None)


# ---------------------------------------------------------------- writes without changes


@pytest.mark.parametrize(("metadata", "writes"), [({}, True), ({"labels": {"app": "x"}}, False)])
def test_first_reapply_of_a_job_with_template_labels_writes_again(api: Api, metadata: dict[str, Any], writes: bool) -> None:
    template = {"metadata": metadata, "spec": POD}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "one"}, "spec": {"template": template}}
    path = api.path("jobs", "one", group="batch/v1")
    revisions = [api.patch(path, body, APPLY, {"fieldManager": "m"}).at("metadata", "resourceVersion") for _ in range(3)]
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
def test_content_length_and_content_encoding_headers(api: Api, path: str, accept_encoding: str, headers: dict[str, Any]) -> None:
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
def test_metrics_content_negotiation(api: Api, accept: str, content_type: str, contained: str) -> None:
    reply = api.get("/metrics", headers={"Accept": accept})
    assert reply.headers["content-type"] == content_type
    assert contained in reply.body.decode("latin-1")


# ---------------------------------------------------------------- discovery in other forms

_AS_LIST = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def test_aggregated_discovery_as_protobuf(api: Api) -> None:
    accept = f"application/vnd.kubernetes.protobuf{_AS_LIST}"
    reply = api.get("/api", headers={"Accept": accept})
    assert (reply.status, reply.headers["content-type"]) == (200, accept)
    head = b"k8s\0\n/\n\x16apidiscovery.k8s.io/v2\x12\x15APIGroupDiscoveryList"
    assert reply.body.startswith(head)
    assert b"\n\nconfigmaps\x12" in reply.body


# ---------------------------------------------------------------- order of managedFields


def test_managed_fields_are_sorted_by_operation_time_and_name(api: Api) -> None:
    path = api.path("configmaps/owned")
    for manager in ("b", "a2"):
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned"}, "data": {manager: "1"}}
        api.patch(path, document, APPLY, {"fieldManager": manager})
    for manager in ("c", "0"):
        api.patch(path, {"data": {manager: "1"}}, MERGE, {"fieldManager": manager})
    entries = api.get(path).at("metadata", "managedFields")
    assert [entry["operation"] for entry in entries] == ["Apply", "Apply", "Update", "Update"]
    for pair in (entries[:2], entries[2:]):
        assert pair == sorted(pair, key=lambda entry: (entry["time"], entry["manager"]))


# ---------------------------------------------------------------- defaults in templates


def test_pod_templates_get_the_same_defaults_in_every_kind(api: Api) -> None:
    volumes = [
        {"name": "none"}, {"name": "secret", "secret": {"secretName": "s"}}, {"name": "host", "hostPath": {"path": "/x"}},
        {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        {"name": "claim", "ephemeral": {"volumeClaimTemplate": {"spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1.5Gi"}}}}}},
        {"name": "iscsi", "iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:storage", "lun": 0}},
    ]  # fmt: skip
    container = {
        "name": "c", "image": "i", "ports": [{"containerPort": 80}], "livenessProbe": {"httpGet": {"port": 80}},
        "readinessProbe": {"grpc": {"port": 3}}, "lifecycle": {"preStop": {"httpGet": {"port": 80}}},
        "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    }  # fmt: skip
    labels = {"labels": {"a": "b"}}
    template = {
        "metadata": labels,
        "spec": {"restartPolicy": "Always", "hostNetwork": True, "containers": [container], "volumes": volumes},
    }
    once = {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}  # type: ignore[dict-item]
    selector = {"matchLabels": {"a": "b"}}
    bodies: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
        ("/api/v1/namespaces/{}/podtemplates", {"template": template}, ("template",)),
        ("/api/v1/namespaces/{}/replicationcontrollers", {"spec": {"template": template}}, ("spec", "template")),
        *[
            (f"/apis/apps/v1/namespaces/{{}}/{kind}", {"spec": {"selector": selector, "template": template}}, ("spec", "template"))
            for kind in ("deployments", "replicasets", "daemonsets", "statefulsets")
        ],
        ("/apis/batch/v1/namespaces/{}/jobs", {"spec": {"template": once}}, ("spec", "template")),
        ("/apis/batch/v1/namespaces/{}/cronjobs", {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": once}}}},
         ("spec", "jobTemplate", "spec", "template")),
    ]  # fmt: skip
    specs = []
    for path, body, place in bodies:
        made = api.post(path.format(api.namespace), {"metadata": {"name": "templates"}, **body}, DRY)
        assert made.status == 201, made.json
        specs.append({**made.at(*place, "spec"), "restartPolicy": "Any"})
    assert all(spec == specs[0] for spec in specs)
    assert specs[0]["volumes"][4]["ephemeral"]["volumeClaimTemplate"]["spec"] == {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1536Mi"}}, "volumeMode": "Filesystem",
    }  # fmt: skip
    assert specs[0]["containers"][0]["ports"] == [
        {"containerPort": 80, "protocol": "TCP"}
    ]  # only those of Pods are given a host port


# ---------------------------------------------------------------- incomplete versions


@pytest.mark.parametrize("version", ["group/", "/v1", "other/v1"])
def test_mismatching_api_version_in_a_body_is_rejected(api: Api, widgets: tuple[str, dict[str, Any]], version: str) -> None:
    path, obj = widgets
    shown = version.lstrip("/")
    said = f"the API version in the data ({shown}) does not match the expected API version ({obj['apiVersion']})"
    for refused in (
        api.post(path, {**obj, "apiVersion": version}, DRY),
        api.put(f"{path}/one", {**obj, "apiVersion": version}, DRY),
    ):
        assert (refused.status, refused.at("message")) == (400, said)


def test_null_api_version_in_a_body_is_rejected(api: Api, widgets: tuple[str, dict[str, Any]]) -> None:
    path, obj = widgets
    refused = api.post(path, {**obj, "apiVersion": None}, DRY)
    problem = ".apiVersion accessor error: <nil> is of the type <nil>, expected string"
    assert (refused.status, refused.at("message")) == (400, f'Widget in version "" cannot be handled as a Widget: {problem}')


@pytest.mark.parametrize(("version", "code", "said"), [
    ("group/", 500, "Internal error occurred: Object 'apiVersion' is missing in 'object has no apiVersion field'"),
    ("/", 500, "Internal error occurred: Object 'apiVersion' is missing in 'object has no apiVersion field'"),
    ("/v1", 422, 'Widget "one" is invalid: apiVersion: Invalid value: "v1": must be {wanted}'),
])  # fmt: skip
def test_api_version_in_a_patch_must_match(
    api: Api, widgets: tuple[str, dict[str, Any]], version: str, code: int, said: str
) -> None:
    path, obj = widgets
    for refused in (
        api.patch(f"{path}/one", {"apiVersion": version}, MERGE, DRY),
        api.patch(f"{path}/one", [{"op": "replace", "path": "/apiVersion", "value": version}], JSON_PATCH, DRY),
    ):
        assert (refused.status, refused.at("message")) == (code, said.format(wanted=obj["apiVersion"]))


# ---------------------------------------------------------------- paths without a name


@pytest.mark.parametrize(("method", "path"), [
    ("GET", "deployments//status"),
    ("GET", "deployments//scale?watch=1"),
    ("PUT", "deployments//status"),
    ("GET", "pods//log"),
    ("GET", "pods//exec"),
    ("GET", "pods//proxy/x"),
    ("POST", "pods//eviction"),
    ("POST", "pods//binding"),
    ("POST", "serviceaccounts//token"),
])  # fmt: skip
def test_subresources_without_a_name_are_refused(api: Api, method: str, path: str) -> None:
    root = "/apis/apps/v1" if path.startswith("deployments") else "/api/v1"
    refused = api.request(method, f"{root}/namespaces/{api.namespace}/{path}", None if method == "GET" else {})
    assert (refused.status, refused.at("message")) == (400, "name must be provided")


def test_a_field_selector_names_the_object_of_a_subresource_without_a_name(api: Api) -> None:
    path = f"/apis/apps/v1/namespaces/{api.namespace}/deployments//status"
    refused = api.get(path, {"fieldSelector": "metadata.name=one"})
    assert (refused.status, refused.at("message")) == (404, 'deployments.apps "one" not found')
