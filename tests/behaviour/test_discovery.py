"""Discovery: groups, versions, resources and OpenAPI documents, in every supported format."""

from __future__ import annotations

from typing import Any

import pytest

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
PROTOBUF = "application/vnd.kubernetes.protobuf"


def accept(media_type: str, **more: str) -> dict[str, dict[str, str]]:
    return {"headers": {"Accept": media_type, **more}}


def test_api_versions(api) -> None:
    reply = api.get("/api")
    assert (reply.status, reply.at("kind"), reply.at("versions")) == (200, "APIVersions", ["v1"])
    assert reply.at("serverAddressByClientCIDRs", 0, "clientCIDR") == "0.0.0.0/0"
    assert reply.headers["content-type"] == "application/json"


def test_api_group_list(api) -> None:
    groups = {group["name"]: group for group in api.get("/apis").json["groups"]}
    assert {"apps", "batch", "rbac.authorization.k8s.io", "apiextensions.k8s.io", "events.k8s.io"} <= groups.keys()
    assert "" not in groups
    assert groups["apps"]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
    alone = api.get("/apis/apps").json
    assert alone == {"kind": "APIGroup", "apiVersion": "v1", **groups["apps"]}


def _resources(api, path: str) -> dict[str, dict[str, Any]]:
    reply = api.get(path)
    assert reply.status == 200
    return {resource["name"]: resource for resource in reply.json["resources"]}


def test_api_resource_list(api) -> None:
    core = _resources(api, "/api/v1")
    assert core["pods"]["shortNames"] == ["po"]
    assert core["pods"]["namespaced"] is True
    assert core["nodes"]["namespaced"] is False
    assert core["pods/eviction"]["kind"] == "Eviction"
    assert (core["pods/eviction"]["group"], core["pods/eviction"]["version"]) == ("policy", "v1")
    assert "create" not in core["componentstatuses"]["verbs"]
    assert core["bindings"]["verbs"] == ["create"]
    scale = _resources(api, "/apis/apps/v1")["deployments/scale"]
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")
    assert list(core) == sorted(core)


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/apis/nope.example.com", 404, True),
        ("/apis/nope.example.com/v1", 404, True),
        ("/apis/apps/v9", 404, False),
        ("/api/v9", 404, False),
        ("/apis/apps/v1/nope", 404, False),
        ("/nope", 404, True),
    ],
)
def test_unknown_discovery_paths_return_404(api, path: str, status: int, text: bool) -> None:
    reply = api.get(path)
    assert reply.status == status
    if text:
        assert reply.body == b"404 page not found\n"
    else:
        assert reply.at("kind") == "Status"


@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_discovery_as_yaml_and_protobuf(api, path: str) -> None:
    assert api.get(path, **accept("application/yaml")).body.startswith(
        b"apiVersion: v1\n" if path == "/apis" else b"kind: APIVersions\n"
    )
    protobuf = api.get(path, **accept(PROTOBUF))
    assert protobuf.headers["content-type"] == PROTOBUF
    assert protobuf.body.startswith(b"k8s\0")
    assert api.get(path, **accept("text/html")).status == 406


# ---------------------------------------------------------------- aggregated discovery


def test_aggregated_discovery(api) -> None:
    reply = api.get("/apis", **accept(AGGREGATED.format("v2")))
    assert reply.headers["content-type"] == AGGREGATED.format("v2")
    assert (reply.at("kind"), reply.at("apiVersion")) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    groups = {group["metadata"]["name"]: group for group in reply.json["items"]}
    apps = groups["apps"]["versions"][0]
    deployments = next(resource for resource in apps["resources"] if resource["resource"] == "deployments")
    assert (deployments["scope"], deployments["singularResource"]) == ("Namespaced", "deployment")
    assert [below["subresource"] for below in deployments["subresources"]] == ["scale", "status"]


def test_aggregated_discovery_of_the_core_group(api) -> None:
    (core,) = api.get("/api", **accept(AGGREGATED.format("v2"))).json["items"]
    assert core["metadata"].get("name") is None
    assert core["versions"][0]["version"] == "v1"


def test_accept_header_chooses_aggregated_discovery(api) -> None:
    unknown, beta, known = (AGGREGATED.format(version) for version in ("v9", "v2beta1", "v2"))
    assert api.get("/apis", **accept(f"{unknown}, {beta}, {known}, application/json")).at("kind") == "APIGroupDiscoveryList"
    assert api.get("/apis", **accept(f"application/json, {known}")).at("kind") == "APIGroupDiscoveryList"
    assert api.get("/apis", **accept(f"{unknown}, application/json")).at("kind") == "APIGroupList"
    assert api.get("/apis", **accept(beta)).headers["content-type"] == "application/json"


