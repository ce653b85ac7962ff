"""Tables and PartialObjectMetadata, as requested by kubectl and caching clients."""

from __future__ import annotations

import re
from typing import Any

import pytest

GROUP = "v=v1;g=meta.k8s.io"
TABLE = {"Accept": f"application/json;as=Table;{GROUP}"}
METADATA = {"Accept": f"application/json;as=PartialObjectMetadata;{GROUP}"}
METADATA_LIST = {"Accept": f"application/json;as=PartialObjectMetadataList;{GROUP}"}

POD: dict[str, Any] = {
    "metadata": {"name": "p", "labels": {"app": "a"}},
    "spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}]},
}


@pytest.fixture
def pod(api) -> str:
    assert api.post(api.path("serviceaccounts"), {"metadata": {"name": "default"}}).status in (201, 409)
    body = {**POD, "spec": {**POD["spec"], "automountServiceAccountToken": False}}
    assert api.post(api.path("pods"), body).status == 201
    return api.path("pods", "p")


def names(table: Any) -> list[str]:
    return [column["name"] for column in table["columnDefinitions"]]


def test_table_of_a_list(api, pod: str) -> None:
    reply = api.get(api.path("pods"), headers=TABLE)
    table = reply.json
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert list(table) == ["kind", "apiVersion", "metadata", "columnDefinitions", "rows"]
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["metadata"]["resourceVersion"].isdigit()
    assert names(table) == ["Name", "Ready", "Status", "Restarts", "Age", "IP", "Node", "Nominated Node", "Readiness Gates"]
    assert [column["priority"] for column in table["columnDefinitions"]] == [0, 0, 0, 0, 0, 1, 1, 1, 1]
    [row] = table["rows"]
    assert row["cells"][:4] == ["p", "0/2", "Pending", "0"]
    assert re.fullmatch(r"\d+s", row["cells"][4])
    assert row["cells"][5:] == ["<none>"] * 4
    assert row["object"] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": api.get(pod).at("metadata"),
    }


def test_table_of_a_single_object(api, pod: str) -> None:
    table = api.get(pod, headers=TABLE).json
    assert table["metadata"] == {"resourceVersion": api.get(pod).at("metadata", "resourceVersion")}
    assert [row["cells"][0] for row in table["rows"]] == ["p"]


@pytest.mark.parametrize(("include", "kind"), [("Object", "Pod"), ("Metadata", "PartialObjectMetadata"), ("None", None)])
def test_include_object_parameter(api, pod: str, include: str, kind: str | None) -> None:
    [row] = api.get(api.path("pods"), {"includeObject": include}, headers=TABLE).json["rows"]
    assert (row["object"] and row["object"]["kind"]) == kind
    if include == "Object":
        assert row["object"] == api.get(pod).json


def test_invalid_include_object_returns_400(api, pod: str) -> None:
    reply = api.get(api.path("pods"), {"includeObject": "x"}, headers=TABLE)
    problem = "includeObject: Invalid value: \"x\": must be 'Metadata', 'Object', 'None', or empty"
    assert (reply.status, reply.at("message")) == (400, f"Unable to convert to Table as requested: {problem}")