def test_aggregated_discovery_supports_etags(api) -> None:
    form = AGGREGATED.format("v2")
    first = api.get("/apis", **accept(form))
    etag = first.headers["etag"]
    again = api.get("/apis", **accept(form, **{"If-None-Match": etag}))
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", etag)
    assert "Accept" in first.headers["vary"]


@pytest.mark.parametrize(
    ("path", "status"), [("/api", 405), ("/api/v1", 405), ("/apis", 200), ("/apis/apps", 200), ("/apis/apps/v1", 405)]
)
def test_methods_allowed_on_discovery_paths(api, path: str, status: int) -> None:
    """Group lists accept any method."""
    assert api.post(path, {}).status == status


# ---------------------------------------------------------------- OpenAPI


def test_openapi_v3_index_and_documents(api) -> None:
    paths = api.get("/openapi/v3").json["paths"]
    assert {"api", "api/v1", "apis", "apis/apps/v1", "version"} <= paths.keys()
    url = paths["apis/apps/v1"]["serverRelativeURL"]
    reply = api.get(url)
    assert reply.status == 200
    assert reply.headers["cache-control"] == "public, immutable"
    assert f'"{url.partition("hash=")[2]}"' == reply.headers["etag"]
    assert reply.at("openapi") == "3.0.0"
    assert "/apis/apps/v1/namespaces/{namespace}/deployments/{name}" in reply.json["paths"]
    stale = api.get("/openapi/v3/apis/apps/v1", "hash=0")
    assert (stale.status, stale.headers["location"]) == (301, url)


def test_openapi_v2(api) -> None:
    reply = api.get("/openapi/v2")
    assert (reply.status, reply.at("swagger")) == (200, "2.0")
    pod = reply.json["definitions"]["io.k8s.api.core.v1.Pod"]
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "kind": "Pod", "version": "v1"}]
    parameters = {parameter["name"] for parameter in reply.json["parameters"].values()}
    assert {"fieldManager", "labelSelector", "pretty"} <= parameters
    unchanged = api.get("/openapi/v2", headers={"If-None-Match": reply.headers["etag"]})
    assert (unchanged.status, unchanged.body) == (304, b"")


@pytest.mark.parametrize(("path", "name"), [
    ("/api/v1/namespaces/{name}", "io.k8s.apimachinery.pkg.apis.meta.v1.Status"),  # although it answers the namespace
    ("/api/v1/persistentvolumes/{name}", "io.k8s.api.core.v1.PersistentVolume"),
])  # fmt: skip
def test_openapi_says_what_a_delete_answers(api, path: str, name: str) -> None:
    answer = api.get("/openapi/v3/api/v1").json["paths"][path]["delete"]["responses"]["200"]
    assert answer["content"]["application/json"]["schema"] == {"$ref": f"#/components/schemas/{name}"}


@pytest.mark.parametrize(("path", "family"), [("/openapi/v2", "v2"), ("/openapi/v3/apis/apps/v1", "v3")])
def test_openapi_as_protobuf(api, path: str, family: str) -> None:
    reply = api.get(path, **accept(f"application/com.github.proto-openapi.spec.{family}@v1.0+protobuf"))
    assert reply.headers["content-type"] == f"application/com.github.proto-openapi.spec.{family}.v1.0+protobuf"
    assert b"x-kubernetes-group-version-kind" in reply.body
    assert reply.json is None
    assert api.get(path, **accept("text/html")).status == 406


@pytest.mark.parametrize(("path", "aggregated"), [("/api", True), ("/api/", True), ("/apis", True), ("/apis/", False)])
def test_paths_that_serve_aggregated_discovery(api, path: str, aggregated: bool) -> None:
    reply = api.get(path, **accept(f"{AGGREGATED.format('v2')},application/json"))
    assert (reply.at("kind") == "APIGroupDiscoveryList") is aggregated


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/apis/apps", "only the following media types are accepted: "),
        ("/apis/apiregistration.k8s.io", "406: Not Acceptable\n\nAvailable representations: "),
    ],
)
def test_not_acceptable_message_of_discovery_paths(api, path: str, message: str) -> None:
    known = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    reply = api.get(path, headers={"Accept": "text/plain"})
    assert (reply.status, reply.at("message")) == (406, message + known)


def test_openapi_v3_checks_the_document_before_the_accept_header(api) -> None:
    assert api.get("/openapi/v3/apis/nope", headers={"Accept": "text/plain"}).status == 404
    assert api.get("/openapi/v3/version", headers={"Accept": "text/plain"}).status == 406
    unreadable = api.get("/openapi/v3/version", headers={"Accept": ";q=1"})
    assert (unreadable.status, unreadable.body) == (200, b"")