def test_table_row_of_a_failed_pod(api, pod: str) -> None:
    status = {
        "phase": "Failed",
        "podIPs": [{"ip": "10.0.0.9"}],
        "podIP": "10.0.0.9",
        "containerStatuses": [
            {
                "name": "c",
                "image": "i",
                "imageID": "",
                "ready": False,
                "restartCount": 3,
                "state": {"terminated": {"exitCode": 1, "reason": "Error"}},
            },
            {
                "name": "d",
                "image": "j",
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": {"terminated": {"exitCode": 0, "reason": "Completed"}},
            },
        ],
    }
    assert api.patch(f"{pod}/status", {"status": status}, "application/merge-patch+json").status == 200
    [row] = api.get(pod, headers=TABLE).json["rows"]
    assert row["cells"][:4] == ["p", "0/2", "Error", "3"]
    assert row["cells"][5] == "10.0.0.9"
    assert row["conditions"] == [{"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}]


@pytest.mark.parametrize(
    ("plural", "group", "body", "cells"),
    [
        ("configmaps", "v1", {"data": {"a": "", "b": ""}}, {"Name": "x", "Data": "2"}),
        ("secrets", "v1", {"data": {"a": ""}}, {"Type": "Opaque", "Data": 1}),
        (
            "services",
            "v1",
            {"spec": {"clusterIP": "None", "ports": [{"port": 80}], "selector": {"b": "1", "a": "2"}}},
            {"Type": "ClusterIP", "Cluster-IP": "None", "External-IP": "<none>", "Port(s)": "80/TCP", "Selector": "a=2,b=1"},
        ),
        (
            "deployments",
            "apps/v1",
            {
                "spec": {
                    "replicas": 2,
                    "selector": {"matchLabels": {"a": "b"}},
                    "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]},
                }
            },
            {"Ready": "0/2", "Up-to-date": 0, "Available": 0, "Containers": "c,d", "Images": "i,j", "Selector": "a=b"},
        ),
        (
            "jobs",
            "batch/v1",
            {"spec": {"suspend": True, "template": {"spec": {**POD["spec"], "restartPolicy": "Never"}}}},
            {"Completions": "0/1", "Duration": "", "Containers": "c,d"},
        ),
        ("leases", "coordination.k8s.io/v1", {"spec": {"holderIdentity": "me"}}, {"Holder": "me"}),
        ("roles", "rbac.authorization.k8s.io/v1", {"rules": []}, {"Name": "x"}),
        (
            "ingresses",
            "networking.k8s.io/v1",
            {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}},
            {"Class": "<none>", "Hosts": "*", "Address": "", "Ports": "80"},
        ),
    ],
)
def test_table_cells_of_kinds(api, plural: str, group: str, body: dict[str, Any], cells: dict[str, Any]) -> None:
    assert api.post(api.path(plural, group=group), {"metadata": {"name": "x"}, **body}).status == 201
    table = api.get(api.path(plural, "x", group=group), headers=TABLE).json
    [row] = table["rows"]
    found = dict(zip(names(table), row["cells"], strict=True))
    assert {name: str(found[name]) for name in cells} == {name: str(cell) for name, cell in cells.items()}


def test_kinds_without_printer_show_created_at(api) -> None:
    made = api.post(api.path("roles", group="rbac.authorization.k8s.io/v1"), {"metadata": {"name": "x"}}).json
    table = api.get(api.path("roles", "x", group="rbac.authorization.k8s.io/v1"), headers=TABLE).json
    assert names(table) == ["Name", "Created At"]
    assert table["rows"][0]["cells"] == ["x", made["metadata"]["creationTimestamp"]]


def test_table_of_an_empty_list(api) -> None:
    table = api.get(api.path("leases", group="coordination.k8s.io/v1"), headers=TABLE).json
    assert table["rows"] == []
    table = api.get(api.path("roles", group="rbac.authorization.k8s.io/v1"), headers=TABLE).json
    assert table["rows"] is None


def test_watch_as_table(api) -> None:
    for name in ("a", "b"):
        assert api.post(api.path("leases", group="coordination.k8s.io/v1"), {"metadata": {"name": name}}).status == 201
    reply = api.get(api.path("leases", group="coordination.k8s.io/v1"), "watch=1", headers=TABLE, lines=2)
    first, second = (line for line in reply.body.splitlines())
    assert b'"columnDefinitions":[{' in first
    assert b'"columnDefinitions":null' in second
    assert b'"type":"ADDED","object":{"kind":"Table"' in second


# ---------------------------------------------------------------- PartialObjectMetadata


def test_partial_object_metadata(api, pod: str) -> None:
    reply = api.get(pod, headers=METADATA)
    assert reply.json == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": api.get(pod).at("metadata"),
    }


def test_partial_object_metadata_list(api, pod: str) -> None:
    reply = api.get(api.path("pods"), headers=METADATA_LIST)
    assert (reply.at("kind"), reply.at("apiVersion")) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    assert reply.at("items") == [
        {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": api.get(pod).at("metadata")}
    ]


def test_metadata_of_list_or_object_mismatch_returns_406(api, pod: str) -> None:
    reply = api.get(pod, headers=METADATA_LIST)
    assert (reply.status, reply.at("message")) == (
        406,
        "you requested PartialObjectMetadataList, but the requested object is not a list (*core.Pod)",
    )
    reply = api.get(api.path("pods"), headers=METADATA)
    assert (reply.status, reply.at("message")) == (
        406,
        "you requested PartialObjectMetadata, but the requested object is a list (*core.PodList)",
    )


def test_partial_object_metadata_as_protobuf(api, pod: str) -> None:
    accept = f"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;{GROUP}"
    reply = api.get(pod, headers={"Accept": accept})
    assert reply.headers["content-type"] == "application/vnd.kubernetes.protobuf"
    assert reply.body.startswith(b"k8s\0\n'\n\x0emeta.k8s.io/v1\x12\x15PartialObjectMetadata\x12")


def test_watch_as_partial_object_metadata(api, pod: str) -> None:
    reply = api.get(api.path("pods"), "watch=1", headers=METADATA, lines=1)
    assert reply.body.startswith(
        b'{"type":"ADDED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"p",'
    )


def test_partial_metadata_omits_conversion_annotations(api) -> None:
    """Annotations that hold fields of another API version are not shown."""
    pods = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    body = {
        "metadata": {"name": "d", "annotations": {"x": "y"}},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": pods},
    }
    path = api.path("daemonsets", group="apps/v1")
    assert api.post(path, body).at("metadata", "annotations") == {"deprecated.daemonset.template.generation": "1", "x": "y"}
    for view, place in ((METADATA_LIST, ("items", 0)), (TABLE, ("rows", 0, "object"))):
        assert api.get(path, headers=view).at(*place, "metadata", "annotations") == {"x": "y"}
    assert api.get(f"{path}/d", headers=METADATA).at("metadata", "annotations") == {"x": "y"}
    scaler = {
        "metadata": {"name": "h"},
        "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": {"kind": "Deployment", "name": "x", "apiVersion": "apps/v1"},
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 5}},
        },
    }
    assert api.post(api.path("horizontalpodautoscalers", group="autoscaling/v2"), scaler).status == 201
    old = api.path("horizontalpodautoscalers", "h", group="autoscaling/v1")
    assert "annotations" in api.get(old).at("metadata")
    assert "annotations" not in api.get(old, headers=METADATA).at("metadata")


def test_write_responses_as_table_or_metadata(api) -> None:
    made = api.post(api.path("configmaps"), {"metadata": {"name": "x"}}, headers=METADATA)
    assert (made.status, made.at("kind"), made.at("metadata", "name")) == (201, "PartialObjectMetadata", "x")
    changed = api.patch(api.path("configmaps", "x"), {"data": {"a": "b"}}, "application/merge-patch+json", headers=TABLE)
    assert changed.at("rows", 0, "cells", 1) == 1
    assert api.delete(api.path("configmaps", "x"), headers=METADATA).at("kind") == "Status"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews"),
        ("POST", "/api/v1/namespaces/default/serviceaccounts/nobody/token"),
        ("POST", "/api/v1/namespaces/default/pods/nobody/binding"),
        ("POST", "/api/v1/namespaces/default/pods/nobody/eviction"),
        ("GET", "/api/v1/namespaces/default/pods/nobody/ephemeralcontainers"),
        ("GET", "/api/v1/namespaces/default/pods/nobody/resize"),
        ("GET", "/apis/certificates.k8s.io/v1/certificatesigningrequests/nobody/approval"),
        ("GET", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/nobody/status"),
        ("GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1./status"),
        ("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nobody/status"),
    ],
)
def test_table_of_unsupported_resources_returns_406(api, method: str, path: str) -> None:
    reply = api.request(method, path, {} if method == "POST" else None, headers=TABLE)
    accepted = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    assert (reply.status, reply.at("reason")) == (406, "NotAcceptable")
    assert reply.at("message") == f"only the following media types are accepted: {accepted}"


@pytest.mark.parametrize(
    "path", ["/api/v1/namespaces/default/status", "/apis/apps/v1/namespaces/default/deployments/nobody/scale"]
)
def test_subresources_supporting_tables(api, path: str) -> None:
    assert api.get(path, headers=TABLE).status in (200, 404)


def test_invalid_age_in_tables_is_escaped(api) -> None:
    job = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    body = {"metadata": {"name": "c"}, "spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": job}}}}
    assert api.post(api.path("cronjobs", group="batch/v1"), body).status == 201
    path, late = api.path("cronjobs", "c", group="batch/v1"), {"status": {"lastScheduleTime": "2999-01-01T00:00:00Z"}}
    assert api.patch(f"{path}/status", late, "application/merge-patch+json").status == 200
    assert rb'"\u003cinvalid\u003e"' in api.get(path, headers=TABLE).body
